//! Sums up many runs.
//!
//! Threads merge tallies in the order in which they finish. Therefore every field is a sum, a
//! minimum, a maximum or a bounded set of smallest values: the result is the same on any number of
//! threads, and its size does not grow with the number of runs.

use lock_judge::history::FaultIds;
use lock_judge::oracle::{Counters, Judgement, Violation};
use lock_judge::scenario::{Property, Quantity};
use serde::{Deserialize, Serialize};

use super::figures::QuantityTally;
use super::smallest::{insert_smallest, smaller, smaller_by_key};
use crate::engine::Outcome;

/// Maximum number of distinct histories that are counted.
pub const DISTINCT_MAX: usize = 1024;

/// Maximum number of distinct blames kept for one property.
const BLAMES_MAX: usize = 64;

/// Sums over a number of runs of one case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    pub(super) runs: u64,
    /// Smallest distinct hashes of histories, sorted; at most [`DISTINCT_MAX`].
    hashes: Vec<u64>,
    /// Smallest seed, and the hash of its history.
    pub(super) first: Option<(u64, u64)>,
    pub(super) counters: Counters,
    /// Set of faults that began in any run: bit `n` stands for fault `n` of the scenario.
    pub(super) faults_begun: FaultIds,
    pub(super) properties: [PropertyTally; Property::ALL.len()],
    pub(super) quantities: [QuantityTally; Quantity::ALL.len()],
    /// Smallest seed of which two runs differed.
    pub(super) nondeterministic: Option<u64>,
    /// Smallest seed whose run panicked, and the panic message.
    pub(super) panicked: Option<(u64, String)>,
}

/// Verdicts on one property, summed over a number of runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct PropertyTally {
    pub(super) held: u64,
    pub(super) unjudged: u64,
    pub(super) violated: u64,
    /// Violation of the smallest violating seed.
    pub(super) first: Option<Found>,
    /// Violation with the shortest overlap, of the smallest such seed.
    pub(super) shortest: Option<Found>,
    /// Violations with distinct blames, each of the smallest such seed, sorted by their blames; at most
    /// [`BLAMES_MAX`], the smallest.
    pub(super) blames: Vec<Found>,
    /// Smallest seed that did not violate the property.
    pub(super) unviolated: Option<u64>,
}

/// A violation, and the run in which it happened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Found {
    pub(super) seed: u64,
    pub(super) hash: u64,
    pub(super) violation: Violation,
}

impl Tally {
    pub(super) fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        insert_smallest(&mut self.hashes, outcome.hash, DISTINCT_MAX, u64::cmp);
        self.first = smaller(self.first, Some((outcome.seed, outcome.hash)));
        self.counters.add(&outcome.counters);
        self.faults_begun |= outcome.faults_begun;
        for property in Property::ALL {
            self.properties[property as usize].add(outcome, outcome.verdicts.of(property));
        }
        for quantity in Quantity::ALL {
            self.quantities[quantity as usize].add(outcome.seed, outcome.measured.of(quantity));
        }
    }

    /// Returns the number of runs.
    #[must_use]
    pub const fn runs(&self) -> u64 {
        self.runs
    }

    pub(super) fn differs(&mut self, seed: u64) {
        self.nondeterministic = smaller(self.nondeterministic, Some(seed));
    }

    pub(super) fn panicked(&mut self, seed: u64, message: String) {
        self.panicked = smaller(self.panicked.take(), Some((seed, message)));
    }

    /// Returns the sums over the runs of both, of which none is in both.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.runs += other.runs;
        for hash in other.hashes {
            insert_smallest(&mut self.hashes, hash, DISTINCT_MAX, u64::cmp);
        }
        self.first = smaller(self.first, other.first);
        self.counters.add(&other.counters);
        self.faults_begun |= other.faults_begun;
        for (own, other) in self.properties.iter_mut().zip(other.properties) {
            own.merge(other);
        }
        for (own, other) in self.quantities.iter_mut().zip(other.quantities) {
            own.merge(other);
        }
        self.nondeterministic = smaller(self.nondeterministic, other.nondeterministic);
        self.panicked = smaller(self.panicked, other.panicked);
        self
    }

    /// Returns the number of distinct histories, at most [`DISTINCT_MAX`].
    pub(super) fn distinct_histories(&self) -> u64 {
        self.hashes.len() as u64
    }
}

impl PropertyTally {
    fn add(&mut self, run: &Outcome, judgement: Judgement) {
        let Judgement::Violated(violation) = judgement else {
            self.held += u64::from(judgement == Judgement::Holds);
            self.unjudged += u64::from(judgement == Judgement::Unjudged);
            self.unviolated = smaller(self.unviolated, Some(run.seed));
            return;
        };
        self.violated += 1;
        let found = Found { seed: run.seed, hash: run.hash, violation };
        self.first = smaller_by_key(self.first, Some(found), Found::seed);
        self.shortest = smaller_by_key(self.shortest, Some(found), Found::overlap);
        self.keep_blame(found);
    }

    fn merge(&mut self, other: Self) {
        self.held += other.held;
        self.unjudged += other.unjudged;
        self.violated += other.violated;
        self.first = smaller_by_key(self.first, other.first, Found::seed);
        self.shortest = smaller_by_key(self.shortest, other.shortest, Found::overlap);
        other.blames.into_iter().for_each(|found| self.keep_blame(found));
        self.unviolated = smaller(self.unviolated, other.unviolated);
    }

    fn keep_blame(&mut self, found: Found) {
        let blamed = found.violation.blamed;
        let same = self.blames.iter_mut().find(|known| known.violation.blamed == blamed);
        match same {
            Some(known) if found.seed < known.seed => *known = found,
            Some(_) => {}
            None => insert_smallest(&mut self.blames, found, BLAMES_MAX, by_causes),
        }
    }
}

impl Found {
    const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the length of the overlap, in nanoseconds, and the seed.
    pub(super) const fn overlap(&self) -> (u64, u64) {
        (self.violation.to_ns.saturating_sub(self.violation.from_ns), self.seed)
    }
}

fn by_causes(one: &Found, other: &Found) -> core::cmp::Ordering {
    one.violation.blamed.iter().cmp(other.violation.blamed.iter())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::testing::clock_jump;
    use super::*;
    use crate::engine::event;

    fn tally(outcomes: &[Outcome]) -> Tally {
        let mut tally = Tally::default();
        outcomes.iter().for_each(|outcome| tally.add(outcome));
        tally
    }

    #[test]
    fn stored_sums_are_read_as_they_were_and_merge_in_any_order() {
        let case = clock_jump(&[]).remove(0);
        let mut engine = event::Engine::new(&case).unwrap();
        let outcomes: Vec<Outcome> = (0..40).map(|seed| engine.run(seed, None)).collect();
        let whole = tally(&outcomes);
        proptest!(|(parts in vec(0_usize..4, outcomes.len()), order in Just([0, 1, 2, 3]).prop_shuffle())| {
            let of_part = |part: usize| {
                let own = outcomes.iter().zip(&parts).filter(|(_, it)| **it == part);
                let text = serde_json::to_string(&tally(&own.map(|(it, _)| *it).collect::<Vec<_>>()));
                serde_json::from_str::<Tally>(&text.unwrap()).unwrap()
            };
            let parts = order.map(of_part);
            let from_left = parts.iter().cloned().fold(Tally::default(), Tally::merge);
            let [a, b, c, d] = parts;
            let by_pairs = a.merge(b).merge(c.merge(d));
            prop_assert_eq!(&from_left, &whole);
            prop_assert_eq!(&by_pairs, &whole);
        });
    }
}
