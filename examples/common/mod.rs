//! Settings that the examples read from their arguments and their environment, and their exit codes.

use std::error::Error;
use std::process::ExitCode;

use redlock_client::Builder;
use redlock_client::config::ConfigError;

/// Returns the exit code of the program, and prints the message of an error. A `main` that returns a
/// `Result` would print the error's fields instead.
pub(crate) fn exit(done: Result<(), Box<dyn Error>>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the settings that the environment has (`REDLOCK_NODES`, `REDLOCK_RESTART_GUARD`, …). The
/// nodes are the arguments, if there are any.
///
/// The default restart guard assumes nothing about the nodes' memory: a node that has just been
/// started does not vote, because it may have forgotten leases. Servers that were started for a
/// demonstration have no leases to forget; `REDLOCK_RESTART_GUARD=delayed-restart` asserts just that.
pub(crate) fn builder() -> Result<Builder, ConfigError> {
    let builder = Builder::from_env()?;
    let nodes: Vec<String> = std::env::args().skip(1).collect();
    Ok(if nodes.is_empty() { builder } else { builder.nodes(nodes) })
}
