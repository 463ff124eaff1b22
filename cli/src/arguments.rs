//! The command line.

use core::time::Duration;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use redlock_client::config::parse_duration;

use crate::exit::TAKEN;
use crate::guard::Guard;
use crate::key::Key;
use crate::settings::TlsFiles;

/// Runs a command under a distributed lock (Redlock), and shows who holds one.
#[derive(Debug, Parser)]
#[command(name = "redlock", version, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
The nodes are those of `--nodes`, of the variable REDLOCK_NODES, or of the file of `--config`.

Examples:
  export REDLOCK_NODES=redis://a,redis://b,redis://c REDLOCK_FLEET_MAX_TTL=30s
  redlock inspect
  redlock run --wait 0 --conflict-exit-code 0 nightly-report -- /usr/local/bin/report
  redlock who nightly-report";

const RUN_HELP: &str = "\
Exit codes:
  the command's own; 128 + n if signal n ended it
  121  somebody else has the lock (`--conflict-exit-code` chooses another number)
  122  not acquired for another reason: too few nodes answered or can vote (quarantine), the votes were
       split, the answers came too late, or this client was overloaded
  123  the lease was lost, and the command was ended
  124  the command was ended before its limit (`--limit`)
  125  wrong usage, invalid settings, or an error of the system
  126  the command cannot be executed
  127  there is no such command

The command's environment has KEY as REDLOCK_KEY, its holder's name in `redlock who` as REDLOCK_OWNER, and the \
TTL and the limit in milliseconds as REDLOCK_TTL_MS and REDLOCK_LIMIT_MS.";

const INSPECT_HELP: &str = "\
Exit codes:
  0    no error was found
  1    an error was found: the lock is not safe, or cannot be acquired
  125  wrong usage, invalid settings, or an error of the system";

const WHO_HELP: &str = "\
Exit codes:
  0    somebody holds the lock
  1    nobody does
  122  too few nodes answered
  125  wrong usage, invalid settings, or an error of the system";

const BREAK_HELP: &str = "\
Exit codes:
  0    the holder that was shown has lost the lock: it is free, or somebody else has it by now
  1    nothing was done: the lock is free, or the answer was no
  122  too few nodes deleted the key, or answered
  125  wrong usage, invalid settings, or an error of the system";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Hold a lock while a command runs
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Check the nodes before anything relies on them
    #[command(after_help = INSPECT_HELP)]
    Inspect(Inspect),
    /// Show who holds a lock, on how many nodes, and for how long
    #[command(after_help = WHO_HELP)]
    Who(Who),
    /// Take a lock away from its holder
    #[command(after_help = BREAK_HELP)]
    Break(Break),
}

/// Settings of the nodes, the same for every client of them.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Nodes {
    /// URLs of the nodes, separated by commas; the same for every client
    // Their values are never shown: they may have passwords.
    #[arg(long, value_name = "URL,…")]
    #[arg(env = "REDLOCK_NODES", hide_env_values = true)]
    pub(crate) nodes: Vec<String>,
    /// TOML file with `nodes`, `fleet_max_ttl`, `ttl`, `node_timeout`, `restart_guard`,
    /// `canary_key`, `tls_ca`, `tls_cert`, `tls_key`
    #[arg(long, value_name = "FILE", env = "REDLOCK_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Longest TTL that any client of the nodes uses, in any service
    #[arg(long, value_name = "DURATION", env = "REDLOCK_FLEET_MAX_TTL", value_parser = parse_duration)]
    pub(crate) fleet_max_ttl: Option<Duration>,
    /// Time that a node has to answer [default: 50ms, or a tenth of the TTL if that is less]
    #[arg(long, value_name = "DURATION", env = "REDLOCK_NODE_TIMEOUT", value_parser = parse_duration)]
    pub(crate) node_timeout: Option<Duration>,
    /// Promise about restarts of the nodes [default: quarantine, which promises nothing]
    #[arg(long, value_name = "PROMISE", env = "REDLOCK_RESTART_GUARD", value_enum)]
    pub(crate) restart_guard: Option<Guard>,
    /// Name of the key by which a node's data set is recognised [default: redlock-client:canary]
    #[arg(long, value_name = "KEY", env = "REDLOCK_CANARY_KEY")]
    pub(crate) canary_key: Option<String>,
    #[command(flatten)]
    pub(crate) tls: TlsFiles,
}

/// Settings of a client that may acquire locks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Client {
    #[command(flatten)]
    pub(crate) nodes: Nodes,
    /// Time until the lock of a crashed `redlock` is free [default: 30s, or the fleet's longest TTL if
    /// that is less]
    #[arg(long, value_name = "DURATION", env = "REDLOCK_TTL", value_parser = parse_duration)]
    pub(crate) ttl: Option<Duration>,
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) client: Client,
    /// Time to wait for the lock; 0 does not wait for a holder
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(crate) wait: Duration,
    /// Longest time for which the lock is held; the command is ended before that
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    pub(crate) limit: Duration,
    /// Time from SIGTERM to SIGKILL; less than half of the TTL [default: 10s, or a third of the TTL if
    /// that is less]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) grace: Option<Duration>,
    /// Exit code if somebody else has the lock
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = TAKEN)]
    pub(crate) conflict_exit_code: u8,
    /// If the command succeeds, leave the lock until its TTL is over: others that start a little
    /// later do not repeat the work. The TTL must be longer than that and their `--wait` together
    #[arg(long)]
    pub(crate) leave: bool,
    /// Print when the lock is acquired and released; with `-E 0`, also when somebody else has it
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Name of the lock; one that begins with `-` follows a `--`, as in `run -- -name -- COMMAND`
    #[arg(value_name = "KEY")]
    pub(crate) key: Key,
    /// Command and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true, num_args = 1..)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) client: Client,
}

#[derive(Args, Debug)]
pub(crate) struct Who {
    #[command(flatten)]
    pub(crate) nodes: Nodes,
    /// Name of the lock
    #[arg(value_name = "KEY")]
    pub(crate) key: Key,
}

#[derive(Args, Debug)]
pub(crate) struct Break {
    #[command(flatten)]
    pub(crate) nodes: Nodes,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Name of the lock
    #[arg(value_name = "KEY")]
    pub(crate) key: Key,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_of_the_command_are_its_own() {
        let words = ["redlock", "run", "--wait", "0", "KEY", "--", "sort", "--wait", "-r"];
        let Command::Run(run) = Arguments::try_parse_from(words).unwrap().command else {
            panic!("`run` is `run`");
        };
        assert_eq!(run.wait, Duration::ZERO);
        assert_eq!(run.key.bytes(), b"KEY");
        assert_eq!(run.command, ["sort", "--wait", "-r"]);
    }

    #[test]
    fn the_inspection_checks_the_ttl_of_a_run() {
        let words = ["redlock", "inspect", "--ttl", "40s"];
        let Command::Inspect(inspect) = Arguments::try_parse_from(words).unwrap().command else {
            panic!("`inspect` is `inspect`");
        };
        assert_eq!(inspect.client.ttl, Some(Duration::from_secs(40)));
    }

    #[test]
    fn a_command_is_required() {
        assert!(Arguments::try_parse_from(["redlock", "run", "KEY"]).is_err());
        assert!(Arguments::try_parse_from(["redlock", "run", "KEY", "--"]).is_err());
        assert!(Arguments::try_parse_from(["redlock", "run", "--", "true"]).is_err());
    }
}
