//! Random histories, for property tests of everything that reads them.

use proptest::prelude::*;

use crate::history::file::Header;
use crate::history::{
    Answer, AttemptId, ClientId, ClockKind, CommandId, Event, EventKind, FaultId, HostId, KeyEnd,
    NodeId, NodeIds, OpKind, Refusal, Rejection, RoundId, SCHEMA, Settlement, WriteId, Writer,
};
use crate::scenario::{Case, Scenario};

const SCENARIO: &str = r#"
    schema = 1
    name = "a-name"
    title = "A title"
    client = [{ id = "c1", steps = [{ acquire = {} }] }, { id = "c2", steps = [] }]
    fault = [{ id = "jump", at = "1s", clock-jump = { host = "C", by = "-10s" } }]
    expect = { mutual-exclusion = "holds" }
"#;

/// Returns the header of a stored history of two clients.
pub fn header() -> Header {
    let scenario: Scenario = toml::from_str(SCENARIO).expect("a valid scenario");
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    Header {
        schema: SCHEMA,
        engine: String::from("event"),
        build: String::from("0.1.0"),
        seed: u64::MAX,
        case,
    }
}

fn kinds() -> impl Strategy<Value = EventKind> {
    let attempt = (0..3u8, any::<u16>())
        .prop_map(|(client, number)| AttemptId { client: ClientId(client), number });
    let node = || (0..5u8).prop_map(NodeId);
    let writer = prop_oneof![
        Just(Writer::Nobody),
        Just(Writer::Operator),
        attempt.clone().prop_map(Writer::Attempt)
    ];
    let ns = prop_oneof![0..1u64 << 60, Just(u64::MAX)];
    prop_oneof![
        Just(EventKind::Ended),
        (0..9u8, any::<i32>(), 0..1u64 << 60).prop_map(|(host, rate, local_ns)| EventKind::Clock {
            host: HostId(host),
            clock: ClockKind::Wall,
            local_ns,
            rate_ppb: rate / 4,
        }),
        (attempt.clone(), ns.clone()).prop_map(|(attempt, ttl_ns)| EventKind::AttemptBegan {
            attempt,
            clock: ClockKind::Boot,
            t1_local_ns: 5,
            ttl_ns,
            drift_ns: 7,
            needed: 3,
        }),
        (0..1000u32, attempt.clone(), node(), writer.clone(), writer.clone()).prop_map(
            |(command, attempt, node, before, after)| EventKind::Executed {
                command: CommandId(command),
                attempt,
                node,
                op: OpKind::Set,
                answer: Answer::Yes,
                changed: true,
                before,
                after,
                expires_wall_ms: u64::MAX,
            }
        ),
        (attempt.clone(), (0..32u16).prop_map(NodeIds::from_bits), ns).prop_map(
            |(attempt, counted, deadline_local_ns)| {
                EventKind::GrantDecided { attempt, counted, t2_local_ns: 9, deadline_local_ns }
            }
        ),
        (writer.clone(), writer, node()).prop_map(|(writer, by, node)| EventKind::KeyEnded {
            node,
            writer,
            cause: KeyEnd::Expired,
            by,
            expires_wall_ms: 10_000,
        }),
        attempt.clone().prop_map(|attempt| EventKind::AttemptSettled {
            attempt,
            outcome: Settlement::TooFewNodes
        }),
        attempt.prop_map(|attempt| EventKind::WriteRejected {
            attempt,
            write: WriteId(3),
            why: Rejection::StaleToken
        }),
        Just(EventKind::FaultBegan { fault: FaultId(0) }),
        (node(), 0..9u8)
            .prop_map(|(node, host)| { EventKind::FailedOver { node, host: HostId(host) } }),
        extensions(),
    ]
}

fn extensions() -> impl Strategy<Value = EventKind> {
    let attempt = (0..3u8, 1..4u16)
        .prop_map(|(client, number)| AttemptId { client: ClientId(client), number });
    let deadline = prop_oneof![0..1u64 << 60, Just(u64::MAX)];
    prop_oneof![
        (attempt.clone(), any::<u16>().prop_map(RoundId), 0..1u64 << 60).prop_map(
            |(attempt, round, ttl_ns)| {
                EventKind::ExtensionBegan { attempt, round, t1_local_ns: 5, ttl_ns }
            }
        ),
        (attempt.clone(), any::<bool>(), (0..32u16).prop_map(NodeIds::from_bits), deadline.clone())
            .prop_map(|(attempt, extended, counted, deadline_local_ns)| {
                let round = RoundId(1);
                EventKind::ExtensionSettled { attempt, round, extended, counted, deadline_local_ns }
            }),
        (attempt.clone(), 0..1u64 << 60).prop_map(|(attempt, ttl_ns)| {
            let why = Refusal::WouldShorten;
            EventKind::ExtensionRefused { attempt, ttl_ns, why }
        }),
        (0..3u8).prop_map(|client| EventKind::GaveUp { client: ClientId(client) }),
        (attempt, deadline).prop_map(|(attempt, deadline_local_ns)| {
            let clock = ClockKind::Boot;
            EventKind::ExtensionDelivered { attempt, clock, deadline_local_ns }
        }),
    ]
}

/// Generates histories that use the whole range of values that a stored history may hold.
pub fn histories() -> impl Strategy<Value = Vec<Event>> {
    proptest::collection::vec((0..1u64 << 40, kinds()), 0..20).prop_map(|steps| {
        let mut at_ns = 0;
        let mut events = Vec::new();
        for (step, kind) in steps {
            at_ns += step;
            events.push(Event { at_ns, kind });
            if kind == EventKind::Ended {
                break;
            }
        }
        events
    })
}
