//! Checks the values in events, so that a stored history contains no unknown host and no instant
//! that overflows arithmetic.

use super::EVENTS_MAX;
use crate::history::{
    AttemptId, ClientId, Event, EventKind, FaultId, HostId, Id, NodeId, NodeIds, Writer,
};
use crate::scenario::{CLIENTS_MAX, NODES_MAX, Scenario};

/// Maximum true instant and maximum duration: over 36 years. With this bound the fastest clock that
/// an event can describe stays below 2⁶³ ns.
const SPAN_NS_MAX: u64 = 1 << 60;

/// Maximum reading of a clock at the start of a segment.
const LOCAL_NS_MAX: u64 = 1 << 62;

/// Maximum expiry, in milliseconds: 2⁶³ ns.
const WALL_MS_MAX: u64 = (1 << 63) / 1_000_000;

/// Rejects a scenario with more nodes or clients than events can refer to; a file may claim any
/// number.
pub(super) fn check_scenario(scenario: &Scenario) -> Result<(), String> {
    let nodes = scenario.cluster.nodes.len();
    let clients = scenario.clients.len();
    if nodes == 0 || nodes > NODES_MAX {
        return Err(format!("a scenario has 1 to {NODES_MAX} nodes, not {nodes}"));
    }
    if clients == 0 || clients > CLIENTS_MAX {
        return Err(format!("a scenario has 1 to {CLIENTS_MAX} clients, not {clients}"));
    }
    Ok(())
}

/// Rejects `event` if it cannot follow `previous` in a run of `scenario`.
pub(super) fn check(
    event: &Event,
    previous: Option<&Event>,
    scenario: &Scenario,
) -> Result<(), String> {
    let bounds = Bounds { scenario };
    bounds.at_most("at_ns", event.at_ns, SPAN_NS_MAX)?;
    if previous.is_some_and(|previous| previous.at_ns > event.at_ns) {
        return Err(String::from("`at_ns` lies before the event above it"));
    }
    if previous.is_some_and(|previous| previous.kind == EventKind::Ended) {
        return Err(String::from("the run has ended above"));
    }
    bounds.kind(event.kind)
}

struct Bounds<'a> {
    scenario: &'a Scenario,
}

impl Bounds<'_> {
    fn kind(&self, kind: EventKind) -> Result<(), String> {
        match kind {
            EventKind::Clock { host, local_ns, rate_ppb, .. } => {
                self.host(host)?;
                self.at_most("local_ns", local_ns, LOCAL_NS_MAX)?;
                if rate_ppb < -1_000_000_000 {
                    return Err(String::from("`rate_ppb` makes the clock run backwards"));
                }
                Ok(())
            }
            EventKind::NodeUp { node, .. }
            | EventKind::NodeDown { node, .. }
            | EventKind::NodeStalled { node }
            | EventKind::NodeUnstalled { node } => self.node(node),
            EventKind::FailedOver { node, host } => {
                self.node(node)?;
                self.host(host)
            }
            EventKind::Eligible { client, node, .. } => {
                self.client(client)?;
                self.node(node)
            }
            EventKind::Stopped { host, .. }
            | EventKind::Continued { host }
            | EventKind::Killed { host, .. } => self.host(host),
            EventKind::FaultBegan { fault } | EventKind::FaultEnded { fault } => self.fault(fault),
            EventKind::Healed { probe: client } | EventKind::GaveUp { client } => {
                self.client(client)
            }
            EventKind::Ended => Ok(()),
            EventKind::KeyReturned { node, writer, expires_wall_ms } => {
                self.node(node)?;
                self.writer(writer)?;
                self.at_most_or_never("expires_wall_ms", expires_wall_ms, WALL_MS_MAX)
            }
            EventKind::KeyEnded { node, writer, by, expires_wall_ms, .. } => {
                self.node(node)?;
                self.writer(writer)?;
                self.writer(by)?;
                self.at_most_or_never("expires_wall_ms", expires_wall_ms, WALL_MS_MAX)
            }
            of_attempt => self.of_attempt(of_attempt),
        }
    }

    fn of_attempt(&self, kind: EventKind) -> Result<(), String> {
        match kind {
            EventKind::AttemptBegan { attempt, t1_local_ns, ttl_ns, drift_ns, needed, .. } => {
                self.attempt(attempt)?;
                self.at_most("t1_local_ns", t1_local_ns, 1 << 63)?;
                self.at_most_or_never("ttl_ns", ttl_ns, SPAN_NS_MAX)?;
                self.at_most("drift_ns", drift_ns, SPAN_NS_MAX)?;
                self.at_most("needed", needed.into(), NODES_MAX as u64)
            }
            EventKind::Written { command, attempt, node, .. }
            | EventKind::Delivered { command, attempt, node, .. } => {
                self.number("command", command.0)?;
                self.attempt(attempt)?;
                self.node(node)
            }
            EventKind::Executed {
                command, attempt, node, before, after, expires_wall_ms, ..
            } => {
                self.number("command", command.0)?;
                self.attempt(attempt)?;
                self.node(node)?;
                self.writer(before)?;
                self.writer(after)?;
                self.at_most_or_never("expires_wall_ms", expires_wall_ms, WALL_MS_MAX)
            }
            EventKind::GrantDecided { attempt, counted, t2_local_ns, deadline_local_ns } => {
                self.attempt(attempt)?;
                self.counted(counted)?;
                self.at_most("t2_local_ns", t2_local_ns, 1 << 63)?;
                self.at_most_or_never("deadline_local_ns", deadline_local_ns, 1 << 63)
            }
            EventKind::GrantDelivered { attempt, deadline_local_ns, .. } => {
                self.attempt(attempt)?;
                self.at_most_or_never("deadline_local_ns", deadline_local_ns, 1 << 63)
            }
            EventKind::WriteSent { attempt, write, .. }
            | EventKind::WriteApplied { attempt, write, .. }
            | EventKind::WriteRejected { attempt, write, .. } => {
                self.attempt(attempt)?;
                self.number("write", write.0)
            }
            EventKind::AttemptSettled { attempt, .. }
            | EventKind::ReleaseCalled { attempt }
            | EventKind::LostDelivered { attempt, .. }
            | EventKind::Checked { attempt, .. }
            | EventKind::SectionEntered { attempt }
            | EventKind::SectionLeft { attempt }
            | EventKind::ReadDone { attempt, .. } => self.attempt(attempt),
            EventKind::VotesChanged { attempt, confirmed, possible } => {
                self.attempt(attempt)?;
                self.counted(confirmed)?;
                self.counted(possible)
            }
            of_extension => self.of_extension(of_extension),
        }
    }

    fn of_extension(&self, kind: EventKind) -> Result<(), String> {
        match kind {
            EventKind::ExtensionBegan { attempt, t1_local_ns, ttl_ns, .. } => {
                self.attempt(attempt)?;
                self.at_most("t1_local_ns", t1_local_ns, 1 << 63)?;
                self.at_most("ttl_ns", ttl_ns, SPAN_NS_MAX)
            }
            EventKind::ExtensionRefused { attempt, ttl_ns, .. } => {
                self.attempt(attempt)?;
                self.at_most("ttl_ns", ttl_ns, SPAN_NS_MAX)
            }
            EventKind::ExtensionSettled { attempt, counted, deadline_local_ns, .. } => {
                self.attempt(attempt)?;
                self.counted(counted)?;
                self.at_most_or_never("deadline_local_ns", deadline_local_ns, 1 << 63)
            }
            EventKind::ExtensionDelivered { attempt, deadline_local_ns, .. } => {
                self.attempt(attempt)?;
                self.at_most_or_never("deadline_local_ns", deadline_local_ns, 1 << 63)
            }
            _ => unreachable!("`kind` and `of_attempt` handle every other event"),
        }
    }

    fn counted(&self, counted: NodeIds) -> Result<(), String> {
        let nodes = self.scenario.cluster.nodes.len();
        if (counted - NodeIds::first(nodes)).is_empty() {
            return Ok(());
        }
        Err(format!("`counted` names a node beyond the {nodes} there are"))
    }

    fn at_most(&self, field: &str, value: u64, most: u64) -> Result<(), String> {
        if value > most {
            return Err(format!("`{field}` is {value}, more than {most}"));
        }
        Ok(())
    }

    fn at_most_or_never(&self, field: &str, value: u64, most: u64) -> Result<(), String> {
        if value == u64::MAX { Ok(()) } else { self.at_most(field, value, most) }
    }

    fn id(&self, what: &str, id: impl Id, count: usize) -> Result<(), String> {
        let index = id.index();
        if index >= count {
            return Err(format!("there is no {what} {index}: the scenario has {count}"));
        }
        Ok(())
    }

    fn node(&self, node: NodeId) -> Result<(), String> {
        self.id("node", node, self.scenario.cluster.nodes.len())
    }

    fn client(&self, client: ClientId) -> Result<(), String> {
        // The probes come after the scenario's own clients.
        self.id("client", client, self.scenario.client_count())
    }

    fn host(&self, host: HostId) -> Result<(), String> {
        self.id("host", host, self.scenario.host_count())
    }

    fn fault(&self, fault: FaultId) -> Result<(), String> {
        self.id("fault", fault, self.scenario.faults.len())
    }

    fn attempt(&self, attempt: AttemptId) -> Result<(), String> {
        self.client(attempt.client)
    }

    fn writer(&self, writer: Writer) -> Result<(), String> {
        match writer {
            Writer::Attempt(attempt) => self.attempt(attempt),
            Writer::Nobody | Writer::Operator => Ok(()),
        }
    }

    fn number(&self, field: &str, number: u32) -> Result<(), String> {
        // Commands and writes are numbered from 0, and each has at least one event of its own.
        self.at_most(field, number.into(), EVENTS_MAX as u64)
    }
}
