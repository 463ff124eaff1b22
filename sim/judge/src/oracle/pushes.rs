//! Faults by which a node pushes to its clients, although a key may not have changed.
//!
//! A client that hears such a push doubts the node until its next reply. While pushes come faster than
//! replies, no reply ends the doubt.

use super::setting::nodes_at;
use crate::history::{FaultId, Id, NodeId, NodeIds};
use crate::ids::PerNode;
use crate::scenario::{FaultKind, Scenario};

/// The last push of each node.
#[derive(Debug)]
pub(super) struct Pushes {
    /// Nodes that push when a fault begins, by fault.
    of: Vec<NodeIds>,
    last_ns: PerNode<u64>,
}

impl Pushes {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let nodes = scenario.faults.iter().map(|fault| match &fault.kind {
            kind @ (FaultKind::Flush(_) | FaultKind::SpuriousPush(_) | FaultKind::Swap(_)) => {
                nodes_at(scenario, kind.hosts().iter())
            }
            _ => NodeIds::EMPTY,
        });
        Self { of: nodes.collect(), last_ns: PerNode::filled(0) }
    }

    pub(super) fn reset(&mut self) {
        self.last_ns.fill(0);
    }

    pub(super) fn fault_began(&mut self, fault: FaultId, now_ns: u64) {
        let nodes = self.of.get(fault.index()).copied().unwrap_or(NodeIds::EMPTY);
        nodes.iter().for_each(|node| self.last_ns[node] = now_ns);
    }

    /// Returns the time of the last push of `node`; 0 if there was none.
    pub(super) fn last_ns(&self, node: NodeId) -> u64 {
        self.last_ns[node]
    }
}
