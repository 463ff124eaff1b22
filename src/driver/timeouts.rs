//! Node timeouts are detected by the node's own task, after it has read its connection.
//!
//! After a pause of the process, or of the runtime that polls the connection, replies that came in
//! time may be waiting although the node timeout has passed. These replies are handled first.

use core::time::Duration;

use redlock_protocol::{BootInstant, NodeIndex};

use super::{Driver, Node, State};

/// Longest time that the timer waits for a node's task to read its connection after a request to do
/// so. It starts at the request because a pause of the whole process may end long after the node
/// timeout. It is bounded because a runtime that is blocked for longer must not delay callers on
/// another one.
const LOOK_MAX: Duration = Duration::from_millis(200);

impl State {
    /// Returns the instant of the next timeout that the timer must handle.
    pub(super) fn next_timeout(&self) -> Option<BootInstant> {
        let nodes = self.machine.nodes().iter().filter_map(|node| self.timeout_of(node));
        let quarantines = self.nodes.iter().filter_map(Node::quarantined_until);
        let callers = self.waiters.first();
        nodes.chain(self.machine.lock_timeout()).chain(callers).chain(quarantines).min()
    }

    fn timeout_of(&self, node: NodeIndex) -> Option<BootInstant> {
        let at = self.machine.node_timeout(node)?;
        let asked = self.nodes[node.get()].to_look_since;
        Some(asked.map_or(at, |since| at.max(since.after(LOOK_MAX))))
    }
}

impl Driver {
    /// Runs the timer's turn for node timeouts: asks the tasks of overdue nodes to read their
    /// connections. Times out a node directly if its task did not do so within [`LOOK_MAX`]. Without
    /// a task nothing can be heard of the node, and its dial has not begun.
    pub(super) fn time_out_nodes(&self, state: &mut State, now: BootInstant) {
        for node in state.machine.nodes().iter() {
            if state.machine.node_timeout(node).is_none_or(|at| at > now) {
                continue;
            }
            let entry = &mut state.nodes[node.get()];
            if let Some(epoch) = entry.epoch.filter(|_| !entry.task.running) {
                self.hear_abandoned(state, node, epoch, now);
                // Releases owed whose keys have expired are due, too.
                state.machine.handle_node_timeout(node, now);
                continue;
            }
            if entry.task.running && entry.to_look_since.is_none() {
                entry.to_look_since = Some(now);
                entry.task.wake(&mut state.wakes);
            }
            if state.timeout_of(node).is_some_and(|at| at <= now) {
                state.machine.handle_node_timeout(node, now);
            }
        }
    }

    /// Handles the report of `node`'s task that it has read everything that had arrived.
    pub(crate) fn looked(&self, node: NodeIndex) {
        self.turn_of_task(|state, now| {
            state.nodes[node.get()].to_look_since = None;
            state.machine.handle_node_timeout(node, now);
        });
    }
}
