//! Times in which sections were open although they should not have been: two at once, without a
//! believed lease, or without the key on a majority of the nodes. In the last of these times
//! another client could have been granted the lock, whether one asked or not.

use super::has_majority;
use crate::history::{AttemptId, ClientId};
use crate::oracle::facts::Facts;
use crate::oracle::measured::Measured;
use crate::scenario::Quantity;

/// Sections of a run so far.
#[derive(Debug)]
pub(super) struct Sections {
    inside: Vec<AttemptId>,
    overlap_ns: u64,
    without_lease_ns: u64,
    without_majority_ns: u64,
    seen: bool,
}

impl Sections {
    pub(super) fn new() -> Self {
        Self {
            inside: Vec::with_capacity(16),
            overlap_ns: 0,
            without_lease_ns: 0,
            without_majority_ns: 0,
            seen: false,
        }
    }

    pub(super) fn reset(&mut self) {
        self.inside.clear();
        (self.overlap_ns, self.without_lease_ns, self.without_majority_ns) = (0, 0, 0);
        self.seen = false;
    }

    pub(super) fn entered(&mut self, id: AttemptId) {
        self.seen = true;
        if !self.inside.contains(&id) {
            self.inside.push(id);
        }
    }

    pub(super) fn left(&mut self, id: AttemptId) {
        self.inside.retain(|&it| it != id);
    }

    pub(super) fn killed(&mut self, client: ClientId) {
        self.inside.retain(|it| it.client != client);
    }

    pub(super) fn passes(&mut self, facts: &Facts, to_ns: u64) {
        let now_ns = facts.now_ns;
        // First instant from which one of the sections has no lease.
        let until_ns = |&id: &AttemptId| facts.beliefs.until_ns(id).unwrap_or(now_ns);
        let Some(lease_ns) = self.inside.iter().map(until_ns).min() else { return };
        self.without_lease_ns += to_ns - lease_ns.clamp(now_ns, to_ns);
        if self.inside.len() > 1 {
            self.overlap_ns += to_ns - now_ns;
        }
        if self.inside.iter().any(|&id| !has_majority(facts, id)) {
            self.without_majority_ns += to_ns - now_ns;
        }
    }

    pub(super) fn measure(&self, measured: &mut Measured) {
        let seen = |ns: u64| self.seen.then_some(ns);
        measured.set(Quantity::SectionOverlap, seen(self.overlap_ns));
        measured.set(Quantity::SectionWithoutLease, seen(self.without_lease_ns));
        measured.set(Quantity::SectionWithoutMajority, seen(self.without_majority_ns));
    }
}
