//! The index page: a table of every case against every property.

use maud::{Markup, html};

use super::{Played, page};
use crate::scenario::Property;
use crate::search::Observed;
use crate::text;

pub(super) fn draw(played: &[Played]) -> String {
    let met = played.iter().filter(|one| one.result.is_met()).count();
    let runs: u64 = played.iter().map(|one| one.result.runs).sum();
    let body = html! {
        h1 { "Redis locks under faults" }
        p.verdict {
            @if met == played.len() {
                span.met { "✓ everything as expected" }
            } @else {
                span.unmet { "✗ " (text::count((played.len() - met) as u64, "case")) " not as expected" }
            }
            " · " (text::count(played.len() as u64, "case")) " · " (text::count(runs, "run"))
        }
        p.note {
            "✓ held in every run · ✗ violated in every run · ◐ violated in some · – not put to the test · "
            "? the engine cannot tell. A frame marks what was not expected. "
            a href="results.json" { "results.json" } " has it for programs."
        }
        div.wide { table.grid {
            thead { tr {
                th { "case" } th { "as expected" }
                @for property in Property::ALL { th { (property.name().replace('-', " ")) } }
            } }
            @for group in played.chunk_by(same_scenario) { (scenario(group)) }
        } }
    };
    page::document("Redis locks under faults", &body)
}

fn same_scenario(one: &Played, other: &Played) -> bool {
    one.result.case.scenario.name == other.result.case.scenario.name
}

fn scenario(group: &[Played]) -> Markup {
    let scenario = &group[0].result.case.scenario;
    let file = format!("{}.html", scenario.name);
    html! {
        tbody {
            tr.scenario {
                th colspan=(Property::ALL.len() + 2) {
                    a href=(file) { (scenario.title) } " " code { (scenario.name) }
                }
            }
            @for one in group { (case(one, &file)) }
        }
    }
}

fn case(played: &Played, file: &str) -> Markup {
    let result = &played.result;
    let name = result.case.name.as_ref().or(result.case.slug.as_ref());
    let name = name.map_or("as told", String::as_str);
    html! {
        tr {
            td.case {
                a href=(format!("{file}#{}", page::anchor(&played.result))) { (name) }
                @if result.engine != "event" { " (" (result.engine) ")" }
            }
            td {
                @if result.is_met() { span.met { "✓ yes" } } @else { span.unmet { "✗ no" } }
            }
            @for property in Property::ALL {
                @match result.properties.iter().find(|it| it.property == property) {
                    Some(it) => td class=[(!it.failures.is_empty()).then_some("failed")] {
                        @if it.observed == Observed::Vacuous { span.vacuous { "–" } }
                        @else { (page::finding(it)) }
                    }
                    None => td {}
                }
            }
        }
    }
}
