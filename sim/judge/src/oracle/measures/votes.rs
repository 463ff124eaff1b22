//! The time, summed over nodes, in which the last report of a client on a lease that it watches was
//! wrong about a node: it was confirmed and lacked the key, or had it and was not confirmed.

use crate::history::{AttemptId, ClientId, NodeIds, Writer};
use crate::oracle::facts::Facts;
use crate::oracle::measured::Measured;
use crate::scenario::Quantity;

/// The last report on each lease, and the time so far.
#[derive(Debug)]
pub(super) struct Votes {
    reports: Vec<(AttemptId, NodeIds)>,
    misjudged_ns: u64,
    seen: bool,
}

impl Votes {
    pub(super) fn new() -> Self {
        Self { reports: Vec::with_capacity(16), misjudged_ns: 0, seen: false }
    }

    pub(super) fn reset(&mut self) {
        self.reports.clear();
        (self.misjudged_ns, self.seen) = (0, false);
    }

    /// Records that the client of `id` reports `confirmed` as the nodes that have its key.
    pub(super) fn changed(&mut self, id: AttemptId, confirmed: NodeIds) {
        self.seen = true;
        self.ended(id);
        self.reports.push((id, confirmed));
    }

    /// Records that the lease of `id` is over.
    pub(super) fn ended(&mut self, id: AttemptId) {
        self.reports.retain(|(it, _)| *it != id);
    }

    pub(super) fn killed(&mut self, client: ClientId) {
        self.reports.retain(|(it, _)| it.client != client);
    }

    pub(super) fn passes(&mut self, facts: &Facts, to_ns: u64) {
        for &(id, confirmed) in &self.reports {
            let owner = Writer::Attempt(id);
            let is_wrong = |node| confirmed.contains(node) != (facts.keys.writer(node) == owner);
            let members = facts.setting.members(id.client).iter();
            let wrong = members.filter(|&node| is_wrong(node)).count() as u64;
            self.misjudged_ns += wrong * (to_ns - facts.now_ns);
        }
    }

    pub(super) fn measure(&self, measured: &mut Measured) {
        measured.set(Quantity::VotesMisjudged, self.seen.then_some(self.misjudged_ns));
    }
}
