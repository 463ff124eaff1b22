//! Text that the command prints about results.

use std::path::Path;

use lock_judge::history::Event;
use lock_judge::oracle::{Counters, Violation};
use lock_judge::scenario::{Expectation, Property, Span, Verdict};
use lock_judge::text;
use redlock_sim::search::{CaseResult, Figures, Observed, Played, PropertyResult, QuantityResult};

use super::exit::Exit;
use crate::report::{self, replay_command, results, violation_block};

/// Returns one line for a case, one more for each failure, and the story of each violation that was
/// not expected.
#[must_use]
pub fn told(played: &Played) -> String {
    told_with(played, Path::new(""))
}

/// As [`told`]; histories are named by their paths in the directory `out`.
#[must_use]
pub fn told_with(played: &Played, out: &Path) -> String {
    let unexpected = |found: &&PropertyResult| !found.failures.is_empty();
    let is_expected = |it: &&QuantityResult| it.expected.is_some();
    let quantities = indented(&quantities(&played.result, is_expected));
    case(played) + &quantities + &stories(played, out, unexpected)
}

/// Returns one line for a case, one for each property, each quantity and each failure, and the
/// story of the first violation of each property, expected or not.
pub(super) fn told_in_full(played: &Played, out: &Path) -> String {
    let verdicts = verdicts(&played.result);
    let quantities = indented(&quantities(&played.result, |_| true));
    let stories = stories(played, out, |_| true);
    format!("{}\n{verdicts}{quantities}{stories}", case(played))
}

/// Returns the story of the shown violation of each property that `is_told`.
fn stories(played: &Played, out: &Path, is_told: impl Fn(&&PropertyResult) -> bool) -> String {
    let result = &played.result;
    let mut text = String::new();
    for found in result.properties.iter().filter(is_told) {
        let Some((seed, violation)) = &found.shown else { continue };
        if let Some(events) = played.history(*seed) {
            let history = out.join(result.history_file(*seed)).display().to_string();
            let again =
                replay_command(&result.case, &played.selector, result.engine, *seed, &history);
            let block = block(result, found.property, (*seed, violation), (events, &again));
            text += &format!("\n\n{block}");
        }
    }
    text
}

fn case(played: &Played) -> String {
    let result = &played.result;
    let is_unclear = Exit::of(result) == Exit::Inconclusive;
    let whole = result.failures.iter().map(|it| results::failure(&result.case, it));
    let mut failures: Vec<String> = if is_unclear { Vec::new() } else { of_expectations(played) };
    failures.extend(whole);
    if is_unclear {
        // What happened to the workers is the cause of what was not put to the test.
        failures.extend(of_expectations(played));
    }
    let lines: String = failures.iter().map(|it| format!("\n        {it}")).collect();
    headline(result) + &lines
}

/// Returns the differences between a run and its expectations.
fn of_expectations(played: &Played) -> Vec<String> {
    let mut lines = Vec::new();
    for found in &played.result.properties {
        let name = found.property.name();
        lines.extend(found.failures.iter().map(|it| format!("{name}: {it}")));
    }
    for found in &played.result.quantities {
        let name = found.quantity.name();
        lines.extend(found.failures.iter().map(|it| format!("{name}: {it}")));
    }
    lines.extend(report::left_keys_of(played));
    lines
}

/// Returns the first line for a case.
fn headline(result: &CaseResult) -> String {
    let head = match Exit::of(result) {
        _ if result.is_met() => "met     ",
        Exit::Inconclusive => "UNCLEAR ",
        _ => "FAILED  ",
    };
    let properties = result.properties.iter().filter(|it| tells(it)).map(finding);
    let told: Vec<String> =
        properties.chain(result.quantities.iter().filter_map(outside)).collect();
    let told = match told.is_empty() {
        false => told.join("; "),
        true if Exit::of(result) == Exit::Inconclusive => String::from("nothing is decided"),
        true if result.counters.granted == 0 => {
            String::from("no lock was granted, so nothing is violated")
        }
        true => String::from("everything holds"),
    };
    let CaseResult { engine, seeds, runs, .. } = result;
    let asked = seeds.end - seeds.start;
    let done = if *runs == asked { String::new() } else { format!(" ({runs} of {asked} done)") };
    let name = result.name();
    let figures = figures(result);
    format!("{head}{name}  {engine} {}..{}{done}  {told}  {figures}", seeds.start, seeds.end)
}

/// Formats a quantity that is not within its bounds; `None` for another.
fn outside(found: &QuantityResult) -> Option<String> {
    let bounds = found.expected.filter(|_| !found.failures.is_empty())?;
    let (name, expected) = (found.quantity.name(), found.quantity.written(bounds));
    let words = |value| found.quantity.words(value);
    let observed = match found.figures {
        None => String::from("not measured"),
        Some(Figures { min, max, .. }) if min == max => words(min),
        Some(Figures { min, max, .. }) => format!("{} to {}", words(min), words(max)),
    };
    Some(format!("{name} {observed}, expected {expected}"))
}

/// Returns a line for each quantity that was measured and `is_told`.
pub(super) fn quantities(
    result: &CaseResult,
    is_told: impl Fn(&&QuantityResult) -> bool,
) -> Vec<String> {
    let line = |it: &QuantityResult| {
        let Figures { min, median, max, .. } = it.figures?;
        let words = |value| it.quantity.words(value);
        let name = it.quantity.name();
        let values = match min == max {
            true => words(min),
            false => format!("min {}, median {}, max {}", words(min), words(median), words(max)),
        };
        let expected = it.expected.map(|bounds| it.quantity.written(bounds));
        let expected = expected.map_or(String::new(), |it| format!(", expected {it}"));
        Some(format!("{name:<24} {values}{expected}"))
    };
    result.quantities.iter().filter(is_told).filter_map(line).collect()
}

/// Puts each line on a line of its own under the line of a case.
fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}

/// Formats how much happened in the runs of a case.
fn figures(result: &CaseResult) -> String {
    let Counters { attempts, granted, extended, .. } = result.counters;
    let mut figures = text::count(result.distinct_histories, "distinct run");
    figures += &format!(", {granted} of {} granted", text::count(attempts, "attempt"));
    if extended > 0 {
        figures += &format!(", {}", text::count(extended, "extension"));
    }
    format!("({figures})")
}

/// Returns true if the line of a case mentions the property. A property that was expected to hold
/// is left out if it holds, is vacuous or was not judged.
fn tells(found: &PropertyResult) -> bool {
    let plain = found.expected.verdict == Verdict::Holds
        && matches!(found.observed, Observed::Holds | Observed::Vacuous | Observed::Unjudged);
    !plain
}

fn finding(found: &PropertyResult) -> String {
    let (name, seen) = (found.property.name(), observed(found));
    if found.failures.is_empty() && found.observed != Observed::Unjudged {
        format!("{name} {seen}, as expected")
    } else {
        format!("{name} {seen}, expected {}", expected(&found.expected))
    }
}

fn observed(found: &PropertyResult) -> String {
    match found.observed {
        Observed::Holds => String::from("holds"),
        Observed::Unjudged => String::from("not judged"),
        Observed::Vacuous => String::from("vacuous"),
        Observed::Violated => format!("violated ({})", found.blames.join(" or ")),
        Observed::Sometimes => {
            let (seeds, blames) = (found.violating_seeds, found.blames.join(" or "));
            format!("violated by {seeds} seeds ({blames})")
        }
    }
}

/// Formats an expectation in words.
fn expected(expected: &Expectation) -> String {
    let word = match expected.verdict {
        Verdict::Any => "anything",
        Verdict::Holds => "to hold",
        Verdict::Sometimes => "sometimes",
        Verdict::Violated => "violated",
    };
    let blame = expected.blame.as_ref().map(|it| format!(" ({})", it.words("+")));
    let overlap =
        expected.overlap_at_least.map(|Span(ns)| format!(" for {} or more", text::length(ns)));
    [Some(word.to_owned()), blame, overlap].into_iter().flatten().collect()
}

/// Formats every property of one run, one line each.
pub(super) fn verdicts(result: &CaseResult) -> String {
    let line = |found: &PropertyResult| {
        let mark = if found.failures.is_empty() { "  " } else { "! " };
        let (name, observed) = (found.property.name(), observed(found));
        format!("{mark}{name:<20} {observed:<32} expected {}", expected(&found.expected))
    };
    result.properties.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the story of a violation of `property` in the run of `seed`. `events` is the history of
/// the run, and `replay` the command that replays it.
pub(super) fn block(
    result: &CaseResult,
    property: Property,
    (seed, violation): (u64, &Violation),
    (events, replay): (&[Event], &str),
) -> String {
    violation_block(&result.case, seed, property, violation, events, replay)
}
