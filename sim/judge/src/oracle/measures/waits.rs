//! The time in which clients asked for the lock and nobody held it.
//!
//! An acquisition lasts from T1 of its first attempt until its lease is delivered, the client gives
//! up, or its process is killed. The round trips of a grant are part of it. No history shows that a
//! worker gives up, so its acquisition lasts until its last attempt.

use crate::history::{ClientId, ClientIds};
use crate::ids::PerClient;
use crate::oracle::ground::NEVER;
use crate::oracle::measured::Measured;
use crate::scenario::Quantity;

/// Acquisitions of a run so far.
#[derive(Debug)]
pub(super) struct Waits {
    /// Clients that ask for the lock, without workers.
    pub(super) asking: ClientIds,
    without_holder_ns: u64,
    /// Time in which nobody held the lock, whether a client asked or not.
    free_ns: u64,
    /// The value of `free_ns` at the first attempt of each worker's acquisition; [`NEVER`] if it is
    /// not asking.
    workers_since_ns: PerClient<u64>,
    /// Parts of `free_ns` in which a worker asked, as beginnings and ends. They do not overlap.
    of_workers: Vec<(u64, u64)>,
    seen: bool,
}

impl Waits {
    pub(super) fn new() -> Self {
        Self {
            asking: ClientIds::EMPTY,
            without_holder_ns: 0,
            free_ns: 0,
            workers_since_ns: PerClient::filled(NEVER),
            of_workers: Vec::new(),
            seen: false,
        }
    }

    pub(super) fn asked(&mut self, client: ClientId) {
        self.seen = true;
        self.asking.insert(client);
    }

    /// Records that a worker begins or ends an attempt, so it has asked until now.
    pub(super) fn worker_asked(&mut self, client: ClientId) {
        self.seen = true;
        if self.workers_since_ns[client] == NEVER {
            self.workers_since_ns[client] = self.free_ns;
        }
        let mut since_ns = self.workers_since_ns[client];
        while let Some((earlier_ns, _)) = self.of_workers.pop_if(|(_, to_ns)| since_ns <= *to_ns) {
            since_ns = since_ns.min(earlier_ns);
        }
        self.of_workers.push((since_ns, self.free_ns));
    }

    pub(super) fn ended(&mut self, client: ClientId) {
        self.asking.remove(client);
        if self.workers_since_ns[client] != NEVER {
            self.worker_asked(client);
            self.workers_since_ns[client] = NEVER;
        }
    }

    /// Measures the time until `to_ns`, in which the lock is held until `held_ns`.
    pub(super) fn passes(&mut self, held_ns: u64, to_ns: u64) {
        self.free_ns += to_ns - held_ns;
        if !self.asking.is_empty() {
            self.without_holder_ns += to_ns - held_ns;
        }
    }

    pub(super) fn measure(&self, measured: &mut Measured) {
        let of_workers = self.of_workers.iter().map(|(since_ns, to_ns)| to_ns - since_ns);
        let of_workers_ns: u64 = of_workers.sum();
        let found = self.seen.then_some(self.without_holder_ns + of_workers_ns);
        measured.set(Quantity::WaitWithoutHolder, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ClientId = ClientId(0);
    const OTHER: ClientId = ClientId(1);

    fn measured(waits: &Waits) -> Option<u64> {
        let mut measured = Measured::default();
        waits.measure(&mut measured);
        measured.of(Quantity::WaitWithoutHolder)
    }

    #[test]
    fn a_worker_waits_between_its_attempts_and_not_after_the_last() {
        let mut waits = Waits::new();
        assert_eq!(measured(&waits), None);
        waits.passes(0, 5);
        waits.worker_asked(ONE);
        waits.passes(5, 15);
        waits.worker_asked(ONE);
        waits.passes(15, 115);
        assert_eq!(measured(&waits), Some(10));
    }

    #[test]
    fn workers_who_wait_at_once_count_once() {
        let mut waits = Waits::new();
        waits.worker_asked(ONE);
        waits.passes(0, 10);
        waits.worker_asked(OTHER);
        waits.passes(10, 20);
        waits.worker_asked(OTHER);
        // Held until 25.
        waits.passes(25, 30);
        waits.ended(ONE);
        assert_eq!(measured(&waits), Some(25));
        waits.passes(30, 40);
        waits.worker_asked(ONE);
        waits.ended(OTHER);
        assert_eq!(measured(&waits), Some(35));
    }
}
