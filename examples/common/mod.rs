//! Settings that the examples read from their arguments and their environment, and their exit codes.

use std::error::Error;
use std::process::ExitCode;

use redlock_client::RestartGuard;

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

/// Returns the URLs of the nodes: the arguments, or else `REDLOCK_NODES`, separated by commas.
pub(crate) fn nodes() -> Vec<String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        return arguments;
    }
    let list = std::env::var("REDLOCK_NODES").unwrap_or_default();
    list.split(',').filter(|url| !url.is_empty()).map(String::from).collect()
}

/// Returns the restart guard. The default assumes nothing about the nodes' memory, as in
/// production.
///
/// A node that has just been started then does not vote, because it may have forgotten leases.
/// Servers that were started for a demonstration have no leases to forget:
/// `REDLOCK_RESTART_GUARD=delayed-restart` asserts just that.
pub(crate) fn restart_guard() -> RestartGuard {
    match std::env::var("REDLOCK_RESTART_GUARD").as_deref() {
        Ok("delayed-restart") => RestartGuard::DelayedRestart,
        _ => RestartGuard::Quarantine,
    }
}
