//! Effects of faults at their beginning and at their end.

use super::nodes::key_ended;
use super::plan::{Begin, Death, End, FaultEffect, Hosts, Manner, Plan};
use super::{Input, QueueEntry, Stage};
use crate::history::{AttemptId, ClockKind, EventKind, HostIndex};
use crate::master::{Ended, Master};
use crate::scenario::{Lost, Point};
use crate::world::ConnectionState;

impl Stage {
    /// Schedules every fault that begins at a given time.
    pub(in crate::engine) fn schedule_faults(&mut self, plan: &Plan) {
        self.restarts.clear();
        self.set_off.clear();
        self.set_off.resize(plan.faults.len(), false);
        self.faults_open = 0;
        for (place, fault) in plan.faults.iter().enumerate() {
            self.faults_open += u32::from(fault.end != End::Never);
            if let Begin::At(at_ns) = fault.begin {
                self.queue.schedule(at_ns, QueueEntry::FaultBegins(place as u16));
            }
            if let FaultEffect::Die { death: Death { backup_of_ns: Some(at_ns), .. }, .. } =
                fault.doing
            {
                self.queue.schedule(at_ns, QueueEntry::BackUp(place as u16));
            }
        }
    }

    /// Begins the faults that wait for this step of an attempt.
    pub(in crate::engine) fn reach_point(
        &mut self,
        plan: &Plan,
        attempt: AttemptId,
        point: Point,
        node: Option<u8>,
    ) {
        if !plan.has_points {
            return;
        }
        for (place, fault) in plan.faults.iter().enumerate() {
            let Begin::Before { client, attempt: number, point: wanted, node: at } = fault.begin
            else {
                continue;
            };
            let here = (client, wanted) == (attempt.client, point)
                && number.is_none_or(|number| number == attempt.number);
            if here && (at.is_none() || at == node) && !self.set_off[place] {
                self.set_off[place] = true;
                self.begin_fault(plan, place as u16);
            }
        }
    }

    pub(in crate::engine) fn begin_fault(&mut self, plan: &Plan, place: u16) {
        let fault = plan.faults[usize::from(place)];
        if fault.opens {
            self.record(EventKind::FaultBegan { fault: fault.place });
        }
        match fault.doing {
            FaultEffect::Attach { replica } => self.attach(plan, replica),
            FaultEffect::ClockJump { host, by_ns } => {
                self.clocks[host.get()].step_wall(by_ns, self.now_ns);
                self.clocks_changed(plan, host);
            }
            FaultEffect::ClockRate { host, rate_ppb } => {
                let (_, usual) = plan.clocks[host.get()];
                self.clocks[host.get()].set_rate(usual + rate_ppb, self.now_ns);
                self.clocks_changed(plan, host);
            }
            FaultEffect::Delay { .. } => self.active_delays.push(fault.doing),
            FaultEffect::Delete { node } => self.remove(plan, node, Master::delete),
            FaultEffect::Demote { node, of, keeps_keys } => self.demote(plan, node, of, keeps_keys),
            FaultEffect::Die { host, death } => match plan.server_at(host.0) {
                Some(server) => self.server_dies(plan, server, place, death),
                None => self.client_dies(plan, host, death.manner == Manner::PowerLost),
            },
            FaultEffect::DiskStall { node } => self.stall_disk(node),
            FaultEffect::Evict { node } => self.remove(plan, node, Master::evict),
            FaultEffect::FailOver { node, to, told } => self.fail_over(plan, node, to, told),
            FaultEffect::Flush { node, database } => self.flush(plan, node, database),
            FaultEffect::MemoryFull { node } => {
                let host = &mut self.nodes[usize::from(node)];
                host.full += 1;
                host.master.set_full(true);
            }
            FaultEffect::Partition { from, to, one_way, lost } => {
                self.cut(plan, from, to, lost);
                if !one_way {
                    self.cut(plan, to, from, lost);
                }
            }
            FaultEffect::Snapshot { node } => self.snapshot(node),
            FaultEffect::Stall { node } => {
                let host = &mut self.nodes[usize::from(node)];
                host.stalls += 1;
                self.record(EventKind::NodeStalled { node });
            }
            FaultEffect::Stop { host, suspended } => self.stop(plan, host, suspended),
            FaultEffect::Swap { node, databases } => self.swap(plan, node, databases),
        }
        match fault.end {
            End::At(at_ns) => self.queue.schedule(at_ns, QueueEntry::FaultEnds(place)),
            End::After(after_ns) => {
                self.queue.schedule(self.now_ns + after_ns, QueueEntry::FaultEnds(place));
            }
            End::Instantly => self.end_fault(plan, place),
            End::Measured { clock, after_ns } => {
                self.measure_restart(fault.doing, place, clock, after_ns);
            }
            End::Never => {}
        }
    }

    pub(in crate::engine) fn end_fault(&mut self, plan: &Plan, place: u16) {
        let fault = plan.faults[usize::from(place)];
        if matches!(fault.end, End::Measured { .. }) && !self.is_restart_due(place) {
            return;
        }
        self.faults_open -= 1;
        match fault.doing {
            FaultEffect::ClockRate { host, .. } => {
                let (_, usual) = plan.clocks[host.get()];
                self.clocks[host.get()].set_rate(usual, self.now_ns);
                self.clocks_changed(plan, host);
            }
            FaultEffect::Delay { .. } => {
                let place = self.active_delays.iter().position(|&active| active == fault.doing);
                self.active_delays.swap_remove(place.expect("a delay ends once"));
            }
            FaultEffect::Demote { node, of, .. } => self.end_demotion(plan, node, of),
            FaultEffect::Die { host, .. } => {
                let server = plan.server_at(host.0).expect("only servers restart");
                self.server_restarts(plan, server);
            }
            FaultEffect::FailOver { node, .. } => self.end_failover(plan, node),
            FaultEffect::DiskStall { node } => self.unstall_disk(plan, node),
            FaultEffect::MemoryFull { node } => {
                let host = &mut self.nodes[usize::from(node)];
                host.full -= 1;
                host.master.set_full(host.full > 0);
            }
            FaultEffect::Partition { from, to, one_way, .. } => {
                self.uncut(from, to);
                if !one_way {
                    self.uncut(to, from);
                }
                self.retransmit();
            }
            FaultEffect::Stall { node } => {
                let host = &mut self.nodes[usize::from(node)];
                host.stalls -= 1;
                if host.stalls == 0 {
                    self.record(EventKind::NodeUnstalled { node });
                    self.schedule_expiry(plan, node);
                    self.drain_inbox(plan, node);
                }
            }
            FaultEffect::Stop { host, suspended } => self.resume(plan, host, suspended),
            FaultEffect::Attach { .. }
            | FaultEffect::ClockJump { .. }
            | FaultEffect::Delete { .. }
            | FaultEffect::Evict { .. }
            | FaultEffect::Flush { .. }
            | FaultEffect::Snapshot { .. }
            | FaultEffect::Swap { .. } => {}
        }
        if fault.closes {
            self.record(EventKind::FaultEnded { fault: fault.place });
        }
        // Clients that wait for the end of the faults check again.
        self.wake_all();
    }

    fn wake_all(&mut self) {
        for client in 0..self.clients.len() as u8 {
            self.wake(client);
        }
    }

    /// Records the readings of a host's clocks, and reschedules the restarts that depend on them.
    fn clocks_changed(&mut self, plan: &Plan, host: HostIndex) {
        self.record_clocks(plan, host);
        for place in 0..self.restarts.len() {
            if self.restarts[place].host == host {
                self.schedule_restart(self.restarts[place]);
            }
        }
        if let Some(server) = plan.server_at(host.0) {
            self.nodes[usize::from(server)].expiry_scheduled = false;
            self.schedule_expiry(plan, server);
        } else {
            self.wake((host.get() - plan.node_count) as u8);
        }
    }

    pub(in crate::engine) fn record_clocks(&mut self, plan: &Plan, host: HostIndex) {
        for clock in ClockKind::ALL {
            // A master uses only its wall clock.
            if plan.server_at(host.0).is_some() && clock != ClockKind::Wall {
                continue;
            }
            let segment = self.clocks[host.get()].segment(clock);
            let (local_ns, rate_ppb) = (segment.local_at(self.now_ns), segment.rate_ppb);
            self.record(EventKind::Clock { host, clock, local_ns, rate_ppb });
        }
    }

    fn stop(&mut self, plan: &Plan, host: HostIndex, suspended: bool) {
        let client = host.get() - plan.node_count;
        self.clients[client].stops += 1;
        self.record(EventKind::Stopped { host, suspended });
        if suspended {
            self.clocks[host.get()].set_asleep(true, self.now_ns);
            self.record_clocks(plan, host);
        }
    }

    fn resume(&mut self, plan: &Plan, host: HostIndex, suspended: bool) {
        let client = host.get() - plan.node_count;
        if suspended {
            self.clocks[host.get()].set_asleep(false, self.now_ns);
            self.record_clocks(plan, host);
        }
        self.clients[client].stops -= 1;
        if self.clients[client].stops == 0 && !self.clients[client].dead {
            self.record(EventKind::Continued { host });
        }
    }

    fn client_dies(&mut self, plan: &Plan, host: HostIndex, power: bool) {
        let client = &mut self.clients[host.get() - plan.node_count];
        if client.dead {
            return;
        }
        client.dead = true;
        client.inbox.clear();
        self.record(EventKind::Killed { host, power });
        for number in self.network.numbers() {
            if self.network.connection(number).client == host.0 {
                self.network.client_gone(number, power);
            }
        }
    }

    /// Removes the lock's key from a node that has a process and is not ideal.
    fn remove(&mut self, plan: &Plan, node: u8, how: fn(&mut Master, &[u8]) -> Option<Ended>) {
        let server = self.masters[usize::from(node)];
        let host = &mut self.nodes[usize::from(server)];
        if !host.master.is_running() || plan.nodes[usize::from(node)].ideal {
            return;
        }
        if let Some(ended) = how(&mut host.master, &plan.key) {
            self.record(key_ended(node, &ended));
            self.tell_readers(plan, server, None);
            self.end_turn(plan, server);
        }
    }

    fn flush(&mut self, plan: &Plan, node: u8, database: Option<u8>) {
        let server = self.masters[usize::from(node)];
        if !self.can_change_keys(plan, node) {
            return;
        }
        let Self { nodes, recorder, now_ns, .. } = self;
        let ended = |ended: Ended| {
            if ended.database == 0 && *ended.key == plan.key[..] {
                recorder.record(*now_ns, key_ended(node, &ended));
            }
        };
        let master = &mut nodes[usize::from(server)].master;
        match database {
            None => master.flush(ended),
            Some(database) => master.flush_database(database, ended),
        }
        self.tell_listeners(plan, server);
        self.end_turn(plan, server);
    }

    /// Swaps two databases. Servers push no notice of a swap, so no client is notified.
    fn swap(&mut self, plan: &Plan, node: u8, [one, other]: [u8; 2]) {
        let server = self.masters[usize::from(node)];
        let wall_ms = self.node_wall_ms(plan, server);
        if self.can_change_keys(plan, node) {
            self.change_keys(plan, node, |server| server.swap_databases(one, other, wall_ms));
            self.end_turn(plan, server);
        }
    }

    /// Returns true if an operator can change the keys of a node: the node has a process and is not
    /// ideal.
    fn can_change_keys(&self, plan: &Plan, node: u8) -> bool {
        let server = self.masters[usize::from(node)];
        let runs = self.nodes[usize::from(server)].master.is_running();
        runs && !plan.nodes[usize::from(node)].ideal
    }

    fn cut(&mut self, plan: &Plan, from: Hosts, to: Hosts, lost: Lost) {
        for (from, to) in pairs(from, to) {
            self.network.cut(from, to);
            match lost {
                Lost::Hold => {}
                Lost::Reset => self.reset_between(plan, from, to),
                Lost::Silent => self.network.silence(from, to),
            }
        }
    }

    fn uncut(&mut self, from: Hosts, to: Hosts) {
        for (from, to) in pairs(from, to) {
            self.network.heal(from, to);
        }
    }

    /// Resets every connection between two hosts; both ends see the reset.
    fn reset_between(&mut self, plan: &Plan, one: u8, other: u8) {
        for number in self.network.numbers() {
            let connection = self.network.connection_mut(number);
            let ends = (connection.client, connection.server);
            let open = connection.state != ConnectionState::Closed;
            if !open || (ends != (one, other) && ends != (other, one)) {
                continue;
            }
            connection.served = false;
            self.network.reset(number);
            match plan.server_at(ends.0) {
                // The replica dials again; the dial takes as long as the partition lasts.
                Some(replica) => self.attach(plan, replica),
                None => self.give(ends.0 - plan.node_count as u8, Input::Reset(number)),
            }
        }
    }
}

fn pairs(from: Hosts, to: Hosts) -> impl Iterator<Item = (u8, u8)> {
    let hosts = move |set: Hosts| (0..32_u8).filter(move |host| set & (1 << host) != 0);
    hosts(from).flat_map(move |from| hosts(to).map(move |to| (from, to)))
}
