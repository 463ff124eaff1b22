//! Space-time diagram of the messages: time runs down, and each host has a lifeline. Vertical
//! distances follow the order of events, not their duration.

use lock_judge::oracle::Violation;
use lock_judge::scenario::Property;
use lock_judge::text;

use super::svg::{Area, PX, Svg, width_of};
use super::timeline::Timeline;

mod columns;
mod labels;
mod lifelines;
mod rows;
mod select;

use columns::Columns;
use labels::{BESIDE, Label};
use rows::{Rows, STEP, TOP};

pub(super) use select::Flight;

/// A diagram, the number of messages in it, and the number of all messages.
#[derive(Debug)]
pub(super) struct Diagram {
    pub(super) svg: String,
    pub(super) drawn: usize,
    pub(super) all: usize,
}

/// Draws at most `most` messages, chosen by [`select::choose`]. Returns `None` if there are no
/// messages.
pub(super) fn draw(
    timeline: &Timeline<'_>,
    violation: Option<(Property, &Violation)>,
    most: usize,
) -> Option<Diagram> {
    let all = select::flights(timeline);
    let total = all.len();
    let (drawn, left_out) = select::choose(timeline, all, violation, most);
    let mut instants: Vec<u64> = drawn.iter().flat_map(|flight| flight.instants()).collect();
    let window = (instants.iter().copied().min()?, instants.iter().copied().max()?);
    instants.extend(lifelines::instants(timeline, window));
    instants.sort_unstable();
    instants.dedup();

    let mut columns = Columns::new(timeline, &drawn, window);
    columns.make_room(timeline, &labels(timeline, &columns, &drawn, window));
    let labels = labels(timeline, &columns, &drawn, window);
    let rows = Rows::new(&instants, &left_out, labels);
    let mut sheet = Sheet { timeline, rows, svg: Svg::default(), columns };
    sheet.frame();
    lifelines::draw(&mut sheet);
    drawn.iter().for_each(|flight| sheet.flight(flight));
    sheet.labels();
    let size = (sheet.columns.width, sheet.rows.bottom + 12 * PX);
    let svg = sheet.svg.finish("messages", size, "Messages between the hosts, time down");
    Some(Diagram { svg, drawn: drawn.len(), all: total })
}

/// Returns the labels of the lifelines and of the messages.
fn labels(
    timeline: &Timeline<'_>,
    columns: &Columns,
    drawn: &[Flight<'_>],
    window: (u64, u64),
) -> Vec<Label> {
    let mut labels = lifelines::labels(timeline, columns, window);
    labels.extend(drawn.iter().flat_map(|flight| named(timeline, columns, flight)));
    labels
}

/// Returns the label of a message, with the cross of a message or reply that was lost.
fn named(timeline: &Timeline<'_>, columns: &Columns, flight: &Flight<'_>) -> Vec<Label> {
    let (Some(near), Some(far)) = (columns.x(flight.client), columns.x(flight.server)) else {
        return Vec::new();
    };
    let aside = if far > near { 5 * PX } else { -5 * PX };
    let text = flight.label(timeline);
    let beside = |at_ns, text| Label::beside(far <= near, at_ns, far + aside, text);
    let Some(arrived_ns) = flight.arrived_ns else {
        let cross = Label::cross(flight.sent_ns, far - aside * 3, STEP + 4 * PX);
        let label = beside(flight.sent_ns, text);
        return vec![cross, Label { down: STEP + BESIDE, ..label }];
    };
    let suffix = if flight.is_late { ", late" } else { "" };
    let label = beside(arrived_ns, format!("{text}{suffix}"));
    if flight.answered_ns == Some(None) {
        let cross = Label::cross(arrived_ns, cut(near, far), STEP + 4 * PX);
        return vec![cross, label];
    }
    vec![label]
}

/// Horizontal position at which a reply from `far` to `near` is lost.
const fn cut(near: i64, far: i64) -> i64 {
    far + (near - far) * 2 / 5
}

struct Sheet<'t, 'a> {
    timeline: &'t Timeline<'a>,
    rows: Rows,
    svg: Svg,
    columns: Columns,
}

impl Sheet<'_, '_> {
    /// Draws host names, lifelines, times and gaps.
    fn frame(&mut self) {
        for (host, x) in self.columns.all() {
            let name = self.timeline.host_name(host).to_owned();
            self.svg.line("life", (x, TOP - 8 * PX), (x, self.rows.bottom));
            self.svg.text("host", (x, TOP - 14 * PX), &name);
        }
        let mut told = None;
        for &(at_ns, y) in &self.rows.instants {
            let label = text::instant(at_ns);
            if told.as_ref() != Some(&label) {
                self.svg.text("time", (66 * PX, y + BESIDE), &label);
                told = Some(label);
            }
        }
        for (y, label) in &self.rows.gaps {
            let width = width_of(label, 10 * PX) + 10 * PX;
            let area = Area { x: 0, y: y - 11 * PX, width: self.columns.width, height: 17 * PX };
            self.svg.rect("gap", area, "");
            self.svg.text("gap", (66 * PX - width.min(66 * PX) + 4 * PX, y + PX), label);
        }
    }

    fn flight(&mut self, flight: &Flight<'_>) {
        let at = (self.columns.x(flight.client), self.columns.x(flight.server));
        let (Some(near), Some(far)) = at else { return };
        let sent = (near, self.rows.y(flight.sent_ns));
        let class = self.class(flight);
        let Some(arrived_ns) = flight.arrived_ns else {
            let aside = if far > near { 15 * PX } else { -15 * PX };
            self.svg.line(&format!("{class} lost"), sent, (far - aside, sent.1 + STEP));
            return;
        };
        let arrived = (far, self.rows.y(arrived_ns));
        let late = if flight.is_late { " late" } else { "" };
        self.svg.line(&format!("{class}{late} tip"), sent, arrived);
        match flight.answered_ns {
            Some(Some(answered_ns)) => {
                let back = (near, self.rows.y(answered_ns));
                self.svg.line(&format!("{class}{late} reply tip"), arrived, back);
            }
            Some(None) => {
                let end = (cut(near, far), arrived.1 + STEP);
                self.svg.line(&format!("{class} lost reply"), arrived, end);
            }
            None => {}
        }
    }

    /// Draws the labels, above the lines.
    fn labels(&mut self) {
        for label in &self.rows.labels {
            let at = (label.x, self.rows.y(label.at_ns) + label.down);
            self.svg.text(label.class(), at, &label.text);
        }
    }

    fn class(&self, flight: &Flight<'_>) -> String {
        match self.timeline.lease_place(flight.attempt) {
            Some(place) => format!("w o{}", place % 6),
            None => String::from("w stray"),
        }
    }
}
