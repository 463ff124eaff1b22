//! Inputs from the transports and the clock.

use super::{Event, NodeSet};
use crate::command::{Reply, ResourceId};
use crate::lock::Phase;
use crate::quorum::NodeIndex;
use crate::time::BootInstant;

impl NodeSet {
    /// Handles the beginning of the dial of `node` as `epoch`, if it did not begin with the command:
    /// its time counts from `now`.
    pub fn handle_dialing(&mut self, node: NodeIndex, epoch: u32, now: BootInstant) {
        self.advance(now);
        self.touch(node).handle_dialing(epoch, now);
    }

    /// Handles the opening of the connection to `node` that was dialled as `epoch`.
    pub fn handle_connected(&mut self, node: NodeIndex, epoch: u32, now: BootInstant) {
        self.advance(now);
        self.touch(node).handle_connected(epoch, now);
    }

    /// Records whether the transport takes bytes.
    pub fn handle_writable(
        &mut self,
        node: NodeIndex,
        epoch: u32,
        writable: bool,
        now: BootInstant,
    ) {
        self.advance(now);
        self.touch(node).handle_writable(epoch, writable);
    }

    /// Handles the node's report, on the connection `epoch`, that keys are gone: all keys, or those
    /// of one database.
    pub fn handle_keys_lost(&mut self, node: NodeIndex, epoch: u32, now: BootInstant) {
        self.advance(now);
        let is_current = self.links[node.get()].is_current(epoch);
        if is_current && !self.links[node.get()].is_suspended() {
            // Before the introduction: that of a replica ends the connection. Reports that come
            // until it is answered lead to doubts then.
            self.doubt_all(node, now);
        }
        self.touch(node).handle_keys_lost(epoch, now);
        if is_current {
            self.wake_all(node, now);
        }
    }

    /// Handles the node's report, on the connection `epoch`, that the key of `resource` has changed
    /// or may have. Returns true if there may be commands or another timeout: a use waits for that,
    /// or a lease that is watched looks into it.
    pub fn handle_key_changed(
        &mut self,
        node: NodeIndex,
        epoch: u32,
        resource: ResourceId,
        now: BootInstant,
    ) -> bool {
        self.advance(now);
        if !self.links[node.get()].is_current(epoch) {
            return false;
        }
        self.note_push(node);
        self.key_changed(node, resource, None, now)
    }

    /// Passes on what a change of the link to `node` means for the uses.
    #[inline]
    fn link_changed(&mut self, node: NodeIndex, now: BootInstant) {
        self.look_for_connections(now);
        self.route(now);
        self.note_connection(node, now);
    }

    /// Handles a connection that could not be opened, was closed, or was reset by the other side.
    pub fn handle_closed(&mut self, node: NodeIndex, epoch: u32, now: BootInstant) {
        self.advance(now);
        self.touched.insert(node);
        self.links[node.get()].handle_closed(epoch, now, &mut self.notes);
        self.link_changed(node, now);
    }

    /// Handles the end of a connection, or of a dial, with the runtime that it ran on: the node has
    /// closed nothing. It is dialled again without a wait when it is needed, as for the first time.
    pub fn handle_abandoned(&mut self, node: NodeIndex, epoch: u32, now: BootInstant) {
        self.advance(now);
        self.touched.insert(node);
        self.links[node.get()].handle_abandoned(epoch, now, &mut self.notes);
        self.link_changed(node, now);
    }

    /// Handles the next reply on the connection. `now` is read after the reply. Returns true if
    /// there may be commands or events; otherwise the driver may handle other inputs before it
    /// drains them.
    pub fn handle_reply(
        &mut self,
        node: NodeIndex,
        epoch: u32,
        reply: Reply,
        now: BootInstant,
    ) -> bool {
        self.advance(now);
        self.touched.insert(node);
        let known = self.open.contains(node).then(|| self.links[node.get()].memory_from());
        let had_lost_again = self.links[node.get()].has_lost_again();
        let was_stuck = self.links[node.get()].is_stuck(now);
        let changed = self.links[node.get()].handle_reply(epoch, reply, now, &mut self.notes);
        self.link_changed(node, now);
        self.give_room(node, now);
        let link = &self.links[node.get()];
        let is_introduced = had_lost_again && !link.has_lost_again();
        if is_introduced || known.is_some_and(|from| from != link.memory_from()) {
            // The node has reported lost keys again; or an introduction shows another data set,
            // or none: behind a proxy, nothing is pushed.
            self.doubt_all(node, now);
        }
        if let Some((resource, by)) = changed {
            // The node does not push a change by this connection itself, and forgets that the
            // connection wants to hear of the next one.
            self.key_changed(node, resource, by, now);
        }
        if was_stuck && self.open.contains(node) && !self.links[node.get()].is_stuck(now) {
            self.answers_again(node, now);
        }
        if !self.links[node.get()].has_command() {
            self.note_idle(node);
        }
        !self.events.is_empty() || !self.touched.is_empty()
    }

    /// Handles the timeout that [`NodeSet::poll_timeout`] returned. Harmless at any other time.
    pub fn handle_timeout(&mut self, now: BootInstant) {
        self.nodes.iter().for_each(|node| self.handle_node_timeout(node, now));
        self.handle_lock_timeout(now);
    }

    /// Handles the timeout that [`NodeSet::node_timeout`] returned. A driver that can look for
    /// replies of the node that have already arrived must do so first. Harmless at any other time.
    pub fn handle_node_timeout(&mut self, node: NodeIndex, now: BootInstant) {
        self.advance(now);
        if self.node_timeout(node).is_some_and(|at| at <= now) {
            self.touched.insert(node);
            self.links[node.get()].handle_timeout(now, &mut self.notes);
            self.link_changed(node, now);
            self.give_room(node, now);
        }
    }

    /// Handles the timeout that [`NodeSet::lock_timeout`] returned. Harmless at any other time.
    pub fn handle_lock_timeout(&mut self, now: BootInstant) {
        self.advance(now);
        while let Some(slot) = self.timers.take_due(now) {
            let lock = self.slots[slot as usize].lock.as_mut();
            let lock = lock.expect("a slot without a lock waits for nothing");
            let (id, before, token) = (lock.id(), lock.phase(), lock.token());
            let (resource, renewed) = (lock.resource(), lock.renewed());
            let happened = lock.handle_timeout(now);
            if let Some((t1, ttl)) = lock.renewed().filter(|it| renewed != Some(*it)) {
                self.events.push_back(Event::ExtensionBegan { lock: id, token, t1, ttl });
            }
            match (before, lock.phase()) {
                (Phase::Waiting { .. }, Phase::Due) => self.attempt_is_due(id, now),
                (Phase::Queued, Phase::Ended) => {
                    // The head itself waits for the turn of its attempt.
                    let head = self.lines.head(resource).and_then(|head| self.lock(head));
                    let reason = head.expect("who waits for a time is in line").why_behind();
                    let taken_for = self.held_here_for(id);
                    self.events.push_back(Event::GaveUp { lock: id, reason, taken_for });
                }
                _ => {}
            }
            if let Some(happened) = happened {
                self.tell(id, token, happened);
            }
            self.carry(id, now);
            self.route(now);
        }
    }
}
