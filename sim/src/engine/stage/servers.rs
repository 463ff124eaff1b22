//! Death and restart of servers.

use super::nodes::Role;
use super::nodes::{key_ended, key_returned};
use super::plan::{Death, FaultEffect, Manner, Plan};
use super::{MeasuredRestart, QueueEntry, Stage};
use crate::history::{ClockKind, EventKind, NodeId};
use crate::ids::{ServerId, StrikeId};
use crate::master::run_id;
use crate::world::{Arrival, Choice, ConnectionState, Direction, Label};

impl Stage {
    /// Starts the delay of a restart on a clock of the host.
    pub(in crate::engine) fn measure_restart(
        &mut self,
        doing: FaultEffect,
        strike: StrikeId,
        clock: ClockKind,
        after_ns: u64,
    ) {
        let FaultEffect::Die { host, .. } = doing else {
            unreachable!("only a restart is measured")
        };
        let due_local_ns = self.clocks[host].read(clock, self.now_ns) + after_ns;
        let restart = MeasuredRestart { strike, host, clock, due_local_ns };
        self.restarts.push(restart);
        self.schedule_restart(restart);
    }

    pub(in crate::engine) fn schedule_restart(&mut self, restart: MeasuredRestart) {
        let MeasuredRestart { strike, host, clock, due_local_ns } = restart;
        if let Some(at_ns) = self.clocks[host].true_at(clock, due_local_ns) {
            self.queue.schedule(at_ns.max(self.now_ns), QueueEntry::FaultEnds(strike));
        }
    }

    /// Takes the restart and returns true if its clock has reached the due time. A clock change may
    /// have moved that time since the restart was scheduled.
    pub(in crate::engine) fn is_restart_due(&mut self, strike: StrikeId) -> bool {
        let place = self.restarts.iter().position(|it| it.strike == strike);
        let due = place.filter(|&place| {
            let MeasuredRestart { host, clock, due_local_ns, .. } = self.restarts[place];
            self.clocks[host].read(clock, self.now_ns) >= due_local_ns
        });
        due.map(|place| self.restarts.swap_remove(place)).is_some()
    }

    /// Makes a copy of the written data, for `strike`.
    pub(in crate::engine) fn back_up(&mut self, plan: &Plan, strike: StrikeId) {
        if let FaultEffect::Die { host, .. } = plan.faults[strike].doing
            && let Some(server) = plan.server_at(host)
        {
            self.servers[server].master.disk_mut().back_up(strike.0);
        }
    }

    pub(in crate::engine) fn server_dies(
        &mut self,
        plan: &Plan,
        server: ServerId,
        strike: StrikeId,
        death: Death,
    ) {
        let power = death.manner == Manner::PowerLost;
        if self.servers[server].master.is_running() {
            if death.manner == Manner::ShutDown {
                // The server sends the replies to all executed requests before it stops.
                self.send_held(plan, server);
            }
            self.disk_after(server, strike, death);
            if death.is_hidden {
                self.hide_death(server);
            }
            self.servers[server].inbox.clear();
            self.forget_disk_work(plan, server);
            if power {
                self.lose_stream(server);
            }
            self.forget_replication(plan, server);
            self.forget_demotion(server);
            let node = plan.servers[server].node;
            if self.servers[server].is_master() {
                self.record(EventKind::NodeDown { node, power });
            }
        } else if !self.servers[server].dark {
            self.disk_after(server, strike, death);
        }
        self.servers[server].dark |= power;
        // The kernel of a dead process closes its connections; a dead host sends nothing.
        self.drop_connections(plan, server, !power);
    }

    /// Ends the service on all connections of `server`, except those that a proxy keeps; with
    /// `says_goodbye` the other ends are notified.
    pub(in crate::engine) fn drop_connections(
        &mut self,
        plan: &Plan,
        server: ServerId,
        says_goodbye: bool,
    ) {
        let host = plan.servers[server].host;
        let is_hidden = self.servers[server].is_hidden;
        for number in self.network.numbers() {
            let connection = self.network.connection_mut(number);
            let is_kept = is_hidden && plan.server_at(connection.client).is_none();
            if connection.server != host || !connection.served || is_kept {
                continue;
            }
            connection.served = false;
            if says_goodbye && connection.state != ConnectionState::Closed {
                self.send(plan, number, Direction::Down, Arrival::Closed);
            }
        }
    }

    /// Ends the process, if it runs, and applies the death to the data that it kept.
    fn disk_after(&mut self, server: ServerId, strike: StrikeId, death: Death) {
        let Self { servers, choices, .. } = self;
        let master = &mut servers[server].master;
        match death.manner {
            Manner::Killed if master.is_running() => master.kill(),
            Manner::ShutDown if master.is_running() => master.shut_down(),
            Manner::Killed | Manner::ShutDown => {}
            Manner::PowerLost if death.torn => {
                let choice =
                    Choice { node: server.0, ..Choice::of(Label::TornTail, strike.0 as u8) };
                master.power_torn(|count| choices.below(choice, count as u64) as usize);
            }
            Manner::PowerLost => master.power(),
        }
        if death.backup_of_ns.is_some() {
            master.disk_mut().restore(strike.0);
        }
    }

    pub(in crate::engine) fn server_restarts(&mut self, plan: &Plan, server: ServerId) {
        let was_dark = core::mem::take(&mut self.servers[server].dark);
        if self.servers[server].master.is_running() {
            return;
        }
        self.load(plan, server);
        self.renew_sessions(plan, server);
        if self.servers[server].replication.role == Role::Deposed {
            self.servers[server].replication.role = Role::Replica;
            self.assume_role(server);
        }
        if self.servers[server].is_master() {
            self.node_is_up(plan.servers[server].node);
        }
        self.rejoin(plan, server);
        self.end_turn(plan, server);
        self.schedule_expiry(plan, server);
        if !was_dark {
            return;
        }
        // A client that still believes in the old connection gets a reset from the new kernel when
        // it next sends or retransmits something.
        let host = plan.servers[server].host;
        for number in self.network.numbers() {
            let connection = self.network.connection(number);
            let is_client = plan.server_at(connection.client).is_none();
            let is_open = connection.state != ConnectionState::Closed && !connection.served;
            if connection.server == host && is_client && is_open {
                self.send(plan, number, Direction::Down, Arrival::Reset);
            }
        }
    }

    /// Starts a new process, which loads the data on the disk.
    fn load(&mut self, plan: &Plan, server: ServerId) {
        let wall_ms = self.wall_ms(plan, server);
        let incarnation = self.servers[server].master.incarnation() + 1;
        let run_id = run_id(server.0, incarnation);
        let node = plan.servers[server].node;
        let tells = self.servers[server].is_master();
        let Self { servers, recorder, now_ns, returned, .. } = self;
        servers[server].master.forget();
        servers[server].master.restart(
            run_id,
            wall_ms,
            |ended| {
                if tells && *ended.key == plan.key[..] {
                    recorder.record(*now_ns, key_ended(node, &ended));
                }
            },
            |key, entry| {
                if tells && *key == plan.key[..] {
                    *returned = Some(key_returned(node, entry));
                }
            },
        );
        self.record_returned();
    }

    /// Records that the node has a process again.
    pub(in crate::engine) fn node_is_up(&mut self, node: NodeId) {
        self.starts[node] += 1;
        let incarnation = self.starts[node];
        self.record(EventKind::NodeUp { node, incarnation });
    }

    pub(in crate::engine) fn record_returned(&mut self) {
        if let Some(kind) = self.returned.take() {
            self.record(kind);
        }
    }
}
