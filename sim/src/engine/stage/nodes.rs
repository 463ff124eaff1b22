//! Handling of arrivals at nodes and at the protected resource.

mod disk;
mod replication;

use core::time::Duration;
use std::collections::VecDeque;

use redlock_client::protocol::{Introduction, RunId, Token};

pub(super) use self::disk::DiskTurn;
use self::disk::DiskWork;
use self::replication::Replication;
pub(super) use self::replication::Role;
use super::plan::Plan;
use super::{Input, Packet, QueueEntry, Stage};
use crate::history::{Answer, ClockKind, EventKind, OpKind, Writer};
use crate::master::profile::Profile;
use crate::master::server::Server;
use crate::master::{
    Change, Command, Ended, Entry, Executed, ExpireCondition, KeyCommand, Master, Reply,
    SetCondition, SetExpiry,
};
use crate::resource::{Served, StoreRequest};
use crate::scenario::{ActiveExpiry, Client, Point};
use crate::subject::{Ask, ReplyValue, Request, Response};
use crate::world::{Arrival, ConnectionState, Direction, WALL_AT_START_MS};

/// One server, with its host.
#[derive(Clone, Debug)]
pub(in crate::engine) struct NodeHost {
    pub(in crate::engine) master: Server,
    pub(in crate::engine) stalls: u8,
    /// True if the host has no power.
    pub(in crate::engine) dark: bool,
    /// True if a proxy keeps the clients' connections although the process is gone.
    pub(in crate::engine) is_hidden: bool,
    /// Number of faults that fill the memory.
    pub(in crate::engine) full: u8,
    pub(in crate::engine) inbox: VecDeque<(u16, Request)>,
    pub(in crate::engine) disk: DiskWork,
    pub(in crate::engine) replication: Replication,
    pub(in crate::engine) expiry_scheduled: bool,
}

impl NodeHost {
    pub(in crate::engine) fn new(master: Master, profile: &'static Profile) -> Self {
        Self {
            master: Server::new(master, profile),
            stalls: 0,
            dark: false,
            is_hidden: false,
            full: 0,
            inbox: VecDeque::new(),
            disk: DiskWork::default(),
            replication: Replication::default(),
            expiry_scheduled: false,
        }
    }

    /// Resets to the beginning of a run, except for the master, which the caller sets.
    pub(in crate::engine) fn reset(&mut self) {
        (self.stalls, self.dark, self.full) = (0, false, 0);
        self.is_hidden = false;
        self.inbox.clear();
        self.disk.reset();
        self.expiry_scheduled = false;
    }
}

impl Stage {
    /// Handles the item at the end of a connection, if one has arrived.
    pub(in crate::engine) fn arrive(&mut self, plan: &Plan, connection: u16, direction: Direction) {
        self.arrivals_due -= 1;
        let Some(what) = self.network.arrive(connection, direction, self.now_ns) else { return };
        match direction {
            Direction::Up => self.arrive_up(plan, connection, what),
            Direction::Down => self.arrive_down(plan, connection, what),
        }
    }

    fn arrive_down(&mut self, plan: &Plan, connection: u16, what: Arrival<Packet>) {
        let client = self.network.connection(connection).client;
        if let Some(replica) = plan.server_at(client) {
            return self.replica_hears(plan, replica, connection, what);
        }
        let client = client - plan.node_count as u8;
        let input = match what {
            Arrival::Handshake => Input::Connected(connection),
            Arrival::Closed => Input::Closed(connection),
            Arrival::Reset => Input::Reset(connection),
            Arrival::Message(Packet::Response(response)) => Input::Response(connection, response),
            Arrival::Message(Packet::Forgot) => Input::Forgot(connection),
            Arrival::Message(Packet::Changed) => Input::Changed(connection),
            Arrival::Message(Packet::StoreServed) => Input::StoreServed,
            Arrival::Message(Packet::StoreVersion(version)) => Input::StoreVersion(version),
            Arrival::Message(_) => unreachable!("requests travel up"),
        };
        self.give(client, input);
    }

    fn arrive_up(&mut self, plan: &Plan, connection: u16, what: Arrival<Packet>) {
        let host = self.network.connection(connection).server;
        if let Arrival::Message(Packet::StoreRequest(request)) = what {
            return self.serve_store(plan, connection, request);
        }
        // The end of a connection to the protected resource has no effect.
        let Some(server) = plan.server_at(host) else { return };
        let node = &mut self.nodes[usize::from(server)];
        let running = node.master.is_running();
        match what {
            Arrival::Message(Packet::Request(_))
                if node.is_hidden && self.network.connection(connection).served =>
            {
                self.lose_request(connection);
            }
            // A host without power is silent; a kernel without the process refuses.
            _ if node.dark => {}
            Arrival::Handshake if running && self.is_of_replica(plan, connection) => {
                self.accept_replica(plan, server, connection);
            }
            Arrival::Message(Packet::Acknowledged { to }) => {
                self.acknowledge(plan, server, connection, to);
                self.end_turn(plan, server);
            }
            Arrival::Handshake if running => {
                self.network.connection_mut(connection).served = true;
                self.send(plan, connection, Direction::Down, Arrival::Handshake);
            }
            Arrival::Message(Packet::Request(request))
                if running && self.network.connection(connection).served =>
            {
                if self.nodes[usize::from(server)].replication.is_waiting(connection) {
                    let replication = &mut self.nodes[usize::from(server)].replication;
                    replication.wait_behind(connection, request);
                } else if self.nodes[usize::from(server)].is_blocked() {
                    self.nodes[usize::from(server)].inbox.push_back((connection, request));
                } else {
                    self.execute(plan, connection, request);
                    self.end_turn(plan, server);
                }
            }
            Arrival::Handshake | Arrival::Message(_) => {
                self.send(plan, connection, Direction::Down, Arrival::Reset);
            }
            Arrival::Closed | Arrival::Reset => {}
        }
    }

    /// Executes the waiting requests after a stall, in one turn and in the order of each
    /// connection.
    pub(in crate::engine) fn drain_inbox(&mut self, plan: &Plan, node: u8) {
        while !self.nodes[usize::from(node)].is_blocked()
            && let Some((connection, request)) = self.nodes[usize::from(node)].inbox.pop_front()
        {
            self.execute(plan, connection, request);
        }
        self.end_turn(plan, node);
    }

    pub(super) fn is_of_replica(&self, plan: &Plan, connection: u16) -> bool {
        plan.server_at(self.network.connection(connection).client).is_some()
    }

    /// Notifies every listening client that the server's keys are gone. Does nothing if clients
    /// speak bytes: the server itself sends the notice then.
    pub(super) fn tell_listeners(&mut self, plan: &Plan, server: u8) {
        if self.wire.is_some() {
            return;
        }
        self.readers.retain(|&(of, _)| of != server);
        let host = plan.nodes[usize::from(server)].host.0;
        for number in self.network.numbers() {
            let connection = self.network.connection(number);
            let is_open = connection.served && connection.state != ConnectionState::Closed;
            let client = connection.client.checked_sub(plan.node_count as u8);
            let client = client.and_then(|place| plan.scenario.clients.get(usize::from(place)));
            let listens = client.is_some_and(Client::is_ours);
            let listens = listens && !self.deaf.contains(&number);
            if connection.server == host && is_open && listens {
                self.send(plan, number, Direction::Down, Arrival::Message(Packet::Forgot));
            }
        }
    }

    /// Makes the server tell the connection of the next change of the lock's key.
    fn register_reader(&mut self, server: u8, connection: u16) {
        if !self.readers.contains(&(server, connection)) {
            self.readers.push((server, connection));
        }
    }

    /// Tells every registered connection that the lock's key has changed, except the connection
    /// that changed the key. All registrations end.
    pub(super) fn tell_readers(&mut self, plan: &Plan, server: u8, by: Option<u16>) {
        let told: Vec<u16> = self.readers_of(server).collect();
        self.readers.retain(|&(of, _)| of != server);
        for number in told {
            let connection = self.network.connection(number);
            let is_open = connection.served && connection.state != ConnectionState::Closed;
            if is_open && by != Some(number) {
                self.send(plan, number, Direction::Down, Arrival::Message(Packet::Changed));
            }
        }
    }

    fn readers_of(&self, server: u8) -> impl Iterator<Item = u16> {
        let readers = self.readers.iter().filter(move |&&(of, _)| of == server);
        readers.map(|&(_, connection)| connection)
    }

    /// Returns the server that a client takes for the master of a node.
    pub(in crate::engine) fn server_of(&self, plan: &Plan, client: u8, node: u8) -> u8 {
        self.known[usize::from(client) * plan.node_count + usize::from(node)]
    }

    /// Returns the node's wall clock, in whole milliseconds.
    pub(in crate::engine) fn node_wall_ms(&self, plan: &Plan, node: u8) -> u64 {
        self.node_wall_ns(plan, node) / 1_000_000
    }

    /// Returns the node's wall clock, in nanoseconds.
    pub(super) fn node_wall_ns(&self, plan: &Plan, node: u8) -> u64 {
        if plan.nodes[usize::from(node)].ideal {
            return WALL_AT_START_MS * 1_000_000 + self.now_ns;
        }
        let clocks = &self.clocks[plan.nodes[usize::from(node)].host.get()];
        clocks.read(ClockKind::Wall, self.now_ns)
    }

    /// Returns the introduction of a server, with its canary.
    pub(in crate::engine) fn introduction(&mut self, plan: &Plan, server: u8) -> Introduction {
        // Whole milliseconds, so that a fleet begins every run at the same age.
        let wall_us = self.node_wall_ms(plan, server) * 1_000;
        let host = &mut self.nodes[usize::from(server)];
        let (said, canary) = host.master.introduce(wall_us);
        Introduction {
            run_id: RunId(said.run_id),
            uptime: Duration::from_secs(u64::try_from(said.uptime_s).unwrap_or(0)),
            is_master: said.is_master,
            canary,
        }
    }

    /// Executes a request and answers it, or postpones it.
    pub(super) fn execute_request(&mut self, plan: &Plan, connection: u16, request: Request) {
        let server = plan.server_at(self.network.connection(connection).server);
        let server = server.expect("commands are for servers");
        if request.ask.op() == OpKind::Set {
            let node = plan.nodes[usize::from(server)].node;
            self.reach_point(plan, request.attempt, Point::Execute, Some(node));
            let host = &mut self.nodes[usize::from(server)];
            if !host.master.is_running() {
                return;
            }
            if host.stalls > 0 {
                return host.inbox.push_front((connection, request));
            }
        }
        let Request { command, attempt, ask, .. } = request;
        let role = self.nodes[usize::from(server)].replication.role;
        let word = match ask {
            Ask::Greet => {
                self.speak_of_itself(plan, server, connection);
                Some(ReplyValue::Ok)
            }
            Ask::Introduce if self.wire.is_some() => {
                self.execute_bytes(plan, server, connection, &request).map(|(word, _)| word)
            }
            Ask::Introduce => Some(ReplyValue::Introduction(self.introduction(plan, server))),
            _ if self.nodes[usize::from(server)].master.is_replica() => {
                if let Some(word) = self.refuse_bytes(plan, server, connection, &request) {
                    return self.answer_without_key(plan, server, connection, &request, word);
                }
                None
            }
            Ask::Wait { replicas, timeout_ms } => {
                let wanted = (replicas, timeout_ms);
                return self.wait_for_replicas(plan, server, connection, request, wanted);
            }
            _ => self.execute_on_key(plan, server, connection, &request),
        };
        if plan.has_replicas() {
            self.note_written(server, connection);
        }
        if let Some(word) = word.filter(|_| role == Role::Deposed && ask.op() != OpKind::Introduce)
        {
            // The commands of a deposed master do not count as the node's.
            return self.answer_without_key(plan, server, connection, &request, word);
        }
        let response =
            Response { command, attempt, op: ask.op(), word: word.unwrap_or(ReplyValue::Error) };
        self.answer(plan, connection, server, response);
    }

    /// Executes a request on a key; returns `None` if the server must be asked in another form.
    /// Histories record only the actions of the node's master.
    fn execute_on_key(
        &mut self,
        plan: &Plan,
        server: u8,
        connection: u16,
        request: &Request,
    ) -> Option<ReplyValue> {
        if self.wire.is_none() {
            let done = self.execute_natively(plan, server, request);
            let is_changed = done.effect.change != Change::Nothing;
            if is_changed || done.expired.is_some() || done.ended.is_some() {
                self.tell_readers(plan, server, Some(connection));
            }
            let word = match word_of(&done.reply, request) {
                ReplyValue::Integer(left_ms)
                    if request.ask == Ask::Look && !self.deaf.contains(&connection) =>
                {
                    self.register_reader(server, connection);
                    ReplyValue::Registered(left_ms)
                }
                word => word,
            };
            return Some(self.tell_of_key(plan, server, request, word, &done));
        }
        let (word, done) = self.execute_bytes(plan, server, connection, request)?;
        Some(self.tell_of_key(plan, server, request, word, &done))
    }

    /// Executes a request on a key if clients do not speak bytes.
    fn execute_natively(&mut self, plan: &Plan, server: u8, request: &Request) -> Executed {
        let wall_ms = self.node_wall_ms(plan, server);
        let value = request.token.as_bytes();
        let command = match request.ask {
            Ask::CompareAndDelete => KeyCommand::CompareAndDelete { value },
            Ask::Delete => KeyCommand::Del,
            Ask::Expire { ttl_ms } => {
                KeyCommand::Pexpire { ms: as_ms(ttl_ms), condition: ExpireCondition::Always }
            }
            Ask::ExtendPlainly { ttl_ms } if plan.scenario.cluster.server.extends_plainly() => {
                KeyCommand::CompareAndRetime { value, ttl_ms: as_ms(ttl_ms) }
            }
            Ask::Extend { ttl_ms } | Ask::ExtendPlainly { ttl_ms } => {
                KeyCommand::CompareAndExtend { value, ttl_ms: as_ms(ttl_ms) }
            }
            Ask::Get => KeyCommand::Get,
            Ask::Look | Ask::TimeLeft => KeyCommand::Pttl,
            Ask::GetSet => KeyCommand::Set {
                value,
                condition: SetCondition::Always,
                expiry: SetExpiry::Never,
                get: true,
            },
            Ask::Greet | Ask::Introduce | Ask::Wait { .. } => unreachable!("not about a key"),
            Ask::Set { ttl_ms: None } => KeyCommand::Setnx { value },
            Ask::Set { ttl_ms: Some(ms) } | Ask::SetAndCount { ttl_ms: ms } => {
                set_if_missing(value, as_ms(ms), false)
            }
            Ask::SetOrShow { ttl_ms } => set_if_missing(value, as_ms(ttl_ms), true),
            // A time in the past leaves no key. A key that lives for 1 ms has the same effect.
            Ask::SetUntil { wall_ms: until_ms } => {
                set_if_missing(value, as_ms(until_ms.saturating_sub(wall_ms).max(1)), false)
            }
        };
        let writer = Writer::Attempt(request.attempt);
        let command = Command::Key { key: &plan.key, command };
        self.nodes[usize::from(server)].master.execute(command, wall_ms, writer)
    }

    /// Records the effect on the key, and returns the reply.
    fn tell_of_key(
        &mut self,
        plan: &Plan,
        server: u8,
        request: &Request,
        word: ReplyValue,
        done: &Executed,
    ) -> ReplyValue {
        let node = plan.nodes[usize::from(server)].node;
        let tells = self.nodes[usize::from(server)].is_master();
        if let Some(expired) = done.expired.as_ref().filter(|_| tells) {
            self.record(key_ended(node, expired));
        }
        let Request { command, attempt, ask, .. } = *request;
        let op = ask.op();
        let answer = Response { command, attempt, op, word }.answer();
        if tells {
            self.record(EventKind::Executed {
                command,
                attempt,
                node,
                op,
                answer,
                changed: done.effect.change != Change::Nothing,
                before: done.effect.before,
                after: done.effect.after,
                expires_wall_ms: done.effect.expires_wall_ms.unwrap_or(u64::MAX),
            });
        }
        if let Some(ended) = done.ended.as_ref().filter(|_| tells) {
            self.record(key_ended(node, ended));
        }
        if matches!(ask, Ask::ExtendPlainly { .. }) && answer == Answer::Yes {
            // The key may now end before the time for which the expiry cycle is scheduled.
            self.nodes[usize::from(server)].expiry_scheduled = false;
            self.schedule_expiry(plan, server);
        }
        if op == OpKind::Set && answer == Answer::Yes {
            self.schedule_expiry(plan, server);
        }
        if word == ReplyValue::Ok && matches!(ask, Ask::SetAndCount { .. }) {
            return self.count(plan, server, Writer::Attempt(attempt));
        }
        word
    }

    /// Executes the second half of the script that sets the key and counts. Histories record only
    /// the lock's key, not the counter.
    fn count(&mut self, plan: &Plan, node: u8, writer: Writer) -> ReplyValue {
        let wall_ms = self.node_wall_ms(plan, node);
        let incr = Command::Key { key: &plan.counter_key, command: KeyCommand::Incr };
        match self.nodes[usize::from(node)].master.execute(incr, wall_ms, writer).reply {
            Reply::Integer(count) => ReplyValue::Integer(count),
            _ => ReplyValue::Error,
        }
    }

    /// Schedules the active expiry cycle for the expiry of the next key, 1 ms later if the
    /// scenario's active expiry is late.
    pub(in crate::engine) fn schedule_expiry(&mut self, plan: &Plan, server: u8) {
        let wall_ms = self.node_wall_ms(plan, server);
        let host = &mut self.nodes[usize::from(server)];
        // A replica waits for its master to delete keys.
        if host.master.is_replica() {
            return;
        }
        let Some(when_ms) = host.master.keyspace().next_expiry() else { return };
        if core::mem::replace(&mut host.expiry_scheduled, true) {
            return;
        }
        let late_ms = u64::from(plan.scenario.cluster.active_expiry == ActiveExpiry::Late);
        let wall_ns = (when_ms + late_ms).max(wall_ms) * 1_000_000;
        let at_ns = if plan.nodes[usize::from(server)].ideal {
            wall_ns - WALL_AT_START_MS * 1_000_000
        } else {
            let clock = ClockKind::Wall;
            let host = plan.nodes[usize::from(server)].host;
            let Some(at_ns) = self.clocks[host.get()].true_at(clock, wall_ns) else {
                return;
            };
            at_ns
        };
        self.queue.schedule(at_ns.max(self.now_ns), QueueEntry::ExpireKeys { node: server });
    }

    pub(in crate::engine) fn expire_keys(&mut self, plan: &Plan, server: u8) {
        let wall_ms = self.node_wall_ms(plan, server);
        let host = &mut self.nodes[usize::from(server)];
        host.expiry_scheduled = false;
        let is_replica = host.master.is_replica();
        if !host.master.is_running() || host.is_blocked() || is_replica {
            return;
        }
        let (tells, of) = (host.is_master(), plan.nodes[usize::from(server)].node);
        let Self { recorder, now_ns, nodes, .. } = self;
        let mut is_changed = false;
        nodes[usize::from(server)].master.expire_active(wall_ms, |ended| {
            is_changed = true;
            if tells {
                recorder.record(*now_ns, key_ended(of, &ended));
            }
        });
        if is_changed {
            self.tell_readers(plan, server, None);
        }
        self.end_turn(plan, server);
        self.schedule_expiry(plan, server);
    }

    fn serve_store(&mut self, plan: &Plan, connection: u16, request: StoreRequest) {
        let served = self.store.serve(request);
        let answer = match (request, served) {
            (_, Served::Read { version }) => Packet::StoreVersion(version),
            (
                StoreRequest::Write { attempt, write, based_on, fencing_token },
                Served::Applied { version },
            ) => {
                let kind =
                    EventKind::WriteApplied { attempt, write, based_on, version, fencing_token };
                self.record(kind);
                Packet::StoreServed
            }
            (StoreRequest::Write { attempt, write, .. }, Served::Rejected(why)) => {
                self.record(EventKind::WriteRejected { attempt, write, why });
                Packet::StoreServed
            }
            (StoreRequest::Read { .. }, _) => unreachable!("a read is answered by a version"),
        };
        self.send(plan, connection, Direction::Down, Arrival::Message(answer));
    }
}

fn word_of(reply: &Reply, request: &Request) -> ReplyValue {
    match reply {
        // With `NX … GET` a nil reply means that the key was missing and was set.
        Reply::Nil if matches!(request.ask, Ask::SetOrShow { .. }) => ReplyValue::Ok,
        Reply::Bulk(held) => {
            let own = held[..] == request.token.as_bytes()[..];
            let token = <[u8; Token::LENGTH]>::try_from(&held[..]).map(Token::from_bytes);
            token.map_or(ReplyValue::Error, |token| ReplyValue::Value { token, own })
        }
        Reply::Error(_) => ReplyValue::Error,
        Reply::Integer(value) => ReplyValue::Integer(*value),
        Reply::Introduction(_) => unreachable!("INFO was not asked"),
        Reply::Nil => ReplyValue::Nil,
        Reply::Ok => ReplyValue::Ok,
    }
}

fn set_if_missing(value: &[u8], ttl_ms: i64, get: bool) -> KeyCommand<'_> {
    let (condition, expiry) = (SetCondition::Missing, SetExpiry::Px(ttl_ms));
    KeyCommand::Set { value, condition, expiry, get }
}

fn as_ms(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

pub(in crate::engine) fn key_returned(node: u8, entry: &Entry) -> EventKind {
    EventKind::KeyReturned {
        node,
        writer: entry.writer,
        expires_wall_ms: entry.expires_wall_ms.unwrap_or(u64::MAX),
    }
}

pub(crate) fn key_ended(node: u8, ended: &Ended) -> EventKind {
    EventKind::KeyEnded {
        node,
        writer: ended.writer,
        cause: ended.cause,
        by: ended.by,
        expires_wall_ms: ended.expires_wall_ms.unwrap_or(u64::MAX),
    }
}
