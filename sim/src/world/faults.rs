//! Effects of faults at their beginning and at their end.

use lock_judge::history::{AttemptId, ClockKind, EventKind, HostId, HostIds, NodeId};
use lock_judge::ids::{ResourceId, StrikeId};
use lock_judge::scenario::{AttemptStep, Lost};
use redis_sim::{Ended, Master};

use super::clients::Input;
use super::key_events::{is_a_locks, key_ended};
use super::network::{ConnectionState, Unsent};
use super::{Due, World};
use crate::plan::{End, FaultEffect, Manner};

impl World {
    /// Begins the faults that wait for this step of an attempt.
    #[inline]
    pub(crate) fn reach(&mut self, attempt: AttemptId, step: AttemptStep, node: Option<NodeId>) {
        if self.plan.has_points {
            self.set_off(attempt, step, node);
        }
    }

    #[cold]
    fn set_off(&mut self, attempt: AttemptId, step: AttemptStep, node: Option<NodeId>) {
        while let Some(strike) = self.faults.take_waiting(&self.plan, attempt, step, node) {
            self.begin_fault(strike);
        }
    }

    pub(super) fn begin_fault(&mut self, strike: StrikeId) {
        let fault = self.plan.faults[strike];
        if fault.opens {
            self.record(EventKind::FaultBegan { fault: fault.id });
        }
        self.begin_effect(strike, fault.effect);
        match fault.end {
            End::At(at_ns) => self.agenda.schedule(at_ns, Due::FaultEnds(strike)),
            End::After(after_ns) => {
                self.agenda.schedule(self.agenda.now_ns() + after_ns, Due::FaultEnds(strike));
            }
            End::Instantly => self.end_fault(strike),
            End::Measured { clock, after_ns } => {
                let FaultEffect::Die { host, .. } = fault.effect else {
                    unreachable!("only a restart is measured")
                };
                let Self { faults, clocks, agenda, .. } = self;
                faults.measure_restart((strike, host), (clock, after_ns), clocks, agenda);
            }
            End::Never => {}
        }
    }

    fn begin_effect(&mut self, strike: StrikeId, effect: FaultEffect) {
        match effect {
            FaultEffect::Attach { replica } => self.attach(replica),
            FaultEffect::ClockJump { host, by_ns } => {
                self.clocks[host].step_wall(by_ns, self.agenda.now_ns());
                self.clocks_changed(host);
            }
            FaultEffect::ClockRate { host, rate_ppb } => self.set_clock_rate(host, rate_ppb),
            FaultEffect::Delay { .. } => self.delays.begin(effect),
            FaultEffect::Delete { node, resource } => {
                self.remove((node, resource), Master::delete);
            }
            FaultEffect::Demote { node, of, keeps_keys } => self.demote(node, of, keeps_keys),
            FaultEffect::Die { host, death } => match self.plan.server_at(host) {
                Some(server) => self.server_dies(server, strike, death),
                None => self.client_dies(host, death.manner == Manner::PowerLost),
            },
            FaultEffect::DiskStall { server } => self.stall_disk(server),
            FaultEffect::Evict { node, resource } => self.remove((node, resource), Master::evict),
            FaultEffect::FailOver { node, to, told } => self.fail_over(node, to, told),
            FaultEffect::Flush { node, database } => self.flush(node, database),
            FaultEffect::MemoryFull { server } => self.cluster[server].fill_memory(),
            FaultEffect::Partition { from, to, one_way, lost } => {
                self.cut(from, to, lost);
                if !one_way {
                    self.cut(to, from, lost);
                }
            }
            FaultEffect::Snapshot { server } => self.snapshot(server),
            FaultEffect::SpuriousPush { node, resource } => self.push_spuriously(node, resource),
            FaultEffect::Stall { server } => {
                self.cluster[server].stalls += 1;
                let node = self.plan.servers[server].node;
                self.record(EventKind::NodeStalled { node });
            }
            FaultEffect::Stop { host, suspended } => self.stop(host, suspended),
            FaultEffect::Swap { node, databases } => self.swap(node, databases),
        }
    }

    pub(super) fn end_fault(&mut self, strike: StrikeId) {
        let fault = self.plan.faults[strike];
        let is_measured = matches!(fault.end, End::Measured { .. });
        let now_ns = self.now_ns();
        if is_measured && !self.faults.take_due_restart(strike, &self.clocks, now_ns) {
            return;
        }
        self.faults.ended();
        self.end_effect(fault.effect);
        if fault.closes {
            self.record(EventKind::FaultEnded { fault: fault.id });
        }
        // Clients that wait for the end of the faults check again.
        self.clients.wake_all();
    }

    fn end_effect(&mut self, effect: FaultEffect) {
        match effect {
            FaultEffect::ClockRate { host, .. } => self.set_clock_rate(host, 0),
            FaultEffect::Delay { .. } => self.delays.end(effect),
            FaultEffect::Demote { node, of, .. } => self.end_demotion(node, of),
            FaultEffect::Die { host, .. } => {
                let server = self.plan.server_at(host).expect("only servers restart");
                self.server_restarts(server);
            }
            FaultEffect::FailOver { node, .. } => self.end_failover(node),
            FaultEffect::DiskStall { server } => self.unstall_disk(server),
            FaultEffect::MemoryFull { server } => self.cluster[server].free_memory(),
            FaultEffect::Partition { from, to, one_way, .. } => {
                self.uncut(from, to);
                if !one_way {
                    self.uncut(to, from);
                }
                self.retransmit();
            }
            FaultEffect::Stall { server } => {
                let host = &mut self.cluster[server];
                host.stalls -= 1;
                if host.stalls == 0 {
                    let node = self.plan.servers[server].node;
                    self.record(EventKind::NodeUnstalled { node });
                    self.schedule_expiry(server);
                    self.drain_inbox(server);
                }
            }
            FaultEffect::Stop { host, suspended } => self.resume(host, suspended),
            FaultEffect::Attach { .. }
            | FaultEffect::ClockJump { .. }
            | FaultEffect::Delete { .. }
            | FaultEffect::Evict { .. }
            | FaultEffect::Flush { .. }
            | FaultEffect::Snapshot { .. }
            | FaultEffect::SpuriousPush { .. }
            | FaultEffect::Swap { .. } => {}
        }
    }

    /// Sets how much faster than usual the clocks of a host run.
    fn set_clock_rate(&mut self, host: HostId, extra_ppb: i32) {
        let (_, usual_ppb) = self.plan.clocks[host];
        self.clocks[host].set_rate(usual_ppb + extra_ppb, self.agenda.now_ns());
        self.clocks_changed(host);
    }

    /// Records the readings of a host's clocks, and reschedules what depends on them.
    fn clocks_changed(&mut self, host: HostId) {
        self.record_clocks(host);
        self.faults.clocks_changed(host, &self.clocks, &mut self.agenda);
        match self.plan.server_at(host) {
            Some(server) => self.reschedule_expiry(server),
            None => self.clients.wake(self.plan.client_at(host)),
        }
    }

    /// Records the readings of a host's clocks.
    pub(crate) fn record_clocks(&mut self, host: HostId) {
        let is_server = self.plan.server_at(host).is_some();
        for clock in ClockKind::ALL {
            // A master uses only its wall clock.
            if is_server && clock != ClockKind::Wall {
                continue;
            }
            let segment = self.clocks[host].segment(clock);
            let (local_ns, rate_ppb) = (segment.local_at(self.now_ns()), segment.rate_ppb);
            self.record(EventKind::Clock { host, clock, local_ns, rate_ppb });
        }
    }

    fn stop(&mut self, host: HostId, suspended: bool) {
        self.clients.stop(self.plan.client_at(host));
        self.record(EventKind::Stopped { host, suspended });
        if suspended {
            self.clocks[host].set_asleep(true, self.agenda.now_ns());
            self.record_clocks(host);
        }
    }

    fn resume(&mut self, host: HostId, suspended: bool) {
        if suspended {
            self.clocks[host].set_asleep(false, self.agenda.now_ns());
            self.record_clocks(host);
        }
        if self.clients.resume(self.plan.client_at(host)) {
            self.record(EventKind::Continued { host });
        }
    }

    fn client_dies(&mut self, host: HostId, power: bool) {
        if !self.clients.kill(self.plan.client_at(host)) {
            return;
        }
        self.record(EventKind::Killed { host, power });
        let unsent = if power { Unsent::Dropped } else { Unsent::Retransmitted };
        for number in self.network.numbers() {
            if self.network.connection(number).client == host {
                self.network.close(number, unsent);
            }
        }
    }

    /// Removes a lock's key from a node that has a process and is not ideal.
    fn remove(
        &mut self,
        (node, resource): (NodeId, ResourceId),
        how: fn(&mut Master, &[u8]) -> Option<Ended>,
    ) {
        if !self.can_change_keys(node) {
            return;
        }
        let server = self.cluster.master(node);
        if let Some(ended) = how(&mut self.cluster[server].redis, self.plan.key(resource)) {
            self.record(key_ended(node, &ended));
            self.tell_readers(server, resource, None);
            self.end_turn(server);
        }
    }

    fn flush(&mut self, node: NodeId, database: Option<u8>) {
        if !self.can_change_keys(node) {
            return;
        }
        let Self { cluster, recorder, agenda, plan, .. } = self;
        let server = cluster.master(node);
        let ended = |ended: Ended| {
            if is_a_locks(&ended, plan) {
                recorder.record(agenda.now_ns(), key_ended(node, &ended));
            }
        };
        let redis = &mut cluster[server].redis;
        match database {
            None => redis.flush(ended),
            Some(database) => redis.flush_database(database, ended),
        }
        self.tell_listeners(server);
        self.end_turn(server);
    }

    /// Swaps two databases. Servers push no notice of a swap, so no client is notified.
    fn swap(&mut self, node: NodeId, [one, other]: [u8; 2]) {
        if !self.can_change_keys(node) {
            return;
        }
        let server = self.cluster.master(node);
        let wall_ms = self.wall_ms(server);
        self.change_keys(node, |server| server.swap_databases(one, other, wall_ms));
        self.end_turn(server);
    }

    fn cut(&mut self, from: HostIds, to: HostIds, lost: Lost) {
        for (from, to) in pairs(from, to) {
            self.network.cut(from, to);
            match lost {
                Lost::Hold => {}
                Lost::Reset => self.reset_between(from, to),
                Lost::Silent => self.network.silence(from, to),
            }
        }
    }

    fn uncut(&mut self, from: HostIds, to: HostIds) {
        for (from, to) in pairs(from, to) {
            self.network.heal(from, to);
        }
    }

    /// Resets every connection between two hosts; both ends see the reset. What a client has written
    /// is in front of it on the wire.
    fn reset_between(&mut self, one: HostId, other: HostId) {
        for number in self.network.numbers() {
            let connection = self.network.connection_mut(number);
            let ends = (connection.client, connection.server);
            let open = connection.state != ConnectionState::Closed;
            if !open || (ends != (one, other) && ends != (other, one)) {
                continue;
            }
            if let Some(replica) = self.plan.server_at(ends.0) {
                connection.served = false;
                self.network.reset(number);
                // The replica dials again; the dial takes as long as the partition lasts.
                self.attach(replica);
            } else {
                self.network.close(number, Unsent::Dropped);
                self.clients.give(self.plan.client_at(ends.0), Input::Reset(number));
            }
        }
    }
}

fn pairs(from: HostIds, to: HostIds) -> impl Iterator<Item = (HostId, HostId)> {
    from.iter().flat_map(move |from| to.iter().map(move |to| (from, to)))
}
