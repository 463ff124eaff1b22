//! The index page: the cases that failed, then one line for each scenario, by family.

use lock_judge::scenario::Property;
use lock_judge::text;
use maud::{Markup, PreEscaped, html};
use redlock_sim::search::Observed;

use super::{Played, page, page_file, results, scenarios};

/// Filters the lines. The page is complete without it.
const SCRIPT: &str = include_str!("index.js");

/// Up to this number of scenarios, no family is folded.
const UNFOLDED_MAX: usize = 12;

/// The cases of one scenario.
type Group<'a> = (&'a str, Vec<&'a Played>);

pub(super) fn draw(played: &[Played]) -> String {
    let groups = scenarios(played);
    let unfolded = groups.len() <= UNFOLDED_MAX;
    let runs: u64 = played.iter().map(|one| one.result.runs).sum();
    let failed: Vec<&Played> = played.iter().filter(|one| !one.result.is_met()).collect();
    let body = html! {
        h1 { "Redis locks under faults" }
        p.verdict {
            @if failed.is_empty() {
                span.met { "every case as expected" }
            } @else {
                span.unmet { (text::count(failed.len() as u64, "case")) " not as expected" }
            }
            " · " (text::count(groups.len() as u64, "scenario"))
            " · " (text::count(played.len() as u64, "case")) " · " (text::count(runs, "run"))
        }
        @if !failed.is_empty() { (failures(&failed)) }
        p.note {
            "Each line is a scenario, with all of its cases. A property ✓\u{a0}held in every run, was "
            "✗\u{a0}violated in every run, ◐\u{a0}violated in some runs, –\u{a0}not put to the test, or "
            "?\u{a0}not judged. A red frame marks a verdict that was not expected. "
            a href="results.json" { "results.json" } " has every case for programs."
        }
        input #filter type="search" hidden autocomplete="off" aria-label="Filter"
            placeholder="Filter: words of a title, a name, a tag, a violated property";
        @for (family, groups) in families(&groups) { (section(family, &groups, unfolded)) }
        script { (PreEscaped(SCRIPT)) }
    };
    page::document("Redis locks under faults", "index", &body)
}

/// Lists each case that did not meet its expectations, with the reasons.
fn failures(failed: &[&Played]) -> Markup {
    html! {
        section.failures {
            h2 { "Not as expected" }
            ul {
                @for one in failed {
                    @let result = &one.result;
                    li {
                        a href=(format!("{}#{}", page_file(&result.case.scenario.name), result.anchor())) {
                            (result.case.scenario.title) ": " (page::heading(result))
                        }
                        " " code { (result.name()) }
                        @for found in &result.properties {
                            @for failure in &found.failures {
                                p.failure { (found.property.name()) ": " (failure) }
                            }
                        }
                        @for found in &result.quantities {
                            @for failure in &found.failures {
                                p.failure { (found.quantity.name()) ": " (failure) }
                            }
                        }
                        @for failure in &result.failures {
                            p.failure { (results::failure(&result.case, failure)) }
                        }
                    }
                }
            }
        }
    }
}

/// Groups the scenarios by family, in the order in which each family first appears.
fn families<'g, 'a>(groups: &'g [Group<'a>]) -> Vec<(&'a str, Vec<&'g Group<'a>>)> {
    let mut found: Vec<(&str, Vec<&Group<'_>>)> = Vec::new();
    for group in groups {
        let family = group.1[0].family.as_str();
        match found.iter_mut().find(|(known, _)| *known == family) {
            Some((_, groups)) => groups.push(group),
            None => found.push((family, vec![group])),
        }
    }
    found
}

fn section(family: &str, groups: &[&Group<'_>], unfolded: bool) -> Markup {
    let cases = || groups.iter().flat_map(|(_, cases)| cases);
    let failed = cases().filter(|one| !one.result.is_met()).count();
    html! {
        details open[unfolded || failed > 0] {
            summary {
                span.family { @if family.is_empty() { "scenarios" } @else { (family) } } " "
                (badge(failed)) " · "
                (text::count(groups.len() as u64, "scenario")) " · "
                (text::count(cases().count() as u64, "case"))
            }
            table.grid {
                thead { tr {
                    th { "scenario" } th { "cases as expected" }
                    @for property in Property::ALL { th { span { (property.name()) } } }
                } }
                tbody { @for (name, cases) in groups { (line(name, cases)) } }
            }
        }
    }
}

/// Says whether all cases met their expectations, or how many did not. The marks of the table are not
/// used: they are verdicts on properties.
fn badge(failed: usize) -> Markup {
    html! {
        @if failed == 0 { span.met { "as expected" } }
        @else { span.unmet { (failed) " not as expected" } }
    }
}

fn line(name: &str, cases: &[&Played]) -> Markup {
    let scenario = &cases[0].result.case.scenario;
    let failed = cases.iter().filter(|one| !one.result.is_met()).count();
    html! {
        tr data-tags=(scenario.tags.join(" ")) {
            td { a href=(page_file(name)) { (scenario.title) } " " code { (name) } }
            td {
                @if failed == 0 { span.met { (cases.len()) } }
                @else { span.unmet { (cases.len() - failed) " of " (cases.len()) } }
            }
            @for property in Property::ALL { (cell(cases, property)) }
        }
    }
}

/// Sums up the verdicts on one property over all cases of a scenario.
fn cell(cases: &[&Played], property: Property) -> Markup {
    let results = cases.iter().map(|one| &one.result);
    let found = results.filter_map(|it| it.properties.iter().find(|it| it.property == property));
    let found: Vec<_> = found.collect();
    let all = |observed| found.iter().all(|it| it.observed == observed);
    let any = |observed| found.iter().any(|it| it.observed == observed);
    let observed = if all(Observed::Vacuous) {
        Observed::Vacuous
    } else if all(Observed::Violated) {
        Observed::Violated
    } else if found.iter().any(|it| it.violating_seeds > 0) {
        Observed::Sometimes
    } else if any(Observed::Unjudged) {
        Observed::Unjudged
    } else {
        Observed::Holds
    };
    let word = results::word(observed);
    let failed = found.iter().any(|it| !it.failures.is_empty());
    let class = if failed { format!("{word} failed") } else { word.to_owned() };
    // Names the property where the columns have no heads: on small screens, to screen readers and
    // to the filter.
    let is_named = failed || matches!(observed, Observed::Violated | Observed::Sometimes);
    html! {
        td class=(class) {
            (page::glyph(observed)) @if is_named { span { " " (property.name()) } }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn verdicts_on_a_small_screen_are_as_wide_as_their_names() {
        let (_, small) = include_str!("style.css").split_once("@media(max-width:760px)").unwrap();
        assert!(small.contains(".grid td{border:0;display:none;padding:0;width:auto}"));
    }
}
