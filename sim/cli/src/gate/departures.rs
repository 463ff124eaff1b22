//! Departures of the cases of a run from their expectations.

use core::fmt;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::report::results::{CaseReport, Results};

/// Subject of a departure that concerns the case as a whole.
const WHOLE: &str = "run";

/// Something that a case shows against its expectation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Departure {
    /// Name of the case, with the engine unless that is `event`.
    pub(crate) case: String,
    /// Name of a property or a quantity, or `run`.
    pub(crate) about: String,
    /// Observed verdict.
    pub(crate) observed: String,
    /// Every blame that was found, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) blame: Vec<String>,
}

impl Departure {
    /// Returns true if `other` is the same case's departure from the same expectation, whatever was
    /// observed.
    pub(crate) fn is_about_the_same(&self, other: &Self) -> bool {
        (&self.case, &self.about) == (&other.case, &other.about)
    }

    /// Returns true if the case was played in real time, where a violation may depend on a race.
    pub(crate) fn is_in_real_time(&self) -> bool {
        self.case.ends_with(" on serve")
    }

    /// Adds what was observed with another seed.
    fn absorb(&mut self, other: Self) {
        match self.about == WHOLE {
            true if !self.observed.contains(&other.observed) => {
                // Reasons differ by seed, so the first ones stand for all.
                let others = "; other seeds: other reasons";
                self.observed.truncate(self.observed.trim_end_matches(others).len());
                self.observed += others;
            }
            false if self.observed != other.observed => {
                self.observed = String::from("sometimes");
            }
            _ => {}
        }
        self.blame.extend(other.blame);
        self.blame.sort();
        self.blame.dedup();
    }

    /// Returns the observed verdict with its blame.
    pub(crate) fn verdict(&self) -> String {
        match &self.blame[..] {
            [] if self.observed == "violated" => String::from("violated (none)"),
            [] => self.observed.clone(),
            blame => format!("{} ({})", self.observed, blame.join(", ")),
        }
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}  {} {}", self.case, self.about, self.verdict())
    }
}

/// Returns the names of all cases in `results`, and their departures. Where each seed is a result of
/// its own, a case has the departures of all its seeds.
pub(crate) fn departures(results: &Results) -> (Vec<String>, Vec<Departure>) {
    let cases: BTreeSet<String> = results.cases.iter().map(name).collect();
    let mut found: Vec<Departure> = Vec::new();
    for departure in results.cases.iter().flat_map(of_case) {
        match found.iter_mut().find(|it| it.is_about_the_same(&departure)) {
            Some(known) => known.absorb(departure),
            None => found.push(departure),
        }
    }
    (cases.into_iter().collect(), found)
}

/// Returns the name of a case, with its engine unless that is `event`.
pub(super) fn name(case: &CaseReport) -> String {
    let mut name = case.scenario.clone();
    if let Some(slug) = &case.case {
        name += &format!("::{slug}");
    }
    if case.engine != "event" {
        name += &format!(" on {}", case.engine);
    }
    name
}

/// Returns the departures of a case.
pub(super) fn of_case(case: &CaseReport) -> Vec<Departure> {
    let departure = |about: &str, observed: &str, mut blame: Vec<String>| {
        blame.sort();
        Departure {
            case: name(case),
            about: about.to_owned(),
            observed: observed.to_owned(),
            blame,
        }
    };
    let properties = case.properties.iter().filter(|(_, it)| !it.failures.is_empty());
    let properties =
        properties.map(|(property, it)| departure(property.name(), &it.observed, it.blame.clone()));
    // Their values change with every change of the client.
    let quantities = case.quantities.iter().filter(|(_, it)| !it.failures.is_empty());
    let quantities = quantities.map(|(it, _)| departure(it.name(), "out of bounds", Vec::new()));
    let whole = (!case.failures.is_empty()).then(|| case.failures.join("; "));
    let whole = whole.map(|failures| departure(WHOLE, &failures, Vec::new()));
    properties.chain(quantities).chain(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_of_a_whole_run_are_those_of_the_first_seed() {
        let whole = |observed: &str| Departure {
            case: String::from("one on serve"),
            about: String::from(WHOLE),
            observed: observed.to_owned(),
            blame: Vec::new(),
        };
        let mut departure = whole("c1 crashed; no fault began");
        departure.absorb(whole("c1 crashed; no fault began"));
        assert_eq!(departure.to_string(), "one on serve  run c1 crashed; no fault began");
        for other in ["c2 crashed", "c3 crashed"] {
            departure.absorb(whole(other));
            let told = "one on serve  run c1 crashed; no fault began; other seeds: other reasons";
            assert_eq!(departure.to_string(), told);
        }
    }
}
