//! The paths between clients and nodes that a fault of the scenario cuts.

use super::super::ground::NEVER;
use super::super::setting::Setting;
use crate::history::{HostIds, NodeIds};
use crate::ids::PerClient;
use crate::scenario::{Delay, Failover, FaultKind, HostNames, Lost, Message, Partition, Scenario};

/// Set of nodes for each client.
pub(super) type Nodes = PerClient<NodeIds>;

const NOBODY: Nodes = PerClient::filled(NodeIds::EMPTY);

/// Effect of one fault of the scenario on the paths between clients and nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// Nodes whose requests or answers the fault holds back.
    pub(super) either_way: Nodes,
    /// Nodes that requests do not reach.
    pub(super) requests: Nodes,
    pub(super) connections: Severed,
    pub(super) aftermath: Aftermath,
    pub(super) began_ns: u64,
}

/// Effect of a fault on the connections that it cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severed {
    No,
    Closed,
    /// Closed, and so are those that clients open before its end.
    ClosedThroughout,
    /// Perhaps, and no end knows.
    HalfOpen,
    /// No, but they lead to a master that a failover has replaced: its answers say nothing about the
    /// node.
    Outdated,
}

/// Time for which a fault has an effect after its end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Aftermath {
    AsLongAgain,
    Fixed(u64),
}

impl Cut {
    /// Returns the effect of a fault; `None` if it keeps no client from a node.
    pub(super) fn of(kind: &FaultKind, scenario: &Scenario, setting: &Setting) -> Option<Self> {
        let across = |from: &[String], to: &[String]| across(scenario, setting, from, to);
        let all_clients = |names: &HostNames| {
            Nodes::filled(names.0.iter().filter_map(|name| scenario.node_named(name)).collect())
        };
        let sync = Aftermath::Fixed(scenario.cluster.disk.sync_takes.0);
        match kind {
            FaultKind::Partition(it) => {
                let [one, other] = &it.between;
                Self::of_partition(it, across(one, other), across(other, one))
            }
            FaultKind::Delay(it) => {
                Self::of_delay(it, across(&it.from, &it.to), across(&it.to, &it.from))
            }
            // A demoted node executes nothing, and clients close their connections.
            FaultKind::Demote(it) => {
                let refused = all_clients(&it.host);
                Self::new(refused, refused, Severed::ClosedThroughout, Aftermath::Fixed(0))
            }
            // A node whose disk hangs may answer nothing.
            FaultKind::DiskStall(it) => {
                let silent = all_clients(&it.host);
                Self::new(silent, silent, Severed::No, sync)
            }
            // A node with full memory rejects SETs.
            FaultKind::MemoryFull(it) => {
                Self::new(NOBODY, all_clients(&it.host), Severed::No, sync)
            }
            FaultKind::Failover(it) => {
                let misled = misled(scenario, setting, it);
                Self::new(misled, misled, Severed::Outdated, Aftermath::Fixed(0))
            }
            // Histories have deaths and stalls of nodes, failovers that everybody is told of, and stops of clients, as events
            // of their own. The rest keeps no message back.
            FaultKind::Attach(_)
            | FaultKind::ClockJump(_)
            | FaultKind::ClockRate(_)
            | FaultKind::ClockSlew(_)
            | FaultKind::Delete(_)
            | FaultKind::Evict(_)
            | FaultKind::Flush(_)
            | FaultKind::Kill(_)
            | FaultKind::Pause(_)
            | FaultKind::Power(_)
            | FaultKind::Shutdown(_)
            | FaultKind::Snapshot(_)
            | FaultKind::SpuriousPush(_)
            | FaultKind::Stall(_)
            | FaultKind::Suspend(_)
            | FaultKind::Swap(_) => None,
        }
    }

    /// Returns the effect of a partition, given the paths from the first group to the second, and
    /// back.
    fn of_partition(it: &Partition, there: Nodes, back: Nodes) -> Option<Self> {
        let (connections, aftermath) = match it.lost {
            Lost::Hold => (Severed::No, Aftermath::AsLongAgain),
            Lost::Reset => (Severed::Closed, Aftermath::Fixed(0)),
            Lost::Silent => (Severed::HalfOpen, Aftermath::Fixed(0)),
        };
        let all = both(there, back);
        let (requests, answers) = if it.one_way { (there, back) } else { (all, all) };
        Self::new(requests, answers, connections, aftermath)
    }

    /// Returns the effect of a delay, given the paths of the requests and of the answers that it
    /// would slow.
    fn of_delay(it: &Delay, requests: Nodes, answers: Nodes) -> Option<Self> {
        let (requests, answers) = match it.only {
            None => (requests, answers),
            Some(Message::Extend | Message::Release | Message::Set) => (requests, NOBODY),
            Some(Message::Answer) => (NOBODY, answers),
            Some(Message::Write) => (NOBODY, NOBODY),
        };
        Self::new(requests, answers, Severed::No, Aftermath::Fixed(it.by.max.0))
    }

    fn new(
        requests: Nodes,
        answers: Nodes,
        connections: Severed,
        aftermath: Aftermath,
    ) -> Option<Self> {
        let either_way = both(requests, answers);
        let cut = Self { either_way, requests, connections, aftermath, began_ns: NEVER };
        (either_way != NOBODY).then_some(cut)
    }
}

/// Returns, for each client that is not told of the failover, the node that it has another master of.
fn misled(scenario: &Scenario, setting: &Setting, failover: &Failover) -> Nodes {
    let Some(told) = &failover.told else { return NOBODY };
    let told: HostIds = told.iter().filter_map(|name| scenario.host_named(name)).collect();
    let node: NodeIds = scenario.node_named(&failover.node).into_iter().collect();
    Nodes::from_fn(|client| {
        let is_told = told.contains(setting.client_host(client));
        if is_told { NodeIds::EMPTY } else { node }
    })
}

/// Returns the union of two sets of paths.
pub(super) fn both(one: Nodes, other: Nodes) -> Nodes {
    Nodes::from_fn(|client| one[client] | other[client])
}

/// Returns, for each client whose host is in `near`, the nodes in `far`.
pub(super) fn across(
    scenario: &Scenario,
    setting: &Setting,
    near: &[String],
    far: &[String],
) -> Nodes {
    let near: HostIds = near.iter().filter_map(|name| scenario.host_named(name)).collect();
    let far: NodeIds = far.iter().filter_map(|name| scenario.node_named(name)).collect();
    Nodes::from_fn(|client| {
        let is_near = near.contains(setting.client_host(client));
        if is_near { far } else { NodeIds::EMPTY }
    })
}
