//! Hand-written runs. Their content is known exactly, so that tests can compare the reports with
//! it.

use lock_judge::history::{
    Answer, AttemptId, BasedOn, ClientId, ClockKind, CommandId, Event, EventKind, FaultId,
    FencingToken, HostId, KeyEnd, NodeId, NodeIds, OpKind, RoundId, Settlement, WriteId, Writer,
};
use lock_judge::oracle::{Blame, Blamed, Judgement, Oracle, Violation};
use lock_judge::scenario::{Case, Expectation, Property, Quantity, Scenario, Verdict};
use redlock_sim::search::{CaseResult, Figures, Observed, PropertyResult, QuantityResult};

use super::Played;

const MS: u64 = 1_000_000;
/// Reading of the wall clocks at true time 0.
const WALL_NS: u64 = 1_700_000_000_000_000_000;
const TTL_NS: u64 = 10_000 * MS;
const DRIFT_NS: u64 = 102 * MS;
const FIRST: AttemptId = AttemptId { client: ClientId(0), number: 1 };
const SECOND: AttemptId = AttemptId { client: ClientId(1), number: 1 };

const JUMP: &str = r#"
schema = 1
name   = "kleppmann-clock-jump"
title  = "A master’s clock jumps forward: two clients hold the lock"
tags   = ["K2", "clock", "counterexample"]
source = "Kleppmann 2016-02-08, “Breaking Redlock with bad timings”"
story  = "C believes that ten seconds have passed, and votes a second time. Neither client can know."
client = [
    { id = "c1", steps = [{ acquire = {} }, { hold = "until-deadline" }, { release = {} }] },
    { id = "c2", steps = [{ acquire = {} }, { hold = "until-deadline" }, { release = {} }] },
]
[[fault]]
id = "c1-sees-abc"
at = "0s"
until = "12s"
partition = { between = [["c1"], ["D", "E"]] }
[[fault]]
id = "jump"
at = "1s"
clock-jump = { host = "C", by = "10s" }
"#;

const PAUSE: &str = r#"
schema = 1
name   = "kleppmann-process-pause"
title  = "The holder is stopped after its last look at the clock"
tags   = ["K1"]
client = [
    { id = "c1", steps = [{ acquire = {} }] },
    { id = "c2", steps = [{ acquire = {} }] },
]
[[fault]]
id = "gc"
at = { client = "c1", before = "enter" }
lasts = "12s"
pause = { host = "c1" }
"#;

const RECREATED: &str = r#"
schema = 1
name   = "extension-recreates"
title  = "An extension makes again what was gone"
tags   = ["E3"]
client = [
    { id = "c1", steps = [{ acquire = {} }, { extend = {} }, { release = {} }] },
    { id = "c2", steps = [{ acquire = {} }, { release = {} }] },
]
[[fault]]
id = "gc"
at = "5s"
lasts = "6s"
pause = { host = "c1" }
"#;

const FAILOVER: &str = r#"
schema = 1
name   = "a-replica-is-promoted"
title  = "A replica takes the place of a master before it has heard of the key"
tags   = ["D12"]
client = [
    { id = "c1", steps = [{ acquire = {} }, { release = {} }] },
    { id = "c2", steps = [{ acquire = {} }, { release = {} }] },
]
[[cluster.replica]]
id = "C2"
of = "C"
[[fault]]
id = "promote"
at = "1s"
failover = { node = "C", to = "C2" }
"#;

struct Log {
    events: Vec<Event>,
    commands: u32,
}

/// A command to one node: written, executed 1 ms later, and answered another 1 ms later.
struct Call {
    attempt: AttemptId,
    node: NodeId,
    op: OpKind,
    answer: Answer,
    before: Writer,
    after: Writer,
}

impl Log {
    fn new(hosts: u8) -> Self {
        let mut log = Self { events: Vec::new(), commands: 0 };
        for host in 0..hosts {
            for clock in ClockKind::ALL {
                let local_ns = if clock == ClockKind::Wall { WALL_NS } else { 5_000 * MS };
                let host = HostId(host);
                log.at(0, EventKind::Clock { host, clock, local_ns, rate_ppb: 0 });
            }
        }
        log
    }

    fn at(&mut self, at_ms: u64, kind: EventKind) {
        self.events.push(Event { at_ns: at_ms * MS, kind });
    }

    fn call(&mut self, at_ms: u64, call: &Call) {
        let Call { attempt, node, op, answer, before, after } = *call;
        let command = CommandId(self.commands);
        self.commands += 1;
        self.at(at_ms, EventKind::Written { command, attempt, node, op });
        let expires_wall_ms = WALL_NS / MS + at_ms + 1 + TTL_NS / MS;
        let changed = before != after;
        let ended = changed && before != Writer::Nobody;
        let executed = EventKind::Executed {
            command,
            attempt,
            node,
            op,
            answer,
            changed,
            before,
            after,
            expires_wall_ms: if after == Writer::Nobody { u64::MAX } else { expires_wall_ms },
        };
        self.at(at_ms + 1, executed);
        if ended {
            self.end(at_ms + 1, node, before, KeyEnd::Command, Writer::Attempt(attempt));
        }
        self.at(at_ms + 2, EventKind::Delivered { command, attempt, node, op, answer });
    }

    fn end(&mut self, at_ms: u64, node: NodeId, writer: Writer, cause: KeyEnd, by: Writer) {
        let expires_wall_ms = WALL_NS / MS + 10_001;
        self.at(at_ms, EventKind::KeyEnded { node, writer, cause, by, expires_wall_ms });
    }

    fn acquire(&mut self, at_ms: u64, attempt: AttemptId, votes: &[(NodeId, Writer)]) {
        let t1_local_ns = (5_000 + at_ms) * MS;
        self.at(
            at_ms,
            EventKind::AttemptBegan {
                attempt,
                clock: ClockKind::Boot,
                t1_local_ns,
                ttl_ns: TTL_NS,
                drift_ns: DRIFT_NS,
                needed: 3,
            },
        );
        let mut counted = NodeIds::EMPTY;
        for &(node, before) in votes {
            let free = before == Writer::Nobody;
            counted.set(node, free);
            let answer = if free { Answer::Yes } else { Answer::No };
            let after = if free { Writer::Attempt(attempt) } else { before };
            self.call(at_ms, &Call { attempt, node, op: OpKind::Set, answer, before, after });
        }
        let deadline_local_ns = t1_local_ns + TTL_NS - DRIFT_NS;
        let t2_local_ns = t1_local_ns + 2 * MS;
        let decided = EventKind::GrantDecided { attempt, counted, t2_local_ns, deadline_local_ns };
        self.at(at_ms + 2, decided);
        let outcome = Settlement::Granted;
        self.at(at_ms + 2, EventKind::AttemptSettled { attempt, outcome });
        let clock = ClockKind::Boot;
        let fencing_token = FencingToken::NONE;
        let delivered =
            EventKind::GrantDelivered { attempt, clock, deadline_local_ns, fencing_token };
        self.at(at_ms + 2, delivered);
    }

    /// Records an extension that sets the keys again and succeeds.
    fn recreate(&mut self, at_ms: u64, attempt: AttemptId, nodes: &[u8]) {
        let (round, ttl_ns, clock) = (RoundId(1), TTL_NS, ClockKind::Boot);
        let t1_local_ns = (5_000 + at_ms) * MS;
        self.at(at_ms, EventKind::ExtensionBegan { attempt, round, t1_local_ns, ttl_ns });
        let mut counted = NodeIds::EMPTY;
        for node in nodes.iter().copied().map(NodeId) {
            let (before, after, op) = (Writer::Nobody, Writer::Attempt(attempt), OpKind::Set);
            self.call(at_ms, &Call { attempt, node, op, answer: Answer::Yes, before, after });
            counted.insert(node);
        }
        let deadline_local_ns = t1_local_ns + TTL_NS - DRIFT_NS;
        let settled = EventKind::ExtensionSettled {
            attempt,
            round,
            extended: true,
            counted,
            deadline_local_ns,
        };
        self.at(at_ms + 2, settled);
        self.at(at_ms + 2, EventKind::ExtensionDelivered { attempt, clock, deadline_local_ns });
    }

    fn enter(&mut self, at_ms: u64, attempt: AttemptId) {
        self.at(at_ms, EventKind::Checked { attempt, alive: true });
        self.at(at_ms, EventKind::SectionEntered { attempt });
    }

    fn lose(&mut self, at_ms: u64, attempt: AttemptId, nodes: &[u8]) {
        self.at(at_ms, EventKind::LostDelivered { attempt });
        self.at(at_ms, EventKind::SectionLeft { attempt });
        self.release(at_ms, attempt, nodes);
    }

    fn release(&mut self, at_ms: u64, attempt: AttemptId, nodes: &[u8]) {
        self.at(at_ms, EventKind::ReleaseCalled { attempt });
        for node in nodes.iter().copied().map(NodeId) {
            let before = Writer::Attempt(attempt);
            let after = Writer::Nobody;
            let (op, answer) = (OpKind::Release, Answer::Yes);
            self.call(at_ms, &Call { attempt, node, op, answer, before, after });
        }
    }

    fn finish(mut self, at_ms: u64) -> Vec<Event> {
        self.at(at_ms, EventKind::Ended);
        self.events.sort_by_key(|event| event.at_ns);
        self.events
    }
}

fn nobody(nodes: &[u8]) -> Vec<(NodeId, Writer)> {
    nodes.iter().map(|&node| (NodeId(node), Writer::Nobody)).collect()
}

/// K2: C's clock jumps by ten seconds, and both clients hold the lock from 1.102 s to 9.898 s.
pub(super) fn jump() -> Played {
    let mut log = Log::new(9);
    log.at(0, EventKind::FaultBegan { fault: FaultId(0) });
    log.acquire(0, FIRST, &nobody(&[0, 1, 2]));
    for node in [3, 4].map(NodeId) {
        log.commands += 1;
        let written = EventKind::Written {
            command: CommandId(90 + u32::from(node.0)),
            attempt: FIRST,
            node,
            op: OpKind::Set,
        };
        log.at(0, written);
    }
    log.enter(2, FIRST);
    log.at(1_000, EventKind::FaultBegan { fault: FaultId(1) });
    let clock = EventKind::Clock {
        host: HostId(2),
        clock: ClockKind::Wall,
        local_ns: WALL_NS + 11_000 * MS,
        rate_ppb: 0,
    };
    log.at(1_000, clock);
    log.end(1_000, NodeId(2), Writer::Attempt(FIRST), KeyEnd::Expired, Writer::Nobody);
    log.at(1_000, EventKind::FaultEnded { fault: FaultId(1) });
    let mut votes = nobody(&[2, 3, 4]);
    votes.extend([0, 1].map(|node| (NodeId(node), Writer::Attempt(FIRST))));
    log.acquire(1_100, SECOND, &votes);
    log.enter(1_102, SECOND);
    log.lose(9_898, FIRST, &[0, 1]);
    log.lose(10_998, SECOND, &[2, 3, 4]);
    log.at(12_000, EventKind::FaultEnded { fault: FaultId(0) });
    let events = log.finish(13_000);

    let mut blamed = Blamed::NONE;
    blamed.add(Blame::Clock(HostId(2)));
    let violation = Violation {
        from_ns: 1_102 * MS,
        to_ns: 9_898 * MS,
        first: FIRST,
        second: Some(SECOND),
        node: Some(NodeId(2)),
        blamed,
    };
    played(
        JUMP,
        events,
        &[(Property::MutualExclusion, violation), (Property::ExclusiveSection, violation)],
    )
}

/// K1: c1 checks its lease, is stopped for longer than the lease, and enters its section while c2
/// is in its own.
pub(super) fn pause() -> Played {
    let mut log = Log::new(9);
    log.acquire(0, FIRST, &nobody(&[0, 1, 2, 3, 4]));
    log.at(2, EventKind::Checked { attempt: FIRST, alive: true });
    log.at(3, EventKind::FaultBegan { fault: FaultId(0) });
    log.at(3, EventKind::Stopped { host: HostId(5), suspended: false });
    for node in (0..5).map(NodeId) {
        log.end(10_002, node, Writer::Attempt(FIRST), KeyEnd::Expired, Writer::Nobody);
    }
    log.acquire(10_100, SECOND, &nobody(&[0, 1, 2, 3, 4]));
    log.enter(10_102, SECOND);
    let (based_on, fencing_token) = (BasedOn::on(0), FencingToken::NONE);
    let write = |write, attempt| EventKind::WriteSent { attempt, write, based_on, fencing_token };
    let applied = |write, attempt, version| EventKind::WriteApplied {
        attempt,
        write,
        based_on,
        version,
        fencing_token,
    };
    log.at(11_000, write(WriteId(0), SECOND));
    log.at(11_001, applied(WriteId(0), SECOND, 1));
    log.at(12_003, EventKind::Continued { host: HostId(5) });
    log.at(12_003, EventKind::FaultEnded { fault: FaultId(0) });
    log.at(12_003, EventKind::SectionEntered { attempt: FIRST });
    log.at(12_004, write(WriteId(1), FIRST));
    log.at(12_005, applied(WriteId(1), FIRST, 2));
    log.at(12_006, EventKind::SectionLeft { attempt: FIRST });
    log.at(12_006, EventKind::LostDelivered { attempt: FIRST });
    log.at(14_000, EventKind::SectionLeft { attempt: SECOND });
    log.release(14_000, SECOND, &[0, 1, 2, 3, 4]);
    let events = log.finish(15_000);

    let mut blamed = Blamed::NONE;
    blamed.add(Blame::Pause);
    let section = Violation {
        from_ns: 12_003 * MS,
        to_ns: 12_006 * MS,
        first: FIRST,
        second: Some(SECOND),
        node: None,
        blamed,
    };
    let at_ns = 12_005 * MS;
    let update = Violation { from_ns: at_ns, to_ns: at_ns, ..section };
    played(
        PAUSE,
        events,
        &[(Property::ExclusiveSection, section), (Property::NoLostUpdate, update)],
    )
}

/// E3: c1 is stopped for longer than its lease; c2 acquires and releases; c1's extension sets the
/// keys again.
pub(super) fn recreated() -> Played {
    let all = [0, 1, 2, 3, 4];
    let mut log = Log::new(9);
    log.acquire(0, FIRST, &nobody(&all));
    log.at(5_000, EventKind::FaultBegan { fault: FaultId(0) });
    log.at(5_000, EventKind::Stopped { host: HostId(5), suspended: false });
    for node in all.map(NodeId) {
        log.end(10_002, node, Writer::Attempt(FIRST), KeyEnd::Expired, Writer::Nobody);
    }
    log.acquire(10_100, SECOND, &nobody(&all));
    log.release(10_500, SECOND, &all);
    log.at(11_000, EventKind::Continued { host: HostId(5) });
    log.at(11_000, EventKind::FaultEnded { fault: FaultId(0) });
    log.recreate(11_000, FIRST, &all);
    log.release(15_000, FIRST, &all);
    judged(RECREATED, log.finish(16_000))
}

/// D12: C fails over to a replica that has not received the key.
pub(super) fn failover() -> Played {
    let mut log = Log::new(10);
    log.acquire(0, FIRST, &nobody(&[0, 1, 2]));
    log.at(1_000, EventKind::FaultBegan { fault: FaultId(0) });
    log.at(1_000, EventKind::FailedOver { node: NodeId(2), host: HostId(9) });
    log.end(1_000, NodeId(2), Writer::Attempt(FIRST), KeyEnd::FailedOver, Writer::Nobody);
    log.acquire(1_100, SECOND, &nobody(&[2, 3, 4]));
    log.release(9_000, FIRST, &[0, 1]);
    log.release(9_500, SECOND, &[2, 3, 4]);
    judged(FAILOVER, log.finish(11_000))
}

/// Judges `events` with the oracle, and adds the violations it finds.
fn judged(toml: &str, events: Vec<Event>) -> Played {
    let scenario: Scenario = toml::from_str(toml).expect("the fixture is a scenario");
    let mut oracle = Oracle::new(&scenario, &[]);
    events.iter().for_each(|event| oracle.observe(event));
    let verdicts = oracle.finish();
    let found = Property::ALL.into_iter().filter_map(|property| match verdicts.of(property) {
        Judgement::Violated(violation) => Some((property, violation)),
        _ => None,
    });
    let found: Vec<_> = found.collect();
    played(toml, events, &found)
}

fn played(toml: &str, events: Vec<Event>, violations: &[(Property, Violation)]) -> Played {
    let scenario: Scenario = toml::from_str(toml).expect("the fixture is a scenario");
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    let mut oracle = Oracle::new(&case.scenario, &[]);
    events.iter().for_each(|event| oracle.observe(event));
    let (counters, measured) = (oracle.counters(), oracle.measured());
    let quantity = |(quantity, value): (Quantity, u64)| {
        let (min, median, max) = (value, value, value);
        QuantityResult {
            quantity,
            expected: None,
            measured: 100,
            figures: Some(Figures { min, min_seed: 0, median, max, max_seed: 0 }),
            failing_seed: None,
            failures: Vec::new(),
        }
    };
    let property = |property: Property| {
        let found = violations.iter().find(|(violated, _)| *violated == property);
        let holds = [Property::SoundGrant, Property::OwnerOnly].contains(&property);
        let (verdict, observed) = match found {
            Some(_) => (Verdict::Violated, Observed::Violated),
            None if holds => (Verdict::Holds, Observed::Holds),
            None => (Verdict::Holds, Observed::Vacuous),
        };
        PropertyResult {
            property,
            expected: Expectation::bare(verdict),
            observed,
            violating_seeds: if found.is_some() { 100 } else { 0 },
            first: found.map(|(_, violation)| (0, *violation)),
            blames: found
                .map(|(_, violation)| violation.blamed.names(&case.scenario).join("+"))
                .into_iter()
                .collect(),
            shortest_overlap_ns: found.map(|(_, violation)| violation.to_ns - violation.from_ns),
            failures: Vec::new(),
        }
    };
    let properties = Property::ALL.map(property).to_vec();
    let result = CaseResult {
        case,
        engine: "event",
        seeds: 0..100,
        runs: 100,
        distinct_histories: 100,
        first_hash: 0x1234_5678_9abc_def0,
        properties,
        quantities: measured.iter().map(quantity).collect(),
        counters,
        failures: Vec::new(),
    };
    Played { result, kept: vec![(0, events)], family: String::from("exchange") }
}
