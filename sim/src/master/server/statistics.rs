//! What a server counts.

use std::collections::BTreeMap;

/// How often what happened since the process started, or since `CONFIG RESETSTAT`.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    commands: BTreeMap<&'static str, Calls>,
    total: u64,
}

/// How often a command was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Executed, whatever came of it.
    pub executed: u64,
    /// Refused before.
    pub rejected: u64,
    /// Executed, and answered by an error.
    pub failed: u64,
}

impl Statistics {
    pub(in crate::master) fn executed(&mut self, name: &'static str, failed: bool) {
        let calls = self.commands.entry(name).or_default();
        calls.executed += 1;
        calls.failed += u64::from(failed);
        self.total += 1;
    }

    pub(in crate::master) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(in crate::master) fn rejected(&mut self, name: &'static str) {
        self.commands.entry(name).or_default().rejected += 1;
    }

    /// Every command that was called: its name, and how often.
    pub fn commands(&self) -> impl Iterator<Item = (&'static str, Calls)> {
        self.commands.iter().map(|(name, calls)| (*name, *calls))
    }

    /// How many were answered by an error.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.commands.values().map(|calls| calls.failed + calls.rejected).sum()
    }

    /// How many commands were executed.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}
