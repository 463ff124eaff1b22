//! One run on a page: its replay command, story, pictures and events.

use std::collections::BTreeSet;

use lock_judge::oracle::Violation;
use lock_judge::scenario::Property;
use lock_judge::text;
use maud::{Markup, PreEscaped, html};

use super::Detail;
use crate::report::story::{self, Clause, Story};
use crate::report::table::{self, Window};
use crate::report::timeline::Timeline;
use crate::report::{Played, clocks, gantt, messages, replay_command};

/// A run that a page shows.
pub(super) struct Run<'p> {
    seed: u64,
    timeline: Timeline<'p>,
}

/// Reads the histories of the runs of `played` that a page shows.
pub(super) fn read(played: &Played) -> Vec<Run<'_>> {
    let read = |seed| {
        let timeline = Timeline::new(&played.result.case.scenario, played.history(seed)?);
        Some(Run { seed, timeline })
    };
    played.shown_seeds().into_iter().filter_map(read).collect()
}

/// Draws a run of `played`.
pub(super) fn draw(played: &Played, run: &Run<'_>, detail: Detail) -> Markup {
    let Run { seed, timeline } = run;
    let seed = *seed;
    let violations = played.violations(seed);
    let main = main_violation(&violations);
    let lost_update = violations.iter().find(|it| it.0 == Property::NoLostUpdate).map(|it| it.1);
    let anchor = played.result.anchor();
    let prefix = format!("{anchor}.{seed}.");
    let result = &played.result;
    let history = result.history_file(seed);
    let again = replay_command(&result.case, &played.selector, result.engine, seed, &history);
    let around_ns = main.map(|(_, violation)| violation.from_ns);
    let window = table::window(timeline, around_ns, detail.events);
    let links = Links { window: &window, prefix: &prefix };
    let stories = stories(timeline, &violations);
    let is_calm = violations.is_empty() && detail.ownership;
    let calm = if is_calm { story::of_run(timeline) } else { Vec::new() };
    let clauses = stories.iter().flat_map(|(_, it)| it.lets.iter().chain(&it.then)).chain(&calm);
    let linked: BTreeSet<usize> = clauses.filter_map(|clause| clause.event).collect();
    html! {
        h3 { "Seed " (seed) }
        p.replay {
            code { (again) }
            @if result.engine == "serve" { " in the directory of this page" }
        }
        @for (property, story) in &stories {
            (tell(*property, result.expects_violation(*property), story, &links))
        }
        @if is_calm { div.run { @for clause in &calm { p { (links.clause(clause)) } } } }
        @if detail.ownership {
            h4 { "Who held what" }
            @let chart = gantt::draw(timeline, main.map(|it| it.1), lost_update);
            figure tabindex="0" { (PreEscaped(chart)) }
        } @else {
            p.note {
                "This page has no room for the pictures of all its cases. With " code { "-v" } " added, the "
                "command above prints the run’s events."
            }
        }
        @if detail.messages > 0 { (message_figure(timeline, main, detail.messages)) }
        @if detail.events > 0 {
            (clock_figure(timeline))
            details {
                summary { "Events " (window.rows.start) " to " (window.rows.end.saturating_sub(1))
                    " of " (window.all) }
                div.wide { (table::draw(timeline, &window, (&prefix, &linked))) }
            }
        }
    }
}

/// Returns the violation that the pictures show: the first one about two leases, or else the first.
fn main_violation<'v>(
    violations: &[(Property, &'v Violation)],
) -> Option<(Property, &'v Violation)> {
    let pair = violations.iter().find(|(_, violation)| violation.second.is_some());
    pair.or(violations.first()).copied()
}

struct Links<'w> {
    window: &'w Window,
    prefix: &'w str,
}

impl Links<'_> {
    /// Draws a sentence, with a link to its event if the table shows that event.
    fn clause(&self, clause: &Clause) -> Markup {
        let event = clause.event.filter(|event| self.window.rows.contains(event));
        html! {
            (text::tied(&clause.text))
            @if let Some(event) = event {
                " " a.event href=(format!("#{}e{event}", self.prefix)) { "e" (event) }
            }
        }
    }
}

/// Returns the stories of the violations, each without what the story before has already said.
fn stories(
    timeline: &Timeline<'_>,
    violations: &[(Property, &Violation)],
) -> Vec<(Property, Story)> {
    let mut told: Option<Story> = None;
    let mut stories = Vec::new();
    for (property, violation) in violations {
        let story = story::of_violation(timeline, *property, violation);
        let mut rest = story.clone();
        if let Some(told) = &told {
            if told.lets == rest.lets {
                rest.lets.clear();
            }
            if told.then == rest.then {
                rest.then = vec![Clause::as_above()];
            }
            if told.therefore.starts_with(&rest.therefore) {
                rest.therefore.clear();
            }
        }
        stories.push((*property, rest));
        told = Some(story);
    }
    stories
}

fn tell(property: Property, is_expected: bool, story: &Story, links: &Links<'_>) -> Markup {
    html! {
        div.violation {
            p.headline {
                span.what { "✗ " (property.name()) }
                @if is_expected { " " span.tag { "expected" } }
                " " (text::tied(&story.headline)) "."
            }
            dl {
                @if !story.lets.is_empty() {
                    dt { "Let" }
                    @for clause in &story.lets { dd { (links.clause(clause)) } }
                }
                @if !story.then.is_empty() {
                    dt { "Then" }
                    @for clause in &story.then { dd { (links.clause(clause)) } }
                }
            }
            @if !story.therefore.is_empty() { p.therefore { (story.therefore) } }
        }
    }
}

fn message_figure(
    timeline: &Timeline<'_>,
    violation: Option<(Property, &Violation)>,
    most: usize,
) -> Markup {
    let Some(diagram) = messages::draw(timeline, violation, most) else {
        return html! { p.note { "No message was sent." } };
    };
    let (attempts, order) = match violation {
        Some(_) => ("the attempts that the violation is about", "those closest to its beginning"),
        None => ("the first two leases", "the earliest"),
    };
    html! {
        details open[violation.is_some()] {
            summary { "Messages" }
            figure tabindex="0" { (PreEscaped(diagram.svg)) }
            @if diagram.drawn < diagram.all {
                p.note {
                    "Drawn: " (diagram.drawn) " of " (text::count(diagram.all as u64, "message"))
                    ". Preferred are the SETs of " (attempts) ", then their other messages; among "
                    "equals, " (order) ". With " code { "-v" } " added, the command above prints all messages."
                }
            }
        }
    }
}

fn clock_figure(timeline: &Timeline<'_>) -> Markup {
    html! {
        @match clocks::draw(timeline) {
            Some(svg) => {
                h4 { "Offsets of clocks from true time" }
                figure tabindex="0" { (PreEscaped(svg)) }
            }
            None => p.note { "No clock departs from true time by 2 ms or more." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_stored_history_lies_in_the_directory_of_the_page() {
        let mut played = fixture::jump();
        let page = |played: &Played| {
            let detail = Detail { ownership: true, messages: 4, events: 4 };
            draw(played, &read(played)[0], detail).into_string()
        };
        let place = " in the directory of this page</p>";
        assert!(!page(&played).contains(place));
        played.result.engine = "serve";
        assert!(page(&played).contains(place));
    }

    #[test]
    fn the_note_says_which_messages_are_drawn() {
        let played = fixture::jump();
        let timeline = fixture::timeline(&played);
        let note = |violation| message_figure(&timeline, violation, 4).into_string();
        assert!(note(None).contains(" the SETs of the first two leases, then"));
        assert!(note(None).contains(" not drawn</text>"), "the others may be of these leases, too");
        let violations = played.violations(0);
        let note = note(main_violation(&violations));
        assert!(note.contains(" the SETs of the attempts that the violation is about, then"));
    }
}
