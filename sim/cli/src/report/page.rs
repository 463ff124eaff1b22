//! The page of a scenario: its cases one after the other, each with verdict, story and pictures.

use lock_judge::history::{ClientId, Id};
use lock_judge::scenario::{Client, RestartGuard, Scenario, Verdict};
use lock_judge::text;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use redlock_sim::search::{CaseResult, Observed, PropertyResult};

use super::{INDEX, Played, left_keys_of, results};
use crate::build;

mod figures;
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
        @if has_index { p.up { a href=(INDEX) { "all scenarios" } } }
        h1 { (scenario.title) }
        p.name { code { (scenario.name) } @for tag in &scenario.tags { " " span.tag { (tag) } } }
        @if !scenario.source.is_empty() { p.source { "Source: " (scenario.source) "." } }
        @if !scenario.story.is_empty() { p.story { (prose(&scenario.story)) } }
        p.setting { (setting(&first.result)) }
        (legend())
        @if played.len() > 1 { (contents(played)) }
        @for case in fit::cases(played) { (case) }
    };
    document(&scenario.title, "scenario", &body)
}

/// Draws a text in which backquotes enclose code.
fn prose(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

/// Returns a complete HTML document that needs no other file. `class` is the CSS class of its body.
pub(super) fn document(title: &str, class: &str, body: &Markup) -> String {
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
            body class=(class) {
                (PreEscaped(PATTERNS.trim_end()))
                main { (body) }
                footer { "Written by " (build::NAME) ". Times are true time unless a clock is named, and each is rounded down." }
            }
        }
    };
    let mut page = page.into_string();
    page.push('\n');
    page
}

/// Describes the set-up of a case in sentences: masters, TTL, delays, guard, clients.
fn setting(result: &CaseResult) -> String {
    let scenario = &result.case.scenario;
    let nodes = &scenario.cluster.nodes;
    let masters = text::count(nodes.len() as u64, "master");
    if result.engine == "serve" {
        // Each worker has a TTL, timeouts and a guard of its own.
        let workers: Vec<&str> = scenario.clients.iter().map(|it| it.id.as_str()).collect();
        let (names, workers) = (nodes.join(", "), text::list(&workers));
        return format!("{masters} ({names}). Workers: {workers}.");
    }
    let clients: Vec<String> = scenario.client_ids().map(|it| client(scenario, it)).collect();
    let mut setting = format!(
        "{masters} ({}), TTL {}, messages take {}, node timeout {}",
        nodes.join(", "),
        text::length(scenario.lock.ttl.0),
        delay(scenario),
        text::length(scenario.lock.node_timeout.0),
    );
    // Other subjects have no guard.
    if scenario.clients.iter().any(Client::is_ours) {
        setting += &format!(", restart guard {}", guard(scenario));
    }
    setting + &format!(". Clients: {}.", text::list(&clients))
}

/// Describes a client: what it runs, its resource if there are several, and its own TTL if it has one.
fn client(scenario: &Scenario, id: ClientId) -> String {
    let client = &scenario.clients[id.index()];
    let runs = match &client.task_of {
        Some(process) => format!("a task of {process}"),
        None => client.subject.clone(),
    };
    let resource = scenario.resource_among_several(id);
    let resource = resource.map(|name| format!(", resource “{name}”")).unwrap_or_default();
    let ttl = client.ttl.map(|ttl| format!(", TTL {}", text::length(ttl.0))).unwrap_or_default();
    format!("{} ({runs}{resource}{ttl})", client.id)
}

/// Describes the promise that the clients were given about the masters' memory. The scenario may
/// break it.
fn guard(scenario: &Scenario) -> String {
    let fleet_max_ttl = scenario.fleet_max_ttl();
    let drift_ns = scenario.lock.drift.of(fleet_max_ttl).0;
    let quarantine = text::length(fleet_max_ttl.0.saturating_add(drift_ns));
    match scenario.lock.restart_guard {
        RestartGuard::DelayedRestart => format!(
            "“delayed restart” (promise: a crashed master stays away for longer than {quarantine})"
        ),
        RestartGuard::Durable => {
            String::from("“durable” (promise: a restart loses no acknowledged write)")
        }
        RestartGuard::Quarantine => format!(
            "“quarantine” (a master that may have forgotten keys does not vote for {quarantine})"
        ),
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
                        (badge(&one.result)) " "
                        a href=(format!("#{}", one.result.anchor())) { (heading(&one.result)) }
                    }
                }
            }
        }
    }
}

/// Name of a case for readers.
pub(super) fn heading(result: &CaseResult) -> String {
    let case = &result.case;
    let name = case.name.as_ref().or(case.slug.as_ref());
    let name = name.map_or("Base case", String::as_str);
    match result.engine {
        "event" => name.to_owned(),
        "serve" => format!("{name} (on serve, seed {})", result.seeds.start),
        engine => format!("{name} (on {engine})"),
    }
}

/// Says whether a case met its expectations, and whether violations are among what was expected.
fn badge(result: &CaseResult) -> Markup {
    let violated = result.properties.iter().any(|it| it.violating_seeds > 0);
    html! {
        @if !result.is_met() { span.unmet { "not as expected" } }
        @else if violated { span.met { "violated, as expected" } }
        @else { span.met { "as expected" } }
    }
}

/// Draws a case with its `runs`. `usual` is the setting at the head of the page.
fn case(played: &Played, runs: &[run::Run<'_>], detail: Detail, usual: &str) -> Markup {
    let result = &played.result;
    let own = setting(result);
    html! {
        section.case id=(result.anchor()) {
            h2 { (heading(result)) }
            p.verdict {
                (badge(result)) " · " (text::count(result.runs, "seed")) " · "
                (text::count(result.distinct_histories, "distinct run"))
                @for failure in &result.failures { " · " strong { (results::failure(&result.case, failure)) } }
            }
            @if own != usual { p.setting { (own) } }
            (findings(played))
            (figures::draw(result, detail.ownership))
            @if let Some(left) = left_keys_of(played) { p { (left) } }
            @for run in runs { (run::draw(played, run, detail)) }
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
        table.findings.list {
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
                        tr.failed { td {} td.failure colspan="4" { (failure) } }
                    }
                }
            }
        }
        @if !vacuous.is_empty() {
            p.note { "Vacuous, because nothing put them to the test: " (text::list(&vacuous)) "." }
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
    match &it.expected.blame {
        None => word.to_owned(),
        Some(blame) => format!("{word}, blame: {}", blame.words(" + ")),
    }
}

/// Formats a verdict as glyph, word and colour.
fn finding(it: &PropertyResult) -> Markup {
    let word = results::word(it.observed);
    html! { span class=(format!("found {word}")) { (glyph(it.observed)) " " (word) } }
}

/// Sign of a verdict.
pub(super) const fn glyph(observed: Observed) -> &'static str {
    match observed {
        Observed::Holds => "✓",
        Observed::Sometimes => "◐",
        Observed::Unjudged => "?",
        Observed::Vacuous => "–",
        Observed::Violated => "✗",
    }
}

fn share(it: &PropertyResult, runs: u64) -> String {
    if it.violating_seeds > 0 {
        return format!("{} of {runs}", it.violating_seeds);
    }
    match it.bound_95(runs) {
        Some(_) => format!("0 of {runs}"),
        None => String::from("–"),
    }
}

fn legend() -> Markup {
    html! {
        details.legend {
            summary { "How to read the pictures" }
            p {
                "A client’s tall bar is its " em { "belief" } ": from the delivery of the lease until its release, "
                "its loss, or the deadline on the client’s own clock. "
                "The dark bar inside is the critical section; the hatched end is the allowance for drift. "
                "A small square is a failed attempt, “w” a write that leaves the client. "
                "A master’s bar is a key, named after its lease; "
                "✕ marks where a key ended early or late, ▷ where it should have ended. "
                "In the row “store”, ✓ is a write that the resource applied, ✗ one that it refused, or "
                "the first that destroyed another holder’s update (“update lost”). "
                "Hatched grey: the host was stopped, stalled or dead. "
                "Red hatching: the violation, such as two holders at once or another lease in between."
            }
            p {
                "In the message diagrams time runs down, one event a line; ✕ alone marks a lost message, ✕ with a "
                "word such as “expires” the end of a key, a dotted arrow a late message. A client that takes no "
                "part has no column."
            }
            p {
                "“probe” is a client that the simulator adds: it acquires the lock when every fault that has an end "
                "has ended, releases it at once, and so shows that the lock is free. Its messages and, as far as a chart "
                "reaches, its keys are drawn, but itself only if it is never granted the lock."
            }
            p {
                "“100 of 100” counts seeds. A seed varies message delays and the phases of clocks, not how often faults "
                "happen: the share is not a failure rate."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_explains_the_probe() {
        assert!(legend().into_string().contains("“probe” is a client that the simulator adds"));
    }

    #[test]
    fn backquotes_in_prose_enclose_code() {
        let drawn = prose("Found by `explore`, <1 s").into_string();
        assert_eq!(drawn, "Found by <code>explore</code>, &lt;1 s");
    }
}
