//! What faults do when they begin and when they end.

use super::nodes::{key_ended, key_returned};
use super::plan::{Begin, Death, Doing, End, Hosts, Manner, Plan};
use super::replication::Role;
use super::stage::{Happening, Input, MeasuredRestart, Stage};
use crate::history::{AttemptId, ClockKind, EventKind, HostIndex};
use crate::master::run_id;
use crate::scenario::{Lost, Point};
use crate::world::{Arrival, Choice, ConnectionState, Direction, Label};

impl Stage {
    /// Schedules every fault that begins at a time.
    pub(super) fn schedule_faults(&mut self, plan: &Plan) {
        self.restarts.clear();
        self.set_off.clear();
        self.set_off.resize(plan.faults.len(), false);
        self.faults_open = 0;
        for (place, fault) in plan.faults.iter().enumerate() {
            self.faults_open += u32::from(fault.end != End::Never);
            if let Begin::At(at_ns) = fault.begin {
                self.queue.schedule(at_ns, Happening::FaultBegins(place as u16));
            }
            if let Doing::Die { death: Death { backup_of_ns: Some(at_ns), .. }, .. } = fault.doing {
                self.queue.schedule(at_ns, Happening::BackUp(place as u16));
            }
        }
    }

    /// A client's attempt is about to take a step: faults that wait for it begin.
    pub(super) fn reach_point(
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
            let here = (client, number, wanted) == (attempt.client, attempt.number, point);
            if here && (at.is_none() || at == node) && !self.set_off[place] {
                self.set_off[place] = true;
                self.begin_fault(plan, place as u16);
            }
        }
    }

    pub(super) fn begin_fault(&mut self, plan: &Plan, place: u16) {
        let fault = plan.faults[usize::from(place)];
        if fault.opens {
            self.record(EventKind::FaultBegan { fault: fault.place });
        }
        match fault.doing {
            Doing::ClockJump { host, by_ns } => {
                self.clocks[host.get()].step_wall(by_ns, self.now_ns);
                self.clocks_changed(plan, host);
            }
            Doing::ClockRate { host, rate_ppb } => {
                let (_, usual) = plan.clocks[host.get()];
                self.clocks[host.get()].set_rate(usual + rate_ppb, self.now_ns);
                self.clocks_changed(plan, host);
            }
            Doing::Delay { .. } => self.active_delays.push(fault.doing),
            Doing::Delete { node } => self.delete(plan, node),
            Doing::Die { host, death } => match plan.server_at(host.0) {
                Some(server) => self.server_dies(plan, server, place, death),
                None => self.client_dies(plan, host, death.manner == Manner::PowerLost),
            },
            Doing::DiskStall { node } => self.stall_disk(node),
            Doing::Evict { node } => self.evict(plan, node),
            Doing::FailOver { node, to, told } => self.fail_over(plan, node, to, told),
            Doing::Flush { node } => self.flush(plan, node),
            Doing::MemoryFull { node } => {
                let host = &mut self.nodes[usize::from(node)];
                host.full += 1;
                host.master.set_full(true);
            }
            Doing::Partition { from, to, one_way, lost } => {
                self.cut(plan, from, to, lost);
                if !one_way {
                    self.cut(plan, to, from, lost);
                }
            }
            Doing::Snapshot { node } => self.snapshot(node),
            Doing::Stall { node } => {
                let host = &mut self.nodes[usize::from(node)];
                host.stalls += 1;
                self.record(EventKind::NodeStalled { node });
            }
            Doing::Stop { host, suspended } => self.stop(plan, host, suspended),
        }
        match fault.end {
            End::At(at_ns) => self.queue.schedule(at_ns, Happening::FaultEnds(place)),
            End::After(after_ns) => {
                self.queue.schedule(self.now_ns + after_ns, Happening::FaultEnds(place));
            }
            End::Instantly => self.end_fault(plan, place),
            End::Measured { clock, after_ns } => {
                self.measure_restart(fault.doing, place, clock, after_ns);
            }
            End::Never => {}
        }
    }

    pub(super) fn end_fault(&mut self, plan: &Plan, place: u16) {
        let fault = plan.faults[usize::from(place)];
        if matches!(fault.end, End::Measured { .. }) && !self.is_restart_due(place) {
            return;
        }
        self.faults_open -= 1;
        match fault.doing {
            Doing::ClockRate { host, .. } => {
                let (_, usual) = plan.clocks[host.get()];
                self.clocks[host.get()].set_rate(usual, self.now_ns);
                self.clocks_changed(plan, host);
            }
            Doing::Delay { .. } => {
                let place = self.active_delays.iter().position(|&active| active == fault.doing);
                self.active_delays.swap_remove(place.expect("a delay ends once"));
            }
            Doing::Die { host, .. } => {
                let server = plan.server_at(host.0).expect("only servers restart");
                self.server_restarts(plan, server);
            }
            Doing::FailOver { node, .. } => self.end_failover(plan, node),
            Doing::DiskStall { node } => self.unstall_disk(plan, node),
            Doing::MemoryFull { node } => {
                let host = &mut self.nodes[usize::from(node)];
                host.full -= 1;
                host.master.set_full(host.full > 0);
            }
            Doing::Partition { from, to, one_way, .. } => {
                self.uncut(from, to);
                if !one_way {
                    self.uncut(to, from);
                }
                self.retransmit();
            }
            Doing::Stall { node } => {
                let host = &mut self.nodes[usize::from(node)];
                host.stalls -= 1;
                if host.stalls == 0 {
                    self.record(EventKind::NodeUnstalled { node });
                    self.schedule_expiry(plan, node);
                    self.drain_inbox(plan, node);
                }
            }
            Doing::Stop { host, suspended } => self.resume(plan, host, suspended),
            Doing::ClockJump { .. }
            | Doing::Delete { .. }
            | Doing::Evict { .. }
            | Doing::Flush { .. }
            | Doing::Snapshot { .. } => {}
        }
        if fault.closes {
            self.record(EventKind::FaultEnded { fault: fault.place });
        }
        // Whoever waits for the end of the faults looks again.
        self.wake_all();
    }

    fn wake_all(&mut self) {
        for client in 0..self.clients.len() as u8 {
            self.wake(client);
        }
    }

    /// Tells the history what a host's clocks read, and sets off again what depends on them.
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

    pub(super) fn record_clocks(&mut self, plan: &Plan, host: HostIndex) {
        for clock in ClockKind::ALL {
            // A master uses its wall clock alone.
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
                self.network.client_gone(number);
            }
        }
    }

    /// The delay of a restart begins, on a clock of the host.
    fn measure_restart(&mut self, doing: Doing, fault: u16, clock: ClockKind, after_ns: u64) {
        let Doing::Die { host, .. } = doing else { unreachable!("only a restart is measured") };
        let due_local_ns = self.clocks[host.get()].read(clock, self.now_ns) + after_ns;
        let restart = MeasuredRestart { fault, host, clock, due_local_ns };
        self.restarts.push(restart);
        self.schedule_restart(restart);
    }

    fn schedule_restart(&mut self, restart: MeasuredRestart) {
        let MeasuredRestart { fault, host, clock, due_local_ns } = restart;
        if let Some(at_ns) = self.clocks[host.get()].true_at(clock, due_local_ns) {
            self.queue.schedule(at_ns.max(self.now_ns), Happening::FaultEnds(fault));
        }
    }

    /// Whether the clock says so now, which it may have been expected to say at another time.
    fn is_restart_due(&mut self, fault: u16) -> bool {
        let place = self.restarts.iter().position(|it| it.fault == fault);
        let due = place.filter(|&place| {
            let MeasuredRestart { host, clock, due_local_ns, .. } = self.restarts[place];
            self.clocks[host.get()].read(clock, self.now_ns) >= due_local_ns
        });
        due.map(|place| self.restarts.swap_remove(place)).is_some()
    }

    /// A copy of what is written is made, for the fault at `place`.
    pub(super) fn back_up(&mut self, plan: &Plan, place: u16) {
        if let Doing::Die { host, .. } = plan.faults[usize::from(place)].doing
            && let Some(server) = plan.server_at(host.0)
        {
            self.nodes[usize::from(server)].master.disk_mut().back_up(place);
        }
    }

    fn server_dies(&mut self, plan: &Plan, server: u8, place: u16, death: Death) {
        let power = death.manner == Manner::PowerLost;
        if self.nodes[usize::from(server)].master.is_running() {
            if death.manner == Manner::ShutDown {
                // It answers what it has executed before it goes.
                self.send_held(plan, server);
            }
            self.disk_after(server, place, death);
            self.nodes[usize::from(server)].inbox.clear();
            self.forget_disk_work(plan, server);
            if power {
                self.lose_stream(server);
            }
            self.forget_replication(plan, server);
            let node = plan.nodes[usize::from(server)].node;
            if self.nodes[usize::from(server)].is_master() {
                self.record(EventKind::NodeDown { node, power });
            }
        } else if !self.nodes[usize::from(server)].dark {
            self.disk_after(server, place, death);
        }
        self.nodes[usize::from(server)].dark |= power;
        let host = plan.nodes[usize::from(server)].host.0;
        for number in self.network.numbers() {
            let connection = self.network.connection_mut(number);
            if connection.server != host || !connection.served {
                continue;
            }
            connection.served = false;
            // The kernel of a dead process says goodbye; a dead host says nothing.
            if !power && connection.state != ConnectionState::Closed {
                self.send(plan, number, Direction::Down, Arrival::Closed);
            }
        }
    }

    /// The process is gone, if it was not before, and this is left of what it kept.
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

    fn server_restarts(&mut self, plan: &Plan, server: u8) {
        let was_dark = core::mem::take(&mut self.nodes[usize::from(server)].dark);
        if self.nodes[usize::from(server)].master.is_running() {
            return;
        }
        self.load(plan, server);
        if self.nodes[usize::from(server)].replication.role == Role::Deposed {
            self.nodes[usize::from(server)].replication.role = Role::Replica;
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
        // A client that still believes in the old connection hears from the new kernel that there
        // is none, when it sends something or sends it again.
        let host = plan.nodes[usize::from(server)].host.0;
        for number in self.network.numbers() {
            let connection = self.network.connection(number);
            let is_client = plan.server_at(connection.client).is_none();
            let is_open = connection.state != ConnectionState::Closed;
            if connection.server == host && is_client && is_open {
                self.send(plan, number, Direction::Down, Arrival::Closed);
            }
        }
    }

    /// A new process loads what the disk kept.
    fn load(&mut self, plan: &Plan, server: u8) {
        let wall_ms = self.node_wall_ms(plan, server);
        let incarnation = self.nodes[usize::from(server)].master.incarnation() + 1;
        let run_id = run_id(server, incarnation);
        let node = plan.nodes[usize::from(server)].node;
        let tells = self.nodes[usize::from(server)].is_master();
        let Self { nodes, recorder, now_ns, returned, .. } = self;
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

    /// The node has a process again.
    pub(super) fn node_is_up(&mut self, node: u8) {
        self.starts[usize::from(node)] += 1;
        let incarnation = self.starts[usize::from(node)];
        self.record(EventKind::NodeUp { node, incarnation });
    }

    pub(super) fn record_returned(&mut self) {
        if let Some(kind) = self.returned.take() {
            self.record(kind);
        }
    }

    fn evict(&mut self, plan: &Plan, node: u8) {
        let server = self.masters[usize::from(node)];
        let host = &mut self.nodes[usize::from(server)];
        if !host.master.is_running() || plan.nodes[usize::from(node)].ideal {
            return;
        }
        if let Some(ended) = host.master.evict(&plan.key) {
            self.record(key_ended(node, &ended));
            self.end_turn(plan, server);
        }
    }

    fn delete(&mut self, plan: &Plan, node: u8) {
        let server = self.masters[usize::from(node)];
        let host = &mut self.nodes[usize::from(server)];
        if !host.master.is_running() || plan.nodes[usize::from(node)].ideal {
            return;
        }
        if let Some(ended) = host.master.delete(&plan.key) {
            self.record(key_ended(node, &ended));
            self.end_turn(plan, server);
        }
    }

    fn flush(&mut self, plan: &Plan, node: u8) {
        let server = self.masters[usize::from(node)];
        let runs = self.nodes[usize::from(server)].master.is_running();
        if !runs || plan.nodes[usize::from(node)].ideal {
            return;
        }
        let Self { nodes, recorder, now_ns, .. } = self;
        nodes[usize::from(server)].master.flush(|ended| {
            if *ended.key == plan.key[..] {
                recorder.record(*now_ns, key_ended(node, &ended));
            }
        });
        self.end_turn(plan, server);
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

    /// Both ends of every connection between two hosts see a reset.
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
                // It dials again, which takes as long as the partition.
                Some(replica) => self.attach(plan, replica),
                None => self.give(ends.0 - plan.node_count as u8, Input::Closed(number)),
            }
        }
    }
}

fn pairs(from: Hosts, to: Hosts) -> impl Iterator<Item = (u8, u8)> {
    let hosts = move |set: Hosts| (0..32_u8).filter(move |host| set & (1 << host) != 0);
    hosts(from).flat_map(move |from| hosts(to).map(move |to| (from, to)))
}
