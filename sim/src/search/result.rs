//! What a campaign over the seeds of one case found.

use core::ops::Range;

use crate::oracle::{Counters, Violation};
use crate::scenario::{Case, Expectation, Property, Verdict};

/// What was found of one property over all seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// No seed violated it.
    Holds,
    /// Some seeds violated it, not all.
    Sometimes,
    /// The engine cannot record what it speaks of.
    Unjudged,
    /// In no seed was anything its subject.
    Vacuous,
    /// Every seed violated it.
    Violated,
}

/// One property of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyResult {
    /// The property.
    pub property: Property,
    /// What the scenario expects.
    pub expected: Expectation,
    /// What was found.
    pub observed: Observed,
    /// How many seeds violated it.
    pub violating_seeds: u64,
    /// The first of them, and its violation.
    pub first: Option<(u64, Violation)>,
    /// Every blame that was found, as scenarios write it, sorted; each entry is one run's, joined
    /// by `+`.
    pub blames: Vec<String>,
    /// The shortest overlap among the violating runs, in nanoseconds.
    pub shortest_overlap_ns: Option<u64>,
    /// How the finding departs from the expectation, in words; empty if it does not.
    pub failures: Vec<String>,
}

impl PropertyResult {
    /// With 95 % confidence a run by a further seed violates the property with at most this
    /// probability, given that none of `runs` did: three over the number of runs.
    #[must_use]
    pub fn bound_95(&self, runs: u64) -> Option<f64> {
        let none = self.observed == Observed::Holds && runs > 0;
        none.then(|| (3.0 / runs as f64).min(1.0))
    }
}

/// Why a case as a whole failed, beyond its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A fault that is enabled began in no run.
    FaultNeverBegan {
        /// Its place in the scenario.
        fault: u16,
    },
    /// Many seeds had one and the same history.
    OneHistory,
    /// Two runs by the same seed differed.
    Nondeterminism {
        /// The seed.
        seed: u64,
    },
    /// A run panicked: a bug of the client that is played, or of the simulator.
    Panicked {
        /// The smallest such seed.
        seed: u64,
        /// What the panic said.
        message: String,
    },
    /// No lease was asked for in any run.
    NothingHappened,
}

/// What was found of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// The engine that played it: `event` or `turmoil`.
    pub engine: &'static str,
    /// The seeds that were asked for.
    pub seeds: Range<u64>,
    /// How many of them were played.
    pub runs: u64,
    /// How many different histories there were.
    pub distinct_histories: u64,
    /// The hash of the first seed's history.
    pub first_hash: u64,
    /// In the order of [`Property::ALL`].
    pub properties: Vec<PropertyResult>,
    /// Added up over all runs.
    pub counters: Counters,
    /// What is wrong beyond the properties.
    pub failures: Vec<Failure>,
}

impl CaseResult {
    /// `scenario` or `scenario::case`.
    #[must_use]
    pub fn name(&self) -> String {
        self.case.full_name()
    }

    /// Whether everything was as expected.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.failures.is_empty() && self.properties.iter().all(|it| it.failures.is_empty())
    }

    /// The same of fewer seeds than the scenario asks for: that a property is violated by *some* seed,
    /// and that a fault begins in some, is nothing that they can fail to show.
    #[must_use]
    pub fn of_a_sample(mut self) -> Self {
        self.failures.retain(|it| !matches!(it, Failure::FaultNeverBegan { .. }));
        for found in &mut self.properties {
            if found.expected.verdict == Verdict::Sometimes && found.violating_seeds == 0 {
                found.failures.clear();
            }
        }
        self
    }

    /// The seeds whose histories are worth keeping: the first violating seed of each property,
    /// else the first seed, unless its run panicked. In order, each once.
    #[must_use]
    pub fn kept_seeds(&self) -> Vec<u64> {
        let firsts = self.properties.iter().filter_map(|it| it.first.as_ref());
        let mut seeds: Vec<u64> = firsts.map(|(seed, _)| *seed).collect();
        let start = self.seeds.start;
        let panicked =
            |it: &Failure| matches!(it, Failure::Panicked { seed, .. } if *seed == start);
        if seeds.is_empty() && !self.failures.iter().any(panicked) {
            seeds.push(start);
        }
        seeds.sort_unstable();
        seeds.dedup();
        seeds
    }
}
