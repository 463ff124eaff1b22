//! Space-time diagram of the messages: time runs down, and each host has a lifeline. Vertical
//! distances follow the order of events, not their duration.

use lock_judge::history::{HostId, NodeId};
use lock_judge::oracle::Violation;
use lock_judge::text;

use super::svg::{Area, PX, Svg, width_of};
use super::timeline::Timeline;

mod lifelines;
mod select;

pub(super) use select::Flight;

const WIDTH: i64 = 1080 * PX;
const FIRST: i64 = 165 * PX;
const LAST: i64 = WIDTH - 110 * PX;
const TOP: i64 = 34 * PX;
const STEP: i64 = 14 * PX;
const GAP: i64 = 24 * PX;
const QUIET_NS: u64 = 100_000_000;

/// A diagram, the number of messages in it, and the number of all messages.
#[derive(Debug)]
pub(super) struct Diagram {
    pub(super) svg: String,
    pub(super) drawn: usize,
    pub(super) all: usize,
}

/// Draws at most `most` messages: those of the violation's attempts first, then those nearest to it
/// in time. Returns `None` if there are no messages.
pub(super) fn draw(
    timeline: &Timeline<'_>,
    violation: Option<&Violation>,
    most: usize,
) -> Option<Diagram> {
    let all = select::flights(timeline);
    let total = all.len();
    let (drawn, left_out) = select::choose(timeline, all, violation, most);
    if drawn.is_empty() {
        return None;
    }
    let rows = Rows::new(timeline, &drawn, &left_out);
    let columns = columns(timeline);
    let mut sheet = Sheet { timeline, rows, svg: Svg::default(), columns, labels: Vec::new() };
    sheet.frame();
    lifelines::draw(&mut sheet);
    drawn.iter().for_each(|flight| sheet.flight(flight));
    for (class, at, label) in core::mem::take(&mut sheet.labels) {
        sheet.svg.text(class, at, &label);
    }
    let height = sheet.rows.bottom + 12 * PX;
    let svg =
        sheet.svg.finish("messages", (WIDTH, height), "Messages between the hosts, time down");
    Some(Diagram { svg, drawn: drawn.len(), all: total })
}

/// Vertical positions of the instants, and of the gaps between them.
struct Rows {
    instants: Vec<(u64, i64)>,
    gaps: Vec<(i64, String)>,
    bottom: i64,
}

impl Rows {
    /// Both lists are in the order of sending.
    fn new(timeline: &Timeline<'_>, drawn: &[Flight<'_>], left_out: &[Flight<'_>]) -> Self {
        let mut instants: Vec<u64> = drawn.iter().flat_map(|flight| flight.instants()).collect();
        let window = instants.iter().copied().min().zip(instants.iter().copied().max());
        let (from_ns, to_ns) = window.unwrap_or((0, 0));
        instants.extend(lifelines::instants(timeline, from_ns, to_ns));
        instants.sort_unstable();
        instants.dedup();

        let mut rows = Self { instants: Vec::new(), gaps: Vec::new(), bottom: 0 };
        let mut y = TOP + STEP;
        let mut previous: Option<u64> = None;
        for at_ns in instants {
            if let Some(previous) = previous {
                let before = |at_ns: u64| left_out.partition_point(|flight| flight.sent_ns < at_ns);
                let omitted = before(at_ns) - before(previous);
                if omitted > 0 {
                    let messages = text::count(omitted as u64, "message");
                    rows.gaps.push((y + 4 * PX, format!("⋮ {messages} of other attempts")));
                    y += GAP;
                } else if at_ns - previous > QUIET_NS {
                    let quiet = text::length((at_ns - previous) / 1_000_000 * 1_000_000);
                    rows.gaps.push((y + 4 * PX, format!("⋮ {quiet}")));
                    y += GAP;
                }
            }
            rows.instants.push((at_ns, y));
            y += STEP;
            previous = Some(at_ns);
        }
        rows.bottom = y;
        rows
    }

    fn begin_ns(&self) -> u64 {
        self.instants.first().map_or(0, |(at_ns, _)| *at_ns)
    }

    fn end_ns(&self) -> u64 {
        self.instants.last().map_or(0, |(at_ns, _)| *at_ns)
    }

    /// Returns the vertical position of an instant. Instants outside the diagram lie on its edge.
    fn y(&self, at_ns: u64) -> i64 {
        if at_ns < self.begin_ns() {
            return TOP;
        }
        let next = self.instants.partition_point(|(instant, _)| *instant <= at_ns);
        if at_ns > self.end_ns() { self.bottom } else { self.instants[next - 1].1 }
    }
}

/// Returns the horizontal position of each host. Half of the clients stand left of the masters,
/// half right; the resource comes last.
fn columns(timeline: &Timeline<'_>) -> Vec<(HostId, i64)> {
    let scenario = timeline.scenario;
    // The tasks of one process share its connections, and its column.
    let clients = timeline.clients().filter(|client| scenario.process(*client) == *client);
    let clients: Vec<HostId> = clients.map(|client| scenario.client_host(client)).collect();
    let (left, right) = clients.split_at(clients.len().div_ceil(2));
    let mut hosts = left.to_vec();
    hosts.extend(scenario.node_ids().map(NodeId::first_host));
    hosts.extend(right);
    if timeline.has_writes() {
        hosts.push(scenario.store_host());
    }
    let steps = (hosts.len() as i64 - 1).max(1);
    let place = |(nth, host)| (host, FIRST + (LAST - FIRST) * nth as i64 / steps);
    hosts.into_iter().enumerate().map(place).collect()
}

struct Sheet<'t, 'a> {
    timeline: &'t Timeline<'a>,
    rows: Rows,
    svg: Svg,
    columns: Vec<(HostId, i64)>,
    /// Drawn last, so that lines do not cover them.
    labels: Vec<(&'static str, (i64, i64), String)>,
}

impl Sheet<'_, '_> {
    fn x(&self, host: HostId) -> i64 {
        self.columns.iter().find(|(known, _)| *known == host).map_or(FIRST, |(_, x)| *x)
    }

    /// Draws host names, lifelines, times and gaps.
    fn frame(&mut self) {
        for (host, x) in self.columns.clone() {
            let name = self.timeline.host_name(host).to_owned();
            self.svg.line("life", (x, TOP - 8 * PX), (x, self.rows.bottom));
            self.svg.text("host", (x, TOP - 14 * PX), &name);
        }
        let mut told = None;
        for (at_ns, y) in self.rows.instants.clone() {
            let label = text::instant(at_ns);
            if told.as_ref() != Some(&label) {
                self.svg.text("time", (66 * PX, y + 3 * PX), &label);
                told = Some(label);
            }
        }
        for (y, label) in self.rows.gaps.clone() {
            let width = width_of(&label, 10 * PX) + 10 * PX;
            let area = Area { x: 0, y: y - 11 * PX, width: WIDTH, height: 17 * PX };
            self.svg.rect("gap", area, "");
            self.svg.text("gap", (66 * PX - width.min(66 * PX) + 4 * PX, y + PX), &label);
        }
    }

    fn flight(&mut self, flight: &Flight<'_>) {
        let label = flight.label(self.timeline);
        let (near, far) = (self.x(flight.client), self.x(flight.server));
        let sent = (near, self.rows.y(flight.sent_ns));
        let class = self.class(flight);
        let side = if far > near { ("l", 5 * PX) } else { ("l end", -5 * PX) };
        let Some(arrived_ns) = flight.arrived_ns else {
            let end = (far - side.1 * 3, sent.1 + STEP);
            self.svg.line(&format!("{class} lost"), sent, end);
            self.label("cross", (end.0, end.1 + 4 * PX), String::from("✕"));
            self.label(side.0, (far + side.1, end.1 + 3 * PX), label);
            return;
        };
        let arrived = (far, self.rows.y(arrived_ns));
        let late = if flight.is_late { " late" } else { "" };
        self.svg.line(&format!("{class}{late} tip"), sent, arrived);
        let suffix = if flight.is_late { ", late" } else { "" };
        let label = format!("{label}{suffix}");
        self.label(side.0, (far + side.1, arrived.1 + 3 * PX), label);
        match flight.answered_ns {
            Some(Some(answered_ns)) => {
                let back = (near, self.rows.y(answered_ns));
                self.svg.line(&format!("{class}{late} reply tip"), arrived, back);
            }
            Some(None) => {
                let end = (far + (near - far) * 2 / 5, arrived.1 + STEP);
                self.svg.line(&format!("{class} lost reply"), arrived, end);
                self.label("cross", (end.0, end.1 + 4 * PX), String::from("✕"));
            }
            None => {}
        }
    }

    /// Adds a label, below those that are already there.
    fn label(&mut self, class: &'static str, (x, mut y): (i64, i64), label: String) {
        while let Some(there) = self.labels.iter().find(|it| (it.0, it.1) == (class, (x, y))) {
            if there.2 == label {
                return;
            }
            y += 10 * PX;
        }
        self.labels.push((class, (x, y), label));
    }

    fn class(&self, flight: &Flight<'_>) -> String {
        match self.timeline.lease_place(flight.attempt) {
            Some(place) => format!("w o{}", place % 6),
            None => String::from("w stray"),
        }
    }
}
