//! Compares the verdicts of a campaign with the expectations of the scenario.

use lock_judge::history::{FaultId, Id};
use lock_judge::scenario::{Case, Expectation, Property, Quantity, Span, Verdict};
use lock_judge::text;

use super::figures::QuantityTally;
use super::result::{CaseResult, Failure, Observed, PropertyResult, QuantityResult};
use super::tally::{Found, PropertyTally, Tally};

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
    let causes = |found: &Found| found.violation.blamed.names(&case.scenario);
    let wrong = wrong_blame(&expected, tally, causes);
    let short = short_overlap(&expected, tally.shortest);
    let mut failures = match runs {
        0 => Vec::new(),
        _ => wrong_verdict(&expected, observed, runs, tally),
    };
    let departures = [wrong, short].into_iter().flatten();
    let (told, departing): (Vec<String>, Vec<Found>) = departures.unzip();
    failures.extend(told);
    let shown = departing.first().copied().or(tally.first);
    let mut blames: Vec<String> = tally.blames.iter().map(|it| causes(it).join("+")).collect();
    blames.sort_unstable();
    PropertyResult {
        property,
        expected,
        observed,
        violating_seeds: tally.violated,
        first_seed: tally.first.map(|found| found.seed),
        shown: shown.map(|found| (found.seed, found.violation)),
        blames,
        shortest_overlap_ns: tally.shortest.map(|found| found.overlap().0),
        failures,
    }
}

fn wrong_verdict(
    expected: &Expectation,
    observed: Observed,
    runs: u64,
    tally: &PropertyTally,
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
            let kept =
                tally.unviolated.map_or(String::new(), |seed| format!(", not by seed {seed}"));
            failures.push(format!("{wanted}, violated by {violated} of {runs}{kept}"));
        }
        (Verdict::Sometimes, Observed::Holds) => {
            let wanted = "expected to be violated by some seed";
            failures.push(format!("{wanted}, violated by none of {runs}"));
        }
        _ => {}
    }
    failures
}

/// Returns the first violation that was not blamed as expected, with an error message.
fn wrong_blame(
    expected: &Expectation,
    tally: &PropertyTally,
    causes: impl Fn(&Found) -> Vec<String>,
) -> Option<(String, Found)> {
    let expected = expected.blame.as_ref()?;
    let others = tally.blames.iter().filter(|it| !expected.allows(&causes(it)));
    let other = *others.min_by_key(|it| it.seed)?;
    let (wanted, blamed) = (expected.words(" + "), causes(&other).join(" + "));
    let Found { seed, .. } = other;
    Some((format!("expected to be blamed on {wanted}, seed {seed} is blamed on {blamed}"), other))
}

/// Returns the violation with the shortest overlap if it is shorter than expected, with an error
/// message.
fn short_overlap(expected: &Expectation, shortest: Option<Found>) -> Option<(String, Found)> {
    let (wanted, shortest) = (expected.overlap_at_least?, shortest?);
    let (overlap_ns, seed) = shortest.overlap();
    (Span(overlap_ns) < wanted).then(|| {
        let overlap = text::length(overlap_ns);
        let told = format!("expected an overlap of at least {wanted}, seed {seed} has {overlap}");
        (told, shortest)
    })
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
    fn the_violation_that_is_not_as_expected_is_shown() {
        let played = |at_least: &str| {
            let more = format!("verdict = \"violated\", overlap-at-least = \"{at_least}\"");
            let setting = format!("expect.mutual-exclusion={{ {more} }}");
            let settings = [&*setting, "client.c2.steps.1.hold=1s..2s"];
            let mut result = play(&clock_jump(&settings)[0], 0..40, 2);
            result.properties.swap_remove(Property::MutualExclusion as usize)
        };
        let overlap_ns = |found: &PropertyResult| {
            let (_, violation) = found.shown.expect("it is violated");
            violation.to_ns - violation.from_ns
        };
        let met = played("1ns");
        assert_eq!((met.shown.map(|(seed, _)| seed), met.first_seed), (Some(0), Some(0)));
        let shortest_ns = met.shortest_overlap_ns.expect("it is violated");
        assert!(shortest_ns < overlap_ns(&met), "the first is not the shortest");
        let missed = played(&format!("{}ns", shortest_ns + 1));
        assert_eq!((overlap_ns(&missed), missed.first_seed), (shortest_ns, Some(0)));
        let told = format!("seed {} has", missed.shown.expect("it is violated").0);
        assert!(missed.failures[0].contains(&told), "{:?}", missed.failures);
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
