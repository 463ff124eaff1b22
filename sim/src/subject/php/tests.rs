//! The steps of the class, call by call.

use lock_judge::history::ClientId;
use redlock_protocol::{Drift, RetryDelay};

use super::*;
use crate::subject::{CommandKind, UNNUMBERED};

const MS: u64 = 1_000_000;
const SET: CommandKind = CommandKind::Set { ttl_ms: Some(10_000) };
const RELEASE: CommandKind = CommandKind::CompareAndDelete;

struct Bench {
    client: PhpClient,
    now_ms: u64,
    attempts: u16,
    seen: Vec<Action>,
}

impl Bench {
    fn new(nodes: usize, warm: bool) -> Self {
        let ms = Duration::from_millis;
        let settings = Settings {
            nodes,
            ttl: ms(10_000),
            drift: Drift::default(),
            node_timeout: ms(50),
            retry: RetryDelay { first: ms(5), longest: ms(5), ..RetryDelay::default() },
            extensions_max: 1,
            plain_extensions: false,
        };
        let mut client = PhpClient::new(settings, SOCKET_TIMEOUT);
        client.reset(warm);
        Self { client, now_ms: 0, attempts: 0, seen: Vec::new() }
    }

    fn now(&self) -> Now {
        Now { boot_ns: self.now_ms * MS, lease_ns: self.now_ms * MS }
    }

    /// Begins the due try.
    fn begin(&mut self) {
        assert_eq!(self.client.poll_action(), Some(Action::AttemptDue));
        self.attempts += 1;
        let attempt = AttemptId { client: ClientId(0), number: self.attempts };
        let token = Token::from_bytes([self.attempts as u8; Token::LENGTH]);
        self.client.begin(FreshAttempt { attempt, token, jitter: 0 }, self.now());
    }

    /// Returns the last requested action, which must be a command: its node, kind and token.
    fn asked(&mut self) -> (u8, CommandKind, Token) {
        self.drain();
        match self.seen.last() {
            Some(&Action::Write { route, kind, token, .. }) => (route.node.0, kind, token),
            other => panic!("{other:?}"),
        }
    }

    fn drain(&mut self) {
        while let Some(action) = self.client.poll_action() {
            self.seen.push(action);
        }
    }

    fn answer(&mut self, value: ReplyValue) {
        let (node, kind, _) = self.asked();
        let attempt = AttemptId { client: ClientId(0), number: self.attempts };
        let route = self.client.route(NodeId(node));
        let reply = Reply { command: UNNUMBERED, attempt, op: kind.op(), value };
        self.client.handle_reply(route, reply, self.now());
        self.drain();
    }

    fn close(&mut self, node: u8) {
        self.client.handle_closed(self.client.route(NodeId(node)), self.now());
        self.drain();
    }

    fn open(&mut self, node: u8) {
        self.client.handle_connected(self.client.route(NodeId(node)), self.now());
        self.drain();
    }

    fn outcomes(&self) -> Vec<Settlement> {
        let outcome = |action: &Action| match action {
            Action::AttemptSettled { outcome, .. } => Some(*outcome),
            _ => None,
        };
        self.seen.iter().filter_map(outcome).collect()
    }

    fn releases(&self) -> usize {
        let is_release = |it: &&Action| matches!(it, Action::Write { kind: RELEASE, .. });
        self.seen.iter().filter(is_release).count()
    }

    /// Returns the counted votes of the one decision, if there is one.
    fn counted(&self) -> Option<u16> {
        self.seen.iter().find_map(|action| match action {
            Action::Decided { counted, .. } => Some(counted.bits()),
            _ => None,
        })
    }
}

/// Makes one call of `lock()` over `nodes` nodes; the first `agreeing` of them say yes.
fn try_once(nodes: usize, agreeing: usize) -> Bench {
    let mut bench = Bench::new(nodes, true);
    bench.client.acquire(Patience::Attempts(3));
    bench.begin();
    for node in 0..nodes {
        bench.answer(if node < agreeing { ReplyValue::Ok } else { ReplyValue::Nil });
    }
    bench
}

#[test]
fn half_of_five_and_one_are_three_and_a_half() {
    for (nodes, agreeing, granted) in
        [(5, 3, false), (5, 4, true), (3, 2, false), (3, 3, true), (4, 3, true), (1, 1, true)]
    {
        let bench = try_once(nodes, agreeing);
        assert_eq!(bench.counted().is_some(), granted, "{agreeing} of {nodes}");
    }
}

#[test]
fn nodes_are_asked_one_after_the_other() {
    let mut bench = Bench::new(3, true);
    bench.client.acquire(Patience::Attempts(3));
    bench.begin();
    for node in 0..3 {
        let (asked, kind, _) = bench.asked();
        assert_eq!((asked, kind), (node, SET));
        bench.answer(ReplyValue::Ok);
    }
    assert_eq!(bench.counted(), Some(0b111));
}

#[test]
fn a_call_has_three_tries_with_one_token_the_next_call_another() {
    let mut bench = Bench::new(3, true);
    bench.client.acquire(Patience::Attempts(4));
    let mut tokens = Vec::new();
    for _ in 0..4 {
        bench.begin();
        tokens.push(bench.asked().2);
        (0..3).for_each(|_| bench.answer(ReplyValue::Nil));
        (0..3).for_each(|_| bench.answer(ReplyValue::Integer(0)));
        bench.now_ms += 200;
        bench.client.handle_timeout(bench.now());
    }
    assert!(tokens[0] == tokens[1] && tokens[1] == tokens[2] && tokens[2] != tokens[3]);
}

#[test]
fn next_try_waits_for_every_release_and_a_random_delay() {
    let mut bench = try_once(3, 1);
    bench.now_ms = 1_000;
    for node in 0..3 {
        let (asked, kind, _) = bench.asked();
        assert_eq!((asked, kind), (node, RELEASE));
        assert_eq!(
            bench.client.poll_timeout_boot_ns(),
            Some(if node == 0 { 60_000 } else { 61_000 } * MS)
        );
        bench.answer(ReplyValue::Integer(0));
    }
    // The range is 100 ms to 200 ms, and the jitter is the smallest.
    assert_eq!(bench.client.poll_timeout_boot_ns(), Some(1_100 * MS));
}

#[test]
fn silent_node_blocks_until_the_timeout_without_a_release() {
    let mut bench = Bench::new(3, true);
    bench.client.acquire(Patience::Attempts(3));
    bench.begin();
    bench.answer(ReplyValue::Ok);
    bench.asked();
    bench.now_ms = 59_999;
    bench.client.handle_timeout(bench.now());
    bench.drain();
    assert_eq!(bench.outcomes(), []);
    bench.now_ms = 60_000;
    bench.client.handle_timeout(bench.now());
    bench.drain();
    assert_eq!(bench.outcomes(), [Settlement::TooFewNodes]);
    assert_eq!(bench.releases(), 0);
    assert_eq!(bench.seen.last(), Some(&Action::GaveUp), "an exception ends the call");
}

#[test]
fn a_lost_connection_is_an_exception_that_releases_nothing() {
    let mut bench = Bench::new(3, true);
    bench.client.acquire(Patience::Attempts(3));
    bench.begin();
    bench.answer(ReplyValue::Ok);
    bench.close(1);
    assert_eq!((bench.outcomes().len(), bench.releases()), (1, 0));
}

#[test]
fn a_connection_that_was_lost_before_is_opened_again() {
    let mut bench = Bench::new(3, true);
    bench.close(0);
    bench.client.acquire(Patience::Attempts(3));
    bench.begin();
    bench.drain();
    assert!(matches!(bench.seen.last(), Some(Action::Dial(Route { node: FIRST, epoch: 2, .. }))));
    bench.open(0);
    assert_eq!(bench.asked().0, 0);
}

#[test]
fn a_class_that_could_not_connect_everywhere_keeps_what_it_has() {
    let mut bench = Bench::new(3, false);
    bench.client.acquire(Patience::UntilBoot(u64::MAX));
    bench.begin();
    bench.drain();
    bench.open(0);
    bench.open(1);
    bench.close(2);
    assert_eq!(bench.outcomes(), [Settlement::TooFewNodes]);
    bench.now_ms = 200;
    bench.client.handle_timeout(bench.now());
    bench.begin();
    bench.answer(ReplyValue::Ok);
    bench.answer(ReplyValue::Ok);
    assert_eq!(bench.outcomes().len(), 2, "two of two are too few of three");
}

#[test]
fn it_returns_a_duration() {
    let mut bench = try_once(3, 3);
    bench.now_ms = 20_000;
    let delivered = bench.client.deliver(bench.now()).unwrap();
    assert_eq!(delivered.deadline_ns, (20_000 + 10_000 - 102) * MS);
}

#[test]
fn a_client_waits_while_the_class_unlocks() {
    let mut bench = try_once(3, 3);
    bench.client.deliver(bench.now());
    bench.client.release(bench.now());
    bench.client.acquire(Patience::Attempts(1));
    bench.answer(ReplyValue::Integer(1));
    bench.answer(ReplyValue::Integer(1));
    assert!(!bench.seen.contains(&Action::AttemptDue));
    bench.answer(ReplyValue::Integer(1));
    assert_eq!(bench.seen.last(), Some(&Action::AttemptDue));
}
