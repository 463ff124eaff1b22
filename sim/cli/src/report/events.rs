//! The events of a run for a terminal.

use lock_judge::history::Event;
use lock_judge::scenario::Case;
use lock_judge::text;

use super::timeline::Timeline;
use super::words;

/// Formats every event of a run as a line: index, true time in seconds, host, and what happened.
#[must_use]
pub(crate) fn events_table(case: &Case, events: &[Event]) -> String {
    let timeline = Timeline::new(&case.scenario, events);
    let line = |(place, event): (usize, &Event)| {
        let (host, what) = words::describe(&timeline, event);
        format!("{place:>6}  {:>16}  {host:<8}  {what}", text::exact(event.at_ns))
    };
    events.iter().enumerate().map(line).collect::<Vec<String>>().join("\n")
}
