//! Exit codes of the command, and errors that end it.

use core::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use redlock_sim::search::{CaseResult, Failure, Observed, PropertyResult};
use redlock_sim::serve;

/// Exit code of the command. The variants are in order of severity, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: every expectation was met.
    Met,
    /// 4: nothing was selected.
    Nothing,
    /// 3: something requested could not be run or judged.
    Inconclusive,
    /// 1: an expectation failed.
    Failed,
    /// 2: the command line or a file is invalid, and no run was started; or a report cannot be
    /// written.
    Usage,
    /// 5: the same seed gave two different runs.
    Nondeterminism,
    /// 70: internal error of the command.
    Internal,
}

impl Exit {
    /// Returns the exit code for the result of one case.
    pub(super) fn of(result: &CaseResult) -> Self {
        let has = |is: fn(&Failure) -> bool| result.failures.iter().any(is);
        // A property that the scenario names must be judged: no verdict is not a verdict of
        // "holds".
        let is_named = |property| result.case.scenario.expect.properties.contains_key(&property);
        let unjudged = result
            .properties
            .iter()
            .any(|found| found.observed == Observed::Unjudged && is_named(found.property));
        // A run with a violation that was not expected, or above a bound, is never inconclusive.
        let is_expected =
            |found: &PropertyResult| found.shown.is_none() || found.failures.is_empty();
        let is_clean = result.properties.iter().all(is_expected) && !result.exceeds_bounds();
        let is_incomplete = is_clean && has(|it| matches!(it, Failure::Incomplete { .. }));
        if has(|it| matches!(it, Failure::Panicked { .. })) {
            Self::Internal
        } else if has(|it| matches!(it, Failure::Nondeterminism { .. })) {
            Self::Nondeterminism
        } else if is_incomplete || serve::is_untested(result) {
            Self::Inconclusive
        } else if !result.is_met() {
            Self::Failed
        } else if unjudged {
            Self::Inconclusive
        } else {
            Self::Met
        }
    }

    /// Returns the number of the exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Met => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Inconclusive => 3,
            Self::Nothing => 4,
            Self::Nondeterminism => 5,
            Self::Internal => 70,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error that ends the command at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct Stop {
    /// Exit code of the process.
    pub(super) exit: Exit,
    /// Message to the user.
    pub(super) message: String,
}

impl Stop {
    /// An error in the command line or in a file.
    pub(super) fn usage(message: impl ToString) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// An error of the program or the system.
    pub(super) fn internal(error: impl Display) -> Self {
        Self { exit: Exit::Internal, message: format!("error: {error}") }
    }

    /// An error for a directory `out` into which reports cannot be written.
    pub(super) fn unwritable(out: &Path, error: &impl Display) -> Self {
        let message = format!("error: reports cannot be written to {}: {error}", out.display());
        Self::usage(message + "\n  = help: `--out` names another directory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_outranks_the_rest() {
        let by_precedence = [70, 5, 1, 3, 4, 0];
        let mut all = [
            Exit::Met,
            Exit::Failed,
            Exit::Inconclusive,
            Exit::Nothing,
            Exit::Nondeterminism,
            Exit::Internal,
        ];
        all.sort_unstable();
        all.reverse();
        assert_eq!(all.map(Exit::code), by_precedence);
    }
}
