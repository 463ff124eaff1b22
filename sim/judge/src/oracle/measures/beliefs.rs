//! The longest time for which a lease was believed, from its delivery on, and the times in which two
//! leases or more were, and in which one was without the key on a majority of the nodes.

use super::has_majority;
use crate::oracle::facts::Facts;
use crate::oracle::measured::Measured;
use crate::scenario::Quantity;

/// Beliefs of a run so far.
#[derive(Debug, Default)]
pub(super) struct Beliefs {
    longest_ns: u64,
    overlap_ns: u64,
    without_majority_ns: u64,
    seen: bool,
}

impl Beliefs {
    /// Records that a lease was delivered.
    pub(super) fn seen(&mut self) {
        self.seen = true;
    }

    /// Measures the time until `to_ns`. Returns the end of the last belief in it.
    pub(super) fn passes(&mut self, facts: &Facts, to_ns: u64) -> u64 {
        // Latest and second latest end of a belief until `to_ns`.
        let (mut last_ns, mut second_ns) = (facts.now_ns, facts.now_ns);
        let mut without_majority_ns = facts.now_ns;
        for believed in facts.beliefs.believed(facts.now_ns) {
            let until_ns = believed.until_ns.min(to_ns);
            self.longest_ns = self.longest_ns.max(until_ns.saturating_sub(believed.since_ns));
            second_ns = second_ns.max(until_ns.min(last_ns));
            last_ns = last_ns.max(until_ns);
            if !has_majority(facts, believed.id) {
                without_majority_ns = without_majority_ns.max(until_ns);
            }
        }
        self.overlap_ns += second_ns - facts.now_ns;
        self.without_majority_ns += without_majority_ns - facts.now_ns;
        last_ns
    }

    pub(super) fn measure(&self, measured: &mut Measured) {
        let seen = |ns: u64| self.seen.then_some(ns);
        measured.set(Quantity::LeaseKept, seen(self.longest_ns));
        measured.set(Quantity::BeliefOverlap, seen(self.overlap_ns));
        measured.set(Quantity::BeliefWithoutMajority, seen(self.without_majority_ns));
    }
}
