//! Draws the faults. Each plan switches a random subset of the kinds on: a plan with few kinds has
//! more faults of each, and repeated faults of one kind reach situations that mixtures do not.

use lock_judge::scenario::{
    At, AttemptPoint, AttemptStep, Chance, ClockBy, ClockRate, CountRange, Delay, Demotion, Ends,
    Failover, Fault, FaultKind, Flush, HostNames, Lost, Message, OneHost, OneKey, Partition,
    Persistence, RestartGuard, Restarting, SignedSpan, SignedSpanRange, Span, SpanRange, Stopwatch,
    Swap, WhichAttempt,
};

use super::Sketch;
use crate::explore::assumptions::{Assumption, Assumptions, dies, longest_key};
use crate::explore::limits;

/// Most faults that are drawn one by one.
pub(super) const FAULTS_MAX: u64 = 8;

/// Kinds that break an assumption wherever they strike, and that assumption.
const BREAKING: [(&str, Assumption); 3] =
    [("evict", Assumption::Memory), ("swap", Assumption::Memory), ("delete", Assumption::Operator)];

/// Probabilities of a fault that may not happen.
const CHANCES: [Chance; 3] = [Chance::percent(10), Chance::percent(50), Chance::percent(90)];

const POINTS: [AttemptStep; 16] = [
    AttemptStep::T1,
    AttemptStep::Write,
    AttemptStep::Execute,
    AttemptStep::Reply,
    AttemptStep::T2,
    AttemptStep::Deliver,
    AttemptStep::Check,
    AttemptStep::Enter,
    AttemptStep::ExtendWrite,
    AttemptStep::ExtendExecute,
    AttemptStep::ExtendReply,
    AttemptStep::ReleaseWrite,
    AttemptStep::ReleaseExecute,
    AttemptStep::ReleaseReply,
    AttemptStep::StoreWrite,
    AttemptStep::StoreExecute,
];

impl Sketch {
    pub(super) fn faults(&mut self) {
        let mut kinds = FaultKind::NAMES.to_vec();
        kinds.retain(|kind| BREAKING.iter().all(|(breaking, _)| breaking != kind));
        // Plans do not depend on the order in which the format lists the kinds.
        kinds.sort_unstable();
        let is_promised = self.plan.lock.restart_guard != RestartGuard::Quarantine;
        if is_promised && !self.may_break(Assumption::Memory) {
            kinds.retain(|kind| *kind != "failover");
        }
        if !self.may_flush() {
            kinds.retain(|kind| !["demote", "flush"].contains(kind));
        }
        let allowed = BREAKING.iter().filter(|(_, broken)| self.may_break(*broken));
        kinds.extend(allowed.map(|(kind, _)| *kind));
        let on = self.dice.pick(&[15, 30, 60]);
        kinds.retain(|_| self.dice.percent(on));
        let count = if kinds.is_empty() { 0 } else { self.dice.below(FAULTS_MAX + 1) };
        for number in 0..count {
            let name = self.dice.pick(&kinds);
            if name == "partition" && self.dice.percent(15) {
                self.overtaken(number, false);
            } else if let Some(kind) = self.kind(name) {
                let slow = self.slow_before(&kind);
                self.fault(format!("{name}-{}", number + 1), kind);
                self.end_with_the_last(slow, format!("slow-{}", number + 1));
            }
        }
    }

    /// Returns true if keys may be lost while the server runs on: every client hears of it, and no
    /// promise rules it out.
    pub(super) fn may_flush(&self) -> bool {
        let is_promised = self.plan.lock.restart_guard != RestartGuard::Quarantine;
        let is_unheard = self.plan.clients.iter().any(|client| client.deaf);
        self.may_break(Assumption::Memory) || !is_promised && !is_unheard
    }

    /// Adds a fault at a drawn time or step; some come again and again, or only perhaps.
    fn fault(&mut self, id: String, kind: FaultKind) {
        let has_end = match kind.descriptor().ends {
            Ends::Always => true,
            Ends::Perhaps => limits::must_end(&kind) || self.dice.percent(95),
            Ends::Never => false,
        };
        let length = match &kind {
            // Slow enough that the rate stays within the drift.
            FaultKind::ClockSlew(it) => Span(it.by.largest_size().0 * 220),
            // A reset alone, which blocks nothing that is on the wire.
            FaultKind::Partition(it) if it.lost == Lost::Reset && self.dice.percent(50) => {
                Span::from_ms(1)
            }
            _ => self.dice.length(Span::from_ms(1), self.ttls(30)),
        };
        let length = has_end.then_some(length);
        let (mut until, mut lasts, mut again) = (None, None, None);
        let at = if is_only_pushed(&kind) && self.dice.percent(40) {
            again = Some(self.storm());
            self.begin()
        } else if self.dice.percent(15) && self.may_come_again(&kind, has_end) {
            lasts = length.map(SpanRange::exactly);
            again = Some(self.again(&kind, length));
            self.begin()
        } else if self.dice.percent(50) && !matches!(kind, FaultKind::ClockSlew(_)) {
            lasts = length.map(SpanRange::exactly);
            At::Point(self.point())
        } else {
            let at = self.dice.instant(self.horizon);
            until = length.map(|length| Span(at.0 + length.0));
            At::Time(SpanRange::exactly(at))
        };
        let (every, times) = again.unzip();
        let chance = if self.dice.percent(10) { self.dice.pick(&CHANCES) } else { Chance::CERTAIN };
        let fault = Fault { id, at, until, lasts, every, times, chance, enabled: true, kind };
        self.plan.faults.push(fault);
        let breaks_clocks = Assumptions::broken_by(&self.plan).has(Assumption::Clock);
        if breaks_clocks && !self.may_break(Assumption::Clock) {
            // The fault's rate is too much on top of the clock's usual one.
            self.plan.faults.pop();
        }
    }

    /// Returns a time at which a fault begins, or a range of them.
    fn begin(&mut self) -> At {
        let one = self.dice.instant(self.horizon);
        let other = if self.dice.percent(15) { self.dice.instant(self.horizon) } else { one };
        At::Time(SpanRange { min: one.min(other), max: one.max(other) })
    }

    /// Returns true if the plan may have the fault several times: it ends before it comes again, and
    /// no promise allows a node one death alone.
    fn may_come_again(&self, kind: &FaultKind, has_end: bool) -> bool {
        let is_promised = self.plan.lock.restart_guard == RestartGuard::DelayedRestart
            && !self.may_break(Assumption::Memory);
        match kind.restarting() {
            Some(it) => it.restart_after.is_some() && !is_promised,
            None => has_end || kind.descriptor().ends == Ends::Never,
        }
    }

    /// Returns the time from one start of a fault to the next, and the number of its starts.
    fn again(&mut self, kind: &FaultKind, length: Option<Span>) -> (SpanRange, CountRange) {
        let restart_after = kind.restarting().and_then(|it| it.restart_after);
        let over = length.max(restart_after.map(|after| after.max)).unwrap_or(Span(0));
        let rest = self.lengths(Span::from_ms(1), self.ttls(20));
        let [min, max] = [rest.min, rest.max].map(|rest| Span(over.0 + rest.0));
        (SpanRange { min, max }, self.counts(2, 5))
    }

    /// Returns the interval and the number of pushes that come in a row, although nothing changes.
    fn storm(&mut self) -> (SpanRange, CountRange) {
        (self.lengths(Span::from_ms(1), Span::from_ms(100)), self.counts(5, 100))
    }

    /// Returns the attempt at whose step `before` a fault begins.
    pub(super) fn which_attempt(&mut self, before: AttemptStep) -> WhichAttempt {
        match self.dice.below(3) {
            0 if before.follows_grant() => WhichAttempt::Granted,
            1 => WhichAttempt::Nth(self.dice.between(1, 4) as u16),
            _ => WhichAttempt::Any,
        }
    }

    fn point(&mut self) -> AttemptPoint {
        let before = self.dice.pick(&POINTS);
        let attempt = self.which_attempt(before);
        let node = before.has_node() && self.dice.percent(50);
        let (clients, nodes) = (self.names_of_clients(), self.names_of_nodes());
        let node = node.then(|| self.dice.pick(&nodes));
        let client = self.dice.pick(&clients);
        let drawn = self.plan.clients.iter().find(|it| it.id == client);
        let own_nodes = drawn.and_then(|it| it.nodes.as_ref());
        let node = node.filter(|node| own_nodes.is_none_or(|own| own.contains(node)));
        AttemptPoint { client, attempt, before, node }
    }

    /// Returns a fault of the kind `name`; `None` if the plan has nothing that it could strike.
    fn kind(&mut self, name: &str) -> Option<FaultKind> {
        let one_client = |sketch: &mut Self| OneHost { host: sketch.some_clients() };
        let one_node = |sketch: &mut Self| OneHost { host: sketch.some_nodes() };
        let one_key = |sketch: &mut Self| OneKey { host: sketch.some_nodes(), resource: None };
        Some(match name {
            "attach" => FaultKind::Attach(OneHost { host: self.one_replica()? }),
            "clock-jump" => FaultKind::ClockJump(self.clock_jump()),
            "clock-rate" => {
                FaultKind::ClockRate(ClockRate { host: self.some_machines(), ppm: self.rate_ppm() })
            }
            "clock-slew" => FaultKind::ClockSlew(self.clock_slew()),
            "delay" => FaultKind::Delay(self.delay_of_messages()),
            "delete" => FaultKind::Delete(one_key(self)),
            "demote" => FaultKind::Demote(Demotion {
                host: self.some_nodes(),
                of: None,
                keeps_keys: self.dice.percent(30),
            }),
            "disk-stall" => FaultKind::DiskStall(one_node(self)),
            "evict" => FaultKind::Evict(one_key(self)),
            "failover" => FaultKind::Failover(self.failover()?),
            "flush" => {
                let database = self.dice.weighted(&[(2, None), (1, Some(0)), (1, Some(3))]);
                FaultKind::Flush(Flush { host: self.some_nodes(), database })
            }
            "kill" => FaultKind::Kill(self.restarting()?),
            "spurious-push" => FaultKind::SpuriousPush(one_key(self)),
            "memory-full" => FaultKind::MemoryFull(one_node(self)),
            "partition" => FaultKind::Partition(self.partition()),
            "pause" => FaultKind::Pause(one_client(self)),
            "power" => {
                let torn = self.dice.percent(30);
                FaultKind::Power(Restarting { torn, ..self.restarting()? })
            }
            "shutdown" => FaultKind::Shutdown(self.restarting_node()?),
            "snapshot" => FaultKind::Snapshot(OneHost { host: self.one_with_snapshots()? }),
            "stall" => FaultKind::Stall(one_node(self)),
            "suspend" => FaultKind::Suspend(one_client(self)),
            "swap" => FaultKind::Swap(Swap { host: self.some_nodes(), databases: [0, 1] }),
            _ => unreachable!("no kind of fault is called `{name}`"),
        })
    }

    fn some_nodes(&mut self) -> HostNames {
        HostNames(self.dice.some(&self.plan.cluster.nodes))
    }

    fn some_clients(&mut self) -> HostNames {
        let clients = self.names_of_clients();
        HostNames(self.dice.some(&clients))
    }

    fn some_machines(&mut self) -> HostNames {
        if self.dice.percent(40) { self.some_clients() } else { self.some_nodes() }
    }

    fn one_replica(&mut self) -> Option<HostNames> {
        let replicas = self.names_of_replicas();
        (!replicas.is_empty()).then(|| HostNames(vec![self.dice.pick(&replicas)]))
    }

    fn one_with_snapshots(&mut self) -> Option<HostNames> {
        let cluster = &self.plan.cluster;
        let keeps = |name: &&String| cluster.persistence_on(name, name) == Persistence::Rdb;
        let nodes: Vec<String> = cluster.nodes.iter().filter(keeps).cloned().collect();
        (!nodes.is_empty()).then(|| HostNames(vec![self.dice.pick(&nodes)]))
    }

    /// Returns a jump: of a client to anywhere, of a node backwards unless the plan may break the
    /// assumption about clocks.
    fn clock_jump(&mut self) -> ClockBy {
        let host = self.some_machines();
        let is_client = self.plan.clients.iter().any(|client| client.id == host.0[0]);
        let forward = is_client || self.may_break(Assumption::Clock);
        let by = self.dice.length(Span::from_ms(1), self.ttls(30)).0 as i64;
        let by = if forward && self.dice.percent(70) { by } else { -by };
        ClockBy { host, by: SignedSpanRange::exactly(SignedSpan(by)) }
    }

    fn clock_slew(&mut self) -> ClockBy {
        let by = self.dice.length(Span(100_000), Span(self.plan.lock.ttl.0 / 200)).0 as i64;
        let by = if self.dice.percent(50) { by } else { -by };
        ClockBy { host: self.some_machines(), by: SignedSpanRange::exactly(SignedSpan(by)) }
    }

    /// Returns two groups of hosts: some clients, and some nodes or the resource.
    fn groups(&mut self) -> [Vec<String>; 2] {
        let clients = self.some_clients().0;
        let others =
            if self.dice.percent(8) { vec![String::from("store")] } else { self.some_nodes().0 };
        [clients, others]
    }

    fn delay_of_messages(&mut self) -> Delay {
        let [one, other] = self.groups();
        let (from, to) = if self.dice.percent(50) { (one, other) } else { (other, one) };
        let only = self.dice.weighted(&[
            (4, None),
            (1, Some(Message::Answer)),
            (1, Some(Message::Extend)),
            (1, Some(Message::Release)),
            (2, Some(Message::Set)),
            (1, Some(Message::Write)),
        ]);
        let by = SpanRange::exactly(self.dice.length(Span::from_ms(1), self.ttls(20)));
        Delay { from, to, by, only }
    }

    fn partition(&mut self) -> Partition {
        let [one, other] = self.groups();
        let between = if self.dice.percent(50) { [one, other] } else { [other, one] };
        let one_way = self.dice.percent(40);
        let lost = self.dice.pick(&[Lost::Hold, Lost::Hold, Lost::Reset, Lost::Silent]);
        Partition { between, one_way, lost }
    }

    fn failover(&mut self) -> Option<Failover> {
        if self.plan.cluster.replicas.is_empty() {
            return None;
        }
        let replica = self.dice.pick(&self.plan.cluster.replicas);
        Some(Failover { node: replica.of, to: replica.id, told: None })
    }

    /// Returns a death of a client, or of a node and mostly its restart.
    fn restarting(&mut self) -> Option<Restarting> {
        if self.dice.percent(70) {
            return self.restarting_node();
        }
        // Engines restart no clients.
        let (host, restart_after) = (self.some_clients(), None);
        Some(Restarting { host, restart_after, ..NO_RESTART })
    }

    /// Returns the death of nodes and mostly their restart; `None` where a promise about restarts
    /// leaves no node that may die.
    fn restarting_node(&mut self) -> Option<Restarting> {
        let breaks = self.may_break(Assumption::Memory);
        let is_promised = self.plan.lock.restart_guard == RestartGuard::DelayedRestart && !breaks;
        let mut nodes = self.names_of_nodes();
        if is_promised {
            nodes.retain(|node| !dies(&self.plan, node));
        }
        if nodes.is_empty() {
            return None;
        }
        let host = HostNames(self.dice.some(&nodes));
        let least = if is_promised { longest_key(&self.plan) } else { Span(10_000) };
        let longest = self.ttls(20).max(Span(2 * least.0));
        let restart_after = self.dice.percent(85).then(|| self.dice.length(least, longest));
        let restart_after = restart_after.map(SpanRange::exactly);
        let behind_a_proxy = breaks && restart_after.is_some() && self.dice.percent(20);
        Some(Restarting { host, restart_after, behind_a_proxy, ..NO_RESTART })
    }
}

/// A death without anything else.
pub(super) const NO_RESTART: Restarting = Restarting {
    host: HostNames(Vec::new()),
    restart_after: None,
    measured_on: Stopwatch::True,
    backup_of: None,
    torn: false,
    behind_a_proxy: false,
    replaced: false,
};

/// Returns true for a fault of which clients only hear, as if keys had changed.
fn is_only_pushed(kind: &FaultKind) -> bool {
    match kind {
        FaultKind::SpuriousPush(_) => true,
        FaultKind::Flush(flush) => flush.database.is_some_and(|it| it != 0),
        _ => false,
    }
}
