//! Compares the verdicts of a campaign with the expectations of the scenario.

use lock_judge::history::{FaultId, Id};
use lock_judge::oracle::Blamed;
use lock_judge::scenario::{Case, Expectation, Property, Quantity, Span, Verdict};

use super::figures::QuantityTally;
use super::result::{CaseResult, Failure, Observed, PropertyResult, QuantityResult};
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
    let quantity = |quantity: Quantity| {
        of_quantity(case, quantity, tally.runs, &tally.quantities[quantity as usize])
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
        quantities: Quantity::ALL.into_iter().map(quantity).collect(),
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
    let expected = case.scenario.expect.properties.get(&property).cloned();
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

/// Returns an error message if a violating run was not blamed as expected.
fn wrong_blame(expected: &Expectation, blames: &[Vec<String>]) -> Option<String> {
    let expected = expected.blame.as_ref()?;
    let other = blames.iter().find(|causes| !expected.allows(causes))?;
    let (wanted, other) = (expected.words(" + "), other.join(" + "));
    Some(format!("expected to be blamed on {wanted}, blamed on {other}"))
}

fn short_overlap(expected: &Expectation, shortest_ns: Option<u64>) -> Option<String> {
    let (wanted, shortest) = (expected.overlap_at_least?, Span(shortest_ns?));
    (shortest < wanted)
        .then(|| format!("expected an overlap of at least {wanted}, the shortest is {shortest}"))
}

/// Compares the values of a quantity with its bounds. Every run must measure it, within them.
fn of_quantity(
    case: &Case,
    quantity: Quantity,
    runs: u64,
    tally: &QuantityTally,
) -> QuantityResult {
    let (measured, figures) = (tally.measured, tally.figures());
    let expected = case.scenario.expect.quantities.get(&quantity).copied();
    let (mut failing_seed, mut failures) = (None, Vec::new());
    if let Some(bounds) = expected {
        let wanted = quantity.written(bounds);
        if let Some(seed) = tally.unmeasured {
            failing_seed = Some(seed);
            let seeds = match runs - measured {
                1 => format!("seed {seed}"),
                missing => format!("{missing} of {runs} seeds, the first is {seed}"),
            };
            failures.push(format!("expected {wanted}, not measured by {seeds}"));
        }
        let ends = figures.map(|it| [(it.min, it.min_seed), (it.max, it.max_seed)]);
        let mut outside: Vec<(u64, u64)> = ends.into_iter().flatten().collect();
        outside.retain(|(value, _)| !bounds.contain(*value));
        outside.dedup();
        for (value, seed) in outside {
            failing_seed = failing_seed.or(Some(seed));
            let value = quantity.words(value);
            failures.push(format!("expected {wanted}, seed {seed} has {value}"));
        }
    }
    QuantityResult { quantity, expected, measured, figures, failing_seed, failures }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{clock_jump, play};
    use super::*;

    #[test]
    fn a_quantity_outside_its_bounds_is_shown_with_its_seed() {
        let played = |setting: &str| play(&clock_jump(&[setting])[0], 0..40, 2);
        let within = played("expect.section-overlap=1s..60s");
        assert!(within.is_met());
        let found = &within.quantities[Quantity::SectionOverlap as usize];
        let figures = found.figures.expect("it is measured");
        assert!(figures.min >= 1_000_000_000 && figures.min <= figures.median);
        assert!(figures.median <= figures.max && found.measured == 40);
        let outside = played("expect.section-overlap=..1ms");
        assert!(!outside.is_met());
        let found = &outside.quantities[Quantity::SectionOverlap as usize];
        let first = &found.failures[0];
        assert!(first.starts_with(&format!("expected ..1ms, seed {} has ", figures.min_seed)));
        assert!(outside.kept_seeds().contains(&figures.min_seed));
    }

    #[test]
    fn an_unmeasured_quantity_is_reported() {
        // c2 gives up before c1's lease is over.
        let late = ["fault.jump.enabled=false", "client.c2.steps.0.acquire.until=2s"];
        let result = play(&clock_jump(&[late[0], late[1], "expect.granted-at=..2s"])[0], 0..4, 1);
        let found = &result.quantities[Quantity::GrantedAt as usize];
        let told = "expected ..2s, not measured by 4 of 4 seeds, the first is 0";
        assert_eq!((&found.failures[..], found.failing_seed), (&[String::from(told)][..], Some(0)));
    }
}
