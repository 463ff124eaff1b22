//! Exit codes of the command, and errors that end it.

use std::process::ExitCode;

use redlock_client::{AcquireError, AcquireErrorKind};

/// Exit code of `redlock`. Its own codes lie between those that commands use and those of signals;
/// 124 to 127 mean what they mean for `timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: the lock is held, its holder has lost it, or the nodes are in order.
    Yes,
    /// 1: the lock is free, was not broken, or a node is not in order.
    No,
    /// 121, or another number chosen by the user: somebody else has the lock.
    Taken(u8),
    /// 122: too few nodes answered or can vote, or the lock was not acquired for another reason than
    /// a holder.
    TooFewNodes,
    /// 123: the lease was lost, and the command was ended or not started.
    Lost,
    /// 124: the command was ended before the limit of its lease.
    Limit,
    /// 125: wrong usage, invalid settings, or an error of the system.
    Failed,
    /// 126: the command cannot be executed.
    NotExecutable,
    /// 127: there is no such command.
    NotFound,
    /// The command's own exit code, or 128 + n if signal n ended it.
    Command(u8),
}

/// Default of `--conflict-exit-code`.
pub(crate) const TAKEN: u8 = 121;

impl Exit {
    /// Returns the exit code for the end by signal `number`.
    pub(crate) fn signaled(number: i32) -> Self {
        Self::Command(u8::try_from(128 + number).unwrap_or(u8::MAX))
    }

    /// Returns the number of the exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::TooFewNodes => 122,
            Self::Lost => 123,
            Self::Limit => 124,
            Self::Failed => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Taken(code) | Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error that ends `redlock`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Stop {
    /// Exit code of the process.
    pub(crate) exit: Exit,
    /// Message to the user.
    pub(crate) message: String,
}

impl Stop {
    /// An error in the usage or the settings, or of the system.
    pub(crate) fn failed(message: impl ToString) -> Self {
        Self { exit: Exit::Failed, message: message.to_string() }
    }

    /// An acquisition that failed; `taken` is the exit code for a lock that is taken.
    pub(crate) fn not_acquired(error: &AcquireError, taken: u8) -> Self {
        let exit = match error.kind() {
            AcquireErrorKind::Taken => Exit::Taken(taken),
            AcquireErrorKind::Closed
            | AcquireErrorKind::Invalid
            | AcquireErrorKind::NoEntropy
            | AcquireErrorKind::NoRuntime => Exit::Failed,
            _ => Exit::TooFewNodes,
        };
        // The option of the command in place of the library's method.
        let message = error.to_string().replace("`Builder::canary_key`", "`--canary-key`");
        Self { exit, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_signals_are_those_of_a_shell() {
        assert_eq!(Exit::signaled(15).code(), 143);
        assert_eq!(Exit::signaled(127).code(), 255);
        assert_eq!(Exit::signaled(200).code(), 255);
    }
}
