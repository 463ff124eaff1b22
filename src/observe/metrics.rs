//! Metrics of a client on the `metrics` facade. `docs/metrics.md` lists them.
//!
//! Resource names are never labels, because their number is unbounded. Nodes are labelled by their
//! places in the configured list.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock, PoisonError};

use ::metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

use super::{Event, Instant, Observer, Operation};
use crate::health::Standing;

/// Updates the metrics of the recorder that is installed when the client is used first.
pub(super) struct MetricsObserver {
    nodes: usize,
    series: OnceLock<Series>,
    /// Unanswered commands of each node, oldest first. Locked only under the client's lock.
    unanswered: Mutex<Vec<VecDeque<(Operation, Instant)>>>,
}

impl MetricsObserver {
    pub(super) fn new(nodes: usize) -> Self {
        let unanswered = Mutex::new(vec![VecDeque::new(); nodes]);
        Self { nodes, series: OnceLock::new(), unanswered }
    }

    fn node_event(&self, series: &Series, event: &Event<'_>) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        match *event {
            Event::Connected { node } => series.nodes[node].connected.set(1.0),
            Event::Disconnected { node, .. } => {
                let of_node = &series.nodes[node];
                of_node.connected.set(0.0);
                for (operation, _) in unanswered[node].drain(..) {
                    of_node.commands.count((operation.as_str(), "none"));
                }
            }
            Event::Eligible { node, standing, .. } => {
                let eligible = f64::from(u8::from(standing == Standing::Counts));
                series.nodes[node].eligible.set(eligible);
            }
            Event::QuarantineEnded { node } => series.nodes[node].eligible.set(1.0),
            Event::Written { node, operation, at, .. } => {
                unanswered[node].push_back((operation, at));
            }
            Event::Answered { node, operation, answer, at, .. } => {
                let of_node = &series.nodes[node];
                of_node.commands.count((operation.as_str(), answer.as_str()));
                if let Some((_, written)) = unanswered[node].pop_front() {
                    of_node.round_trip.record(at.since(written).as_secs_f64());
                }
            }
            _ => {}
        }
    }
}

impl Observer for MetricsObserver {
    fn event(&self, event: &Event<'_>) {
        let series = self.series.get_or_init(|| Series::register(self.nodes));
        match *event {
            Event::AttemptFailed { reason, .. } => series.attempts.count(reason.as_str()),
            Event::Delivered { waited, .. } => {
                series.attempts.count("granted");
                series.settled("acquired", waited);
                series.held.increment(1.0);
            }
            Event::AcquireFailed { kind, waited, .. } => {
                series.settled(kind.as_str(), waited);
            }
            Event::AcquireCancelled { waited, .. } => series.settled("cancelled", waited),
            Event::Extended { .. } => series.extensions.count("extended"),
            Event::ExtensionFailed { reason, .. } => {
                series.extensions.count(reason.as_str());
            }
            Event::Lost { reason, held, .. } => {
                series.lost.count(reason.as_str());
                series.ended("lost", held);
            }
            Event::LeftToExpire { held, lost: None, .. } => series.ended("left", held),
            Event::ReleaseCalled { held, lost: None, .. } => series.ended("released", held),
            Event::Released { deleted, unconfirmed, .. } => {
                series.releases.count(match (unconfirmed.is_empty(), deleted.is_empty()) {
                    (false, _) => "unconfirmed",
                    (true, true) => "expired",
                    (true, false) => "confirmed",
                });
            }
            _ => self.node_event(series, event),
        }
    }
}

/// Handles of all metrics of one client.
struct Series {
    attempts: Counters<&'static str>,
    acquisitions: Counters<&'static str>,
    wait: Vec<(&'static str, Histogram)>,
    held: Gauge,
    held_time: Vec<(&'static str, Histogram)>,
    extensions: Counters<&'static str>,
    lost: Counters<&'static str>,
    releases: Counters<&'static str>,
    nodes: Vec<NodeSeries>,
}

struct NodeSeries {
    connected: Gauge,
    eligible: Gauge,
    round_trip: Histogram,
    commands: Counters<(&'static str, &'static str)>,
}

/// Counters that differ in their labels. All exist from the start, so that rates can be computed.
struct Counters<L>(Vec<(L, Counter)>);

impl<L: PartialEq + Copy> Counters<L> {
    fn of(labels: impl IntoIterator<Item = L>, register: impl Fn(L) -> Counter) -> Self {
        Self(labels.into_iter().map(|label| (label, register(label))).collect())
    }

    fn count(&self, label: L) {
        let found = self.0.iter().find(|(it, _)| *it == label);
        debug_assert!(found.is_some(), "every label has a counter");
        if let Some((_, counter)) = found {
            counter.increment(1);
        }
    }
}

impl Series {
    fn register(nodes: usize) -> Self {
        describe();
        let ends = ["left", "lost", "released"];
        Self {
            attempts: Counters::of(
                [
                    "granted",
                    "split",
                    "taken",
                    "too_few_nodes",
                    "too_slow",
                    "overloaded",
                    "quarantined",
                    "cancelled",
                ],
                |outcome| counter!("redlock_attempts_total", "outcome" => outcome),
            ),
            acquisitions: Counters::of(
                ACQUISITIONS,
                |outcome| counter!("redlock_acquisitions_total", "outcome" => outcome),
            ),
            wait: ACQUISITIONS
                .map(|it| (it, histogram!("redlock_acquire_wait_seconds", "outcome" => it)))
                .into(),
            held: gauge!("redlock_leases_held"),
            held_time: ends
                .map(|end| (end, histogram!("redlock_lease_held_seconds", "end" => end)))
                .into(),
            extensions: Counters::of(
                ["extended", "lost", "overloaded", "too_few_nodes", "too_slow"],
                |outcome| counter!("redlock_extensions_total", "outcome" => outcome),
            ),
            lost: Counters::of(
                ["closed", "deadline_passed", "keep_alive_ended", "keep_alive_failed", "keys_gone"],
                |reason| counter!("redlock_leases_lost_total", "reason" => reason),
            ),
            releases: Counters::of(
                ["confirmed", "expired", "unconfirmed"],
                |outcome| counter!("redlock_releases_total", "outcome" => outcome),
            ),
            nodes: (0..nodes).map(NodeSeries::register).collect(),
        }
    }

    fn settled(&self, outcome: &'static str, waited: Duration) {
        self.acquisitions.count(outcome);
        record(&self.wait, outcome, waited);
    }

    fn ended(&self, end: &'static str, held: Duration) {
        self.held.decrement(1.0);
        record(&self.held_time, end, held);
    }
}

fn record(histograms: &[(&'static str, Histogram)], label: &'static str, time: Duration) {
    if let Some((_, histogram)) = histograms.iter().find(|(it, _)| *it == label) {
        histogram.record(time.as_secs_f64());
    }
}

impl NodeSeries {
    fn register(place: usize) -> Self {
        let node = place.to_string();
        let operations = ["extend", "introduce", "look", "read", "release", "set", "time_left"];
        let answers = ["yes", "no", "error", "none"];
        let labels = operations.iter().flat_map(|&it| answers.map(|answer| (it, answer)));
        Self {
            connected: gauge!("redlock_node_connected", "node" => node.clone()),
            eligible: gauge!("redlock_node_eligible", "node" => node.clone()),
            round_trip: histogram!("redlock_node_round_trip_seconds", "node" => node.clone()),
            commands: Counters::of(labels, |(operation, answer)| {
                counter!(
                    "redlock_commands_total",
                    "node" => node.clone(),
                    "operation" => operation,
                    "answer" => answer,
                )
            }),
        }
    }
}

/// Outcomes of an acquisition.
const ACQUISITIONS: [&str; 10] = [
    "acquired",
    "cancelled",
    "closed",
    "no_entropy",
    "overloaded",
    "quarantined",
    "split",
    "taken",
    "too_few_nodes",
    "too_slow",
];

fn describe() {
    describe_counter!("redlock_attempts_total", "Attempts, by outcome");
    describe_counter!("redlock_acquisitions_total", "Acquisitions, by outcome");
    describe_histogram!(
        "redlock_acquire_wait_seconds",
        Unit::Seconds,
        "Time from the beginning of an acquisition to its outcome"
    );
    describe_gauge!("redlock_leases_held", "Leases that are held and not lost");
    describe_histogram!(
        "redlock_lease_held_seconds",
        Unit::Seconds,
        "Time from the delivery of a lease to its end"
    );
    describe_counter!("redlock_extensions_total", "Extensions, by outcome");
    describe_counter!("redlock_leases_lost_total", "Leases that ended by themselves, by reason");
    describe_counter!("redlock_releases_total", "Releases, by what the nodes answered");
    describe_gauge!("redlock_node_connected", "1 if there is a connection to the node");
    describe_gauge!("redlock_node_eligible", "1 if the node's votes count");
    describe_histogram!(
        "redlock_node_round_trip_seconds",
        Unit::Seconds,
        "Time from handing a command to the connection to its answer"
    );
    describe_counter!("redlock_commands_total", "Commands, by node, operation and answer");
}
