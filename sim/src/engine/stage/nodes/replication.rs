//! Replication: which server follows which, and the messages between masters and replicas.
//!
//! A replica dials its master as soon as the master runs. It gets a full copy, and then each
//! effect. It acknowledges the effects that it has applied. All of this travels over the network.

use super::NodeHost;
use crate::engine::stage::plan::Plan;
use crate::engine::stage::{Packet, QueueEntry, Stage};
use crate::history::{Answer, EventKind, OpKind, Writer};
use crate::keys::writer_of;
use crate::master::Entry;
use crate::subject::{ReplyValue, Request, Response};
use crate::world::{Arrival, ConnectionState, Direction};

/// Role of a server in its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) enum Role {
    /// The node's master.
    #[default]
    Master,
    /// A former master that does not know that it was replaced.
    Deposed,
    /// Follows the master.
    Replica,
}

/// Replication state of a server.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Replication {
    pub(in crate::engine) role: Role,
    /// As a replica: the server that it follows, and the connection to that server.
    follows: u8,
    upstream: Option<u16>,
    /// As a master: the connections to its replicas.
    links: Vec<Link>,
    /// As a master: clients that wait for replicas.
    waits: Vec<Wait>,
    /// Later requests of those clients.
    behind: Vec<(u16, Request)>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    connection: u16,
    /// Position in the stream up to which this replica was sent data.
    sent: u32,
    acknowledged: u32,
}

/// An unanswered `WAIT`.
#[derive(Clone, Copy, Debug)]
struct Wait {
    serial: u32,
    connection: u16,
    request: Request,
    /// Position in the stream that the replicas must reach.
    target: u32,
    replicas: u8,
}

impl Replication {
    /// Resets to the beginning of a run.
    pub(in crate::engine) fn reset(&mut self, role: Role, follows: u8) {
        self.role = role;
        self.follows = follows;
        self.upstream = None;
        self.forget();
    }

    /// Clears the state of a master whose process is gone or that was deposed.
    fn forget(&mut self) {
        self.links.clear();
        self.waits.clear();
        self.behind.clear();
    }

    /// Returns true if this server follows `server`.
    pub(in crate::engine) fn follows(&self, server: u8) -> bool {
        self.follows == server
    }

    fn acknowledged(&self, target: u32) -> usize {
        self.links.iter().filter(|link| link.acknowledged >= target).count()
    }

    /// Returns true if requests on this connection must wait behind an earlier `WAIT`.
    pub(in crate::engine) fn is_waiting(&self, connection: u16) -> bool {
        self.waits.iter().any(|wait| wait.connection == connection)
    }

    pub(in crate::engine) fn wait_behind(&mut self, connection: u16, request: Request) {
        self.behind.push((connection, request));
    }
}

impl NodeHost {
    /// Returns true if this server acts for its node.
    pub(in crate::engine) fn is_master(&self) -> bool {
        self.replication.role == Role::Master
    }
}

impl Stage {
    /// Sets up replication at the start of a run: every replica follows its master.
    pub(in crate::engine) fn begin_replication(&mut self, plan: &Plan) {
        self.masters = core::array::from_fn(|node| node as u8);
        self.starts = [0; 9];
        self.demoted.clear();
        self.known.clear();
        for _ in 0..self.clients.len() {
            self.known.extend(0..plan.node_count as u8);
        }
        self.wrote.clear();
        (self.waits, self.attachments) = (0, 0);
        for server in 0..plan.nodes.len() as u8 {
            let planned = plan.nodes[usize::from(server)];
            let role =
                if usize::from(server) < plan.node_count { Role::Master } else { Role::Replica };
            let host = &mut self.nodes[usize::from(server)];
            host.replication.reset(role, planned.node);
            if plan.has_replicas() {
                host.master.begin_stream();
            }
            self.assume_role(server);
            if role == Role::Replica && !planned.is_new {
                self.nodes[usize::from(planned.node)].master.begin_backlog();
                let number = self.dial_master(plan, server, planned.node);
                let connection = self.network.connection_mut(number);
                connection.state = ConnectionState::Open;
                connection.served = true;
                let link = Link { connection: number, sent: 0, acknowledged: 0 };
                self.nodes[usize::from(planned.node)].replication.links.push(link);
            }
        }
    }

    fn dial_master(&mut self, plan: &Plan, replica: u8, master: u8) -> u16 {
        let host = |server: u8| plan.nodes[usize::from(server)].host.0;
        self.attachments += 1;
        let number = self.network.dial(host(replica), host(master), 0, self.attachments);
        self.nodes[usize::from(replica)].replication.upstream = Some(number);
        number
    }

    /// Makes the replica dial the server that it follows, if both run.
    pub(in crate::engine) fn attach(&mut self, plan: &Plan, replica: u8) {
        self.detach(plan, replica);
        let master = self.nodes[usize::from(replica)].replication.follows;
        let runs = |server: u8| self.nodes[usize::from(server)].master.is_running();
        if runs(replica) && runs(master) {
            let number = self.dial_master(plan, replica, master);
            self.send(plan, number, Direction::Up, Arrival::Handshake);
        }
    }

    /// Closes the replica's connection to its master.
    pub(in crate::engine) fn detach(&mut self, plan: &Plan, replica: u8) {
        let upstream = self.nodes[usize::from(replica)].replication.upstream.take();
        let Some(number) = upstream else { return };
        self.network.client_gone(number, false);
        let master = plan.server_at(self.network.connection(number).server);
        let master = master.expect("replicas follow servers");
        let links = &mut self.nodes[usize::from(master)].replication.links;
        links.retain(|link| link.connection != number);
    }

    /// Loses the part of the stream that has not reached the replicas: a dead host may not even
    /// have sent it.
    pub(in crate::engine) fn lose_stream(&mut self, server: u8) {
        for link in &self.nodes[usize::from(server)].replication.links {
            self.network.reset(link.connection);
        }
    }

    /// Clears the replication state of a server whose process is gone or that is no master any
    /// more.
    pub(in crate::engine) fn forget_replication(&mut self, plan: &Plan, server: u8) {
        self.nodes[usize::from(server)].replication.forget();
        if plan.has_replicas() {
            self.detach(plan, server);
        }
    }

    /// Reconnects a restarted server: it follows the node's master, or the replicas follow it.
    pub(in crate::engine) fn rejoin(&mut self, plan: &Plan, server: u8) {
        if !plan.has_replicas() {
            return;
        }
        if !self.nodes[usize::from(server)].is_master() {
            let node = plan.nodes[usize::from(server)].node;
            self.follow(plan, server, self.masters[usize::from(node)]);
        }
        for replica in 0..plan.nodes.len() as u8 {
            let replication = &self.nodes[usize::from(replica)].replication;
            if replication.role == Role::Replica && replication.follows == server {
                self.attach(plan, replica);
            }
        }
    }

    /// Makes the server `replica` a replica of `master` from now on.
    pub(in crate::engine) fn follow(&mut self, plan: &Plan, replica: u8, master: u8) {
        let replication = &mut self.nodes[usize::from(replica)].replication;
        (replication.role, replication.follows) = (Role::Replica, master);
        self.assume_role(replica);
        self.attach(plan, replica);
    }

    /// Accepts a replica and sends it a full copy.
    #[cold]
    pub(in crate::engine) fn accept_replica(&mut self, plan: &Plan, server: u8, connection: u16) {
        let host = &mut self.nodes[usize::from(server)];
        if host.master.is_replica() {
            return self.send(plan, connection, Direction::Down, Arrival::Closed);
        }
        let sent = host.master.copy_to_stream();
        host.replication.links.push(Link { connection, sent, acknowledged: 0 });
        self.network.connection_mut(connection).served = true;
        self.tell_replicas(plan, server);
    }

    /// Sends every replica the part of the stream that it has not been sent.
    #[cold]
    pub(in crate::engine) fn tell_replicas(&mut self, plan: &Plan, server: u8) {
        let to = self.nodes[usize::from(server)].master.stream().len();
        for place in 0..self.nodes[usize::from(server)].replication.links.len() {
            let link = &mut self.nodes[usize::from(server)].replication.links[place];
            let from = core::mem::replace(&mut link.sent, to);
            let connection = link.connection;
            if from < to {
                let effects = Arrival::Message(Packet::Effects { from, to });
                self.send(plan, connection, Direction::Down, effects);
            }
        }
    }

    /// Handles an item that a replica receives from its master.
    #[cold]
    pub(in crate::engine) fn replica_hears(
        &mut self,
        plan: &Plan,
        replica: u8,
        number: u16,
        what: Arrival<Packet>,
    ) {
        let place = usize::from(replica);
        if self.nodes[place].replication.upstream != Some(number) {
            return;
        }
        match what {
            Arrival::Message(Packet::Effects { from, to }) => {
                let master = plan.server_at(self.network.connection(number).server);
                let master = usize::from(master.expect("replicas follow servers"));
                let [follower, leader] =
                    self.nodes.get_disjoint_mut([place, master]).expect("nobody follows itself");
                follower.master.follow(&leader.master, from, to);
                let done = Arrival::Message(Packet::Acknowledged { to });
                self.send(plan, number, Direction::Up, done);
                self.end_turn(plan, replica);
            }
            Arrival::Closed | Arrival::Reset => self.detach(plan, replica),
            Arrival::Handshake | Arrival::Message(_) => {}
        }
    }

    /// Handles a replica's acknowledgement of the stream up to the position `to`.
    #[cold]
    pub(in crate::engine) fn acknowledge(&mut self, plan: &Plan, server: u8, number: u16, to: u32) {
        let replication = &mut self.nodes[usize::from(server)].replication;
        let link = replication.links.iter_mut().find(|link| link.connection == number);
        let Some(link) = link else { return };
        link.acknowledged = link.acknowledged.max(to);
        while let Some(place) = self.nodes[usize::from(server)].satisfied_wait() {
            self.finish_wait(plan, server, place);
        }
    }

    /// Executes a `WAIT`: the reply waits until enough replicas have everything that the connection
    /// wrote.
    #[cold]
    pub(in crate::engine) fn wait_for_replicas(
        &mut self,
        plan: &Plan,
        server: u8,
        connection: u16,
        request: Request,
        (replicas, timeout_ms): (u8, u32),
    ) {
        let target = self.wrote.get(usize::from(connection)).copied().unwrap_or(0);
        self.waits += 1;
        let serial = self.waits;
        let wait = Wait { serial, connection, request, target, replicas };
        let host = &mut self.nodes[usize::from(server)];
        host.replication.waits.push(wait);
        if let Some(place) = host.satisfied_wait() {
            self.finish_wait(plan, server, place);
        } else if timeout_ms > 0 {
            let at_ns = self.now_ns + u64::from(timeout_ms) * 1_000_000;
            self.queue.schedule(at_ns, QueueEntry::WaitEnds { server, serial });
        }
    }

    /// Ends a `WAIT` at its timeout, unless it has ended before.
    pub(in crate::engine) fn end_wait(&mut self, plan: &Plan, server: u8, serial: u32) {
        let waits = &self.nodes[usize::from(server)].replication.waits;
        if let Some(place) = waits.iter().position(|wait| wait.serial == serial) {
            self.finish_wait(plan, server, place);
            self.end_turn(plan, server);
        }
    }

    fn finish_wait(&mut self, plan: &Plan, server: u8, place: usize) {
        let host = &mut self.nodes[usize::from(server)];
        let Wait { connection, request, target, .. } = host.replication.waits.remove(place);
        let count = host.replication.acknowledged(target);
        let answered = ReplyValue::Integer(count as i64);
        self.answer_without_key(plan, server, connection, &request, answered);
        loop {
            let replication = &mut self.nodes[usize::from(server)].replication;
            if replication.is_waiting(connection) {
                return;
            }
            let next = replication.behind.iter().position(|(whose, _)| *whose == connection);
            let Some(next) = next else { return };
            let (_, request) = replication.behind.remove(next);
            self.execute(plan, connection, request);
        }
    }

    /// Records and sends the reply to a request that leaves the key unchanged.
    #[cold]
    pub(in crate::engine) fn answer_without_key(
        &mut self,
        plan: &Plan,
        server: u8,
        connection: u16,
        request: &Request,
        word: ReplyValue,
    ) {
        let Request { command, attempt, ask, .. } = *request;
        let op = ask.op();
        let response = Response { command, attempt, op, word };
        let node = plan.nodes[usize::from(server)].node;
        let stored = self.stored(plan, node);
        let writer = stored.map_or(Writer::Nobody, |entry| writer_of(entry.writer));
        let expires_wall_ms = stored.and_then(|entry| entry.expires_wall_ms).unwrap_or(u64::MAX);
        let answer = response.answer();
        self.record(EventKind::Executed {
            command,
            attempt,
            node,
            op,
            answer,
            changed: false,
            before: writer,
            after: writer,
            expires_wall_ms,
        });
        self.answer(plan, connection, server, response);
        let is_vote = op == OpKind::Set && answer == Answer::Yes;
        if is_vote && self.nodes[usize::from(server)].replication.role == Role::Deposed {
            let by = Writer::Nobody;
            let (writer, cause) = (Writer::Attempt(attempt), crate::history::KeyEnd::FailedOver);
            self.record(EventKind::KeyEnded { node, writer, cause, by, expires_wall_ms: u64::MAX });
        }
    }

    /// Returns the lock's key as the node's master stores it.
    fn stored(&self, plan: &Plan, node: u8) -> Option<&Entry> {
        let server = self.masters[usize::from(node)];
        self.nodes[usize::from(server)].master.keyspace().stored(&plan.key)
    }

    /// Notes that the connection has written up to the end of the server's stream.
    #[cold]
    pub(in crate::engine) fn note_written(&mut self, server: u8, connection: u16) {
        let place = usize::from(connection);
        if self.wrote.len() <= place {
            self.wrote.resize(place + 1, 0);
        }
        self.wrote[place] = self.nodes[usize::from(server)].master.stream().len();
    }
}

impl NodeHost {
    /// Returns the place of a wait that enough replicas satisfy now.
    fn satisfied_wait(&self) -> Option<usize> {
        let Replication { waits, .. } = &self.replication;
        waits.iter().position(|wait| {
            self.replication.acknowledged(wait.target) >= usize::from(wait.replicas)
        })
    }
}
