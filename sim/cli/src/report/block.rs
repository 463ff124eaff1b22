//! Text of a violation for a terminal.

use lock_judge::history::Event;
use lock_judge::oracle::Violation;
use lock_judge::scenario::{Case, Property};
use lock_judge::text;

use super::story::{self, Clause};
use super::timeline::Timeline;

/// Maximum number of lines of a block; below, their maximum width in characters.
const LINES_MAX: usize = 25;
const COLUMNS: usize = 96;

/// Tells the story of a violation in at most 25 lines: what broke, who held which lease, which
/// fault was the cause, and the command (`replay`) that replays the run. `events` is the history of
/// the run of `seed`.
#[must_use]
pub(crate) fn violation_block(
    case: &Case,
    seed: u64,
    property: Property,
    violation: &Violation,
    events: &[Event],
    replay: &str,
) -> String {
    let timeline = Timeline::new(&case.scenario, events);
    let story = story::of_violation(&timeline, property, violation);
    let blame = match violation.blamed.names(&case.scenario).join(" + ") {
        none if none == "none" => format!("none: {}", story::at_fault(&timeline, property)),
        blame => blame,
    };

    let mut lines =
        vec![format!("VIOLATION {}  {}  seed {seed}", property.name(), case.full_name())];
    wrap(&mut lines, "  ", "  ", &story.headline);
    lines.push(String::new());
    clauses(&mut lines, "  Let   ", "        ", &story.lets);
    clauses(&mut lines, "  Then  - ", "        - ", &story.then);
    let last = [String::new(), format!("  blame   {blame}"), format!("  replay  {replay}")];
    if lines.len() + last.len() > LINES_MAX {
        lines.truncate(LINES_MAX - last.len() - 1);
        lines.push(String::from("        … the report has the rest"));
    }
    lines.extend(last);
    lines.join("\n") + "\n"
}

fn clauses(lines: &mut Vec<String>, first: &str, further: &str, clauses: &[Clause]) {
    for (nth, clause) in clauses.iter().enumerate() {
        let start = if nth == 0 { first } else { further };
        wrap(lines, start, &" ".repeat(first.len()), &clause.text);
    }
}

/// Breaks `text` into lines. The first line begins with `first`, the others with `further`.
fn wrap(lines: &mut Vec<String>, first: &str, further: &str, text: &str) {
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text::tied(text).split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(core::mem::replace(&mut line, further.to_owned()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word.replace('\u{a0}', " "));
        is_empty = false;
    }
    lines.push(line);
}
