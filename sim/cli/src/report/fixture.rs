//! Hand-written runs. Their content is known exactly, so that tests can compare the reports with
//! it.

mod log;
mod result;

use lock_judge::history::{
    AttemptId, BasedOn, ClientId, ClockKind, CommandId, EventKind, FaultId, FencingToken, HostId,
    KeyEnd, LostReason, NodeId, OpKind, WriteId, Writer,
};
use lock_judge::oracle::{Blame, Blamed, Violation};
use lock_judge::scenario::Property;

use self::log::{Log, nobody};
use self::result::{judged, played};
use super::Played;
use super::timeline::Timeline;

const MS: u64 = 1_000_000;

/// Reading of the wall clocks at true time 0.
const WALL_NS: u64 = 1_700_000_000_000_000_000;

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
    { id = "c1", subject = "redlock-literal", steps = [{ acquire = {} }, { extend = {} }, { release = {} }] },
    { id = "c2", subject = "redlock-literal", steps = [{ acquire = {} }, { release = {} }] },
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
    { id = "c1", subject = "redlock-literal", steps = [{ acquire = {} }, { release = {} }] },
    { id = "c2", subject = "redlock-literal", steps = [{ acquire = {} }, { release = {} }] },
]
[[cluster.replica]]
id = "C2"
of = "C"
[[fault]]
id = "promote"
at = "1s"
failover = { node = "C", to = "C2" }
"#;

/// Returns the timeline of the first run that is kept.
pub(super) fn timeline(played: &Played) -> Timeline<'_> {
    Timeline::new(&played.result.case.scenario, &played.kept[0].1)
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
    log.at(12_006, EventKind::LostDelivered { attempt: FIRST, reason: LostReason::DeadlinePassed });
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

/// c1 holds twenty short leases, one after the other, then c2 holds one while A is down.
pub(super) fn crowded() -> Played {
    let all = [0, 1, 2, 3, 4];
    let mut log = Log::new(9);
    for number in 1..=20 {
        let attempt = AttemptId { number, ..FIRST };
        let at_ms = u64::from(number) * 100;
        log.acquire(at_ms, attempt, &nobody(&all));
        log.release(at_ms + 40, attempt, &all);
    }
    log.acquire(3_000, SECOND, &nobody(&all));
    log.at(3_010, EventKind::NodeDown { node: NodeId(0), power: false });
    log.release(8_000, SECOND, &all);
    log.at(9_000, EventKind::NodeUp { node: NodeId(0), incarnation: 2 });
    played(RECREATED, log.finish(10_000), &[])
}
