//! Ownership chart: leases, keys and critical sections over true time, drawn to scale.

use lock_judge::history::{HostId, Writer};
use lock_judge::oracle::Violation;
use lock_judge::scenario::FaultKind;
use lock_judge::text;

use super::svg::{Area, PX, Scale, Svg, Taken, tick_label, width_of};
use super::timeline::{FaultWindow, Key, Timeline};

mod clients;
mod nodes;

const WIDTH: i64 = 1080 * PX;
const LEFT: i64 = 70 * PX;
const RIGHT: i64 = WIDTH - 14 * PX;
const LANE: i64 = 17 * PX;
const CLIENT_ROW: i64 = 58 * PX;
const NODE_ROW: i64 = 27 * PX;
const STORE_ROW: i64 = 46 * PX;

/// Largest size of the overlap's label: that on small screens, see `style.css`.
const OVERLAP_LABEL: i64 = 30 * PX;

/// Draws the chart of a run. Marks the overlap of `violation` if the violation is about two leases,
/// and the write of `lost_update`, a violation of `no-lost-update`.
pub(super) fn draw(
    timeline: &Timeline<'_>,
    violation: Option<&Violation>,
    lost_update: Option<&Violation>,
) -> String {
    let mut gantt = Gantt::new(timeline);
    gantt.lay_out();
    gantt.bands();
    gantt.axis();
    gantt.heading(gantt.clients_top, "clients");
    gantt.heading(gantt.nodes_top, "masters");
    clients::absences(&mut gantt);
    if let Some(violation) = violation.filter(|violation| violation.second.is_some()) {
        gantt.overlap(violation);
    }
    clients::draw(&mut gantt);
    nodes::draw(&mut gantt);
    if timeline.has_writes() {
        nodes::store(&mut gantt, lost_update);
    }
    gantt.lanes();
    let label = "Ownership in true time: what each client believed and what each master held";
    gantt.svg.finish("gantt", (WIDTH, gantt.height), label)
}

struct Gantt<'t, 'a> {
    timeline: &'t Timeline<'a>,
    scale: Scale,
    svg: Svg,
    /// Areas of the rows' bars, marks and labels.
    taken: Taken,
    /// Lane of each fault window, in the order of `timeline.fault_windows`.
    lane_of: Vec<usize>,
    clients_top: i64,
    nodes_top: i64,
    store_top: i64,
    bottom: i64,
    height: i64,
}

impl<'t, 'a> Gantt<'t, 'a> {
    fn new(timeline: &'t Timeline<'a>) -> Self {
        let to_ns = last_of_interest(timeline);
        let scale = Scale { from_ns: 0, to_ns, left: LEFT, right: RIGHT };
        Self {
            timeline,
            scale,
            svg: Svg::default(),
            taken: Taken::default(),
            lane_of: Vec::new(),
            clients_top: 0,
            nodes_top: 0,
            store_top: 0,
            bottom: 0,
            height: 0,
        }
    }

    fn lay_out(&mut self) {
        let mut ends: Vec<i64> = Vec::new();
        for trouble in &self.timeline.fault_windows {
            let from = self.scale.x(trouble.began.at_ns);
            let label = width_of(&lane_label(self.timeline, trouble), 11 * PX);
            let (begin, end) = (label_x(from, label), label_x(from, label) + label + 12 * PX);
            let end = end.max(self.end_of(trouble));
            let free = ends.iter().position(|&taken| taken <= begin.min(from));
            let lane = free.unwrap_or(ends.len());
            if lane == ends.len() {
                ends.push(end);
            } else {
                ends[lane] = end;
            }
            self.lane_of.push(lane);
        }
        self.clients_top = 20 * PX + ends.len() as i64 * LANE + 22 * PX;
        let clients = self.timeline.clients().len() as i64;
        self.nodes_top = self.clients_top + clients * CLIENT_ROW + 22 * PX;
        let nodes = self.timeline.scenario.cluster.nodes.len() as i64;
        self.store_top = self.nodes_top + nodes * NODE_ROW;
        let store = if self.timeline.has_writes() { STORE_ROW + 6 * PX } else { 0 };
        self.bottom = self.store_top + store + 4 * PX;
        self.height = self.bottom + 20 * PX;
    }

    fn end_of(&self, trouble: &FaultWindow) -> i64 {
        let fault = self.timeline.scenario.fault(trouble.fault);
        let lasts = fault.is_some_and(|fault| matches!(fault.kind, FaultKind::ClockRate(_)));
        match trouble.ended {
            Some(ended) => self.scale.x(ended.at_ns),
            None if lasts => RIGHT,
            None => self.scale.x(trouble.began.at_ns),
        }
    }

    /// Draws the fault windows, behind everything else.
    fn bands(&mut self) {
        let top = 20 * PX;
        for trouble in &self.timeline.fault_windows {
            let (from, to) = (self.scale.x(trouble.began.at_ns), self.end_of(trouble));
            if to - from > PX {
                let area = Area { x: from, y: top, width: to - from, height: self.bottom - top };
                self.svg.rect("band", area, "");
            }
            self.svg.line("fault", (from, top), (from, self.bottom));
            if to - from > PX && to < RIGHT {
                self.svg.line("fault", (to, top), (to, self.bottom));
            }
        }
    }

    /// Draws the labels of the faults, above everything else.
    fn lanes(&mut self) {
        let lanes = self.lane_of.clone();
        for (trouble, lane) in self.timeline.fault_windows.iter().zip(lanes) {
            let y = 20 * PX + lane as i64 * LANE;
            let (from, to) = (self.scale.x(trouble.began.at_ns), self.end_of(trouble));
            let label = lane_label(self.timeline, trouble);
            let width = width_of(&label, 11 * PX);
            self.svg.line("lane", (from, y + 15 * PX), (to.max(from + 6 * PX), y + 15 * PX));
            self.svg.text("lane", (label_x(from, width), y + 11 * PX), &label);
        }
    }

    fn axis(&mut self) {
        for tick in self.scale.ticks(12) {
            let x = self.scale.x(tick);
            self.svg.line("grid", (x, 20 * PX), (x, self.bottom));
            let label = tick_label(tick);
            self.svg.text("tick", (x, self.bottom + 14 * PX), &label);
            self.svg.text("tick", (x, 12 * PX), &label);
        }
    }

    fn heading(&mut self, top: i64, name: &str) {
        self.svg.text("head", (0, top - 7 * PX), name);
        self.svg.line("rule", (0, top - 2 * PX), (RIGHT, top - 2 * PX));
    }

    fn overlap(&mut self, violation: &Violation) {
        let (from, to) = (self.scale.x(violation.from_ns), self.scale.x(violation.to_ns));
        let width = (to - from).max(2 * PX);
        let told =
            if self.at_once(violation) { "both at once" } else { "another lease in between" };
        for (y, height) in self.rows_of(violation) {
            let area = Area { x: from, y, width, height };
            self.svg.rect("overlap", area, "");
            self.svg.rect("overlap-hatch", area, told);
        }
        let length = violation.to_ns.saturating_sub(violation.from_ns);
        let label = match length {
            0 => String::from("violation"),
            _ if !self.at_once(violation) => String::from("in between"),
            ns => format!("overlap {}", text::length(ns)),
        };
        let room = width_of(&label, OVERLAP_LABEL) / 2;
        let middle = (from + width / 2).clamp(LEFT + room, RIGHT - room);
        self.svg.text("overlap-label", (middle, self.clients_top - 6 * PX), &label);
    }

    /// Returns the top and the height of the rows that an overlap is about: neighbours together.
    fn rows_of(&self, violation: &Violation) -> Vec<(i64, i64)> {
        if violation.to_ns <= violation.from_ns {
            // A violation of zero length is about the resource, whose row is the last one.
            return vec![(self.clients_top, self.bottom - self.clients_top)];
        }
        let second = violation.second.unwrap_or(violation.first);
        let rows = [violation.first, second].map(|id| i64::from(id.client.0));
        let (first, last) = (rows[0].min(rows[1]), rows[0].max(rows[1]));
        let area = |row: i64, count: i64| {
            (self.clients_top + row * CLIENT_ROW, count * CLIENT_ROW - 2 * PX)
        };
        match last - first {
            0 | 1 => vec![area(first, last - first + 1)],
            _ => vec![area(first, 1), area(last, 1)],
        }
    }

    /// Returns true if both leases, or the sections under them, existed when the violation began.
    fn at_once(&self, violation: &Violation) -> bool {
        let ids = [Some(violation.first), violation.second];
        ids.into_iter().flatten().all(|id| {
            let own = self.timeline.attempt(id).into_iter();
            let mut own = own.flat_map(|it| it.beliefs.iter().chain(&it.sections));
            own.any(|it| (it.from_ns..it.to_ns).contains(&violation.from_ns))
        })
    }

    /// Draws the hatched absences of a host over its row.
    fn absences(&mut self, host: HostId, y: i64, height: i64) {
        let timeline = self.timeline;
        for away in timeline.absences.iter().filter(|away| away.host == host) {
            let from = self.scale.x(away.from.at_ns);
            let to = self.scale.x(away.to.map_or(self.scale.to_ns, |to| to.at_ns));
            let width = (to - from).max(2 * PX);
            let word = away.why.word();
            let end = away.to.map_or(timeline.end_ns, |to| to.at_ns);
            let told =
                format!("{word} {} to {}", text::instant(away.from.at_ns), text::instant(end));
            self.svg.rect("away", Area { x: from, y, width, height }, &told);
        }
    }

    /// Names the absences of a host where its row has room for that.
    fn absence_labels(&mut self, host: HostId, baseline: i64) {
        let timeline = self.timeline;
        for away in timeline.absences.iter().filter(|away| away.host == host) {
            let from = self.scale.x(away.from.at_ns);
            let to = self.scale.x(away.to.map_or(self.scale.to_ns, |to| to.at_ns));
            let label = format!("{} {}", timeline.host_name(host), away.why.word());
            let area = Area::of_text(&label, 10 * PX, (from + 4 * PX, baseline));
            if let Some(x) = self.taken.slide(area, to - 4 * PX) {
                self.svg.text("away-label", (x, baseline), &label);
            }
        }
    }
}

/// Returns true if the owner of the key is drawn: a lease with a row, the operator, or nobody.
fn is_drawn(timeline: &Timeline<'_>, key: &Key) -> bool {
    match key.writer {
        Writer::Attempt(id) => timeline.is_drawn(id),
        Writer::Nobody | Writer::Operator => true,
    }
}

/// Left edge of a label of this width that belongs at `x`. Keeps the label inside the picture.
fn label_x(x: i64, width: i64) -> i64 {
    (x + 3 * PX).min(RIGHT - width).max(LEFT)
}

fn lane_label(timeline: &Timeline<'_>, trouble: &FaultWindow) -> String {
    match timeline.scenario.fault(trouble.fault) {
        Some(fault) => format!("{}: {}", fault.id, fault.kind.summary()),
        None => String::from("a fault"),
    }
}

/// CSS class of the colour of a lease.
fn colour(place: usize) -> String {
    format!("o{}", place % 6)
}

/// End of the chart's time axis, in nanoseconds: the last event that is drawn, plus a small margin.
fn last_of_interest(timeline: &Timeline<'_>) -> u64 {
    let mut last_ns = 0;
    for attempt in timeline.attempts.iter().filter(|it| timeline.is_drawn(it.id)) {
        let own = attempt.beliefs.iter().chain(&attempt.sections);
        last_ns = own.map(|interval| interval.to_ns).fold(last_ns, u64::max);
        last_ns = last_ns.max(attempt.settled.map_or(0, |(at, _)| at.at_ns));
    }
    for key in timeline.keys.iter().filter(|key| is_drawn(timeline, key)) {
        let end_ns = key.ended.map_or(key.set.at_ns, |ended| ended.moment.at_ns);
        let due_ns = key.expected_ns.filter(|_| nodes::is_notable(key)).unwrap_or(0);
        last_ns = last_ns.max(end_ns).max(due_ns);
    }
    for write in &timeline.writes {
        last_ns = last_ns.max(write.arrived.map_or(write.sent, |(at, _)| at).at_ns);
    }
    for trouble in &timeline.fault_windows {
        last_ns = last_ns.max(trouble.began.at_ns);
    }
    for away in &timeline.absences {
        last_ns = last_ns.max(away.to.map_or(away.from, |to| to).at_ns);
    }
    let margin_ns = last_ns / 40;
    last_ns.saturating_add(margin_ns).max(1_000_000)
}

#[cfg(test)]
mod tests {
    use lock_judge::scenario::Property;

    use super::*;
    use crate::report::fixture;

    #[test]
    fn label_of_an_overlap_at_the_edge_has_room_on_a_small_screen() {
        let played = fixture::jump();
        let timeline = fixture::timeline(&played);
        let (_, violation) = played.violations(0)[0];
        let late = Violation { from_ns: timeline.end_ns, to_ns: timeline.end_ns, ..*violation };
        let svg = draw(&timeline, Some(&late), None);
        let middle = (RIGHT - width_of("violation", OVERLAP_LABEL) / 2) as f64 / PX as f64;
        let label = format!(r#"<text class="overlap-label" x="{middle}""#);
        assert!(svg.contains(&label), "{label} {svg}");
    }

    #[test]
    fn a_write_that_destroys_an_update_is_not_drawn_as_a_good_one() {
        let played = fixture::pause();
        let timeline = fixture::timeline(&played);
        let violations = played.violations(0);
        let lost = violations.iter().find(|it| it.0 == Property::NoLostUpdate).map(|it| it.1);
        let svg = draw(&timeline, None, lost);
        assert_eq!(svg.matches("✓ L2 applied<").count(), 1, "{svg}");
        assert_eq!(svg.matches("✗ L1 applied, update lost<").count(), 1, "{svg}");
        assert_eq!(svg.matches(r#"text class="rejected""#).count(), 1, "{svg}");
        assert!(draw(&timeline, None, None).contains("✓ L1 applied<"));
    }
}
