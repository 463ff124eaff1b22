//! Demotion: a node's server becomes a replica under live connections, and later a master again.

use super::Stage;
use super::nodes::Role;
use super::plan::Plan;
use crate::master::KeyEnd;
use crate::master::server::Server;

/// A server that calls itself a replica although it is its node's master.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demoted {
    node: u8,
    server: u8,
}

impl Stage {
    /// Makes the server of `node` a replica of `of`, or of a server outside the scenario. Its
    /// connections and its process live on.
    pub(in crate::engine) fn demote(
        &mut self,
        plan: &Plan,
        node: u8,
        of: Option<u8>,
        keeps_keys: bool,
    ) {
        let server = self.masters[usize::from(node)];
        let runs = self.nodes[usize::from(server)].master.is_running();
        if !runs || plan.nodes[usize::from(node)].ideal {
            return;
        }
        self.demoted.push(Demoted { node, server });
        self.assume_role(server);
        if let Some(leader) = of {
            self.detach(plan, leader);
        }
        let leader = of.map(|leader| self.nodes[usize::from(leader)].master.clone());
        let is_alone = leader.as_ref().is_some_and(|leader| !leader.is_running());
        if !keeps_keys && !is_alone {
            self.change_keys(plan, node, |server| server.resynchronise(leader.as_deref()));
            self.tell_listeners(plan, server);
        }
        self.end_turn(plan, server);
    }

    /// Promotes the server again; the replica whose keys it got follows it again.
    pub(in crate::engine) fn end_demotion(&mut self, plan: &Plan, node: u8, of: Option<u8>) {
        let place = self.demoted.iter().position(|it| it.node == node);
        let Some(place) = place else { return };
        let Demoted { server, .. } = self.demoted.swap_remove(place);
        self.assume_role(server);
        if let Some(leader) = of
            && self.nodes[usize::from(leader)].replication.role == Role::Replica
        {
            self.follow(plan, leader, self.masters[usize::from(node)]);
        }
        self.schedule_expiry(plan, server);
    }

    /// Removes the demotion of a server whose process is gone: its next process reads its
    /// configuration.
    pub(super) fn forget_demotion(&mut self, server: u8) {
        self.demoted.retain(|it| it.server != server);
        self.assume_role(server);
    }

    /// Sets the role that the process reports.
    pub(super) fn assume_role(&mut self, server: u8) {
        let is_demoted = self.demoted.iter().any(|it| it.server == server);
        let host = &mut self.nodes[usize::from(server)];
        host.master.set_replica(is_demoted || host.replication.role == Role::Replica);
    }

    /// Changes the keys on the server of `node`, and records the end or the return of the lock's
    /// key.
    pub(super) fn change_keys(&mut self, plan: &Plan, node: u8, change: impl FnOnce(&mut Server)) {
        let server = self.masters[usize::from(node)];
        let master = &mut self.nodes[usize::from(server)].master;
        let before = master.keyspace().clone();
        change(master);
        self.tell_of_keys(plan, (node, server), &before, KeyEnd::Flushed);
    }
}
