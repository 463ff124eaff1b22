//! Reads of leases that find no room on a connection, because so many leases read at once.
//!
//! The leases wait in a queue for each node, and each reply of the node makes room for the next one. So
//! thousands of leases are read as fast as the node answers, and none of them asks in vain.

use std::collections::VecDeque;

use super::NodeSet;
use crate::command::LockId;
use crate::lock::Lock;
use crate::quorum::{NodeCount, NodeIndex};
use crate::time::BootInstant;

/// Leases that wait to read their key on each node, each of them once.
#[derive(Clone, Debug)]
pub(super) struct Room {
    waiting: Vec<VecDeque<LockId>>,
}

impl Room {
    pub(super) fn new(nodes: NodeCount) -> Self {
        Self { waiting: nodes.iter().map(|_| VecDeque::new()).collect() }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.iter_mut().for_each(VecDeque::clear);
    }

    /// Appends `lock`, which does not wait for `node` yet.
    pub(super) fn wait(&mut self, node: NodeIndex, lock: LockId) {
        self.waiting[node.get()].push_back(lock);
    }

    /// Forgets who waits for `node`: its connection has ended.
    pub(super) fn connection_lost(&mut self, node: NodeIndex) {
        self.waiting[node.get()].clear();
    }
}

impl NodeSet {
    /// Lets leases read on `node`, in the order in which they found no room, while there is room.
    #[inline]
    pub(super) fn give_room(&mut self, node: NodeIndex, now: BootInstant) {
        while !self.room.waiting[node.get()].is_empty() && self.links[node.get()].has_room_to_read()
        {
            self.read_next(node, now);
        }
    }

    #[cold]
    fn read_next(&mut self, node: NodeIndex, now: BootInstant) {
        let Some(lock) = self.room.waiting[node.get()].pop_front() else { return };
        if let Some(watching) = self.lock_mut(lock).and_then(Lock::watches) {
            watching.has_room(node);
            self.carry(lock, now);
            self.route(now);
        }
    }
}
