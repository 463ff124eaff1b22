//! Replication: which server follows which, and the messages between masters and replicas.
//!
//! A replica dials its master as soon as the master runs. It gets a full copy, and then each
//! effect. It acknowledges the effects that it has applied. All of this travels over the network.

use lock_judge::ids::{ConnectionId, ServerId};

use super::cluster::{Link, Role, Wait};
use super::network::{Arrival, ConnectionState, Direction, Unsent};
use super::packet::Packet;
use super::{Due, World};
use crate::subject::{ReplyValue, Request};

impl World {
    /// Sets up replication at the start of a run: every replica follows its master.
    pub(super) fn begin_replication(&mut self) {
        self.cluster.reset(self.clients.ids().len());
        for server in self.plan.servers.ids() {
            let planned = self.plan.servers[server];
            let master = planned.node.first_server();
            let role = if server == master { Role::Master } else { Role::Replica };
            let host = &mut self.cluster[server];
            host.replication.reset(role, master);
            if self.plan.has_replicas() {
                host.redis.begin_stream();
            }
            self.cluster.assume_role(server);
            if role == Role::Replica && !planned.is_new {
                for server in [master, server] {
                    self.cluster[server].redis.begin_backlog();
                }
                let number = self.dial_master(server, master);
                let connection = self.network.connection_mut(number);
                connection.state = ConnectionState::Open;
                connection.served = true;
                let link = Link { connection: number, sent: 0, acknowledged: 0 };
                self.cluster[master].replication.links.push(link);
            }
        }
    }

    fn dial_master(&mut self, replica: ServerId, master: ServerId) -> ConnectionId {
        let host = |server: ServerId| self.plan.servers[server].host;
        let epoch = self.cluster.number_attachment();
        let number = self.network.dial(host(replica), host(master), 0, epoch);
        self.cluster[replica].replication.upstream = Some(number);
        number
    }

    /// Makes the replica dial the server that it follows, if both run. A server that has been
    /// promoted follows none.
    pub(super) fn attach(&mut self, replica: ServerId) {
        self.detach(replica);
        let master = self.cluster[replica].replication.follows();
        let runs = |server: ServerId| self.cluster[server].redis.is_running();
        if !self.cluster[replica].is_master() && runs(replica) && runs(master) {
            let number = self.dial_master(replica, master);
            self.send(number, Direction::Up, Arrival::Handshake);
        }
    }

    /// Closes the replica's connection to its master.
    pub(super) fn detach(&mut self, replica: ServerId) {
        let upstream = self.cluster[replica].replication.upstream.take();
        let Some(number) = upstream else { return };
        self.network.close(number, Unsent::Retransmitted);
        let master = self.plan.server_at(self.network.connection(number).server);
        let master = master.expect("replicas follow servers");
        self.cluster[master].replication.links.retain(|link| link.connection != number);
    }

    /// Loses the part of the stream that has not reached the replicas: a dead host may not even
    /// have sent it.
    pub(super) fn lose_stream(&mut self, server: ServerId) {
        for link in &self.cluster[server].replication.links {
            self.network.reset(link.connection);
        }
    }

    /// Clears the replication state of a server whose process is gone or that is no master any
    /// more.
    pub(super) fn forget_replication(&mut self, server: ServerId) {
        self.cluster[server].replication.forget();
        if self.plan.has_replicas() {
            self.detach(server);
        }
    }

    /// Reconnects a restarted server: it follows the node's master, or the replicas follow it.
    pub(super) fn rejoin(&mut self, server: ServerId) {
        if !self.plan.has_replicas() {
            return;
        }
        if !self.cluster[server].is_master() {
            let node = self.plan.servers[server].node;
            self.follow(server, self.cluster.master(node));
        }
        for replica in self.plan.servers.ids() {
            let replication = &self.cluster[replica].replication;
            if replication.role == Role::Replica && replication.follows() == server {
                self.attach(replica);
            }
        }
    }

    /// Makes the server `replica` a replica of `master` from now on.
    pub(super) fn follow(&mut self, replica: ServerId, master: ServerId) {
        self.cluster[replica].replication.follow(Role::Replica, master);
        self.cluster.assume_role(replica);
        self.attach(replica);
    }

    /// Accepts a replica and sends it a full copy.
    #[cold]
    pub(super) fn accept_replica(&mut self, server: ServerId, connection: ConnectionId) {
        let host = &mut self.cluster[server];
        if host.redis.is_replica() {
            return self.send(connection, Direction::Down, Arrival::Closed);
        }
        let sent = host.redis.copy_to_stream();
        host.replication.links.push(Link { connection, sent, acknowledged: 0 });
        self.network.connection_mut(connection).served = true;
        self.tell_replicas(server);
    }

    /// Sends every replica the part of the stream that it has not been sent.
    #[cold]
    pub(super) fn tell_replicas(&mut self, server: ServerId) {
        let to = self.cluster[server].redis.stream().len();
        for place in 0..self.cluster[server].replication.links.len() {
            let link = &mut self.cluster[server].replication.links[place];
            let from = core::mem::replace(&mut link.sent, to);
            let connection = link.connection;
            if from < to {
                let effects = Arrival::Message(Packet::Effects { from, to });
                self.send(connection, Direction::Down, effects);
            }
        }
    }

    /// Handles an item that a replica receives from its master.
    #[cold]
    pub(super) fn replica_hears(
        &mut self,
        replica: ServerId,
        number: ConnectionId,
        what: Arrival<Packet>,
    ) {
        if self.cluster[replica].replication.upstream != Some(number) {
            return;
        }
        match what {
            Arrival::Message(Packet::Effects { from, to }) => {
                let master = self.plan.server_at(self.network.connection(number).server);
                let master = master.expect("replicas follow servers");
                let [follower, leader] = self.cluster.pair_mut([replica, master]);
                follower.redis.follow(&leader.redis, from, to);
                let done = Arrival::Message(Packet::Acknowledged { to });
                self.send(number, Direction::Up, done);
                self.end_turn(replica);
            }
            Arrival::Closed | Arrival::Reset => self.detach(replica),
            Arrival::Handshake | Arrival::Message(_) => {}
        }
    }

    /// Handles a replica's acknowledgement of the stream up to the position `to`.
    #[cold]
    pub(super) fn acknowledge(&mut self, server: ServerId, number: ConnectionId, to: u32) {
        let links = &mut self.cluster[server].replication.links;
        let Some(link) = links.iter_mut().find(|link| link.connection == number) else { return };
        link.acknowledged = link.acknowledged.max(to);
        while let Some(wait) = self.cluster[server].replication.take_satisfied_wait() {
            self.finish_wait(server, &wait);
        }
    }

    /// Executes a `WAIT`: the reply waits until enough replicas have everything that the connection
    /// wrote.
    #[cold]
    pub(super) fn wait_for_replicas(
        &mut self,
        server: ServerId,
        connection: ConnectionId,
        request: Request,
        (replicas, timeout_ms): (u8, u32),
    ) {
        let (serial, target) = (self.cluster.number_wait(), self.cluster.wrote(connection));
        let replication = &mut self.cluster[server].replication;
        replication.begin_wait(Wait { serial, connection, request, target, replicas });
        if let Some(wait) = replication.take_satisfied_wait() {
            self.finish_wait(server, &wait);
        } else if timeout_ms > 0 {
            let at_ns = self.now_ns() + u64::from(timeout_ms) * 1_000_000;
            self.agenda.schedule(at_ns, Due::WaitEnds { server, serial });
        }
    }

    /// Ends a `WAIT` at its timeout, unless it has ended before.
    pub(super) fn end_wait(&mut self, server: ServerId, serial: u32) {
        if let Some(wait) = self.cluster[server].replication.take_wait(serial) {
            self.finish_wait(server, &wait);
            self.end_turn(server);
        }
    }

    fn finish_wait(&mut self, server: ServerId, wait: &Wait) {
        let Wait { connection, ref request, target, .. } = *wait;
        let count = self.cluster[server].replication.acknowledged(target);
        let answered = ReplyValue::Integer(count as i64);
        self.answer_without_key(server, connection, request, answered);
        while let Some(request) = self.cluster[server].replication.take_behind(connection) {
            self.execute(connection, request);
        }
    }
}
