//! The events of a run as a table.

use std::collections::BTreeSet;

use lock_judge::history::EventKind;
use lock_judge::text;
use maud::{Markup, PreEscaped, html};

use super::timeline::Timeline;
use super::words;

/// The range of events that the table shows, and the number of all events.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) rows: core::ops::Range<usize>,
    pub(super) all: usize,
}

/// Returns the window of at most `most` events around `around_ns`: two thirds before it, one third
/// after.
pub(super) fn window(timeline: &Timeline<'_>, around_ns: Option<u64>, most: usize) -> Window {
    let all = timeline.events.len();
    let first = match around_ns {
        Some(at_ns) => {
            let middle = timeline.events.partition_point(|event| event.at_ns < at_ns);
            middle.saturating_sub(most * 2 / 3)
        }
        // The events before the first attempt only set the clocks.
        None => timeline.attempts.first().map_or(0, |attempt| attempt.began.event),
    };
    let first = first.min(all.saturating_sub(most));
    Window { rows: first..(first + most).min(all), all }
}

/// Draws the table. The rows of the events `linked` have anchors: `PREFIXe12` for event 12.
pub(super) fn draw(
    timeline: &Timeline<'_>,
    window: &Window,
    (prefix, linked): (&str, &BTreeSet<usize>),
) -> Markup {
    html! {
        table.events {
            thead { tr { th { "#" } th { "true time, s" } th { "where" } th { "what" } } }
            tbody {
                @for place in window.rows.clone() {
                    @let anchor = linked.contains(&place).then(|| format!("{prefix}e{place}"));
                    (row(timeline, place, anchor.as_deref()))
                }
            }
        }
        @if window.rows.len() < window.all {
            p.note {
                "Shown: " (window.rows.len()) " of " (window.all) " events. The command above prints all "
                "of them, with " code { "-v" } "."
            }
        }
    }
}

/// Draws a row without the end tags, which HTML does not require: rows are most of a page's bytes.
fn row(timeline: &Timeline<'_>, place: usize, anchor: Option<&str>) -> Markup {
    let event = &timeline.events[place];
    let (host, what) = words::describe(timeline, event);
    let (td, at) = (PreEscaped("<td>"), text::exact(event.at_ns));
    html! {
        (PreEscaped("<tr"))
        @if let Some(anchor) = anchor { (PreEscaped(" id=\"")) (anchor) (PreEscaped("\"")) }
        @if let Some(class) = class(event.kind) { (PreEscaped(" class=")) (class) }
        (PreEscaped(">"))
        (td) (place) (td) (at) (td) (host) (td) (what)
    }
}

fn class(kind: EventKind) -> Option<&'static str> {
    match kind {
        EventKind::FaultBegan { .. } | EventKind::FaultEnded { .. } => Some("at-fault"),
        EventKind::GrantDelivered { .. } | EventKind::LostDelivered { .. } => Some("at-lease"),
        _ => None,
    }
}
