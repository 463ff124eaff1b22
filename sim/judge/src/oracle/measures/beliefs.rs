//! The longest time for which a lease was believed, from its delivery on; and the time in which two
//! leases or more were.

use crate::oracle::facts::Facts;
use crate::oracle::measured::Measured;
use crate::scenario::Quantity;

/// Beliefs of a run so far.
#[derive(Debug, Default)]
pub(super) struct Beliefs {
    longest_ns: u64,
    overlap_ns: u64,
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
        for believed in facts.beliefs.believed(facts.now_ns) {
            let until_ns = believed.until_ns.min(to_ns);
            self.longest_ns = self.longest_ns.max(until_ns.saturating_sub(believed.since_ns));
            second_ns = second_ns.max(until_ns.min(last_ns));
            last_ns = last_ns.max(until_ns);
        }
        self.overlap_ns += second_ns - facts.now_ns;
        last_ns
    }

    pub(super) fn measure(&self, measured: &mut Measured) {
        measured.set(Quantity::LeaseKept, self.seen.then_some(self.longest_ns));
        measured.set(Quantity::BeliefOverlap, self.seen.then_some(self.overlap_ns));
    }
}
