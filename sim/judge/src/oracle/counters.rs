//! Counts of events in runs. A run with zero counts tested nothing.

use serde::{Deserialize, Serialize};

/// Counts over one run, or summed over many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counters {
    /// Attempts begun.
    pub attempts: u64,
    /// Attempts of which a lease was delivered.
    pub granted: u64,
    /// Extensions begun.
    pub extensions: u64,
    /// Extensions that succeeded.
    pub extended: u64,
    /// Votes refused because another attempt's key was there.
    pub contended: u64,
    /// Keys that expired before a release deleted them.
    pub expired: u64,
    /// Keys lost by a restart, a failover, a flush or an eviction.
    pub forgotten: u64,
    /// Attempts refused because they took too long.
    pub too_slow: u64,
    /// Attempts refused because of nodes in quarantine.
    pub quarantined: u64,
    /// Commands written.
    pub commands: u64,
    /// Writes that the resource rejected.
    pub rejected_writes: u64,
}

impl Counters {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.granted += other.granted;
        self.extensions += other.extensions;
        self.extended += other.extended;
        self.contended += other.contended;
        self.expired += other.expired;
        self.forgotten += other.forgotten;
        self.too_slow += other.too_slow;
        self.quarantined += other.quarantined;
        self.commands += other.commands;
        self.rejected_writes += other.rejected_writes;
    }
}
