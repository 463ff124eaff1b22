//! Writer of the key on each node, and the latest commands executed there.

use super::ground::NEVER;
use crate::history::{AttemptId, NodeId, NodeIds, Writer};
use crate::ids::{PerClient, PerNode};

/// State of the lock's key on every node.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    writers: PerNode<Writer>,
    /// Nodes whose key had ended and exists again.
    returned: NodeIds,
    /// Time at which a key last ended on each node; 0 if none has.
    ended_ns: PerNode<u64>,
    /// Time at which each client's newest attempt, and any older attempt, last had a command
    /// executed.
    newest_ns: PerNode<PerClient<u64>>,
    older_ns: PerNode<PerClient<u64>>,
}

impl Keys {
    pub(super) fn new() -> Self {
        Self {
            writers: PerNode::filled(Writer::Nobody),
            returned: NodeIds::EMPTY,
            ended_ns: PerNode::filled(0),
            newest_ns: PerNode::filled(PerClient::filled(0)),
            older_ns: PerNode::filled(PerClient::filled(0)),
        }
    }

    /// Resets what is known of the first `nodes` nodes and `clients` clients.
    pub(super) fn reset(&mut self, nodes: usize, clients: usize) {
        self.writers.fill(Writer::Nobody);
        self.returned = NodeIds::EMPTY;
        self.ended_ns.fill(0);
        for rows in [&mut self.newest_ns, &mut self.older_ns] {
            rows.first_mut(nodes).iter_mut().for_each(|row| row.first_mut(clients).fill(0));
        }
    }

    /// Returns the writer of the key that is on `node` now.
    pub(super) fn writer(&self, node: NodeId) -> Writer {
        self.writers[node]
    }

    /// Returns since when `node` has had no key; [`NEVER`] if it has one.
    pub(super) fn free_since_ns(&self, node: NodeId) -> u64 {
        if self.writers[node] == Writer::Nobody { self.ended_ns[node] } else { NEVER }
    }

    /// Records that a command of `by` was executed on `node`; `after` is the writer of the key
    /// there now.
    pub(super) fn executed(
        &mut self,
        node: NodeId,
        by: AttemptId,
        is_newest: bool,
        after: Writer,
        at_ns: u64,
    ) {
        let row = if is_newest { &mut self.newest_ns[node] } else { &mut self.older_ns[node] };
        row[by.client] = at_ns;
        let before = core::mem::replace(&mut self.writers[node], after);
        if before != after {
            self.returned.remove(node);
        }
        if before != after && before != Writer::Nobody {
            self.ended_ns[node] = at_ns;
        }
    }

    /// Records the end of the key by `writer` on `node`.
    pub(super) fn ended(&mut self, node: NodeId, writer: Writer, at_ns: u64) {
        if self.writers[node] == writer {
            self.writers[node] = Writer::Nobody;
            self.returned.remove(node);
        }
        self.ended_ns[node] = at_ns;
    }

    /// Records that the key by `writer` is on `node` again.
    pub(super) fn returned(&mut self, node: NodeId, writer: Writer) {
        self.writers[node] = writer;
        self.returned.insert(node);
    }

    /// Returns true if the key on `node` had ended and returned.
    pub(super) fn has_returned(&self, node: NodeId) -> bool {
        self.returned.contains(node)
    }

    /// Returns true if no other attempt's key or command has touched `node` since `since_ns`, and
    /// no key has ended there. `id` is the newest attempt of its client.
    pub(super) fn is_free_for(&self, id: AttemptId, node: NodeId, since_ns: u64) -> bool {
        let writer = self.writers[node];
        let is_own = writer == Writer::Nobody || writer == Writer::Attempt(id);
        let is_since = |at_ns: u64| at_ns != 0 && at_ns >= since_ns;
        let mut others = self.newest_ns[node].iter().filter(|(client, _)| *client != id.client);
        let touched_by_others = others.any(|(_, &at_ns)| is_since(at_ns));
        let touched_by_older = self.older_ns[node].values().any(|&at_ns| is_since(at_ns));
        let ended = is_since(self.ended_ns[node]);
        debug_assert!(since_ns != NEVER, "an attempt that began");
        is_own && !touched_by_others && !touched_by_older && !ended
    }
}
