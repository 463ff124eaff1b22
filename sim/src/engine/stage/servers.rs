//! Death and restart of servers.

use super::nodes::Role;
use super::nodes::{key_ended, key_returned};
use super::plan::{Death, FaultEffect, Manner, Plan};
use super::{MeasuredRestart, QueueEntry, Stage};
use crate::history::{ClockKind, EventKind};
use crate::master::run_id;
use crate::world::{Arrival, Choice, ConnectionState, Direction, Label};

impl Stage {
    /// Starts the delay of a restart on a clock of the host.
    pub(in crate::engine) fn measure_restart(
        &mut self,
        doing: FaultEffect,
        fault: u16,
        clock: ClockKind,
        after_ns: u64,
    ) {
        let FaultEffect::Die { host, .. } = doing else {
            unreachable!("only a restart is measured")
        };
        let due_local_ns = self.clocks[host.get()].read(clock, self.now_ns) + after_ns;
        let restart = MeasuredRestart { fault, host, clock, due_local_ns };
        self.restarts.push(restart);
        self.schedule_restart(restart);
    }

    pub(in crate::engine) fn schedule_restart(&mut self, restart: MeasuredRestart) {
        let MeasuredRestart { fault, host, clock, due_local_ns } = restart;
        if let Some(at_ns) = self.clocks[host.get()].true_at(clock, due_local_ns) {
            self.queue.schedule(at_ns.max(self.now_ns), QueueEntry::FaultEnds(fault));
        }
    }

    /// Takes the restart and returns true if its clock has reached the due time. A clock change may
    /// have moved that time since the restart was scheduled.
    pub(in crate::engine) fn is_restart_due(&mut self, fault: u16) -> bool {
        let place = self.restarts.iter().position(|it| it.fault == fault);
        let due = place.filter(|&place| {
            let MeasuredRestart { host, clock, due_local_ns, .. } = self.restarts[place];
            self.clocks[host.get()].read(clock, self.now_ns) >= due_local_ns
        });
        due.map(|place| self.restarts.swap_remove(place)).is_some()
    }

    /// Makes a copy of the written data, for the fault at `place`.
    pub(in crate::engine) fn back_up(&mut self, plan: &Plan, place: u16) {
        if let FaultEffect::Die { host, .. } = plan.faults[usize::from(place)].doing
            && let Some(server) = plan.server_at(host.0)
        {
            self.nodes[usize::from(server)].master.disk_mut().back_up(place);
        }
    }

    pub(in crate::engine) fn server_dies(
        &mut self,
        plan: &Plan,
        server: u8,
        place: u16,
        death: Death,
    ) {
        let power = death.manner == Manner::PowerLost;
        if self.nodes[usize::from(server)].master.is_running() {
            if death.manner == Manner::ShutDown {
                // The server sends the replies to all executed requests before it stops.
                self.send_held(plan, server);
            }
            self.disk_after(server, place, death);
            if death.is_hidden {
                self.hide_death(server);
            }
            self.nodes[usize::from(server)].inbox.clear();
            self.readers.retain(|&(of, _)| of != server);
            self.forget_disk_work(plan, server);
            if power {
                self.lose_stream(server);
            }
            self.forget_replication(plan, server);
            self.forget_demotion(server);
            let node = plan.nodes[usize::from(server)].node;
            if self.nodes[usize::from(server)].is_master() {
                self.record(EventKind::NodeDown { node, power });
            }
        } else if !self.nodes[usize::from(server)].dark {
            self.disk_after(server, place, death);
        }
        self.nodes[usize::from(server)].dark |= power;
        // The kernel of a dead process closes its connections; a dead host sends nothing.
        self.drop_connections(plan, server, !power);
    }

    /// Ends the service on all connections of `server`, except those that a proxy keeps; with
    /// `says_goodbye` the other ends are notified.
    pub(in crate::engine) fn drop_connections(
        &mut self,
        plan: &Plan,
        server: u8,
        says_goodbye: bool,
    ) {
        let host = plan.nodes[usize::from(server)].host.0;
        let is_hidden = self.nodes[usize::from(server)].is_hidden;
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
    fn disk_after(&mut self, server: u8, place: u16, death: Death) {
        let Self { nodes, choices, .. } = self;
        let master = &mut nodes[usize::from(server)].master;
        match death.manner {
            Manner::Killed if master.is_running() => master.kill(),
            Manner::ShutDown if master.is_running() => master.shut_down(),
            Manner::Killed | Manner::ShutDown => {}
            Manner::PowerLost if death.torn => {
                let choice = Choice { node: server, ..Choice::of(Label::TornTail, place as u8) };
                master.power_torn(|count| choices.below(choice, count as u64) as usize);
            }
            Manner::PowerLost => master.power(),
        }
        if death.backup_of_ns.is_some() {
            master.disk_mut().restore(place);
        }
    }

    pub(in crate::engine) fn server_restarts(&mut self, plan: &Plan, server: u8) {
        let was_dark = core::mem::take(&mut self.nodes[usize::from(server)].dark);
        if self.nodes[usize::from(server)].master.is_running() {
            return;
        }
        self.load(plan, server);
        self.renew_sessions(plan, server);
        if self.nodes[usize::from(server)].replication.role == Role::Deposed {
            self.nodes[usize::from(server)].replication.role = Role::Replica;
            self.assume_role(server);
        }
        if self.nodes[usize::from(server)].is_master() {
            self.node_is_up(plan.nodes[usize::from(server)].node);
        }
        self.rejoin(plan, server);
        self.end_turn(plan, server);
        self.schedule_expiry(plan, server);
        if !was_dark {
            return;
        }
        // A client that still believes in the old connection gets a reset from the new kernel when
        // it next sends or retransmits something.
        let host = plan.nodes[usize::from(server)].host.0;
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
    fn load(&mut self, plan: &Plan, server: u8) {
        let wall_ms = self.node_wall_ms(plan, server);
        let incarnation = self.nodes[usize::from(server)].master.incarnation() + 1;
        let run_id = run_id(server, incarnation);
        let node = plan.nodes[usize::from(server)].node;
        let tells = self.nodes[usize::from(server)].is_master();
        let Self { nodes, recorder, now_ns, returned, .. } = self;
        nodes[usize::from(server)].master.forget();
        nodes[usize::from(server)].master.restart(
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
    pub(in crate::engine) fn node_is_up(&mut self, node: u8) {
        self.starts[usize::from(node)] += 1;
        let incarnation = self.starts[usize::from(node)];
        self.record(EventKind::NodeUp { node, incarnation });
    }

    pub(in crate::engine) fn record_returned(&mut self) {
        if let Some(kind) = self.returned.take() {
            self.record(kind);
        }
    }
}
