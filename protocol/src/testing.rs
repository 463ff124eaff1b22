//! A simulated client with its nodes, for tests: no sockets, and a clock that moves only on
//! request.

use core::time::Duration;
use std::collections::VecDeque;

use super::command::{CommandId, LockId, Op, Reply, ResourceId};
use super::digest::Digest;
use super::holder::Holder;
use super::link::{Command, LinkConfig};
use super::lock::{AttemptError, ExtendError, Fresh, Limit, LockConfig};
use super::node_set::{Event, NodeSet};
use super::quorum::{NodeCount, NodeIndex, NodeMask};
use super::restart::{Canary, Introduction, RestartGuard, RunId};
use super::retry::RetryDelay;
use super::time::BootInstant;
use super::token::Token;
use super::validity::Drift;

pub(super) const RESOURCE: ResourceId = ResourceId(7);
pub(super) const TTL: Duration = Duration::from_secs(10);
pub(super) const NODE_TIMEOUT: Duration = Duration::from_millis(50);

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) fn at_ms(ms: u64) -> BootInstant {
    BootInstant::from_nanos(ms * 1_000_000)
}

pub(super) fn node(index: usize) -> NodeIndex {
    NodeIndex::new(index)
}

pub(super) fn mask(indices: &[usize]) -> NodeMask {
    let mut mask = NodeMask::EMPTY;
    indices.iter().for_each(|&index| mask.insert(node(index)));
    mask
}

pub(super) fn token(byte: u8) -> Token {
    Token::from_bytes([byte; Token::LENGTH])
}

/// A canary that names the memory by this number and is a day old.
pub(super) fn canary(memory: u8) -> Option<Canary> {
    let (memory, history) = (Digest::of(&[memory]), Digest::of(b"history"));
    Some(Canary { memory, history, age: Duration::from_secs(86_400) })
}

/// The refusal of a node whose key holds the token of `byte`.
pub(super) fn held_by(byte: u8) -> Reply {
    Reply::Held(Holder::of(token(byte).as_bytes()))
}

/// Randomness with the longest wait between attempts, so that tests can see the next attempt begin.
pub(super) fn fresh(byte: u8) -> Fresh {
    Fresh { token: token(byte), jitter: u64::MAX }
}

pub(super) fn link_config() -> LinkConfig {
    LinkConfig {
        node_timeout: NODE_TIMEOUT,
        connect_timeout: ms(500),
        restart_guard: RestartGuard::Quarantine,
        fleet_max_ttl: TTL,
        drift: Drift::default(),
        introduction_max_age: Duration::MAX,
    }
}

pub(super) fn lock_config(nodes: usize) -> LockConfig {
    LockConfig {
        extensions_max: 4,
        keep_alive: None,
        plain_extensions: false,
        watched: false,
        nodes: NodeCount::new(nodes).expect("one to nine"),
        ttl: TTL,
        drift: Drift::default(),
        min_validity: Duration::ZERO,
        retry: RetryDelay::default(),
        limit: Limit::Attempts(1),
    }
}

/// The introduction of a master that has been up for a day.
pub(super) fn introduction(run: u8) -> Introduction {
    let (run_id, uptime) = (RunId([run; 20]), Duration::from_secs(86_400));
    Introduction { run_id, uptime, is_master: true, canary: canary(1) }
}

pub(super) fn decided(events: &[Event]) -> Option<(NodeMask, BootInstant)> {
    events.iter().find_map(|event| match *event {
        Event::Decided { counted, deadline, .. } => Some((counted, deadline)),
        _ => None,
    })
}

pub(super) fn failed(events: &[Event]) -> Option<AttemptError> {
    events.iter().find_map(|event| match *event {
        Event::AttemptFailed { reason, .. } => Some(reason),
        _ => None,
    })
}

/// A warm world of five nodes with a lease granted by the first three; the others have not
/// answered.
pub(super) fn held() -> (World, LockId) {
    let mut world = World::warm(5);
    let lock = world.acquire(lock_config(5), 1);
    (0..3).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.events();
    (world, lock)
}

/// A warm world of three nodes with a lease whose key all three have set.
pub(super) fn held_by_three() -> (World, LockId) {
    held_by_three_with(lock_config(3))
}

/// As [`held_by_three`], with another configuration.
pub(super) fn held_by_three_with(config: LockConfig) -> (World, LockId) {
    let mut world = World::warm(3);
    let lock = world.acquire(config, 1);
    (0..2).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.answer(2);
    world.events();
    (world, lock)
}

/// A node that holds one key and acts only on request.
#[derive(Clone, Debug)]
pub(super) struct FakeNode {
    pub(super) introduction: Introduction,
    /// The connection, once it is open.
    pub(super) epoch: Option<u32>,
    /// The connection that the client has asked to open.
    pub(super) dialed: Option<u32>,
    /// Commands written and not executed.
    pub(super) inbox: VecDeque<(CommandId, Op)>,
    pub(super) key: Option<Token>,
    /// Instant at which the key expires.
    pub(super) expires: BootInstant,
    /// The node has a plain owner-checked SET; one that is executed late may shorten a lease.
    pub(super) has_plain: bool,
    /// Commands that a lost connection has left in the node's receive queue.
    pub(super) limbo: Vec<Op>,
    /// Every command ever written, except introductions.
    pub(super) written: Vec<Op>,
    /// When each command in `written` was written.
    pub(super) written_at: Vec<BootInstant>,
    pub(super) resets: u32,
    /// The node registers keys, and pushes their changes.
    pub(super) pushes: bool,
    /// The next change of the key is pushed.
    pub(super) registered: bool,
}

/// A client, its nodes, and the clock.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) client: NodeSet,
    pub(super) nodes: Vec<FakeNode>,
    pub(super) events: Vec<Event>,
    pub(super) now: BootInstant,
}

impl World {
    /// A client of `count` nodes that has never connected. The clock starts at one day.
    pub(super) fn cold(count: usize) -> Self {
        Self::cold_with(link_config(), count)
    }

    /// As [`World::cold`], with another configuration.
    pub(super) fn cold_with(config: LinkConfig, count: usize) -> Self {
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
    pub(super) fn warm(count: usize) -> Self {
        Self::warm_with(link_config(), count)
    }

    /// As [`World::warm`], with another configuration.
    pub(super) fn warm_with(config: LinkConfig, count: usize) -> Self {
        let mut world = Self::cold_with(config, count);
        world.client.connect(world.now);
        world.drain();
        (0..count).for_each(|index| world.accept(index));
        world
    }

    /// A client of `count` nodes whose connections were all lost and are being dialled again.
    pub(super) fn reconnecting(count: usize) -> Self {
        let mut world = Self::cold(count);
        world.client.connect(world.now);
        world.drain();
        (0..count).for_each(|index| world.close(index));
        world.pass(ms(10));
        world
    }

    /// Passes the client's commands to the nodes, and collects its events.
    pub(super) fn drain(&mut self) {
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
    pub(super) fn accept(&mut self, index: usize) {
        self.open(index);
        self.answer(index);
    }

    /// Opens the connection that is being dialled.
    pub(super) fn open(&mut self, index: usize) {
        let epoch = self.nodes[index].dialed.take().expect("nobody dials");
        self.nodes[index].epoch = Some(epoch);
        self.client.handle_connected(node(index), epoch, self.now);
        self.drain();
    }

    /// Lets the node execute and answer the next command.
    pub(super) fn answer(&mut self, index: usize) {
        let (_, op) = *self.nodes[index].inbox.front().expect("nothing was written");
        let reply = self.nodes[index].execute(op, self.now);
        self.answer_with(index, reply);
    }

    /// Lets the node answer the next command with `reply`, without executing it.
    pub(super) fn answer_with(&mut self, index: usize, reply: Reply) {
        self.nodes[index].inbox.pop_front();
        let epoch = self.nodes[index].epoch.expect("not connected");
        self.client.handle_reply(node(index), epoch, reply, self.now);
        self.drain();
    }

    /// Sets or deletes the key, as another client or an operator does; the node pushes the change if
    /// the client's connection is registered.
    pub(super) fn change(&mut self, index: usize, key: Option<(u8, u64)>) {
        let it = &mut self.nodes[index];
        it.key = key.map(|(byte, _)| token(byte));
        it.expires = key.map_or(BootInstant::ZERO, |(_, ttl_ms)| self.now.after(ms(ttl_ms)));
        if core::mem::take(&mut it.registered) {
            self.push(index);
        }
    }

    /// Reports to the client that the key has changed.
    pub(super) fn push(&mut self, index: usize) {
        if let Some(epoch) = self.nodes[index].epoch {
            self.client.handle_key_changed(node(index), epoch, RESOURCE, self.now);
            self.drain();
        }
    }

    /// Reports to the client that the node's keys are gone.
    pub(super) fn forget(&mut self, index: usize) {
        let epoch = self.nodes[index].epoch.expect("not connected");
        self.client.handle_keys_lost(node(index), epoch, self.now);
        self.drain();
    }

    /// Closes the connection from the other side, or refuses it.
    pub(super) fn close(&mut self, index: usize) {
        let epoch = self.nodes[index].epoch.or(self.nodes[index].dialed).expect("not connected");
        self.nodes[index].disconnect();
        self.client.handle_closed(node(index), epoch, self.now);
        self.drain();
    }

    /// Closes the connection from the other side; the extensions and SETs that it carried stay in
    /// the node's receive queue.
    pub(super) fn close_late(&mut self, index: usize) {
        let it = &mut self.nodes[index];
        let carried = it.inbox.iter().map(|&(_, op)| op);
        it.limbo.extend(carried.filter(|op| matches!(op, Op::Extend { .. } | Op::Set { .. })));
        self.close(index);
    }

    /// Lets the node execute the commands that a lost connection has left in its receive queue. To
    /// the present connection their changes are another connection's.
    pub(super) fn execute_late(&mut self, index: usize) {
        for op in core::mem::take(&mut self.nodes[index].limbo) {
            let registered = self.nodes[index].registered;
            let reply = self.nodes[index].execute(op, self.now);
            if registered && op.has_changed_key(reply) {
                self.push(index);
            }
        }
    }

    /// Lets `time` pass; timers fire on time.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now.after(time);
        while let Some(timer) = self.client.poll_timeout().filter(|&timer| timer <= end) {
            self.now = self.now.max(timer);
            self.fire();
        }
        self.now = end;
    }

    /// Fires the timer now.
    pub(super) fn fire(&mut self) {
        self.client.handle_timeout(self.now);
        self.drain();
        let next = self.client.poll_timeout();
        assert!(next.is_none_or(|next| next > self.now), "a timer that changes nothing");
    }

    /// Opens a use of the lock and begins its first attempt.
    pub(super) fn acquire(&mut self, config: LockConfig, byte: u8) -> LockId {
        let lock = self.client.open(RESOURCE, config, self.now);
        self.begin(lock, byte);
        lock
    }

    /// Begins the attempt that is due.
    pub(super) fn begin(&mut self, lock: LockId, byte: u8) {
        self.client.begin(lock, fresh(byte), self.now);
        self.drain();
    }

    /// Begins to extend the lease to [`TTL`] from now.
    pub(super) fn extend(&mut self, lock: LockId) -> Result<(), ExtendError> {
        let begun = self.client.extend(lock, TTL, self.now);
        self.drain();
        begun
    }

    pub(super) fn release(&mut self, lock: LockId) {
        self.client.release(lock, self.now);
        self.drain();
    }

    /// Returns the client's events since the last call.
    pub(super) fn events(&mut self) -> Vec<Event> {
        core::mem::take(&mut self.events)
    }

    pub(super) fn prolong(byte: u8) -> Op {
        Op::Extend { resource: RESOURCE, token: token(byte), ttl: TTL, plain: false }
    }

    pub(super) fn set(byte: u8) -> Op {
        Op::Set { resource: RESOURCE, token: token(byte), ttl: TTL }
    }

    pub(super) fn del(byte: u8) -> Op {
        Op::Release { resource: RESOURCE, token: token(byte) }
    }
}

impl FakeNode {
    fn left_ms(&self, now: BootInstant) -> i64 {
        self.key.map_or(-2, |_| self.expires.since(now).as_millis() as i64)
    }

    pub(super) fn execute(&mut self, op: Op, now: BootInstant) -> Reply {
        if now > self.expires {
            self.key = None;
        }
        let reply = self.reply(op, now);
        // The client's own changes are not pushed, and drop the registration.
        self.registered &= !op.has_changed_key(reply);
        reply
    }

    fn reply(&mut self, op: Op, now: BootInstant) -> Reply {
        match op {
            Op::Extend { token, ttl, plain, .. } if self.key == Some(token) => {
                let least = if plain && self.has_plain { BootInstant::ZERO } else { self.expires };
                self.expires = least.max(now.after(ttl));
                Reply::Integer(1)
            }
            Op::Extend { .. } => Reply::Integer(0),
            Op::Introduce => Reply::Introduction(self.introduction),
            Op::Release { token, .. } if self.key == Some(token) => {
                self.key = None;
                Reply::Integer(1)
            }
            Op::Release { .. } => Reply::Integer(0),
            Op::Look { .. } if self.pushes => {
                self.registered = true;
                Reply::Registered(self.left_ms(now))
            }
            Op::Look { .. } | Op::TimeLeft { .. } => Reply::Integer(self.left_ms(now)),
            Op::Read { token, .. } => {
                let has_key = i64::from(self.key == Some(token));
                self.registered = self.pushes;
                if self.pushes { Reply::Registered(has_key) } else { Reply::Integer(has_key) }
            }
            Op::Set { token, ttl, .. } => match self.key {
                Some(holder) => Reply::Held(Holder::of(holder.as_bytes())),
                None => {
                    (self.key, self.expires) = (Some(token), now.after(ttl));
                    Reply::Ok
                }
            },
        }
    }

    fn disconnect(&mut self) {
        self.resets += u32::from(self.epoch.is_some());
        (self.epoch, self.dialed, self.registered) = (None, None, false);
        self.inbox.clear();
    }
}
