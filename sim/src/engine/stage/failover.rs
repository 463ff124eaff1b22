//! Failover: a replica takes the place of its master.

use super::nodes::Role;
use super::nodes::{key_ended, key_returned};
use super::plan::Plan;
use super::{Input, Stage};
use crate::history::EventKind;
use crate::master::{KeyEnd, Keyspace};
use crate::world::ConnectionState;

impl Stage {
    /// Makes `to` the node's master, if it runs. The clients in the bit mask `told` leave the old
    /// master.
    pub(in crate::engine) fn fail_over(&mut self, plan: &Plan, node: u8, to: u8, told: u16) {
        let old = self.masters[usize::from(node)];
        if old == to || !self.nodes[usize::from(to)].master.is_running() {
            return;
        }
        self.detach(plan, to);
        self.masters[usize::from(node)] = to;
        self.nodes[usize::from(to)].replication.role = Role::Master;
        let old_runs = self.nodes[usize::from(old)].master.is_running();
        let role = if old_runs { Role::Deposed } else { Role::Replica };
        self.nodes[usize::from(old)].replication.role = role;
        self.assume_role(to);
        self.assume_role(old);
        let host = plan.nodes[usize::from(to)].host;
        self.record(EventKind::FailedOver { node, host });
        let before = self.nodes[usize::from(old)].master.keyspace().clone();
        self.tell_of_keys(plan, (node, to), &before, KeyEnd::FailedOver);
        if !old_runs {
            self.node_is_up(node);
        }
        self.schedule_expiry(plan, to);
        self.lead_other_replicas(plan, node, to);
        for client in 0..self.clients.len() as u8 {
            // The probe is the last client; it starts after all faults.
            let is_told =
                usize::from(client) + 1 == self.clients.len() || told & (1 << client) != 0;
            if is_told {
                self.move_client(plan, client, node, (old, to));
            }
        }
    }

    /// Tells every client the present master; former masters of the node step down.
    pub(in crate::engine) fn end_failover(&mut self, plan: &Plan, node: u8) {
        let master = self.masters[usize::from(node)];
        for client in 0..self.clients.len() {
            self.known[client * plan.node_count + usize::from(node)] = master;
        }
        for server in 0..plan.nodes.len() as u8 {
            let host = &self.nodes[usize::from(server)];
            if plan.nodes[usize::from(server)].node == node
                && host.replication.role == Role::Deposed
            {
                self.forget_replication(plan, server);
                self.drop_connections(plan, server, true);
                self.nodes[usize::from(server)].inbox.clear();
                self.follow(plan, server, master);
            }
        }
        self.lead_other_replicas(plan, node, master);
    }

    /// Makes the node's other replicas follow the master, if no partition lies between them in
    /// either direction.
    fn lead_other_replicas(&mut self, plan: &Plan, node: u8, master: u8) {
        let leader = plan.nodes[usize::from(master)].host.0;
        for server in 0..plan.nodes.len() as u8 {
            let planned = plan.nodes[usize::from(server)];
            let host = planned.host.0;
            let is_cut = self.network.is_cut(leader, host) || self.network.is_cut(host, leader);
            let replication = &self.nodes[usize::from(server)].replication;
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
        (node, server): (u8, u8),
        before: &Keyspace,
        cause: KeyEnd,
    ) {
        let wall_ms = self.node_wall_ms(plan, server);
        let Self { nodes, recorder, now_ns, returned, .. } = self;
        before.compare(
            nodes[usize::from(server)].master.keyspace(),
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
    fn move_client(&mut self, plan: &Plan, client: u8, node: u8, (old, to): (u8, u8)) {
        self.known[usize::from(client) * plan.node_count + usize::from(node)] = to;
        let old_host = plan.nodes[usize::from(old)].host.0;
        let client_host = plan.node_count as u8 + client;
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
