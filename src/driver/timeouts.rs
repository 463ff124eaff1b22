//! Who finds that a node has not answered in time: the node's own task, behind a look at its
//! connection.
//!
//! After a pause of the process, or of the runtime that polls the connection, answers are waiting that
//! came in time, and the node timeout has passed, too: the answers come first.

use core::time::Duration;

use super::{Driver, State};
use crate::protocol::{BootInstant, NodeIndex};

/// How long the timer leaves a node's task to look, from when the task was told to: a pause of the whole
/// process may end long after the node timeout. A runtime that is blocked for longer must not
/// keep callers on another one waiting.
const LOOK_MAX: Duration = Duration::from_millis(200);

impl State {
    /// The timer's turn: the tasks of nodes whose time is over are told to look.
    pub(super) fn time_out_nodes(&mut self, now: BootInstant) {
        for node in self.machine.nodes().iter() {
            if self.machine.node_timeout(node).is_none_or(|at| at > now) {
                continue;
            }
            let entry = &mut self.nodes[node.get()];
            if entry.task.running && entry.to_look_since.is_none() {
                entry.to_look_since = Some(now);
                entry.task.wake(&mut self.wakes);
            }
            if self.timeout_of(node).is_some_and(|at| at <= now) {
                self.machine.handle_node_timeout(node, now);
            }
        }
    }

    /// When the timer has something to do.
    pub(super) fn next_timeout(&self) -> Option<BootInstant> {
        let nodes = self.machine.nodes().iter().filter_map(|node| self.timeout_of(node));
        let others =
            [self.machine.lock_timeout(), self.waiters.next_timeout(), self.quorum_is_due()];
        nodes.chain(others.into_iter().flatten()).min()
    }

    /// When a majority will count, if somebody waits for that.
    fn quorum_is_due(&self) -> Option<BootInstant> {
        let waited_for = !self.waiters.is_empty();
        let from = waited_for.then(|| self.machine.quorum_from()).flatten();
        from.filter(|&from| from > self.clock)
    }

    fn timeout_of(&self, node: NodeIndex) -> Option<BootInstant> {
        let at = self.machine.node_timeout(node)?;
        let asked = self.nodes[node.get()].to_look_since;
        Some(asked.map_or(at, |since| at.max(since.after(LOOK_MAX))))
    }
}

impl Driver {
    /// The task of `node` has taken in everything that had arrived, as it was told.
    pub(crate) fn looked(&self, node: NodeIndex) {
        self.turn(|state, now| {
            state.nodes[node.get()].to_look_since = None;
            state.machine.handle_node_timeout(node, now);
        });
    }
}
