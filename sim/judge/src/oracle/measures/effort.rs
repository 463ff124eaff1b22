//! The price of the grants, attempts and commands, and the instant of the last one.

use crate::oracle::measured::Measured;
use crate::scenario::Quantity;

/// Effort of all clients of a run so far.
#[derive(Debug, Default)]
pub(super) struct Effort {
    pub(super) attempts: u64,
    pub(super) commands: u64,
    pub(super) losses: u64,
    grants: u64,
    last_grant_ns: u64,
    gave_up: bool,
}

impl Effort {
    pub(super) fn granted(&mut self, at_ns: u64) {
        self.grants += 1;
        self.last_grant_ns = at_ns;
    }

    /// Records that an acquisition ended without a lease.
    pub(super) fn gave_up(&mut self) {
        self.gave_up = true;
    }

    pub(super) fn measure(&self, measured: &mut Measured) {
        let per_lock = |count: u64| count.saturating_mul(1_000).checked_div(self.grants);
        let granted_at = (self.grants > 0 && !self.gave_up).then_some(self.last_grant_ns);
        measured.set(Quantity::GrantedAt, granted_at);
        measured.set(Quantity::AttemptsPerLock, per_lock(self.attempts));
        measured.set(Quantity::CommandsPerLock, per_lock(self.commands));
        measured.set(Quantity::LeasesLost, (self.grants > 0).then_some(self.losses));
        measured.set(Quantity::Commands, Some(self.commands));
    }
}
