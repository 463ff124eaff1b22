//! The result of a run: its history, judged like any other.

use std::path::PathBuf;

use lock_judge::history::EventKind;
use lock_judge::oracle::Measured;
use lock_judge::scenario::{self, Property, Scenario};

use super::history_builder::{MEASURED, is_judged};
use super::support::ENGINE;
use crate::search::{CaseResult, Failure, Observed, Played};

/// The judged history of a run, complete or so far.
#[derive(Debug)]
pub struct Verdict {
    /// The verdicts and the history.
    pub played: Played,
    /// True if not everything could be recorded; then nothing is judged.
    pub is_cut_short: bool,
    /// File of the history, once the reports are written.
    pub history: PathBuf,
}

/// Returns the properties that cannot be judged from outside.
#[must_use]
pub fn unjudged() -> Vec<Property> {
    Property::ALL.into_iter().filter(|&property| !is_judged(property)).collect()
}

/// Returns those of the quantities that can be measured from outside.
#[must_use]
pub fn from_outside(measured: Measured) -> Measured {
    measured.only(&MEASURED)
}

/// Names the expectations of `scenario` that cannot be judged from outside: properties, then
/// quantities.
#[must_use]
pub fn unjudged_expectations(scenario: &Scenario) -> Vec<&'static str> {
    let expect = &scenario.expect;
    let properties = expect.properties.iter().filter(|(property, expected)| {
        !is_judged(**property) && expected.verdict != scenario::Verdict::Any
    });
    let quantities = expect.quantities.keys().filter(|it| !MEASURED.contains(it));
    let properties = properties.map(|(property, _)| property.name());
    properties.chain(quantities.map(|it| it.name())).collect()
}

/// Returns the expected properties that nothing put to the test: those that the scenario names, and
/// `exclusive-section`, which is vacuous if no worker entered, unless the scenario expects anything.
fn untested(result: &CaseResult) -> impl Iterator<Item = Property> {
    let named = &result.case.scenario.expect.properties;
    let is_expected = |property| match named.get(&property) {
        Some(expected) => expected.verdict != scenario::Verdict::Any,
        None => property == Property::ExclusiveSection,
    };
    let vacuous = result.properties.iter().filter(|it| it.observed == Observed::Vacuous);
    vacuous.map(|it| it.property).filter(move |&property| is_expected(property))
}

/// Reason why no section was put to the test.
const NOT_ENTERED: &str = "no worker sent ENTER: a worker reports its section to the observer, by \
    `ENTER RESOURCE CLIENT [TOKEN]` (`drive` gives it the address in DRIVE_OBSERVER), or by \
    `Host::enter`";

/// Names the properties that should have been put to the test; `None` if all were.
#[must_use]
pub fn untested_in_words(result: &CaseResult) -> Option<String> {
    let untested: Vec<Property> = untested(result).collect();
    if untested.contains(&Property::ExclusiveSection) {
        return Some(String::from(NOT_ENTERED));
    }
    let names: Vec<&str> = untested.iter().map(|it| it.name()).collect();
    (!names.is_empty()).then(|| format!("nothing put {} to the test", names.join(", ")))
}

/// Adds what makes a run incomplete to its result. A run that was cut short is not judged.
pub fn note(result: &mut CaseResult, is_cut_short: bool, incomplete: Vec<String>) {
    if is_cut_short {
        result.properties.iter_mut().for_each(|it| it.shown = None);
    }
    result.failures.retain(|it| *it != Failure::NothingHappened);
    result.failures.extend(incomplete.into_iter().map(|why| Failure::Incomplete { why }));
}

/// Returns true for a served run that violated nothing because too little happened in it.
#[must_use]
pub fn is_untested(result: &CaseResult) -> bool {
    let is_clean = result.properties.iter().all(|it| it.shown.is_none());
    let is_clean = is_clean && !result.exceeds_bounds();
    result.engine == ENGINE && is_clean && untested(result).next().is_some()
}

impl Verdict {
    /// Returns true if no master received a request about the lock, whatever workers reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let mut events = self.played.kept.iter().flat_map(|(_, events)| events);
        !events.any(|event| matches!(event.kind, EventKind::Written { .. }))
    }

    /// Returns the result of a run to which `incomplete` happened. `unasked` explains why a run in
    /// which nobody asked for the lock is incomplete.
    #[must_use]
    pub fn played(self, mut incomplete: Vec<String>, unasked: &str) -> Played {
        let (is_empty, is_cut_short) = (self.is_empty(), self.is_cut_short);
        let mut played = self.played;
        if is_cut_short {
            incomplete.push(String::from("too many events for a history: nothing is judged"));
        } else if is_empty {
            incomplete.push(unasked.to_owned());
        } else if !played.result.exceeds_bounds() {
            incomplete.extend(untested_in_words(&played.result));
        }
        note(&mut played.result, is_cut_short, incomplete);
        played
    }
}
