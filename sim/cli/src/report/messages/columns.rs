//! Horizontal positions of the hosts.

use lock_judge::history::{ClientId, HostId, NodeId};

use super::labels::Label;
use super::select::Flight;
use crate::report::svg::{PX, width_of};
use crate::report::timeline::Timeline;

/// Smallest width of a diagram.
const WIDTH: i64 = 1080 * PX;

/// Smallest distance of the first lifeline from the left edge, and of the last from the right edge.
const MARGINS: (i64, i64) = (165 * PX, 110 * PX);

/// End of the column of times. Labels stand right of it.
const TIMES: i64 = 72 * PX;

/// Left end of the lines of faults.
pub(super) const LEFT: i64 = TIMES;

/// The hosts from left to right: half of the clients, the masters, the other clients, the resource.
#[derive(Debug)]
pub(super) struct Columns {
    hosts: Vec<HostId>,
    /// Number of clients left of the masters.
    left: usize,
    first: i64,
    step: i64,
    pub(super) width: i64,
}

impl Columns {
    /// Gives a column to each master, to the resource if anything is written, and to each client
    /// that sends one of the messages `drawn`, or holds a lease or is absent in the diagram.
    pub(super) fn new(timeline: &Timeline<'_>, drawn: &[Flight<'_>], window: (u64, u64)) -> Self {
        let scenario = timeline.scenario;
        // The tasks of one process share its connections, and its column.
        let processes = timeline.clients().filter(|client| scenario.process(*client) == *client);
        let takes_part = |client: &ClientId| {
            let host = scenario.client_host(*client);
            drawn.iter().any(|flight| flight.client == host) || acts(timeline, host, window)
        };
        let clients = processes.filter(takes_part).map(|client| scenario.client_host(client));
        let clients: Vec<HostId> = clients.collect();
        let (left, right) = clients.split_at(clients.len().div_ceil(2));
        let mut hosts = left.to_vec();
        hosts.extend(scenario.node_ids().map(NodeId::first_host));
        hosts.extend(right);
        if timeline.has_writes() {
            hosts.push(scenario.store_host());
        }
        let mut columns = Self { left: left.len(), hosts, first: 0, step: 0, width: 0 };
        columns.spread(timeline, MARGINS);
        columns
    }

    /// Widens the margins until every label is inside the diagram.
    pub(super) fn make_room(&mut self, timeline: &Timeline<'_>, labels: &[Label]) {
        let left = labels.iter().map(|label| TIMES - label.left()).max().unwrap_or(0);
        let right = labels.iter().map(|label| label.right() - self.width).max().unwrap_or(0);
        self.spread(timeline, (MARGINS.0 + left.max(0), MARGINS.1 + right.max(0)));
    }

    fn spread(&mut self, timeline: &Timeline<'_>, (left, right): (i64, i64)) {
        let steps = (self.hosts.len() as i64 - 1).max(1);
        let names = self.hosts.iter().map(|&host| width_of(timeline.host_name(host), 15 * PX));
        let least = names.max().unwrap_or(0) + 10 * PX;
        self.first = left;
        self.step = ((WIDTH - left - right) / steps).max(least);
        self.width = (left + self.step * steps + right).max(WIDTH);
    }

    /// Returns each host with its position.
    pub(super) fn all(&self) -> impl Iterator<Item = (HostId, i64)> {
        let x = |nth: usize| self.first + self.step * nth as i64;
        self.hosts.iter().enumerate().map(move |(nth, &host)| (host, x(nth)))
    }

    /// Returns the position of a host; `None` if it has no column.
    pub(super) fn x(&self, host: HostId) -> Option<i64> {
        self.all().find(|(known, _)| *known == host).map(|(_, x)| x)
    }

    /// Returns true if the host stands left of the masters.
    pub(super) fn is_left(&self, host: HostId) -> bool {
        self.hosts[..self.left].contains(&host)
    }
}

/// Returns true if a client on `host` holds a lease within the window, or the host is absent.
fn acts(timeline: &Timeline<'_>, host: HostId, (from_ns, to_ns): (u64, u64)) -> bool {
    let on_host = |client| timeline.scenario.client_host(client) == host;
    let mut beliefs = timeline
        .leases()
        .filter(|lease| on_host(lease.id.client) && timeline.is_drawn(lease.id))
        .flat_map(|lease| &lease.beliefs);
    let mut absences = timeline.absences.iter().filter(|away| away.host == host);
    beliefs.any(|belief| belief.from_ns <= to_ns && belief.to_ns >= from_ns)
        || absences
            .any(|away| away.from.at_ns <= to_ns && away.to.is_none_or(|to| to.at_ns >= from_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_label_of_an_outer_column_is_inside_the_diagram() {
        let played = fixture::pause();
        let timeline = fixture::timeline(&played);
        let label = |columns: &Columns, is_left: bool| {
            let outer = if is_left { columns.all().next() } else { columns.all().last() };
            let text = String::from("write L1 ✗ stale token, and again");
            Label::beside(is_left, 0, outer.expect("a column").1, text)
        };
        let mut columns = Columns::new(&timeline, &[], (0, u64::MAX));
        let labels = [true, false].map(|is_left| label(&columns, is_left));
        assert!(labels[0].left() < TIMES && labels[1].right() > columns.width);
        columns.make_room(&timeline, &labels);
        assert!(label(&columns, true).left() >= TIMES);
        assert!(label(&columns, false).right() <= columns.width);
    }

    #[test]
    fn a_client_without_a_part_has_no_column() {
        let played = fixture::pause();
        let timeline = fixture::timeline(&played);
        let names = |window| -> Vec<String> {
            let columns = Columns::new(&timeline, &[], window);
            columns.all().map(|(host, _)| timeline.host_name(host).to_owned()).collect()
        };
        assert_eq!(names((0, 1)), ["A", "B", "C", "D", "E", "store"]);
        assert_eq!(names((0, u64::MAX)), ["c1", "A", "B", "C", "D", "E", "c2", "store"]);
    }
}
