//! Tests with histories that no engine writes: the oracle may return any verdict, but never panics.

use proptest::prelude::*;

use super::tale::scenario;
use crate::history::{
    Answer, AttemptId, BasedOn, ClientId, ClockKind, CommandId, Event, EventKind, FaultId,
    FencingToken, HostId, KeyEnd, LostReason, NodeId, NodeIds, OpKind, Rejection, RoundId,
    Settlement, WriteId, Writer,
};
use crate::oracle::Oracle;

/// Maximum instant of a stored history.
const INSTANT_MAX: u64 = 1 << 60;

fn instant() -> impl Strategy<Value = u64> {
    prop_oneof![0..100u64, 0..1u64 << 36, 0..INSTANT_MAX]
}

fn instant_or_never() -> impl Strategy<Value = u64> {
    prop_oneof![4 => instant(), 1 => Just(u64::MAX)]
}

fn attempt() -> impl Strategy<Value = AttemptId> {
    let number = prop_oneof![9 => 0..4u16, 1 => any::<u16>().prop_map(|it| it % 300)];
    let client = prop_oneof![9 => 0..5u8, 1 => any::<u8>()];
    (client.prop_map(ClientId), number).prop_map(|(client, number)| AttemptId { client, number })
}

fn node() -> impl Strategy<Value = NodeId> {
    prop_oneof![9 => 0..6u8, 1 => any::<u8>()].prop_map(NodeId)
}

fn nodes() -> impl Strategy<Value = NodeIds> {
    any::<u16>().prop_map(NodeIds::from_bits)
}

fn host() -> impl Strategy<Value = HostId> {
    prop_oneof![9 => 0..11u8, 1 => any::<u8>()].prop_map(HostId)
}

fn writer() -> impl Strategy<Value = Writer> {
    prop_oneof![Just(Writer::Nobody), Just(Writer::Operator), attempt().prop_map(Writer::Attempt)]
}

fn op() -> impl Strategy<Value = OpKind> {
    use OpKind::{Delete, Expire, Extend, Get, GetSet, Introduce, Release, Set, Wait};
    prop_oneof![
        4 => Just(Set),
        2 => Just(Extend),
        1 => prop::sample::select(vec![Delete, Expire, Get, GetSet, Introduce, Release, Wait])
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop::sample::select(vec![Answer::Yes, Answer::No, Answer::Error])
}

fn clock() -> impl Strategy<Value = ClockKind> {
    prop::sample::select(ClockKind::ALL.to_vec())
}

fn of_world() -> BoxedStrategy<EventKind> {
    prop_oneof![
        (host(), clock(), instant(), -1_000_000_000..1_000_000_000i32).prop_map(
            |(host, clock, local_ns, rate_ppb)| {
                EventKind::Clock { host, clock, local_ns, rate_ppb }
            }
        ),
        node().prop_map(|node| EventKind::NodeUp { node, incarnation: 1 }),
        node().prop_map(|node| EventKind::NodeDown { node, power: true }),
        node().prop_map(|node| EventKind::NodeStalled { node }),
        node().prop_map(|node| EventKind::NodeUnstalled { node }),
        (node(), host()).prop_map(|(node, host)| EventKind::FailedOver { node, host }),
        ((0..6u8).prop_map(ClientId), node(), instant_or_never()).prop_map(
            |(client, node, from_local_ns)| { EventKind::Eligible { client, node, from_local_ns } }
        ),
        host().prop_map(|host| EventKind::Stopped { host, suspended: true }),
        host().prop_map(|host| EventKind::Continued { host }),
        host().prop_map(|host| EventKind::Killed { host, power: true }),
        (0..3u16).prop_map(|fault| EventKind::FaultBegan { fault: FaultId(fault) }),
        (0..3u16).prop_map(|fault| EventKind::FaultEnded { fault: FaultId(fault) }),
        any::<u8>().prop_map(|probe| EventKind::Healed { probe: ClientId(probe) }),
    ]
    .boxed()
}

fn command() -> impl Strategy<Value = CommandId> {
    any::<u32>().prop_map(CommandId)
}

fn of_commands() -> BoxedStrategy<EventKind> {
    let end = prop::sample::select(vec![
        KeyEnd::Command,
        KeyEnd::Evicted,
        KeyEnd::Expired,
        KeyEnd::FailedOver,
        KeyEnd::Flushed,
        KeyEnd::Restarted,
    ]);
    prop_oneof![
        (command(), attempt(), node(), op()).prop_map(|(command, attempt, node, op)| {
            EventKind::Written { command, attempt, node, op }
        }),
        ((command(), attempt(), node(), op()), answer(), any::<bool>(), writer(), writer())
            .prop_map(|((command, attempt, node, op), answer, changed, before, after)| {
                let expires_wall_ms = 9;
                EventKind::Executed {
                    command,
                    attempt,
                    node,
                    op,
                    answer,
                    changed,
                    before,
                    after,
                    expires_wall_ms,
                }
            }),
        (command(), attempt(), node(), op(), answer()).prop_map(
            |(command, attempt, node, op, answer)| {
                EventKind::Delivered { command, attempt, node, op, answer }
            }
        ),
        (node(), writer(), end, writer()).prop_map(|(node, writer, cause, by)| {
            EventKind::KeyEnded { node, writer, cause, by, expires_wall_ms: 9 }
        }),
    ]
    .boxed()
}

fn of_attempts() -> BoxedStrategy<EventKind> {
    let outcome = prop::sample::select(vec![
        Settlement::Cancelled,
        Settlement::Granted,
        Settlement::Quarantined,
        Settlement::Taken,
        Settlement::TooFewNodes,
        Settlement::TooSlow,
    ]);
    prop_oneof![
        3 => (attempt(), clock(), instant(), instant_or_never(), instant(), 0..10u8).prop_map(
            |(attempt, clock, t1_local_ns, ttl_ns, drift_ns, needed)| {
                EventKind::AttemptBegan { attempt, clock, t1_local_ns, ttl_ns, drift_ns, needed }
            }
        ),
        1 => (attempt(), outcome)
            .prop_map(|(attempt, outcome)| EventKind::AttemptSettled { attempt, outcome }),
        2 => (attempt(), nodes(), instant(), instant_or_never()).prop_map(
            |(attempt, counted, t2_local_ns, deadline_local_ns)| {
                EventKind::GrantDecided { attempt, counted, t2_local_ns, deadline_local_ns }
            }
        ),
        2 => (attempt(), clock(), instant_or_never(), (0..4u64).prop_map(FencingToken)).prop_map(
            |(attempt, clock, deadline_local_ns, fencing_token)| {
                EventKind::GrantDelivered { attempt, clock, deadline_local_ns, fencing_token }
            }
        ),
        2 => of_extensions(),
    ]
    .boxed()
}

fn of_extensions() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        (attempt(), instant(), instant()).prop_map(|(attempt, t1_local_ns, ttl_ns)| {
            EventKind::ExtensionBegan { attempt, round: RoundId(1), t1_local_ns, ttl_ns }
        }),
        (attempt(), any::<bool>(), nodes(), instant_or_never()).prop_map(
            |(attempt, extended, counted, deadline_local_ns)| {
                let round = RoundId(1);
                EventKind::ExtensionSettled { attempt, round, extended, counted, deadline_local_ns }
            }
        ),
        (attempt(), clock(), instant_or_never()).prop_map(|(attempt, clock, deadline_local_ns)| {
            EventKind::ExtensionDelivered { attempt, clock, deadline_local_ns }
        }),
    ]
}

fn lost_reason() -> impl Strategy<Value = LostReason> {
    proptest::sample::select(vec![
        LostReason::Closed,
        LostReason::DeadlinePassed,
        LostReason::KeepAliveEnded,
        LostReason::KeepAliveFailed,
        LostReason::KeysGone,
    ])
}

fn of_applications() -> BoxedStrategy<EventKind> {
    let based_on = prop_oneof![0..4u32, Just(u32::MAX)].prop_map(BasedOn::on);
    prop_oneof![
        attempt().prop_map(|attempt| EventKind::ReleaseCalled { attempt }),
        (attempt(), lost_reason())
            .prop_map(|(attempt, reason)| { EventKind::LostDelivered { attempt, reason } }),
        attempt().prop_map(|attempt| EventKind::Checked { attempt, alive: true }),
        (attempt(), nodes(), nodes()).prop_map(|(attempt, confirmed, possible)| {
            EventKind::VotesChanged { attempt, confirmed, possible }
        }),
        attempt().prop_map(|attempt| EventKind::SectionEntered { attempt }),
        attempt().prop_map(|attempt| EventKind::SectionLeft { attempt }),
        attempt().prop_map(|attempt| EventKind::ReadDone { attempt, version: 0 }),
        (attempt(), (0..4u64).prop_map(FencingToken)).prop_map(|(attempt, fencing_token)| {
            EventKind::WriteSent {
                attempt,
                write: WriteId(0),
                based_on: BasedOn::NOTHING,
                fencing_token,
            }
        }),
        (attempt(), based_on, 0..9u32, (0..4u64).prop_map(FencingToken)).prop_map(
            |(attempt, based_on, version, fencing_token)| {
                EventKind::WriteApplied {
                    attempt,
                    write: WriteId(0),
                    based_on,
                    version,
                    fencing_token,
                }
            }
        ),
        attempt().prop_map(|attempt| {
            EventKind::WriteRejected { attempt, write: WriteId(0), why: Rejection::NotOwner }
        }),
    ]
    .boxed()
}

fn event() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![of_world(), of_commands(), of_attempts(), of_applications()];
    (instant(), kind).prop_map(|(at_ns, kind)| Event { at_ns, kind })
}

proptest! {
    #[test]
    fn the_judge_never_panics(events in prop::collection::vec(event(), 0..120)) {
        let mut scenario = scenario();
        scenario.clients[0].steps.push(toml::from_str("extend = {}").expect("a step"));
        for fault in [
            "partition = { between = [['c1', 'probe'], ['C', 'store']] }",
            "delay = { from = ['c2', 'D'], to = ['c1', 'A'], by = '2s' }",
        ] {
            let fault = format!("id = 'fault'\nat = '0s'\nuntil = '9s'\n{fault}");
            scenario.faults.push(toml::from_str(&fault).expect("a fault"));
        }
        let mut oracle = Oracle::new(&scenario, &[]);
        for event in &events {
            oracle.observe(event);
        }
        let found = oracle.finish();
        oracle.reset();
        events.iter().for_each(|event| oracle.observe(event));
        prop_assert_eq!(found, oracle.finish(), "a run before it must not show");
    }
}
