//! The time in which clients asked for the lock and nobody held it.
//!
//! An acquisition lasts from T1 of its first attempt until its lease is delivered, the client gives
//! up, or its process is killed. The round trips of a grant are part of it.

use crate::history::{ClientId, ClientIds};
use crate::oracle::measured::Measured;
use crate::scenario::Quantity;

/// Acquisitions of a run so far.
#[derive(Debug, Default)]
pub(super) struct Waits {
    asking: ClientIds,
    without_holder_ns: u64,
    seen: bool,
}

impl Waits {
    pub(super) fn asked(&mut self, client: ClientId) {
        self.seen = true;
        self.asking.insert(client);
    }

    pub(super) fn ended(&mut self, client: ClientId) {
        self.asking.remove(client);
    }

    /// Measures the time until `to_ns`, in which the lock is held until `held_ns`.
    pub(super) fn passes(&mut self, held_ns: u64, to_ns: u64) {
        if !self.asking.is_empty() {
            self.without_holder_ns += to_ns - held_ns;
        }
    }

    pub(super) fn measure(&self, measured: &mut Measured) {
        let found = self.seen.then_some(self.without_holder_ns);
        measured.set(Quantity::WaitWithoutHolder, found);
    }
}
