//! Nodes that lost keys without a restart: emptied by a command, or demoted.
//!
//! A client that knew the node before must notice, whatever the restart guard says: its connection is
//! pushed the loss in front of every later answer, and the canary is another one, or cannot be set
//! because the memory is full. Without the right to use the canary, it does not notice what was lost
//! between two connections.

use super::setting::Setting;
use crate::history::{ClientId, NodeId, NodeIds};
use crate::ids::{ClientIds, PerNode};
use crate::scenario::{Rights, Scenario};

/// The last flush of each node, and who knew the node then.
#[derive(Debug)]
pub(super) struct Flushes {
    /// Nodes that show their losses in this scenario.
    open: NodeIds,
    /// Time for which a node that has lost keys does not vote.
    quarantine_ns: u64,
    /// Time of the last flush of each node since it restarted; 0 if there was none.
    flushed_ns: PerNode<u64>,
    /// Clients whose request for an introduction each node has executed since it restarted.
    asked: PerNode<ClientIds>,
    /// Those of these clients that have received the answer.
    introduced: PerNode<ClientIds>,
    /// Clients to which each node had introduced itself before its last flush.
    introduced_before: PerNode<ClientIds>,
}

impl Flushes {
    pub(super) fn new(scenario: &Scenario, setting: &Setting) -> Self {
        let shows = |node: &NodeId| {
            let name = scenario.host_name(node.first_host());
            setting.steady && scenario.cluster.rights_on(name, name) == Rights::All
        };
        let all: NodeIds = setting.node_ids().filter(shows).collect();
        Self {
            open: all - setting.silent,
            quarantine_ns: scenario.fleet_max_ttl().0,
            flushed_ns: PerNode::filled(0),
            asked: PerNode::filled(ClientIds::EMPTY),
            introduced: PerNode::filled(ClientIds::EMPTY),
            introduced_before: PerNode::filled(ClientIds::EMPTY),
        }
    }

    pub(super) fn reset(&mut self) {
        self.flushed_ns.fill(0);
        self.asked.fill(ClientIds::EMPTY);
        self.introduced.fill(ClientIds::EMPTY);
        self.introduced_before.fill(ClientIds::EMPTY);
    }

    /// Records that `node` has executed the request of `clients`, the tasks of one process, for an
    /// introduction.
    pub(super) fn asked(&mut self, clients: ClientIds, node: NodeId) {
        self.asked[node] |= clients;
    }

    /// Records that `clients` have received an introduction of `node`. It may be that of a process that
    /// has ended since.
    pub(super) fn introduced(&mut self, clients: ClientIds, node: NodeId) {
        self.introduced[node] |= clients & self.asked[node];
    }

    /// Records that a new process answers for `node`.
    pub(super) fn restarted(&mut self, node: NodeId) {
        self.flushed_ns[node] = 0;
        self.asked[node] = ClientIds::EMPTY;
        self.introduced[node] = ClientIds::EMPTY;
    }

    /// Records that `node` has lost a key, and its process lives on.
    pub(super) fn flushed(&mut self, node: NodeId, now_ns: u64) {
        self.flushed_ns[node] = now_ns;
        self.introduced_before[node] = self.introduced[node];
    }

    /// Returns true if a vote of `node`, which executed the SET at `set_ns`, may not count for an attempt
    /// of `client` that began at `began_ns`.
    pub(super) fn rules_out(
        &self,
        (client, node): (ClientId, NodeId),
        began_ns: u64,
        set_ns: u64,
    ) -> bool {
        let flushed_ns = self.flushed_ns[node];
        let is_known = self.open.contains(node) && self.introduced_before[node].contains(client);
        let is_too_soon = began_ns < flushed_ns.saturating_add(self.quarantine_ns);
        flushed_ns != 0 && is_known && flushed_ns < set_ns && is_too_soon
    }
}
