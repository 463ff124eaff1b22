//! One rule in each test: the effect of each setting on the machine.

mod extension;

use lock_judge::history::{AttemptId, ClientId, FencingToken, NodeId, Settlement};
use redlock_protocol::{Drift, NodeMask, RetryDelay, Token};

use super::*;
use crate::subject::{
    Action, CommandKind, FreshAttempt, Kind, Now, Patience, Reply, ReplyValue, Route, UNNUMBERED,
    kind, token_of,
};

const MS: u64 = 1_000_000;
const TTL_MS: u64 = 10_000;

/// A client of a preset, driven by hand. All of its clocks show the same time.
struct Bench {
    client: PolicyClient,
    now_ms: u64,
    attempts: u16,
}

impl Bench {
    fn new(name: &str) -> Self {
        let Some(Kind::Policy(policy)) = kind(name) else { panic!("{name} is no policy") };
        let ms = Duration::from_millis;
        let retry = RetryDelay { first: ms(5), longest: ms(5), ..RetryDelay::default() };
        let (ttl, drift, node_timeout) = (ms(TTL_MS), Drift::default(), ms(50));
        let (extensions_max, plain_extensions) = (2, false);
        let settings = Settings {
            nodes: 5,
            ttl,
            drift,
            node_timeout,
            retry,
            extensions_max,
            plain_extensions,
        };
        let mut client = PolicyClient::new(policy, settings);
        client.reset(true);
        Self { client, now_ms: 0, attempts: 0 }
    }

    fn now(&self) -> Now {
        Now { boot_ns: self.now_ms * MS, lease_ns: self.now_ms * MS }
    }

    fn acquire(&mut self) -> Vec<(u8, CommandKind, Token)> {
        self.client.acquire(Patience::Attempts(2));
        self.begin()
    }

    /// Begins the due attempt, and returns the commands written.
    fn begin(&mut self) -> Vec<(u8, CommandKind, Token)> {
        assert_eq!(self.client.poll_action(), Some(Action::AttemptDue));
        self.attempts += 1;
        let attempt = AttemptId { client: ClientId(3), number: self.attempts };
        let token = token_of(attempt, u64::from(self.attempts));
        self.client.begin(FreshAttempt { attempt, token, jitter: 0 }, self.now());
        self.written()
    }

    fn actions(&mut self) -> Vec<Action> {
        core::iter::from_fn(|| self.client.poll_action()).collect()
    }

    fn written(&mut self) -> Vec<(u8, CommandKind, Token)> {
        let written = |action| match action {
            Action::Write { route, kind, token, .. } => (route.node.0, kind, token),
            other => panic!("{other:?}"),
        };
        self.actions().into_iter().map(written).collect()
    }

    /// Returns the nodes that were asked, with the command for each.
    fn asked(&mut self) -> Vec<(u8, CommandKind)> {
        self.written().into_iter().map(|(node, kind, _)| (node, kind)).collect()
    }

    fn answer(&mut self, node: u8, kind: CommandKind, value: ReplyValue) {
        let attempt = AttemptId { client: ClientId(3), number: self.attempts };
        let reply = Reply { command: UNNUMBERED, attempt, op: kind.op(), value };
        self.client.handle_reply(route(node), reply, self.now());
    }

    fn answer_each(&mut self, nodes: core::ops::Range<u8>, kind: CommandKind, value: ReplyValue) {
        nodes.for_each(|node| self.answer(node, kind, value));
    }

    fn at(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.client.handle_timeout(self.now());
    }

    /// Acquires the lease: A, B and C say yes at 2 ms.
    fn granted(name: &str) -> Self {
        let mut bench = Self::new(name);
        bench.acquire();
        bench.now_ms = 2;
        bench.answer_each(0..3, SET, ReplyValue::Ok);
        assert!(matches!(bench.actions()[..], [Action::Decided { .. }]));
        bench.client.deliver(bench.now()).expect("it was granted");
        bench
    }

    fn extend(&mut self) -> Vec<(u8, CommandKind)> {
        assert_eq!(self.client.extend(TTL_MS * MS, self.now()), Ok(()));
        self.asked()
    }

    /// Returns the result of the extension, if it was decided.
    fn extended(&mut self) -> Option<Option<(NodeMask, u64)>> {
        self.actions().into_iter().find_map(|action| match action {
            Action::ExtensionSettled { extended, .. } => Some(extended),
            _ => None,
        })
    }
}

const SET: CommandKind = CommandKind::Set { ttl_ms: Some(TTL_MS) };
const SETNX: CommandKind = CommandKind::Set { ttl_ms: None };
const EXPIRE: CommandKind = CommandKind::Expire { ttl_ms: TTL_MS };
const EXTEND: CommandKind = CommandKind::Extend { ttl_ms: TTL_MS };

fn route(node: u8) -> Route {
    Route { node: NodeId(node), lane: 0, epoch: 1 }
}

fn outcome(actions: &[Action]) -> Option<Settlement> {
    actions.iter().find_map(|action| match action {
        Action::AttemptSettled { outcome, .. } => Some(*outcome),
        _ => None,
    })
}

fn releases(actions: &[Action]) -> usize {
    let is_release =
        |it: &&Action| matches!(it, Action::Write { kind: CommandKind::CompareAndDelete, .. });
    actions.iter().filter(is_release).count()
}

fn is_granted(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Decided { .. }))
}

#[test]
fn literal_algorithm_asks_all_at_once_and_takes_three_votes() {
    let mut bench = Bench::new("redlock-literal");
    let asked: Vec<u8> = bench.acquire().iter().map(|(node, ..)| *node).collect();
    assert_eq!(asked, [0, 1, 2, 3, 4]);
    bench.answer_each(0..2, SET, ReplyValue::Ok);
    assert!(bench.actions().is_empty());
    bench.now_ms = 7;
    bench.answer(2, SET, ReplyValue::Ok);
    let [Action::Decided { counted, deadline_ns, .. }] = bench.actions()[..] else { panic!() };
    assert_eq!((counted.bits(), deadline_ns), (0b00111, (TTL_MS - 102) * MS));
}

#[test]
fn sequential_asks_in_turn_with_a_node_timeout_for_each() {
    let mut bench = Bench::new("redlock-sequential");
    assert_eq!(bench.acquire().len(), 1);
    bench.answer(0, SET, ReplyValue::Ok);
    assert_eq!(bench.asked(), [(1, SET)]);
    bench.at(49);
    assert_eq!(bench.asked(), []);
    bench.at(50);
    assert_eq!(bench.asked(), [(2, SET)]);
    // Too late: the votes no longer count.
    bench.answer(1, SET, ReplyValue::Ok);
    bench.answer(2, SET, ReplyValue::Ok);
    assert_eq!(bench.asked(), [(3, SET)]);
    bench.at(99);
    assert_eq!(bench.asked(), []);
    bench.at(100);
    assert_eq!(bench.asked(), [(4, SET)]);
    bench.answer(4, SET, ReplyValue::Ok);
    let [Action::Decided { counted, .. }] = bench.actions()[..] else { panic!() };
    assert_eq!(counted.bits(), 0b10101);
}

#[test]
fn stopping_at_the_quorum_leaves_the_rest_unasked() {
    let mut bench = Bench::new("redlock-stops-at-quorum");
    bench.acquire();
    for node in 0..2 {
        bench.answer(node, SET, ReplyValue::Ok);
        assert_eq!(bench.asked(), [(node + 1, SET)]);
    }
    bench.answer(2, SET, ReplyValue::Ok);
    assert!(matches!(bench.actions()[..], [Action::Decided { .. }]));
}

#[test]
fn without_a_node_timeout_the_last_answer_is_waited_for() {
    let mut bench = Bench::new("redlock-no-node-timeout");
    bench.acquire();
    bench.answer_each(0..4, SET, ReplyValue::Ok);
    assert_eq!(bench.client.poll_timeout_boot_ns(), None);
    bench.at(60_000);
    assert!(bench.actions().is_empty());
    bench.client.handle_closed(route(4), bench.now());
    assert_eq!(outcome(&bench.actions()), Some(Settlement::TooSlow));
}

#[test]
fn an_error_that_aborts_releases_nothing() {
    let mut bench = Bench::new("redlock-aborts-on-error");
    bench.acquire();
    bench.answer(0, SET, ReplyValue::Ok);
    bench.client.handle_closed(route(1), bench.now());
    let actions = bench.actions();
    assert_eq!((outcome(&actions), releases(&actions)), (Some(Settlement::TooFewNodes), 0));
}

#[test]
fn only_the_connected_are_asked_and_count() {
    let mut bench = Bench::new("redlock-connected-quorum");
    (2..5).for_each(|node| bench.client.handle_closed(route(node), bench.now()));
    let asked: Vec<u8> = bench.acquire().iter().map(|(node, ..)| *node).collect();
    assert_eq!(asked, [0, 1]);
    bench.answer_each(0..2, SET, ReplyValue::Ok);
    assert!(is_granted(&bench.actions()));
}

#[test]
fn a_late_majority_is_released_except_by_its_preset() {
    for (name, released) in [("redlock-literal", 5), ("redlock-too-slow-keeps", 0)] {
        let mut bench = Bench::new(name);
        bench.acquire();
        bench.answer_each(0..2, SET, ReplyValue::Ok);
        bench.now_ms = TTL_MS - 102;
        bench.answer(2, SET, ReplyValue::Ok);
        let actions = bench.actions();
        assert_eq!(outcome(&actions), Some(Settlement::TooSlow), "{name}");
        assert_eq!(releases(&actions), released, "{name}");
    }
}

#[test]
fn too_slow_keeps_still_releases_other_failures() {
    let mut bench = Bench::new("redlock-too-slow-keeps");
    bench.acquire();
    bench.answer_each(0..3, SET, ReplyValue::Nil);
    assert_eq!(releases(&bench.actions()), 5);
}

#[test]
fn expire_follows_a_yes_and_is_the_vote() {
    let mut bench = Bench::new("setnx-then-expire");
    assert_eq!(bench.acquire().iter().map(|it| it.1).collect::<Vec<_>>(), [SETNX]);
    bench.answer(0, SETNX, ReplyValue::Integer(1));
    assert_eq!(bench.asked(), [(0, EXPIRE)]);
    bench.answer(0, EXPIRE, ReplyValue::Integer(1));
    assert!(is_granted(&bench.actions()));
}

#[test]
fn expire_does_not_follow_a_no() {
    let mut bench = Bench::new("setnx-then-expire");
    bench.acquire();
    bench.answer(0, SETNX, ReplyValue::Integer(0));
    assert_eq!(outcome(&bench.actions()), Some(Settlement::Taken));
}

#[test]
fn a_pipelined_expire_is_sent_before_the_answer() {
    let mut bench = Bench::new("setnx-and-expire-pipelined");
    assert_eq!(bench.acquire().iter().map(|it| it.1).collect::<Vec<_>>(), [SETNX, EXPIRE]);
    bench.answer(0, SETNX, ReplyValue::Integer(1));
    assert!(is_granted(&bench.actions()));
}

#[test]
fn too_few_replicas_are_a_failure_unless_they_are_ignored() {
    let wait = CommandKind::Wait { replicas: 1, timeout_ms: 25 };
    for (name, replicas, granted) in [
        ("unique-id-wait", 1, true),
        ("unique-id-wait", 0, false),
        ("unique-id-wait-ignored", 0, true),
    ] {
        let mut bench = Bench::new(name);
        bench.acquire();
        bench.answer(0, SET, ReplyValue::Ok);
        assert_eq!(bench.asked(), [(0, wait)], "{name}");
        bench.answer(0, wait, ReplyValue::Integer(replicas));
        let actions = bench.actions();
        assert_eq!(is_granted(&actions), granted, "{name} {replicas}");
        assert_eq!(releases(&actions), usize::from(!granted), "{name} {replicas}");
        let failure = (!granted).then_some(Settlement::TooFewNodes);
        assert_eq!(outcome(&actions), failure, "{name} {replicas}");
    }
}

#[test]
fn a_lock_is_taken_only_if_the_key_exists() {
    let outcome_of = |name: &str, replies: &[(CommandKind, ReplyValue)]| {
        let mut bench = Bench::new(name);
        bench.acquire();
        replies.iter().for_each(|&(kind, value)| bench.answer(0, kind, value));
        outcome(&bench.actions())
    };
    let (taken, too_few) = (Some(Settlement::Taken), Some(Settlement::TooFewNodes));
    assert_eq!(outcome_of("unique-id", &[(SET, ReplyValue::Nil)]), taken);
    assert_eq!(outcome_of("unique-id", &[(SET, ReplyValue::NotServing)]), too_few);
    let without_expiry = [(SETNX, ReplyValue::Integer(1)), (EXPIRE, ReplyValue::Integer(0))];
    assert_eq!(outcome_of("setnx-then-expire", &without_expiry), too_few);
}

#[test]
fn a_lock_is_not_taken_if_only_silence_prevents_a_majority() {
    for (refused, expected) in [(2, Settlement::TooFewNodes), (3, Settlement::Taken)] {
        let mut bench = Bench::new("redlock-no-node-timeout");
        bench.acquire();
        (refused..5).for_each(|node| bench.client.handle_closed(route(node), bench.now()));
        bench.answer_each(0..refused, SET, ReplyValue::Nil);
        assert_eq!(outcome(&bench.actions()), Some(expected), "{refused} refusals");
    }
}

#[test]
fn timestamp_tokens_collide_in_one_millisecond_without_an_id() {
    let token = |name: &str, now_ms: u64| {
        let mut bench = Bench::new(name);
        bench.now_ms = now_ms;
        bench.acquire()[0].2
    };
    assert_eq!(token("redlock-timestamp-token", 7), token("timestamp-token", 7));
    assert_ne!(token("redlock-timestamp-token", 7), token("redlock-timestamp-token", 8));
    let with_id = token("redlock-timestamp-and-id-token", 7);
    assert_eq!((with_id.as_bytes()[0], with_id.as_bytes()[8]), (7, 3));
}

#[test]
fn one_token_is_reused_and_a_fresh_one_is_not() {
    for (name, same) in [("redlock-one-token", true), ("redlock-literal", false)] {
        let mut bench = Bench::new(name);
        let first = bench.acquire()[0].2;
        bench.answer_each(0..3, SET, ReplyValue::Nil);
        bench.actions();
        bench.at(100);
        assert_eq!(bench.begin()[0].2 == first, same, "{name}");
    }
}

#[test]
fn pxat_is_stamped_with_the_clients_time() {
    let mut bench = Bench::new("redlock-pxat");
    bench.now_ms = 1_234;
    assert_eq!(bench.acquire()[0].1, CommandKind::SetUntil { wall_ms: 1_234 + TTL_MS });
}

#[test]
fn the_largest_counted_number_is_the_fencing_token() {
    let mut bench = Bench::new("redlock-counter-max");
    let kind = CommandKind::SetAndCount { ttl_ms: TTL_MS };
    assert_eq!(bench.acquire()[0].1, kind);
    bench.answer(4, kind, ReplyValue::Nil);
    for (node, count) in [(0, 3), (1, 8), (2, 5)] {
        bench.answer(node, kind, ReplyValue::Integer(count));
    }
    // This vote no longer counts.
    bench.answer(3, kind, ReplyValue::Integer(9));
    let delivered = bench.client.deliver(bench.now()).unwrap();
    assert_eq!(delivered.fencing_token, Some(FencingToken(8)));
}

#[test]
fn a_token_of_the_wall_clock_is_t2() {
    let mut bench = Bench::new("redlock-wall-clock-token");
    bench.acquire();
    bench.now_ms = 42;
    bench.answer_each(0..3, SET, ReplyValue::Ok);
    assert_eq!(bench.client.deliver(bench.now()).unwrap().fencing_token, Some(FencingToken(42)));
}

#[test]
#[should_panic(expected = "a stamp is of the wall clock")]
fn stamps_of_another_clock_are_refused() {
    let Some(Kind::Policy(policy)) = kind("redlock-pxat") else { panic!() };
    let settings = Bench::new("redlock-literal").client.settings;
    let _ = PolicyClient::new(Policy { clock: Clock::Boot, ..policy }, settings);
}
