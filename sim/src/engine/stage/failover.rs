//! Failover: a replica takes the place of its master.

use super::nodes::Role;
use super::nodes::{key_ended, key_returned};
use super::plan::Plan;
use super::{Input, Stage};
use crate::history::{ClientId, ClientIds, EventKind, KeyEnd, NodeId};
use crate::ids::ServerId;
use crate::master::Keyspace;
use crate::world::ConnectionState;

impl Stage {
    /// Makes `to` the node's master, if it runs. The clients `told` leave the old master.
    pub(in crate::engine) fn fail_over(
        &mut self,
        plan: &Plan,
        node: NodeId,
        to: ServerId,
        told: ClientIds,
    ) {
        let old = self.masters[node];
        if old == to || !self.servers[to].master.is_running() {
            return;
        }
        self.detach(plan, to);
        self.masters[node] = to;
        self.servers[to].replication.role = Role::Master;
        let old_runs = self.servers[old].master.is_running();
        let role = if old_runs { Role::Deposed } else { Role::Replica };
        self.servers[old].replication.role = role;
        self.assume_role(to);
        self.assume_role(old);
        let host = plan.servers[to].host;
        self.record(EventKind::FailedOver { node, host });
        let before = self.servers[old].master.keyspace().clone();
        self.tell_of_keys(plan, (node, to), &before, KeyEnd::FailedOver);
        if !old_runs {
            self.node_is_up(node);
        }
        self.schedule_expiry(plan, to);
        self.lead_other_replicas(plan, node, to);
        for client in self.clients.ids() {
            // The probe starts after all faults.
            if client == plan.probe() || told.contains(client) {
                self.move_client(plan, client, node, (old, to));
            }
        }
    }

    /// Tells every client the present master; former masters of the node step down.
    pub(in crate::engine) fn end_failover(&mut self, plan: &Plan, node: NodeId) {
        let master = self.masters[node];
        self.known.values_mut().for_each(|known| known[node] = master);
        for server in plan.servers.ids() {
            let host = &self.servers[server];
            if plan.servers[server].node == node && host.replication.role == Role::Deposed {
                self.forget_replication(plan, server);
                self.drop_connections(plan, server, true);
                self.servers[server].inbox.clear();
                self.follow(plan, server, master);
            }
        }
        self.lead_other_replicas(plan, node, master);
    }

    /// Makes the node's other replicas follow the master, if no partition lies between them in
    /// either direction.
    fn lead_other_replicas(&mut self, plan: &Plan, node: NodeId, master: ServerId) {
        let leader = plan.servers[master].host;
        for server in plan.servers.ids() {
            let planned = plan.servers[server];
            let host = planned.host;
            let is_cut = self.network.is_cut(leader, host) || self.network.is_cut(host, leader);
            let replication = &self.servers[server].replication;
            let follows_another = replication.role == Role::Replica && !replication.follows(master);
            if planned.node == node && server != master && follows_another && !is_cut {
                self.follow(plan, server, master);
            }
        }
    }

    /// Compares the lock's keys in `before` with those on `server`, the node's present master.
    /// Records keys that end by `cause`, and keys that are there again.
    pub(super) fn tell_of_keys(
        &mut self,
        plan: &Plan,
        (node, server): (NodeId, ServerId),
        before: &Keyspace,
        cause: KeyEnd,
    ) {
        let wall_ms = self.wall_ms(plan, server);
        let Self { servers, recorder, now_ns, returned, .. } = self;
        before.compare(
            servers[server].master.keyspace(),
            wall_ms,
            cause,
            |ended| {
                if *ended.key == plan.key[..] {
                    recorder.record(*now_ns, key_ended(node, &ended));
                }
            },
            |key, entry| {
                let lives = entry.expires_wall_ms.is_none_or(|when| wall_ms <= when);
                if *key == plan.key[..] && lives {
                    *returned = Some(key_returned(node, entry));
                }
            },
        );
        self.record_returned();
    }

    /// Makes a client leave the old master; it dials the new one from now on.
    fn move_client(
        &mut self,
        plan: &Plan,
        client: ClientId,
        node: NodeId,
        (old, to): (ServerId, ServerId),
    ) {
        self.known[client][node] = to;
        let old_host = plan.servers[old].host;
        let client_host = plan.client_host(client);
        for number in self.network.numbers() {
            let connection = self.network.connection_mut(number);
            let ends = (connection.client, connection.server);
            if ends == (client_host, old_host) && connection.state != ConnectionState::Closed {
                connection.served = false;
                self.network.reset(number);
                self.give(client, Input::Closed(number));
            }
        }
    }
}
