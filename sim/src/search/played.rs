//! A case after its runs.

use lock_judge::history::Event;
use lock_judge::oracle::Violation;
use lock_judge::scenario::Property;

use super::{CaseResult, PropertyResult};

/// A case after its runs, with the histories that were kept.
#[derive(Clone, Debug)]
pub struct Played {
    /// Verdicts and counters of the case.
    pub result: CaseResult,
    /// Seeds and their histories, ordered by seed.
    pub kept: Vec<(u64, Vec<Event>)>,
    /// Family of the scenario: the folder of its file. Empty if there is none.
    pub family: String,
    /// Argument of `run` and `replay` that selects this case and no other.
    pub selector: String,
}

impl Played {
    /// Returns the case of `result`, selected by its name, in no family.
    #[must_use]
    pub fn new(result: CaseResult, kept: Vec<(u64, Vec<Event>)>) -> Self {
        let selector = result.case.full_name();
        Self { result, kept, family: String::new(), selector }
    }

    /// Returns the history of the run of `seed`, if it was kept.
    #[must_use]
    pub fn history(&self, seed: u64) -> Option<&[Event]> {
        let (_, events) = self.kept.iter().find(|(kept, _)| *kept == seed)?;
        Some(events)
    }

    /// Returns the properties whose shown violation is in the run of `seed`, each with that
    /// violation.
    #[must_use]
    pub fn violations(&self, seed: u64) -> Vec<(Property, &Violation)> {
        let shown = |it: &&PropertyResult| it.shown.is_some_and(|(of, _)| of == seed);
        let violated = self.result.properties.iter().filter(shown);
        violated.filter_map(|it| Some((it.property, &it.shown.as_ref()?.1))).collect()
    }

    /// Returns the seeds of the runs that a page shows: each kept run that is the first to violate
    /// some property, or else the first kept run.
    #[must_use]
    pub fn shown_seeds(&self) -> Vec<u64> {
        let seeds = self.kept.iter().map(|(seed, _)| *seed);
        let shown: Vec<u64> =
            seeds.clone().filter(|&seed| !self.violations(seed).is_empty()).collect();
        if shown.is_empty() { seeds.take(1).collect() } else { shown }
    }
}
