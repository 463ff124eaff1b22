//! The page of a scenario: its cases one after the other, each with verdict, story and pictures.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Played, results};
use crate::scenario::{Scenario, Verdict};
use crate::search::{CaseResult, Observed, PropertyResult};
use crate::text;

mod fit;
mod run;

use fit::Detail;

/// Style sheet of every page.
const STYLE: &str = include_str!("style.css");

/// SVG patterns shared by all pictures of a page.
const PATTERNS: &str = include_str!("patterns.svg");

/// Draws the page of one scenario. `played` holds its cases, in order. `has_index` is true if
/// `index.html` lies beside the page.
pub(super) fn draw(played: &[&Played], has_index: bool) -> String {
    let Some(first) = played.first() else { return String::new() };
    let scenario = &first.result.case.scenario;
    let body = html! {
        @if has_index { p.up { a href="index.html" { "all scenarios" } } }
        h1 { (scenario.title) }
        p.name { code { (scenario.name) } @for tag in &scenario.tags { " " span.tag { (tag) } } }
        @if !scenario.source.is_empty() { p.source { "After " (scenario.source) "." } }
        @if !scenario.story.is_empty() { p.story { (scenario.story) } }
        (setting(scenario))
        @if played.len() > 1 { (contents(played)) }
        @for case in fit::cases(played) { (case) }
        (legend())
    };
    document(&scenario.title, &body)
}

/// Returns a complete HTML document that needs no other file.
pub(super) fn document(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (PreEscaped(PATTERNS.trim_end()))
                main { (body) }
                footer { "Written by " (super::BUILD) ". Times are true time unless a clock is named." }
            }
        }
    };
    let mut page = page.into_string();
    page.push('\n');
    page
}

/// Describes the set-up of the scenario in a sentence: masters, TTL, delays, clients.
fn setting(scenario: &Scenario) -> Markup {
    let nodes = &scenario.cluster.nodes;
    let masters = text::count(nodes.len() as u64, "master");
    let clients: Vec<String> = scenario
        .clients
        .iter()
        .map(|client| format!("{} ({})", client.id, client.subject))
        .collect();
    html! {
        p.setting {
            (masters) " (" (nodes.join(", ")) "), TTL " (text::length(scenario.lock.ttl.0))
            ", messages take " (delay(scenario)) ", node timeout "
            (text::length(scenario.lock.node_timeout.0)) ". Clients: " (text::list(&clients)) "."
        }
    }
}

/// Formats the default message delay of the network.
fn delay(scenario: &Scenario) -> String {
    let delay = scenario.cluster.network.delay;
    let (least, most) = (text::length(delay.min.0), text::length(delay.max.0));
    if least == most { least } else { format!("{least} to {most}") }
}

fn contents(played: &[&Played]) -> Markup {
    html! {
        nav {
            ol {
                @for one in played {
                    li {
                        (badge(one.result.is_met())) " "
                        a href=(format!("#{}", anchor(&one.result))) { (heading(one)) }
                    }
                }
            }
        }
    }
}

/// HTML anchor of a case on its page.
pub(super) fn anchor(result: &CaseResult) -> String {
    let slug = result.case.slug.as_deref().unwrap_or("base");
    match result.engine {
        "event" => slug.to_owned(),
        engine => format!("{slug}.{engine}"),
    }
}

fn heading(played: &Played) -> String {
    let case = &played.result.case;
    let name = case.name.as_ref().or(case.slug.as_ref());
    let name = name.map_or("As the scenario tells it", String::as_str);
    match played.result.engine {
        "event" => name.to_owned(),
        engine => format!("{name} (on {engine})"),
    }
}

fn badge(met: bool) -> Markup {
    html! {
        @if met { span.met { "✓ as expected" } } @else { span.unmet { "✗ not as expected" } }
    }
}

fn case(played: &Played, detail: Detail) -> Markup {
    let result = &played.result;
    html! {
        section.case id=(anchor(&played.result)) {
            h2 { (heading(played)) }
            p.verdict {
                (badge(result.is_met())) " · " (text::count(result.runs, "seed")) " · "
                (text::count(result.distinct_histories, "distinct run"))
                @for failure in &result.failures { " · " strong { (results::failure(&result.case, failure)) } }
            }
            (findings(played))
            @for seed in played.shown_seeds() { (run::draw(played, seed, detail)) }
        }
    }
}

/// Draws the table of expected and observed verdicts.
fn findings(played: &Played) -> Markup {
    let result = &played.result;
    let told = |it: &&PropertyResult| it.observed != Observed::Vacuous || !it.failures.is_empty();
    let vacuous: Vec<&str> =
        result.properties.iter().filter(|it| !told(it)).map(|it| it.property.name()).collect();
    html! {
        table.findings {
            thead { tr {
                th { "property" } th { "expected" } th { "found" } th { "violating seeds" } th { "blame" }
            } }
            tbody {
                @for it in result.properties.iter().filter(told) {
                    tr class=[(!it.failures.is_empty()).then_some("failed")] {
                        td { (it.property.name()) }
                        td { (expected(it)) }
                        td { (finding(it)) }
                        td { (share(it, result.runs)) }
                        td { (it.blames.join("; ")) }
                    }
                    @for failure in &it.failures {
                        tr.failed { td {} td.failure colspan="4" { "✗ " (failure) } }
                    }
                }
            }
        }
        @if !vacuous.is_empty() {
            p.note { "Nothing put these to the test: " (text::list(&vacuous)) "." }
        }
    }
}

fn expected(it: &PropertyResult) -> String {
    let word = match it.expected.verdict {
        Verdict::Any => "anything",
        Verdict::Holds => "holds",
        Verdict::Sometimes => "sometimes violated",
        Verdict::Violated => "violated",
    };
    match it.expected.blame.as_slice() {
        [] => word.to_owned(),
        blame => format!("{word}, {}", blame.join(" + ")),
    }
}

/// Formats a verdict as glyph, word and colour.
pub(super) fn finding(it: &PropertyResult) -> Markup {
    let glyph = match it.observed {
        Observed::Holds => "✓",
        Observed::Sometimes => "◐",
        Observed::Unjudged => "?",
        Observed::Vacuous => "–",
        Observed::Violated => "✗",
    };
    let word = results::word(it.observed);
    html! { span class=(format!("found {word}")) { (glyph) " " (word) } }
}

fn share(it: &PropertyResult, runs: u64) -> String {
    if it.violating_seeds > 0 {
        return format!("{} of {runs}", it.violating_seeds);
    }
    match it.bound_95(runs) {
        Some(_) => format!("0 of {runs}: under {}, with 95 % confidence", percent_below(runs)),
        None => String::from("–"),
    }
}

/// Formats [`PropertyResult::bound_95`] in percent, rounded up to four places. Uses integers only,
/// because reports contain no floats.
fn percent_below(runs: u64) -> String {
    let ppm = 3_000_000u64.div_ceil(runs.max(1)).min(1_000_000);
    let digits = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    format!("{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}

fn legend() -> Markup {
    html! {
        aside.legend {
            h2 { "How to read the pictures" }
            p {
                "A client’s tall bar is its " em { "belief" } ": from the instant at which it was given the lease "
                "until it released it, was told that it is over, or its own clock reached the deadline. "
                "The dark bar inside is the critical section; the hatched end is what the lease gives up for drift. "
                "A small square is an attempt that came to nothing, “w” a write that leaves the client. "
                "A master’s bar is the key, named after the lease that it belongs to; "
                "✕ is where a key ended early or late, ▷ where it should have ended. "
                "Hatched grey: the host was stopped, stalled or dead. Red hatching: two at once."
            }
            p {
                "In the message diagrams time runs down, an event a line; ✕ ends what was lost, dotted arrows came late."
            }
        }
    }
}
