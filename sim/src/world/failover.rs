//! Changes of roles: a replica takes the place of its master, and a master becomes a replica under
//! live connections.

use lock_judge::history::{ClientId, ClientIds, EventKind, NodeId};
use lock_judge::ids::ServerId;
use redis_sim::server::Server;
use redis_sim::{KeyEnd, Keyspace};

use super::World;
use super::clients::Input;
use super::cluster::Role;
use super::key_events::{key_ended, key_returned};
use super::network::ConnectionState;

impl World {
    /// Makes `to` the node's master, if it runs. The clients `told` leave the old master.
    pub(super) fn fail_over(&mut self, node: NodeId, to: ServerId, told: ClientIds) {
        let old = self.cluster.master(node);
        if old == to || !self.cluster[to].redis.is_running() {
            return;
        }
        self.detach(to);
        self.cluster.promote(node, to);
        let old_runs = self.cluster[old].redis.is_running();
        let role = if old_runs { Role::Deposed } else { Role::Replica };
        self.cluster[old].replication.role = role;
        self.cluster.assume_role(to);
        self.cluster.assume_role(old);
        let host = self.plan.servers[to].host;
        self.record(EventKind::FailedOver { node, host });
        let before = self.cluster[old].redis.keyspace().clone();
        self.tell_of_keys((node, to), &before, KeyEnd::FailedOver);
        if !old_runs {
            self.node_is_up(node);
        }
        self.schedule_expiry(to);
        self.lead_other_replicas(node, to);
        for client in self.clients.ids() {
            // The probe starts after all faults.
            if client == self.plan.probe() || told.contains(client) {
                self.move_client(client, node, (old, to));
            }
        }
    }

    /// Tells every client the present master; former masters of the node step down.
    pub(super) fn end_failover(&mut self, node: NodeId) {
        let master = self.cluster.introduce_master(node);
        for server in self.plan.servers.ids() {
            let role = self.cluster[server].replication.role;
            if self.plan.servers[server].node == node && role == Role::Deposed {
                self.forget_replication(server);
                self.drop_connections(server, true);
                self.cluster[server].inbox.clear();
                self.follow(server, master);
            }
        }
        self.lead_other_replicas(node, master);
    }

    /// Makes the node's other replicas follow the master, if no partition lies between them in
    /// either direction.
    fn lead_other_replicas(&mut self, node: NodeId, master: ServerId) {
        let leader = self.plan.servers[master].host;
        for server in self.plan.servers.ids() {
            let planned = self.plan.servers[server];
            let host = planned.host;
            let is_cut = self.network.is_cut(leader, host) || self.network.is_cut(host, leader);
            let replication = &self.cluster[server].replication;
            let follows_another =
                replication.role == Role::Replica && replication.follows() != master;
            if planned.node == node && server != master && follows_another && !is_cut {
                self.follow(server, master);
            }
        }
    }

    /// Makes a client leave the old master; it dials the new one from now on.
    fn move_client(&mut self, client: ClientId, node: NodeId, (old, to): (ServerId, ServerId)) {
        self.cluster.introduce(client, node, to);
        let old_host = self.plan.servers[old].host;
        let client_host = self.plan.client_host(client);
        for number in self.network.numbers() {
            let connection = self.network.connection_mut(number);
            let ends = (connection.client, connection.server);
            if ends == (client_host, old_host) && connection.state != ConnectionState::Closed {
                connection.served = false;
                self.network.reset(number);
                self.clients.give(client, Input::Closed(number));
            }
        }
    }

    /// Makes the server of `node` a replica of `of`, or of a server outside the scenario. Its
    /// connections and its process live on.
    pub(super) fn demote(&mut self, node: NodeId, of: Option<ServerId>, keeps_keys: bool) {
        if !self.can_change_keys(node) {
            return;
        }
        let server = self.cluster.demote(node);
        if let Some(leader) = of {
            self.detach(leader);
        }
        let leader = of.map(|leader| self.cluster[leader].redis.clone());
        let is_alone = leader.as_ref().is_some_and(|leader| !leader.is_running());
        if !keeps_keys && !is_alone {
            self.change_keys(node, |server| server.resynchronise(leader.as_deref()));
            self.tell_listeners(server);
        }
        self.end_turn(server);
    }

    /// Promotes the server again; the replica whose keys it got follows it again.
    pub(super) fn end_demotion(&mut self, node: NodeId, of: Option<ServerId>) {
        let Some(server) = self.cluster.end_demotion(node) else { return };
        if let Some(leader) = of
            && self.cluster[leader].replication.role == Role::Replica
        {
            self.follow(leader, self.cluster.master(node));
        }
        self.schedule_expiry(server);
    }

    /// Returns true if an operator can change the keys of a node: the node has a process and is not
    /// ideal.
    pub(super) fn can_change_keys(&self, node: NodeId) -> bool {
        let runs = self.cluster[self.cluster.master(node)].redis.is_running();
        runs && !self.plan.servers[node.first_server()].ideal
    }

    /// Changes the keys on the server of `node`, and records the end or the return of the locks'
    /// keys.
    pub(super) fn change_keys(&mut self, node: NodeId, change: impl FnOnce(&mut Server)) {
        let server = self.cluster.master(node);
        let redis = &mut self.cluster[server].redis;
        let before = redis.keyspace().clone();
        change(redis);
        self.tell_of_keys((node, server), &before, KeyEnd::Flushed);
    }

    /// Compares the locks' keys in `before` with those on `server`, the node's present master.
    /// Records keys that end by `cause`, and keys that are there again.
    fn tell_of_keys(
        &mut self,
        (node, server): (NodeId, ServerId),
        before: &Keyspace,
        cause: KeyEnd,
    ) {
        let wall_ms = self.wall_ms(server);
        let Self { cluster, recorder, agenda, plan, .. } = self;
        let mut returned = Vec::new();
        before.compare(
            cluster[server].redis.keyspace(),
            wall_ms,
            cause,
            |ended| {
                if plan.resource_at(&ended.key).is_some() {
                    recorder.record(agenda.now_ns(), key_ended(node, &ended));
                }
            },
            |key, entry| {
                let lives = entry.expires_wall_ms.is_none_or(|when| wall_ms <= when);
                if plan.resource_at(key).is_some() && lives {
                    returned.push(key_returned(node, entry));
                }
            },
        );
        returned.into_iter().for_each(|kind| self.record(kind));
    }
}
