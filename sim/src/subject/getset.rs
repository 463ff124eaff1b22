//! The lock that the documentation of `SETNX` once described. The key holds the time at which the
//! lease is over. A client that reads a past time takes the key over with `GETSET`.
//!
//! The writer's wall clock sets the time, and the reader's wall clock is compared with it. The key
//! has no TTL.

use std::collections::VecDeque;

use lock_judge::history::{AttemptId, ClockKind, LostReason, NodeId, OpKind, Settlement};
use redlock_protocol::{NodeIndex, NodeMask, Token};

use super::policy::nanos;
use super::transport::{Command, Transport};
use super::{
    Action, CommandKind, Connect, Delivered, FreshAttempt, Now, Patience, Profile, Reply,
    ReplyValue, Route, Settings,
};

const MS_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Due,
    Trying { timeout_boot_ns: u64 },
    Waiting { until_boot_ns: u64 },
    Decided,
    Held { lost: bool },
}

/// A client of the `SETNX`/`GETSET` lock on the first node.
#[derive(Clone, Debug)]
pub struct GetSetClient {
    settings: Settings,
    transport: Transport,
    actions: VecDeque<Action>,
    state: State,
    patience: Patience,
    failures: u32,
    attempt: AttemptId,
    jitter: u64,
    /// Value for the key: the time on the wall clock at which the lease is over.
    expiry_ms: u64,
    look_again_boot_ns: u64,
}

impl GetSetClient {
    /// Returns a client of the first node.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            transport: Transport::default(),
            actions: VecDeque::with_capacity(8),
            state: State::Idle,
            patience: Patience::Attempts(1),
            failures: 0,
            attempt: AttemptId::default(),
            jitter: 0,
            expiry_ms: 0,
            look_again_boot_ns: 0,
        }
    }

    /// Resets to the beginning of a run. With `warm`, the connection is open.
    pub fn reset(&mut self, warm: bool) {
        self.transport.reset(Connect::Pooled, warm);
        self.actions.clear();
        self.state = State::Idle;
    }

    pub(super) fn profile(&self) -> Profile {
        Profile { nodes: 1, lanes: 1, quorum: 1, expires: false, gives_up_drift: false }
    }

    pub(super) fn acquire(&mut self, patience: Patience) {
        assert_eq!(self.state, State::Idle, "one use of the lock at a time");
        self.patience = patience;
        self.failures = 0;
        self.due();
    }

    pub(super) fn begin(&mut self, fresh: FreshAttempt, now: Now) {
        if self.state != State::Due {
            return;
        }
        self.attempt = fresh.attempt;
        self.jitter = fresh.jitter;
        let timeout_boot_ns = now.boot_ns + nanos(self.settings.node_timeout);
        self.state = State::Trying { timeout_boot_ns };
        self.stamp(now);
        self.send(CommandKind::Set { ttl_ms: None });
    }

    pub(super) fn deliver(&mut self, now: Now) -> Option<Delivered> {
        if self.state != State::Decided {
            return None;
        }
        self.state = State::Held { lost: false };
        let deadline_ns = self.deadline_ns();
        self.look_again_boot_ns = now.boot_ns + deadline_ns.saturating_sub(now.lease_ns);
        let (attempt, clock) = (self.attempt, ClockKind::Wall);
        Some(Delivered { attempt, clock, deadline_ns, fencing_token: None })
    }

    pub(super) fn is_alive(&self, now: Now) -> bool {
        matches!(self.state, State::Held { .. }) && now.lease_ns < self.deadline_ns()
    }

    /// Deletes the key before the deadline only: later it may belong to another client, and this
    /// lock has no other way to tell.
    pub(super) fn release(&mut self, now: Now) {
        match core::mem::replace(&mut self.state, State::Idle) {
            State::Held { .. } if now.lease_ns < self.deadline_ns() => {
                self.send(CommandKind::Delete)
            }
            State::Trying { .. } | State::Decided => {
                let (attempt, outcome) = (self.attempt, Settlement::Cancelled);
                self.actions.push_back(Action::AttemptSettled { attempt, outcome });
                self.actions.push_back(Action::GaveUp);
            }
            State::Due | State::Waiting { .. } => self.actions.push_back(Action::GaveUp),
            State::Held { .. } | State::Idle => {}
        }
    }

    pub(super) fn handle_connected(&mut self, route: Route, _now: Now) {
        self.transport.connected(route, &mut self.actions);
    }

    pub(super) fn handle_closed(&mut self, route: Route, _now: Now) {
        self.transport.closed(route);
    }

    pub(super) fn handle_reply(&mut self, _route: Route, reply: Reply, now: Now) {
        if reply.attempt != self.attempt || !matches!(self.state, State::Trying { .. }) {
            return;
        }
        let is_over = |token: &Token| written_in(token) < now.lease_ns / MS_NS;
        match (reply.op, reply.value) {
            (OpKind::Set, ReplyValue::Integer(1)) => self.decide(),
            (OpKind::Set, ReplyValue::Integer(0)) => self.send(CommandKind::Get),
            (OpKind::Get, ReplyValue::Value { token, .. }) if is_over(&token) => {
                self.stamp(now);
                self.send(CommandKind::GetSet);
            }
            (OpKind::GetSet, ReplyValue::Nil) => self.decide(),
            // A client that finds a future time has lost the race, but has moved the winner's
            // expiry a little.
            (OpKind::GetSet, ReplyValue::Value { token, .. }) if is_over(&token) => self.decide(),
            _ => self.fail(Settlement::Taken, now),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Now) {
        match self.state {
            State::Trying { timeout_boot_ns } if timeout_boot_ns <= now.boot_ns => {
                self.fail(Settlement::TooFewNodes, now);
            }
            State::Waiting { until_boot_ns } if until_boot_ns <= now.boot_ns => self.due(),
            State::Held { lost: false } if self.look_again_boot_ns <= now.boot_ns => {
                let left_ns = self.deadline_ns().saturating_sub(now.lease_ns);
                self.look_again_boot_ns = now.boot_ns + left_ns;
                if left_ns == 0 {
                    self.state = State::Held { lost: true };
                    let (attempt, reason) = (self.attempt, LostReason::DeadlinePassed);
                    self.actions.push_back(Action::Lost { attempt, reason });
                }
            }
            _ => {}
        }
    }

    pub(super) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(super) fn poll_timeout_boot_ns(&self) -> Option<u64> {
        match self.state {
            State::Trying { timeout_boot_ns } => Some(timeout_boot_ns),
            State::Waiting { until_boot_ns } => Some(until_boot_ns),
            State::Held { lost: false } => Some(self.look_again_boot_ns),
            State::Idle | State::Due | State::Decided | State::Held { lost: true } => None,
        }
    }

    fn due(&mut self) {
        self.state = State::Due;
        self.actions.push_back(Action::AttemptDue);
    }

    fn stamp(&mut self, now: Now) {
        self.expiry_ms = now.lease_ns / MS_NS + self.settings.ttl.as_millis() as u64;
    }

    fn deadline_ns(&self) -> u64 {
        self.expiry_ms * MS_NS
    }

    fn send(&mut self, kind: CommandKind) {
        let (attempt, token) = (self.attempt, holding(self.expiry_ms));
        let command = Command { attempt, kind, token };
        self.transport.send(Connect::Pooled, NodeId(0), command, &mut self.actions);
    }

    fn decide(&mut self) {
        self.state = State::Decided;
        let mut counted = NodeMask::EMPTY;
        counted.insert(NodeIndex::new(0));
        let (attempt, deadline_ns) = (self.attempt, self.deadline_ns());
        self.actions.push_back(Action::Decided { attempt, counted, deadline_ns });
    }

    fn fail(&mut self, outcome: Settlement, now: Now) {
        let attempt = self.attempt;
        self.actions.push_back(Action::AttemptSettled { attempt, outcome });
        self.failures += 1;
        let wait =
            self.settings.retry.after(self.failures, core::time::Duration::ZERO, self.jitter);
        let until_boot_ns = now.boot_ns + nanos(wait);
        if self.patience.allows(self.failures, until_boot_ns) {
            self.state = State::Waiting { until_boot_ns };
        } else {
            self.state = State::Idle;
            self.actions.push_back(Action::GaveUp);
        }
    }
}

/// Returns a value that holds a time.
fn holding(wall_ms: u64) -> Token {
    let mut bytes = [0; Token::LENGTH];
    bytes[..8].copy_from_slice(&wall_ms.to_le_bytes());
    Token::from_bytes(bytes)
}

fn written_in(token: &Token) -> u64 {
    let mut wall_ms = [0; 8];
    wall_ms.copy_from_slice(&token.as_bytes()[..8]);
    u64::from_le_bytes(wall_ms)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use redlock_protocol::{Drift, RetryDelay};

    use super::*;
    use crate::subject::UNNUMBERED;

    const WALL_MS: u64 = 1_000_000;

    fn now(ms: u64) -> Now {
        Now { boot_ns: ms * MS_NS, lease_ns: (WALL_MS + ms) * MS_NS }
    }

    /// Returns a client whose SETNX was refused, 1 s after the beginning.
    fn refused() -> GetSetClient {
        let ms = Duration::from_millis;
        let mut client = GetSetClient::new(Settings {
            nodes: 5,
            ttl: ms(10_000),
            drift: Drift::default(),
            node_timeout: ms(50),
            retry: RetryDelay { first: ms(5), longest: ms(5), ..RetryDelay::default() },
            extensions_max: 1,
            plain_extensions: false,
        });
        client.reset(true);
        client.acquire(Patience::Attempts(1));
        let fresh = FreshAttempt { attempt: AttemptId::default(), token: holding(0), jitter: 0 };
        client.begin(fresh, now(1_000));
        answer(&mut client, CommandKind::Set { ttl_ms: None }, ReplyValue::Integer(0));
        client
    }

    fn answer(client: &mut GetSetClient, kind: CommandKind, value: ReplyValue) {
        let attempt = AttemptId::default();
        let reply = Reply { command: UNNUMBERED, attempt, op: kind.op(), value };
        client.handle_reply(Route { node: NodeId(0), lane: 0, epoch: 1 }, reply, now(1_000));
    }

    fn value(ms: u64) -> ReplyValue {
        ReplyValue::Value { token: holding(WALL_MS + ms), own: false }
    }

    fn last(client: &mut GetSetClient) -> Action {
        core::iter::from_fn(|| client.poll_action()).last().unwrap()
    }

    #[test]
    fn the_key_holds_when_the_lease_is_over() {
        let mut client = refused();
        assert!(matches!(last(&mut client), Action::Write { kind: CommandKind::Get, .. }));
        assert_eq!(client.expiry_ms, WALL_MS + 11_000);
    }

    #[test]
    fn a_time_to_come_is_a_refusal() {
        let mut client = refused();
        answer(&mut client, CommandKind::Get, value(1_000));
        assert_eq!(last(&mut client), Action::GaveUp);
    }

    #[test]
    fn a_time_in_the_past_is_taken_over() {
        let mut client = refused();
        answer(&mut client, CommandKind::Get, value(999));
        assert!(matches!(last(&mut client), Action::Write { kind: CommandKind::GetSet, .. }));
        answer(&mut client, CommandKind::GetSet, value(999));
        assert!(matches!(last(&mut client), Action::Decided { .. }));
    }

    #[test]
    fn the_slower_getset_loses() {
        let mut client = refused();
        answer(&mut client, CommandKind::Get, value(999));
        answer(&mut client, CommandKind::GetSet, value(11_000));
        assert_eq!(last(&mut client), Action::GaveUp);
    }

    #[test]
    fn a_lease_that_is_over_is_not_released() {
        for (released_ms, deletes) in [(10_999, true), (11_000, false)] {
            let mut client = refused();
            answer(&mut client, CommandKind::Get, value(0));
            answer(&mut client, CommandKind::GetSet, ReplyValue::Nil);
            client.deliver(now(1_000)).unwrap();
            client.release(now(released_ms));
            let last = last(&mut client);
            assert_eq!(matches!(last, Action::Write { kind: CommandKind::Delete, .. }), deletes);
        }
    }
}
