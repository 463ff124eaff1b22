//! Compares the verdicts of a campaign with the expectations of the scenario.

use lock_judge::history::{FaultId, Id};
use lock_judge::oracle::Blamed;
use lock_judge::scenario::{Case, Expectation, Property, Span, Verdict};

use super::result::{CaseResult, Failure, Observed, PropertyResult};
use super::tally::{PropertyTally, Tally};

/// Returns the result of `case` on the engine named `engine`, from the runs in `tally`.
pub(super) fn result(
    case: &Case,
    engine: &'static str,
    seeds: core::ops::Range<u64>,
    tally: &Tally,
) -> CaseResult {
    let property = |property: Property| {
        of_property(case, property, tally.runs, &tally.properties[property as usize])
    };
    let mut failures = Vec::new();
    if let Some(seed) = tally.nondeterministic {
        failures.push(Failure::Nondeterminism { seed });
    }
    if let Some((seed, message)) = tally.panicked.clone() {
        failures.push(Failure::Panicked { seed, message });
    }
    if tally.runs > 1 && tally.distinct_histories() == 1 {
        failures.push(Failure::OneHistory);
    }
    if tally.runs > 0 && tally.counters.attempts == 0 {
        failures.push(Failure::NothingHappened);
    }
    let run = &case.scenario.run;
    if run.commands_max.is_some_and(|most| tally.commands_most > most) {
        failures.push(Failure::TooManyCommands { most: tally.commands_most });
    }
    if run.granted_by.is_some_and(|at| tally.granted_by_ns > at.0) {
        failures.push(Failure::GrantedLate { at_ns: tally.granted_by_ns });
    }
    // A campaign that was stopped may not have reached the seed in which the fault begins.
    if tally.runs > 0 && tally.runs == seeds.end - seeds.start {
        failures.extend(faults_that_never_began(case, tally));
    }
    CaseResult {
        case: case.clone(),
        engine,
        seeds,
        runs: tally.runs,
        distinct_histories: tally.distinct_histories(),
        first_hash: tally.first.map_or(0, |(_, hash)| hash),
        properties: Property::ALL.into_iter().map(property).collect(),
        counters: tally.counters,
        failures,
    }
}

/// Returns a failure for each enabled fault that began in no run: such a fault tests nothing.
fn faults_that_never_began(case: &Case, tally: &Tally) -> impl Iterator<Item = Failure> {
    let faults = FaultId::first(case.scenario.faults.len()).zip(&case.scenario.faults);
    let enabled = faults.filter(|(_, fault)| fault.enabled).map(|(id, _)| id);
    enabled
        .filter(|&fault| !tally.faults_begun.contains(fault))
        .map(|fault| Failure::FaultNeverBegan { fault })
}

fn of_property(
    case: &Case,
    property: Property,
    runs: u64,
    tally: &PropertyTally,
) -> PropertyResult {
    let expected = case.scenario.expect.get(&property).cloned();
    let expected = expected.unwrap_or(Expectation::bare(Verdict::Holds));
    let observed = match tally {
        PropertyTally { violated, .. } if *violated > 0 && *violated == runs => Observed::Violated,
        PropertyTally { violated, .. } if *violated > 0 => Observed::Sometimes,
        PropertyTally { unjudged, .. } if *unjudged > 0 => Observed::Unjudged,
        PropertyTally { held, .. } if *held > 0 => Observed::Holds,
        _ => Observed::Vacuous,
    };
    let words = |blamed: &Blamed| blamed.names(&case.scenario);
    let blames: Vec<Vec<String>> = tally.blames.iter().map(words).collect();
    let failures =
        if runs == 0 { Vec::new() } else { failures(&expected, observed, runs, tally, &blames) };
    let mut blames: Vec<String> = blames.iter().map(|causes| causes.join("+")).collect();
    blames.sort_unstable();
    PropertyResult {
        property,
        expected,
        observed,
        violating_seeds: tally.violated,
        first: tally.first.map(|first| (first.seed, first.violation)),
        blames,
        shortest_overlap_ns: tally.shortest_overlap_ns,
        failures,
    }
}

fn failures(
    expected: &Expectation,
    observed: Observed,
    runs: u64,
    tally: &PropertyTally,
    blames: &[Vec<String>],
) -> Vec<String> {
    if expected.verdict == Verdict::Any || observed == Observed::Unjudged {
        return Vec::new();
    }
    let mut failures = Vec::new();
    let violated = tally.violated;
    match (expected.verdict, observed) {
        (Verdict::Holds, Observed::Violated | Observed::Sometimes) => {
            failures.push(format!("expected to hold, violated by {violated} of {runs} seeds"));
        }
        (Verdict::Violated | Verdict::Sometimes, Observed::Vacuous) => {
            failures.push(String::from("expected a violation, but nothing was put to the test"));
        }
        (Verdict::Violated, Observed::Sometimes | Observed::Holds) => {
            let wanted = "expected to be violated by every seed";
            failures.push(format!("{wanted}, violated by {violated} of {runs}"));
        }
        (Verdict::Sometimes, Observed::Holds) => {
            let wanted = "expected to be violated by some seed";
            failures.push(format!("{wanted}, violated by none of {runs}"));
        }
        _ => {}
    }
    failures.extend(wrong_blame(expected, blames));
    failures.extend(short_overlap(expected, tally.shortest_overlap_ns));
    failures
}

/// Returns an error message if a violating run was not blamed on exactly the expected causes.
fn wrong_blame(expected: &Expectation, blames: &[Vec<String>]) -> Option<String> {
    if expected.blame.is_empty() {
        return None;
    }
    let sorted = |causes: &[String]| {
        let mut causes = causes.to_vec();
        causes.sort_unstable();
        causes
    };
    let wanted = sorted(&expected.blame);
    let other = blames.iter().find(|causes| sorted(causes) != wanted)?;
    let (wanted, other) = (expected.blame.join(" + "), other.join(" + "));
    Some(format!("expected to be blamed on {wanted}, blamed on {other}"))
}

fn short_overlap(expected: &Expectation, shortest_ns: Option<u64>) -> Option<String> {
    let (wanted, shortest) = (expected.overlap_at_least?, Span(shortest_ns?));
    (shortest < wanted)
        .then(|| format!("expected an overlap of at least {wanted}, the shortest is {shortest}"))
}
