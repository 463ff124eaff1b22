//! The effects that a fault can have on masters over TCP, by what they strike.

use lock_judge::history::{ClientId, HostIds, NodeId};
use lock_judge::scenario::{Lost, Message};

use crate::plan::{Death, FaultEffect, Plan};

/// Effect of a fault.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// Ends the process of a node's server.
    Death { node: NodeId, death: Death },
    /// Changes a node's server, which executes nothing meanwhile.
    Server { node: NodeId, change: ServerChange },
    /// Changes the messages to and from nodes.
    Links(LinkChange),
    /// A node executes nothing.
    Stall { node: NodeId },
    /// A worker's process is stopped.
    Pause { client: ClientId },
    /// A worker's process group is killed.
    Kill { client: ClientId },
}

/// Change of a server.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServerChange {
    ClockJump { by_ns: i64 },
    ClockRate { rate_ppb: i32 },
    Delete,
    Evict,
    Flush { database: Option<u8> },
    MemoryFull,
    Snapshot,
    SpuriousPush,
}

/// Change of the messages from one group of hosts to another.
#[derive(Clone, Copy, Debug)]
pub(super) enum LinkChange {
    Delay { from: HostIds, to: HostIds, by_ns: u64, only: Option<Message> },
    Partition { from: HostIds, to: HostIds, one_way: bool, lost: Lost },
}

impl Effect {
    /// Returns the effect of a planned fault that `support` has not refused.
    pub(super) fn of(plan: &Plan, effect: FaultEffect) -> Self {
        let server = |node, change| Self::Server { node, change };
        let node_of = |server| plan.servers[server].node;
        match effect {
            FaultEffect::ClockJump { host, by_ns } => {
                server(plan.node_at(host), ServerChange::ClockJump { by_ns })
            }
            FaultEffect::ClockRate { host, rate_ppb } => {
                server(plan.node_at(host), ServerChange::ClockRate { rate_ppb })
            }
            FaultEffect::Delay { from, to, by_ns, only } => {
                Self::Links(LinkChange::Delay { from, to, by_ns, only })
            }
            FaultEffect::Delete { node, .. } => server(node, ServerChange::Delete),
            FaultEffect::Die { host, .. } if plan.server_at(host).is_none() => {
                Self::Kill { client: plan.client_at(host) }
            }
            FaultEffect::Die { host, death } => Self::Death { node: plan.node_at(host), death },
            FaultEffect::Evict { node, .. } => server(node, ServerChange::Evict),
            FaultEffect::Flush { node, database } => server(node, ServerChange::Flush { database }),
            FaultEffect::MemoryFull { server: it } => server(node_of(it), ServerChange::MemoryFull),
            FaultEffect::Partition { from, to, one_way, lost } => {
                Self::Links(LinkChange::Partition { from, to, one_way, lost })
            }
            FaultEffect::Snapshot { server: it } => server(node_of(it), ServerChange::Snapshot),
            FaultEffect::SpuriousPush { node, .. } => server(node, ServerChange::SpuriousPush),
            FaultEffect::Stall { server: it } => Self::Stall { node: node_of(it) },
            FaultEffect::Stop { host, .. } => Self::Pause { client: plan.client_at(host) },
            FaultEffect::Attach { .. }
            | FaultEffect::Demote { .. }
            | FaultEffect::DiskStall { .. }
            | FaultEffect::FailOver { .. }
            | FaultEffect::Swap { .. } => unreachable!("`support` refuses it"),
        }
    }
}
