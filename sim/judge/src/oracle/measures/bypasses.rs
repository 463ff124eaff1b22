//! Leases that others get while a client waits: *bounded bypass*, the fairness of mutual exclusion.
//!
//! No history shows that a worker gives up, so its acquisition lasts until its last attempt.

use crate::history::{ClientId, ClientIds};
use crate::ids::PerClient;
use crate::oracle::ground::NEVER;
use crate::oracle::measured::Measured;
use crate::scenario::Quantity;

/// Leases of a run so far, and the acquisitions that they have gone past.
#[derive(Debug)]
pub(super) struct Bypasses {
    leases: u64,
    /// The value of `leases` at the first attempt of each client's acquisition; [`NEVER`] if it is
    /// not asking.
    since: PerClient<u64>,
    most: u64,
    seen: bool,
}

impl Bypasses {
    pub(super) fn new() -> Self {
        Self { leases: 0, since: PerClient::filled(NEVER), most: 0, seen: false }
    }

    /// Records that `client` begins or ends an attempt, so it has waited until now.
    pub(super) fn asked(&mut self, client: ClientId) {
        self.seen = true;
        if self.since[client] == NEVER {
            self.since[client] = self.leases;
        }
        self.most = self.most.max(self.leases - self.since[client]);
    }

    pub(super) fn ended(&mut self, client: ClientId) {
        if self.since[client] != NEVER {
            self.asked(client);
            self.since[client] = NEVER;
        }
    }

    /// Records a lease of `client`, which the clients `waiting` wait for as well.
    pub(super) fn granted(&mut self, client: ClientId, waiting: ClientIds) {
        self.ended(client);
        self.leases += 1;
        waiting.iter().for_each(|it| self.asked(it));
    }

    pub(super) fn measure(&self, measured: &mut Measured) {
        measured.set(Quantity::Bypasses, self.seen.then_some(self.most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ClientId = ClientId(0);
    const OTHER: ClientId = ClientId(1);

    fn measured(bypasses: &Bypasses) -> Option<u64> {
        let mut measured = Measured::default();
        bypasses.measure(&mut measured);
        measured.of(Quantity::Bypasses)
    }

    #[test]
    fn leases_of_others_count_from_first_attempt_to_own_lease() {
        let mut bypasses = Bypasses::new();
        assert_eq!(measured(&bypasses), None);
        bypasses.asked(OTHER);
        bypasses.granted(OTHER, ClientIds::EMPTY);
        bypasses.asked(ONE);
        for _ in 0..3 {
            bypasses.asked(OTHER);
            bypasses.granted(OTHER, [ONE].into_iter().collect());
        }
        assert_eq!(measured(&bypasses), Some(3), "it waits");
        bypasses.granted(ONE, ClientIds::EMPTY);
        bypasses.asked(OTHER);
        bypasses.granted(OTHER, ClientIds::EMPTY);
        assert_eq!(measured(&bypasses), Some(3));
    }

    #[test]
    fn a_worker_has_waited_until_its_last_attempt() {
        let mut bypasses = Bypasses::new();
        bypasses.asked(ONE);
        bypasses.granted(OTHER, ClientIds::EMPTY);
        bypasses.asked(ONE);
        bypasses.granted(OTHER, ClientIds::EMPTY);
        assert_eq!(measured(&bypasses), Some(1));
    }
}
