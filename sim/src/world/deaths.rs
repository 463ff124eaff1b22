//! Death and restart of servers, and restarts that a proxy hides: the clients' connections outlive
//! the process behind the proxy.

use lock_judge::history::{EventKind, NodeId};
use lock_judge::ids::{ConnectionId, ServerId, StrikeId};
use redis_sim::run_id;

use super::World;
use super::cluster::Role;
use super::key_events::{is_a_locks, key_ended, key_returned};
use super::network::{Arrival, ConnectionState, Direction};
use crate::choice::{Choice, Label};
use crate::plan::{Death, FaultEffect, Manner};

impl World {
    /// Makes a copy of the written data, for `strike`.
    pub(super) fn back_up(&mut self, strike: StrikeId) {
        if let FaultEffect::Die { host, .. } = self.plan.faults[strike].effect
            && let Some(server) = self.plan.server_at(host)
        {
            self.cluster[server].redis.disk_mut().back_up(strike.0);
        }
    }

    pub(super) fn server_dies(&mut self, server: ServerId, strike: StrikeId, death: Death) {
        let power = death.manner == Manner::PowerLost;
        if self.cluster[server].redis.is_running() {
            if death.manner == Manner::ShutDown {
                // The server sends the replies to all executed requests before it stops.
                self.send_held(server);
            }
            self.disk_after(server, strike, death);
            if death.is_hidden {
                self.hide_death(server);
            }
            self.cluster[server].inbox.clear();
            self.cluster.tracking.forget_readers(server);
            self.forget_disk_work(server);
            if power {
                self.lose_stream(server);
            }
            self.forget_replication(server);
            self.cluster.forget_demotion(server);
            if self.cluster[server].is_master() {
                let node = self.plan.servers[server].node;
                self.record(EventKind::NodeDown { node, power });
            }
        } else if !self.cluster[server].dark {
            self.disk_after(server, strike, death);
        }
        self.cluster[server].dark |= power;
        // The kernel of a dead process closes its connections; a dead host sends nothing.
        self.drop_connections(server, !power);
    }

    /// Ends the process, if it runs, and applies the death to the data that it kept.
    fn disk_after(&mut self, server: ServerId, strike: StrikeId, death: Death) {
        let Self { cluster, choices, .. } = self;
        let redis = &mut cluster[server].redis;
        match death.manner {
            Manner::Killed if redis.is_running() => redis.kill(),
            Manner::ShutDown if redis.is_running() => redis.shut_down(),
            Manner::Killed | Manner::ShutDown => {}
            Manner::PowerLost if death.torn => {
                let drawn = Choice::of(Label::TornTail, strike.0 as u8);
                let choice = Choice { node: server.0, ..drawn };
                redis.power_torn(|count| choices.below(choice, count as u64) as usize);
            }
            Manner::PowerLost => redis.power(),
        }
        // Where no backup was made for the fault, nothing is left.
        if death.backup_of_ns.is_some() || death.is_replaced {
            redis.disk_mut().restore(strike.0);
        }
    }

    pub(super) fn server_restarts(&mut self, server: ServerId) {
        let was_dark = core::mem::take(&mut self.cluster[server].dark);
        if self.cluster[server].redis.is_running() {
            return;
        }
        self.load(server);
        self.renew_sessions(server);
        if self.cluster[server].replication.role == Role::Deposed {
            self.cluster[server].replication.role = Role::Replica;
            self.cluster.assume_role(server);
        }
        if self.cluster[server].is_master() {
            self.node_is_up(self.plan.servers[server].node);
        }
        self.rejoin(server);
        self.end_turn(server);
        self.schedule_expiry(server);
        if !was_dark {
            return;
        }
        // A client that still believes in the old connection gets a reset from the new kernel when
        // it next sends or retransmits something.
        let host = self.plan.servers[server].host;
        for number in self.network.numbers() {
            let connection = self.network.connection(number);
            let is_client = self.plan.server_at(connection.client).is_none();
            let is_open = connection.state != ConnectionState::Closed && !connection.served;
            if connection.server == host && is_client && is_open {
                self.send(number, Direction::Down, Arrival::Reset);
            }
        }
    }

    /// Starts a new process, which loads the data on the disk.
    fn load(&mut self, server: ServerId) {
        let wall_ms = self.wall_ms(server);
        let Self { cluster, recorder, agenda, plan, .. } = self;
        let host = &mut cluster[server];
        let run_id = run_id(server.0, host.redis.incarnation() + 1);
        let node = plan.servers[server].node;
        let tells = host.is_master();
        let mut returned = Vec::new();
        host.redis.forget();
        host.redis.restart(
            run_id,
            wall_ms,
            |ended| {
                if tells && is_a_locks(&ended, plan) {
                    recorder.record(agenda.now_ns(), key_ended(node, &ended));
                }
            },
            |database, key, entry| {
                if tells && database == 0 && plan.resource_at(key).is_some() {
                    returned.push(key_returned(node, entry));
                }
            },
        );
        returned.into_iter().for_each(|kind| self.record(kind));
    }

    /// Records that the node has a process again.
    pub(super) fn node_is_up(&mut self, node: NodeId) {
        let incarnation = self.cluster.count_start(node);
        self.record(EventKind::NodeUp { node, incarnation });
    }

    /// Hides the death of the process: a proxy keeps its clients' connections. Their unanswered
    /// requests are lost.
    fn hide_death(&mut self, server: ServerId) {
        self.cluster[server].is_hidden = true;
        while let Some((connection, _)) = self.cluster[server].inbox.pop_front() {
            self.lose_request(connection);
        }
    }

    /// Drops a request, because the proxy has no process to pass it to.
    pub(super) fn lose_request(&mut self, connection: ConnectionId) {
        if let Some(wire) = &mut self.wire {
            wire.end(connection).drop_request();
        }
    }

    /// Starts a new session on each connection that a proxy kept: the new process knows none of
    /// them.
    fn renew_sessions(&mut self, server: ServerId) {
        if !core::mem::take(&mut self.cluster[server].is_hidden) {
            return;
        }
        let host = self.plan.servers[server].host;
        for number in self.network.numbers() {
            let connection = self.network.connection(number);
            let is_open = connection.served && connection.state != ConnectionState::Closed;
            if connection.server != host || !is_open || self.is_of_replica(number) {
                continue;
            }
            match &mut self.wire {
                Some(wire) => wire.renew(number),
                None => self.cluster.tracking.deafen(number),
            }
        }
    }
}
