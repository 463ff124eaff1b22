//! Sums over many plans. Every field is a sum, a minimum or a bounded set of smallest values, so the
//! result is the same on any number of threads.

use std::collections::{BTreeMap, BTreeSet};

use lock_judge::history::Id;
use lock_judge::oracle::Judgement;
use lock_judge::scenario::{Property, Scenario};
use serde::{Deserialize, Serialize};

use super::contract::Finding;
use super::figures::Figures;
use super::situations::Situation;
use crate::engine::Outcome;
use crate::search::Engine;

/// Number of smallest hashes from which the number of distinct histories is estimated. The standard
/// error of the estimate is about 3 %.
const HASHES: usize = 1_024;

/// Verdicts on one property, summed over plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertySum {
    /// Plans that put the property to the test.
    pub tested: u64,
    /// Plans that violated it, for whatever cause.
    pub violated: u64,
    /// Plans that violated it without an explanation.
    pub found: u64,
}

/// Sums over many plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// Plans that were played.
    pub plans: u64,
    /// Reasons for which the engine could not play a plan, and the number of such plans.
    pub unsupported: BTreeMap<String, u64>,
    /// Plans whose run panicked.
    pub panicked: u64,
    /// Simulated time of all plans together, in nanoseconds.
    pub simulated_ns: u128,
    /// Number of plans in which a fault of each kind began.
    pub faults: BTreeMap<String, u64>,
    /// Number of plans in each situation, among those that were watched.
    pub situations: BTreeMap<Situation, u64>,
    /// Plans whose events were watched for situations.
    pub watched: u64,
    /// The costs of the plans, if they were to be kept.
    pub figures: Figures,
    /// Smallest hashes of histories, at most [`HASHES`].
    hashes: BTreeSet<u64>,
    properties: [PropertySum; Property::ALL.len()],
}

impl Tally {
    /// Returns the sums for one property.
    #[must_use]
    pub fn of(&self, property: Property) -> PropertySum {
        self.properties[property as usize]
    }

    /// Returns the number of distinct histories, exact below 1 024 and estimated beyond: if the
    /// `k` smallest of all hashes lie below `h`, there are about `k - 1` of them per `h`.
    #[must_use]
    pub fn distinct_histories(&self) -> u64 {
        match self.hashes.last() {
            Some(largest) if self.hashes.len() == HASHES => {
                let density = (HASHES - 1) as f64 / *largest as f64;
                ((density * u64::MAX as f64) as u64).min(self.plans)
            }
            _ => self.hashes.len() as u64,
        }
    }

    /// Returns the situations that no watched plan came into.
    #[must_use]
    pub fn never_seen(&self) -> Vec<Situation> {
        let is_new = |it: &Situation| !self.situations.contains_key(it);
        Situation::ALL.into_iter().filter(is_new).collect()
    }

    pub(super) fn add(
        &mut self,
        plan: &Scenario,
        engine: Engine,
        outcome: &Outcome,
        findings: &[Finding],
    ) {
        self.plans += 1;
        self.simulated_ns += u128::from(outcome.ended_ns);
        self.keep_hash(outcome.hash);
        let begun = outcome.faults_begun.iter().filter_map(|fault| plan.faults.get(fault.index()));
        let kinds: BTreeSet<_> = begun.map(|fault| fault.kind.descriptor().name).collect();
        for kind in kinds {
            *self.faults.entry(kind.to_owned()).or_default() += 1;
        }
        for property in Property::ALL {
            let sum = &mut self.properties[property as usize];
            let (is_tested, is_violated) = match outcome.verdicts.of(property) {
                Judgement::Violated(violation) => (true, engine.resolves(&violation)),
                Judgement::Holds => (true, false),
                Judgement::Unjudged | Judgement::Vacuous => (false, false),
            };
            sum.tested += u64::from(is_tested);
            sum.violated += u64::from(is_violated);
        }
        for finding in findings {
            if let Finding::Violated { property, .. } = finding {
                self.properties[*property as usize].found += 1;
            }
        }
    }

    pub(super) fn watched(&mut self, situations: BTreeSet<Situation>) {
        self.watched += 1;
        for situation in situations {
            *self.situations.entry(situation).or_default() += 1;
        }
    }

    /// Returns the sums over the plans of both, of which none is in both.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.plans += other.plans;
        self.panicked += other.panicked;
        for (reason, count) in other.unsupported {
            *self.unsupported.entry(reason).or_default() += count;
        }
        self.simulated_ns += other.simulated_ns;
        self.watched += other.watched;
        for (kind, count) in other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        for (situation, count) in other.situations {
            *self.situations.entry(situation).or_default() += count;
        }
        self.figures.merge(other.figures);
        other.hashes.into_iter().for_each(|hash| self.keep_hash(hash));
        for (own, other) in self.properties.iter_mut().zip(other.properties) {
            own.tested += other.tested;
            own.violated += other.violated;
            own.found += other.found;
        }
        self
    }

    fn keep_hash(&mut self, hash: u64) {
        if self.hashes.len() == HASHES && self.hashes.last().is_some_and(|largest| hash > *largest)
        {
            return;
        }
        self.hashes.insert(hash);
        if self.hashes.len() > HASHES {
            self.hashes.pop_last();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Choice, Choices, Label};

    #[test]
    fn the_number_of_distinct_histories_is_about_right() {
        let choices = Choices::new(5);
        let mut tally = Tally { plans: 40_000, ..Tally::default() };
        for repeat in 0..40_000_u32 {
            let choice = Choice { repeat: repeat % 20_000, ..Choice::of(Label::Delay, 0) };
            tally.keep_hash(choices.bits(choice));
        }
        let distinct = tally.distinct_histories();
        assert!((18_000..22_000).contains(&distinct), "{distinct}");
    }

    #[test]
    fn few_histories_are_counted_exactly() {
        let mut tally = Tally::default();
        [3, 5, 3].into_iter().for_each(|hash| tally.keep_hash(hash));
        assert_eq!(tally.distinct_histories(), 2);
    }
}
