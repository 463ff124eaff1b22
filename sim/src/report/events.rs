//! The events of a run for a terminal.

use super::timeline::Timeline;
use super::words;
use crate::history::Event;
use crate::scenario::Case;
use crate::text;

/// Formats every event of a run as a line: index, true time in seconds, host, and what happened.
#[must_use]
pub fn events_table(case: &Case, events: &[Event]) -> String {
    let timeline = Timeline::new(&case.scenario, events);
    let line = |(place, event): (usize, &Event)| {
        let (host, what) = words::describe(&timeline, event);
        format!("{place:>6}  {:>16}  {host:<8}  {what}", text::exact(event.at_ns))
    };
    events.iter().enumerate().map(line).collect::<Vec<String>>().join("\n")
}
