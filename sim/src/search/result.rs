//! Result of a campaign over the seeds of one case.

use core::ops::Range;

use lock_judge::history::FaultId;
use lock_judge::history::file::EXTENSION;
use lock_judge::oracle::{Counters, Violation};
use lock_judge::scenario::{Bounds, Case, Expectation, Property, Quantity, Verdict};

use super::figures::Figures;

/// Observed verdict on one property over all seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// No seed violated the property, and at least one put it to the test.
    Holds,
    /// Some seeds violated the property, but not all.
    Sometimes,
    /// The engine cannot record the events that the property is about.
    Unjudged,
    /// No seed put the property to the test.
    Vacuous,
    /// Every seed violated the property.
    Violated,
}

/// Result for one property of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyResult {
    /// The property.
    pub property: Property,
    /// Verdict that the scenario expects.
    pub expected: Expectation,
    /// Observed verdict.
    pub observed: Observed,
    /// Number of seeds that violated the property.
    pub violating_seeds: u64,
    /// First violating seed.
    pub first_seed: Option<u64>,
    /// Violation that reports show, and its seed: the first that is not as expected, or else the first.
    pub shown: Option<(u64, Violation)>,
    /// Distinct blames in the notation of scenarios, sorted. Each entry is the blame of one run,
    /// its causes joined by `+`.
    pub blames: Vec<String>,
    /// Shortest overlap among the violating runs, in nanoseconds.
    pub shortest_overlap_ns: Option<u64>,
    /// Differences between the observation and the expectation, as messages; empty if there are
    /// none.
    pub failures: Vec<String>,
}

impl PropertyResult {
    /// Returns an upper bound, with 95 % confidence, on the probability that a further seed
    /// violates the property: three divided by `runs`. `None` unless the observed verdict is
    /// [`Observed::Holds`] and `runs` is positive.
    #[must_use]
    pub fn bound_95(&self, runs: u64) -> Option<f64> {
        let none = self.observed == Observed::Holds && runs > 0;
        none.then(|| (3.0 / runs as f64).min(1.0))
    }
}

/// Result for one quantity of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityResult {
    /// The quantity.
    pub quantity: Quantity,
    /// Bounds that the scenario expects of every run.
    pub expected: Option<Bounds>,
    /// Number of runs that measured the quantity.
    pub measured: u64,
    /// Values over these runs; `None` if there are none.
    pub figures: Option<Figures>,
    /// Seed of a run that is not as expected.
    pub failing_seed: Option<u64>,
    /// Differences between the values and the expectation, as messages; empty if there are none.
    pub failures: Vec<String>,
}

/// Failure of a case as a whole, apart from its properties and quantities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An enabled fault began in no run.
    FaultNeverBegan {
        /// The fault.
        fault: FaultId,
    },
    /// More than one seed was run, and all of them had the same history.
    OneHistory,
    /// Two runs with the same seed differed.
    Nondeterminism {
        /// Smallest such seed.
        seed: u64,
    },
    /// A run panicked: a bug of the client under test, or of the simulator.
    Panicked {
        /// Smallest such seed.
        seed: u64,
        /// Message of the panic.
        message: String,
    },
    /// No run began an attempt.
    NothingHappened,
    /// A served run cannot show that expectations are met: a worker crashed, or a fault never began.
    Incomplete {
        /// Reason, as a sentence for people.
        why: String,
    },
}

/// Result of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// Name of the engine: `event` or `turmoil`.
    pub engine: &'static str,
    /// Seeds that were requested.
    pub seeds: Range<u64>,
    /// Number of seeds that were run.
    pub runs: u64,
    /// Number of distinct histories, at most [`DISTINCT_MAX`](super::DISTINCT_MAX).
    pub distinct_histories: u64,
    /// Hash of the first seed's history.
    pub first_hash: u64,
    /// Results of the properties, in the order of [`Property::ALL`].
    pub properties: Vec<PropertyResult>,
    /// Results of the quantities, in the order of [`Quantity::ALL`].
    pub quantities: Vec<QuantityResult>,
    /// Counts, summed over all runs.
    pub counters: Counters,
    /// Failures apart from the properties and quantities.
    pub failures: Vec<Failure>,
}

impl CaseResult {
    /// Returns the name of the case: `scenario` or `scenario::case`.
    #[must_use]
    pub fn name(&self) -> String {
        self.case.full_name()
    }

    /// Returns a name of the case and its engine, and of the seed if each seed is a result of its own.
    /// It is unique within the scenario: the anchor on its page.
    #[must_use]
    pub fn anchor(&self) -> String {
        match self.engine {
            // Every seed is a result of its own.
            "serve" => format!("{}.{}", self.stem(), self.seeds.start),
            _ => self.stem(),
        }
    }

    fn stem(&self) -> String {
        let slug = self.case.slug.as_deref().unwrap_or("base");
        match self.engine {
            "event" => slug.to_owned(),
            engine => format!("{slug}.{engine}"),
        }
    }

    /// Returns the path of the history of the run of `seed`, relative to the directory of the
    /// reports.
    #[must_use]
    pub fn history_file(&self, seed: u64) -> String {
        format!("{}/{}.{seed}.{}", self.case.scenario.name, self.stem(), EXTENSION)
    }

    /// Returns true if every expectation is met and nothing else failed.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.failures.is_empty()
            && self.properties.iter().all(|it| it.failures.is_empty())
            && self.quantities.iter().all(|it| it.failures.is_empty())
    }

    /// Returns true if a quantity is above its bounds. Unlike one below them, nothing that is missing
    /// in a served run can be the cause: it would only add to the quantity.
    #[must_use]
    pub fn exceeds_bounds(&self) -> bool {
        self.quantities.iter().any(|it| {
            let max = it.figures.map(|figures| figures.max);
            it.expected.zip(max).is_some_and(|(bounds, max)| bounds.are_exceeded_by(max))
        })
    }

    /// Returns true if violations of `property` are what the scenario expects.
    #[must_use]
    pub fn expects_violation(&self, property: Property) -> bool {
        let mut found = self.properties.iter().filter(|it| it.property == property);
        found.any(|it| it.expected.verdict != Verdict::Holds && it.failures.is_empty())
    }

    /// Drops the failures that fewer seeds than the scenario specifies cannot prove: that no seed
    /// violated a property expected to be violated by *some* seed, and that a fault began in no
    /// seed.
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

    /// Returns the seeds whose histories are worth keeping: the first violating seed of each
    /// property, and a seed of each quantity that is not as expected; if there is none, the first
    /// seed, unless its run panicked. Sorted, without duplicates.
    #[must_use]
    pub fn kept_seeds(&self) -> Vec<u64> {
        let shown = self.properties.iter().filter_map(|it| it.shown.as_ref());
        let outside = self.quantities.iter().filter_map(|it| it.failing_seed);
        let mut seeds: Vec<u64> = shown.map(|(seed, _)| *seed).chain(outside).collect();
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
