//! The rows of the masters and of the protected resource.

use lock_judge::history::{KeyEnd, NodeId, WriteId, Writer};
use lock_judge::oracle::Violation;
use lock_judge::text;

use super::{Gantt, NODE_ROW, RIGHT, colour, is_drawn};
use crate::report::svg::{Area, PX, width_of};
use crate::report::timeline::{Key, Timeline, resource_of};

const BAR_TOP: i64 = 5 * PX;
const BAR: i64 = 16 * PX;

/// Smallest distance between the due end and the actual end of a key that is marked, in
/// nanoseconds.
const NOTABLE_NS: u64 = 5_000_000;

pub(super) fn draw(gantt: &mut Gantt<'_, '_>) {
    for node in gantt.timeline.scenario.node_ids() {
        let top = gantt.nodes_top + i64::from(node.0) * NODE_ROW;
        let name = gantt.timeline.node_name(node).to_owned();
        gantt.svg.text("row", (0, top + BAR_TOP + 12 * PX), &name);
        gantt.absences(node.first_host(), top + BAR_TOP - 2 * PX, BAR + 4 * PX);
        keys(gantt, node, top);
        gantt.absence_labels(node.first_host(), top + BAR_TOP + BAR - PX);
    }
}

fn keys(gantt: &mut Gantt<'_, '_>, node: NodeId, top: i64) {
    let timeline = gantt.timeline;
    let mut narrow_until = i64::MIN;
    let mut names = Vec::new();
    let own = timeline.keys.iter().filter(|key| key.node == node && is_drawn(timeline, key));
    for key in own {
        let from = gantt.scale.x(key.set.at_ns);
        let end_ns = key.ended.map_or(gantt.scale.to_ns, |ended| ended.moment.at_ns);
        let to = gantt.scale.x(end_ns);
        // Each failed attempt leaves a hairline. One per pixel is enough.
        if to - from < 15 && from < narrow_until {
            continue;
        }
        narrow_until = from + 15;
        // Keys of several locks are one below the other.
        let height = BAR / timeline.scenario.resource_ids().len() as i64;
        let place = i64::from(resource_of(timeline.scenario, key.writer).0);
        let y = top + BAR_TOP + place * height;
        let area = Area { x: from, y, width: (to - from).max(15), height };
        let (class, name) = owner(timeline, key.writer);
        let told = match name.as_str() {
            "" => String::new(),
            name => {
                let (from, to) = (text::instant(key.set.at_ns), text::instant(end_ns));
                format!("key of {name} {from} to {to}")
            }
        };
        gantt.svg.rect(&format!("bar {class}"), area, &told);
        names.push((area, name));
        marks(gantt, key, area.y);
    }
    for (area, name) in names.into_iter().filter(|(_, name)| !name.is_empty()) {
        let at = (area.x + 5 * PX, area.y + 12 * PX);
        if let Some(x) = gantt.taken.slide(Area::of_text(&name, 11 * PX, at), area.right() - 3 * PX)
        {
            gantt.svg.text("label", (x, at.1), &name);
        }
    }
}

/// Returns the CSS class and the label of the owner of a key.
fn owner(timeline: &Timeline<'_>, writer: Writer) -> (String, String) {
    match writer {
        Writer::Attempt(id) => match timeline.lease_place(id) {
            Some(place) => (colour(place), timeline.name(id)),
            None => (String::from("stray"), String::new()),
        },
        Writer::Nobody | Writer::Operator => (String::from("stray"), String::from("operator")),
    }
}

/// Returns true if a key ended early or late, other than by a command of its own writer.
pub(super) fn is_notable(key: &Key) -> bool {
    let (Some(due_ns), Some(ended)) = (key.expected_ns, key.ended) else { return false };
    let own = ended.cause == KeyEnd::Command && ended.by == key.writer;
    !own && due_ns.abs_diff(ended.moment.at_ns) >= NOTABLE_NS
}

/// Draws ▷ where a key was due to end, and ✕ where it did end.
fn marks(gantt: &mut Gantt<'_, '_>, key: &Key, y: i64) {
    let (Some(due_ns), Some(ended)) = (key.expected_ns, key.ended) else { return };
    if !is_notable(key) {
        return;
    }
    let (end, due) = (gantt.scale.x(ended.moment.at_ns), gantt.scale.x(due_ns));
    let middle = y + BAR / 2;
    gantt.svg.line("missing", (end.min(due), middle), (end.max(due), middle));
    gantt.svg.text("ended", (end, y + 13 * PX), "✕");
    gantt.taken.take(Area::of_centred("✕", 14 * PX, (end, y + 13 * PX)));
    if due < RIGHT - 4 * PX {
        gantt.taken.take(Area::of_centred("▷", 13 * PX, (due, y + 13 * PX)));
        gantt.svg.text("due", (due, y + 13 * PX), "▷");
    }
}

/// Draws the row of the resource. Marks the write of `lost_update`.
pub(super) fn store(gantt: &mut Gantt<'_, '_>, lost_update: Option<&Violation>) {
    let timeline = gantt.timeline;
    let top = gantt.store_top + 6 * PX;
    gantt.svg.line("rule", (0, top), (RIGHT, top));
    gantt.svg.text("row", (0, top + 20 * PX), "store");
    let overwriting = lost_update.and_then(|it| overwriting(timeline, it));
    let mut free = [i64::MIN; 2];
    for write in &timeline.writes {
        let Some((at, verdict)) = write.arrived else { continue };
        let x = gantt.scale.x(at.at_ns);
        let (class, glyph, word) = match verdict {
            Ok(_) if overwriting == Some(write.id) => ("rejected", "✗", "applied, update lost"),
            Ok(_) => ("applied", "✓", "applied"),
            Err(_) => ("rejected", "✗", "refused"),
        };
        gantt.svg.line(class, (x, top + 4 * PX), (x, top + 14 * PX));
        let label = format!("{glyph} {} {word}", timeline.name(write.attempt));
        let width = width_of(&label, 11 * PX);
        let begin = (x - 3 * PX).min(RIGHT - width);
        if let Some(line) = free.iter().position(|&taken| begin > taken) {
            gantt.svg.text(class, (begin, top + (25 + 13 * line as i64) * PX), &label);
            free[line] = begin + width;
        }
    }
}

/// Returns the write that destroyed an update: of the writes of the violation's pair, the last one
/// that was applied at its instant.
fn overwriting(timeline: &Timeline<'_>, lost_update: &Violation) -> Option<WriteId> {
    let pair = [Some(lost_update.first), lost_update.second];
    let of_pair = timeline.writes.iter().filter(|it| pair.contains(&Some(it.attempt)));
    let applied = of_pair.filter_map(|it| match it.arrived {
        Some((at, Ok(_))) if at.at_ns == lost_update.from_ns => Some((at.event, it.id)),
        _ => None,
    });
    applied.max_by_key(|it| it.0).map(|it| it.1)
}
