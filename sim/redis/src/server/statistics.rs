//! Command statistics of a server.

use std::collections::BTreeMap;

/// Counts of commands since the process started or since `CONFIG RESETSTAT`.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    commands: BTreeMap<&'static str, Calls>,
    total: u64,
}

/// Counts of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Number of executions, whatever their outcome.
    pub executed: u64,
    /// Number of refusals before execution.
    pub rejected: u64,
    /// Number of executions that ended with an error.
    pub failed: u64,
}

impl Statistics {
    pub(crate) fn executed(&mut self, name: &'static str, failed: bool) {
        let calls = self.commands.entry(name).or_default();
        calls.executed += 1;
        calls.failed += u64::from(failed);
        self.total += 1;
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn rejected(&mut self, name: &'static str) {
        self.commands.entry(name).or_default().rejected += 1;
    }

    /// Iterates over the commands that were called: name and counts.
    pub fn commands(&self) -> impl Iterator<Item = (&'static str, Calls)> {
        self.commands.iter().map(|(name, calls)| (*name, *calls))
    }

    /// Returns the number of commands that were answered with an error.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.commands.values().map(|calls| calls.failed + calls.rejected).sum()
    }

    /// Returns the number of commands executed.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}
