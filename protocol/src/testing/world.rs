//! A client, its nodes, and the clock.

use core::time::Duration;
use std::collections::VecDeque;

use super::fake_node::FakeNode;
use super::{RESOURCE, TTL, at_ms, fresh, introduction, link_config, ms, node, token};
use crate::command::{LockId, Op, Reply};
use crate::link::{Command, LinkConfig};
use crate::lock::{ExtendError, LockConfig};
use crate::node_set::{Event, NodeSet};
use crate::time::BootInstant;

/// A client, its nodes, and the clock.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) client: NodeSet,
    pub(crate) nodes: Vec<FakeNode>,
    pub(crate) events: Vec<Event>,
    pub(crate) now: BootInstant,
}

impl World {
    /// A client of `count` nodes that has never connected. The clock starts at one day.
    pub(crate) fn cold(count: usize) -> Self {
        Self::cold_with(link_config(), count)
    }

    /// As [`World::cold`], with another configuration.
    pub(crate) fn cold_with(config: LinkConfig, count: usize) -> Self {
        let node = FakeNode {
            introduction: introduction(1),
            epoch: None,
            dialed: None,
            inbox: VecDeque::new(),
            key: None,
            expires: BootInstant::ZERO,
            has_plain: false,
            limbo: Vec::new(),
            written: Vec::new(),
            written_at: Vec::new(),
            resets: 0,
            pushes: true,
            registered: false,
        };
        let client = NodeSet::new(&vec![config; count]);
        let now = at_ms(86_400_000);
        Self { client, nodes: vec![node; count], events: Vec::new(), now }
    }

    /// A client of `count` nodes whose connections are all open.
    pub(crate) fn warm(count: usize) -> Self {
        Self::warm_with(link_config(), count)
    }

    /// As [`World::warm`], with another configuration.
    pub(crate) fn warm_with(config: LinkConfig, count: usize) -> Self {
        let mut world = Self::cold_with(config, count);
        world.client.connect(world.now);
        world.drain();
        (0..count).for_each(|index| world.accept(index));
        world
    }

    /// A client of `count` nodes whose connections were all lost and are being dialled again.
    pub(crate) fn reconnecting(count: usize) -> Self {
        let mut world = Self::cold(count);
        world.client.connect(world.now);
        world.drain();
        (0..count).for_each(|index| world.close(index));
        world.pass(ms(10));
        world
    }

    /// Passes the client's commands to the nodes, and collects its events.
    pub(crate) fn drain(&mut self) {
        while let Some(command) = self.client.poll_command() {
            match command {
                Command::Dial { node, epoch } => self.nodes[node.get()].dialed = Some(epoch),
                Command::Reset { node, .. } => self.nodes[node.get()].disconnect(),
                Command::Write { node, epoch, id, op } => {
                    let node = &mut self.nodes[node.get()];
                    assert_eq!(node.epoch, Some(epoch), "written to a connection that is gone");
                    node.inbox.push_back((id, op));
                    if op != Op::Introduce {
                        node.written.push(op);
                        node.written_at.push(self.now);
                    }
                }
            }
        }
        while let Some(event) = self.client.poll_event() {
            self.events.push(event);
        }
    }

    /// Opens the connection that is being dialled, and answers the introduction.
    pub(crate) fn accept(&mut self, index: usize) {
        self.open(index);
        self.answer(index);
    }

    /// Opens the connection that is being dialled.
    pub(crate) fn open(&mut self, index: usize) {
        let epoch = self.nodes[index].dialed.take().expect("nobody dials");
        self.nodes[index].epoch = Some(epoch);
        self.client.handle_connected(node(index), epoch, self.now);
        self.drain();
    }

    /// Lets the node execute and answer the next command.
    pub(crate) fn answer(&mut self, index: usize) {
        let (_, op) = *self.nodes[index].inbox.front().expect("nothing was written");
        let reply = self.nodes[index].execute(op, self.now);
        self.answer_with(index, reply);
    }

    /// Lets the nodes answer everything that has been written, and what is written then.
    pub(crate) fn answer_all(&mut self) {
        while let Some(index) = (0..self.nodes.len()).find(|&it| !self.nodes[it].inbox.is_empty()) {
            self.answer(index);
        }
    }

    /// Lets `time` pass; the nodes answer at once.
    pub(crate) fn pass_answering(&mut self, time: Duration) {
        let end = self.now.after(time);
        while self.now < end {
            self.answer_all();
            self.pass(ms(1).min(end.since(self.now)));
        }
        self.answer_all();
    }

    /// Lets the node answer the next command with `reply`, without executing it.
    pub(crate) fn answer_with(&mut self, index: usize, reply: Reply) {
        self.nodes[index].inbox.pop_front();
        let epoch = self.nodes[index].epoch.expect("not connected");
        self.client.handle_reply(node(index), epoch, reply, self.now);
        self.drain();
    }

    /// Sets or deletes the key, as another client or an operator does; the node pushes the change if
    /// the client's connection is registered.
    pub(crate) fn change(&mut self, index: usize, key: Option<(u8, u64)>) {
        let it = &mut self.nodes[index];
        it.key = key.map(|(byte, _)| token(byte));
        it.expires = key.map_or(BootInstant::ZERO, |(_, ttl_ms)| self.now.after(ms(ttl_ms)));
        if core::mem::take(&mut it.registered) {
            self.push(index);
        }
    }

    /// Reports to the client that the key has changed.
    pub(crate) fn push(&mut self, index: usize) {
        if let Some(epoch) = self.nodes[index].epoch {
            self.client.handle_key_changed(node(index), epoch, RESOURCE, self.now);
            self.drain();
        }
    }

    /// Reports to the client that the node's keys are gone.
    pub(crate) fn forget(&mut self, index: usize) {
        let epoch = self.nodes[index].epoch.expect("not connected");
        self.client.handle_keys_lost(node(index), epoch, self.now);
        self.drain();
    }

    /// Closes the connection from the other side, or refuses it.
    pub(crate) fn close(&mut self, index: usize) {
        let epoch = self.nodes[index].epoch.or(self.nodes[index].dialed).expect("not connected");
        self.nodes[index].disconnect();
        self.client.handle_closed(node(index), epoch, self.now);
        self.drain();
    }

    /// Ends the runtime of the connection.
    pub(crate) fn abandon(&mut self, index: usize) {
        let epoch = self.nodes[index].epoch.or(self.nodes[index].dialed).expect("not connected");
        self.nodes[index].disconnect();
        self.client.handle_abandoned(node(index), epoch, self.now);
        self.drain();
    }

    /// Closes the connection from the other side; the extensions and SETs that it carried stay in
    /// the node's receive queue.
    pub(crate) fn close_late(&mut self, index: usize) {
        let it = &mut self.nodes[index];
        let carried = it.inbox.iter().map(|&(_, op)| op);
        it.limbo.extend(carried.filter(|op| matches!(op, Op::Extend { .. } | Op::Set { .. })));
        self.close(index);
    }

    /// Lets the node execute the commands that a lost connection has left in its receive queue. To
    /// the present connection their changes are another connection's.
    pub(crate) fn execute_late(&mut self, index: usize) {
        for op in core::mem::take(&mut self.nodes[index].limbo) {
            let registered = self.nodes[index].registered;
            let reply = self.nodes[index].execute(op, self.now);
            if registered && op.has_changed_key(reply) {
                self.push(index);
            }
        }
    }

    /// Lets `time` pass; timers fire on time.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now.after(time);
        while let Some(timer) = self.client.poll_timeout().filter(|&timer| timer <= end) {
            self.now = self.now.max(timer);
            self.fire();
        }
        self.now = end;
    }

    /// Fires the timer now.
    pub(crate) fn fire(&mut self) {
        self.client.handle_timeout(self.now);
        self.drain();
        let next = self.client.poll_timeout();
        assert!(next.is_none_or(|next| next > self.now), "a timer that changes nothing");
    }

    /// Opens a use of the lock and begins its first attempt.
    pub(crate) fn acquire(&mut self, config: LockConfig, byte: u8) -> LockId {
        let lock = self.client.open(RESOURCE, config, self.now);
        self.begin(lock, byte);
        lock
    }

    /// Begins the attempt that is due.
    pub(crate) fn begin(&mut self, lock: LockId, byte: u8) {
        self.client.begin(lock, fresh(byte), self.now);
        self.drain();
    }

    /// Begins to extend the lease to [`TTL`] from now.
    pub(crate) fn extend(&mut self, lock: LockId) -> Result<(), ExtendError> {
        let begun = self.client.extend(lock, TTL, self.now);
        self.drain();
        begun
    }

    pub(crate) fn release(&mut self, lock: LockId) {
        self.client.release(lock, self.now);
        self.drain();
    }

    /// Returns the client's events since the last call.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        core::mem::take(&mut self.events)
    }

    pub(crate) fn prolong(byte: u8) -> Op {
        Op::Extend { resource: RESOURCE, token: token(byte), ttl: TTL, plain: false }
    }

    pub(crate) fn set(byte: u8) -> Op {
        Op::Set { resource: RESOURCE, token: token(byte), ttl: TTL }
    }

    pub(crate) fn del(byte: u8) -> Op {
        Op::Release { resource: RESOURCE, token: token(byte) }
    }
}
