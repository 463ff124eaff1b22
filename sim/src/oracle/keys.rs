//! Writer of the key on each node, and the latest commands executed there.

use super::ground::NEVER;
use super::setting::{CLIENTS_MAX, NODES_MAX};
use crate::history::{AttemptId, Writer};

/// State of the lock's key on every node.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    writers: [Writer; NODES_MAX],
    /// Nodes whose key had ended and exists again, as a bit set.
    returned: u16,
    /// Time at which a key last ended on each node; 0 if none has.
    ended_ns: [u64; NODES_MAX],
    /// Time at which each client's newest attempt, and any older attempt, last had a command
    /// executed.
    newest_ns: [[u64; CLIENTS_MAX]; NODES_MAX],
    older_ns: [[u64; CLIENTS_MAX]; NODES_MAX],
}

impl Keys {
    pub(super) fn new() -> Self {
        Self {
            writers: [Writer::Nobody; NODES_MAX],
            returned: 0,
            ended_ns: [0; NODES_MAX],
            newest_ns: [[0; CLIENTS_MAX]; NODES_MAX],
            older_ns: [[0; CLIENTS_MAX]; NODES_MAX],
        }
    }

    pub(super) fn reset(&mut self, nodes: usize) {
        self.writers = [Writer::Nobody; NODES_MAX];
        self.returned = 0;
        self.ended_ns = [0; NODES_MAX];
        self.newest_ns[..nodes].fill([0; CLIENTS_MAX]);
        self.older_ns[..nodes].fill([0; CLIENTS_MAX]);
    }

    /// Returns the writer of the key that is on `node` now.
    pub(super) fn writer(&self, node: u8) -> Writer {
        self.writers[usize::from(node)]
    }

    /// Records that a command of `by` was executed on `node`; `after` is the writer of the key
    /// there now.
    pub(super) fn executed(
        &mut self,
        node: u8,
        by: AttemptId,
        is_newest: bool,
        after: Writer,
        at_ns: u64,
    ) {
        let (node, client) = (usize::from(node), usize::from(by.client));
        let row = if is_newest { &mut self.newest_ns[node] } else { &mut self.older_ns[node] };
        row[client] = at_ns;
        let before = core::mem::replace(&mut self.writers[node], after);
        if before != after {
            self.returned &= !(1 << node);
        }
        if before != after && before != Writer::Nobody {
            self.ended_ns[node] = at_ns;
        }
    }

    /// Records the end of the key by `writer` on `node`.
    pub(super) fn ended(&mut self, node: u8, writer: Writer, at_ns: u64) {
        let node = usize::from(node);
        if self.writers[node] == writer {
            self.writers[node] = Writer::Nobody;
            self.returned &= !(1 << node);
        }
        self.ended_ns[node] = at_ns;
    }

    /// Records that the key by `writer` is on `node` again.
    pub(super) fn returned(&mut self, node: u8, writer: Writer) {
        self.writers[usize::from(node)] = writer;
        self.returned |= 1 << node;
    }

    /// Returns true if the key on `node` had ended and returned.
    pub(super) fn has_returned(&self, node: u8) -> bool {
        self.returned & (1 << node) != 0
    }

    /// Returns true if no other attempt's key or command has touched `node` since `since_ns`, and
    /// no key has ended there. `id` is the newest attempt of its client.
    pub(super) fn is_free_for(&self, id: AttemptId, node: u8, since_ns: u64) -> bool {
        let (place, own) = (usize::from(node), usize::from(id.client));
        let is_own = matches!(self.writers[place], Writer::Nobody)
            || self.writers[place] == Writer::Attempt(id);
        let touched =
            |row: &[u64; CLIENTS_MAX], client: usize| row[client] != 0 && row[client] >= since_ns;
        let (newest, older) = (&self.newest_ns[place], &self.older_ns[place]);
        let others = (0..CLIENTS_MAX).filter(|&client| client != own);
        let touched_by_others = others.into_iter().any(|client| touched(newest, client));
        let touched_by_older = (0..CLIENTS_MAX).any(|client| touched(older, client));
        let ended = self.ended_ns[place] != 0 && self.ended_ns[place] >= since_ns;
        debug_assert!(since_ns != NEVER, "an attempt that began");
        is_own && !touched_by_others && !touched_by_older && !ended
    }
}
