//! The machine that follows a policy: attempts, the lease, its release.

use std::collections::VecDeque;

use redlock_client::protocol::{NodeIndex, NodeMask, Token};

use super::extension::Rounds;
use super::{
    Asking, Clock, Connect, Errors, Expiry, Fencing, Lasting, Policy, Quorum, ReleaseTo, Settings,
    Settling, Then, TokenFrom, Unlock, nanos,
};
use crate::history::{AttemptId, OpKind, Settlement};
use crate::subject::transport::Transport;
use crate::subject::{
    Action, Ask, Delivered, FreshAttempt, Now, Patience, Profile, Response, Route, Word,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Due,
    /// `timeout_boot_ns`: when those who are being asked are given up; `u64::MAX`: never.
    Trying {
        timeout_boot_ns: u64,
    },
    Waiting {
        until_boot_ns: u64,
    },
    Decided {
        left_ns: u64,
    },
    Held {
        lost: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    Unasked,
    Pending,
    Yes,
    No,
}

/// A client that follows a [`Policy`].
#[derive(Clone, Debug)]
pub struct PolicyClient {
    pub(super) policy: Policy,
    pub(super) settings: Settings,
    transports: Vec<Transport>,
    pub(super) actions: VecDeque<Action>,
    pub(super) state: State,
    patience: Patience,
    failures: u32,
    pub(super) fresh: FreshAttempt,
    first_token: Option<Token>,
    votes: Vec<Vote>,
    /// Votes that this attempt needs.
    pub(super) needed: usize,
    /// What each node's counter said when the key was set.
    counters: Vec<u64>,
    fencing_token: Option<u64>,
    t1_ns: u64,
    pub(super) deadline_ns: u64,
    /// When to compare the lease clock with the deadline again.
    pub(super) look_again_boot_ns: u64,
    pub(super) rounds: Rounds,
}

impl PolicyClient {
    /// A client of `settings.nodes` nodes.
    ///
    /// # Panics
    ///
    /// If the policy takes the wall clock's time from another clock.
    #[must_use]
    pub fn new(policy: Policy, mut settings: Settings) -> Self {
        let stamps = policy.expiry == Expiry::PxAt
            || policy.fencing == Fencing::WallClock
            || matches!(policy.token, TokenFrom::WallClock | TokenFrom::WallClockAndClient);
        assert!(!stamps || policy.clock == Clock::Wall, "a stamp is of the wall clock");
        if policy.one_node {
            settings.nodes = 1;
        }
        let attempt = AttemptId::default();
        let token = Token::from_bytes([0; Token::LENGTH]);
        Self {
            policy,
            settings,
            transports: vec![Transport::default(); settings.nodes],
            actions: VecDeque::with_capacity(16),
            state: State::Idle,
            patience: Patience::Attempts(1),
            failures: 0,
            fresh: FreshAttempt { attempt, token, jitter: 0 },
            first_token: None,
            votes: vec![Vote::No; settings.nodes],
            needed: 0,
            counters: vec![0; settings.nodes],
            fencing_token: None,
            t1_ns: 0,
            deadline_ns: 0,
            look_again_boot_ns: 0,
            rounds: Rounds::new(settings.nodes),
        }
    }

    /// Back to the beginning of a run.
    pub fn reset(&mut self, warm: bool) {
        for transport in &mut self.transports {
            transport.reset(self.policy.connect, warm);
        }
        self.actions.clear();
        self.state = State::Idle;
        self.first_token = None;
        self.rounds.reset();
    }

    /// The knobs.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(in crate::subject) fn profile(&self) -> Profile {
        Profile {
            nodes: self.settings.nodes,
            lanes: match self.policy.connect {
                Connect::FreshPerCommand => 0,
                Connect::Pooled => 1,
                Connect::SecondForRelease => 2,
            },
            quorum: self.quorum_of(self.settings.nodes),
            expires: self.policy.expiry != Expiry::Never
                || self.policy.then == Then::Expire
                || self.policy.then == Then::ExpirePipelined,
            gives_up_drift: self.policy.gives_up_drift,
        }
    }

    fn quorum_of(&self, nodes: usize) -> usize {
        match self.policy.quorum {
            Quorum::Of(votes) => votes,
            Quorum::Majority | Quorum::MajorityOfConnected => nodes / 2 + 1,
        }
    }

    pub(in crate::subject) fn acquire(&mut self, patience: Patience) {
        assert_eq!(self.state, State::Idle, "one use of the lock at a time");
        self.patience = patience;
        self.failures = 0;
        self.due();
    }

    pub(in crate::subject) fn begin(&mut self, fresh: FreshAttempt, now: Now) {
        if self.state != State::Due {
            return;
        }
        self.fresh = FreshAttempt { token: self.token(fresh, now), ..fresh };
        self.t1_ns = now.lease_ns;
        self.fencing_token = None;
        self.choose_voters();
        self.state = State::Trying { timeout_boot_ns: u64::MAX };
        self.ask_next(now);
    }

    pub(in crate::subject) fn deliver(&mut self, now: Now) -> Option<Delivered> {
        let State::Decided { left_ns } = self.state else { return None };
        self.state = State::Held { lost: false };
        self.rounds.begin_lease();
        if self.policy.lasting == Lasting::Duration {
            self.deadline_ns = now.lease_ns.saturating_add(left_ns);
        }
        let left_ns = self.deadline_ns.saturating_sub(now.lease_ns);
        self.look_again_boot_ns = now.boot_ns.saturating_add(left_ns);
        Some(Delivered {
            attempt: self.fresh.attempt,
            clock: self.policy.clock.kind(),
            deadline_ns: self.deadline_ns,
            fencing_token: self.fencing_token,
        })
    }

    pub(in crate::subject) fn is_alive(&self, now: Now) -> bool {
        matches!(self.state, State::Held { .. }) && now.lease_ns < self.deadline_ns
    }

    pub(in crate::subject) fn release(&mut self, _now: Now) {
        let attempt = self.fresh.attempt;
        self.rounds.stop();
        match core::mem::replace(&mut self.state, State::Idle) {
            State::Held { .. } => self.unlock(ReleaseTo::Everyone),
            State::Trying { .. } | State::Decided { .. } => {
                self.unlock(self.policy.release_after_failure);
                let outcome = Settlement::Cancelled;
                self.actions.push_back(Action::AttemptSettled { attempt, outcome });
                self.actions.push_back(Action::GaveUp);
            }
            State::Due | State::Waiting { .. } => self.actions.push_back(Action::GaveUp),
            State::Idle => {}
        }
    }

    pub(in crate::subject) fn handle_connected(&mut self, route: Route, _now: Now) {
        self.transports[usize::from(route.node)].connected(route, &mut self.actions);
    }

    pub(in crate::subject) fn handle_closed(&mut self, route: Route, now: Now) {
        let node = usize::from(route.node);
        self.transports[node].closed(route);
        self.rounds.forget(node);
        let awaited = matches!(self.state, State::Trying { .. })
            && self.votes[node] == Vote::Pending
            && !(self.policy.connect == Connect::SecondForRelease && route.lane == 1);
        match self.policy.errors {
            Errors::AbortAttempt if awaited => {
                self.fail(Settlement::TooFewNodes, ReleaseTo::Nobody, now);
            }
            Errors::CountAsNo if awaited => self.vote(node, Vote::No, now),
            Errors::AbortAttempt | Errors::CountAsNo | Errors::Unheard => {}
        }
    }

    pub(in crate::subject) fn handle_response(
        &mut self,
        route: Route,
        response: Response,
        now: Now,
    ) {
        let node = usize::from(route.node);
        let is_current = response.attempt == self.fresh.attempt;
        match (response.op, response.word) {
            (OpKind::Get, Word::Value { own: true, .. }) => {
                let command = (response.attempt, Ask::Delete, self.fresh.token);
                let transport = &mut self.transports[node];
                transport.send(self.policy.connect, route.node, command, &mut self.actions);
            }
            (OpKind::Set | OpKind::Extend, word) if is_current && self.rounds.are_under_way() => {
                self.extension_answered(node, response.op, word, now);
            }
            (OpKind::Set, word) if is_current => self.set_answered(node, word, now),
            (OpKind::Expire, word) if is_current && self.policy.then == Then::Expire => {
                let vote = if word == Word::Integer(1) { Vote::Yes } else { Vote::No };
                self.vote(node, vote, now);
            }
            (OpKind::Extend, _) => self.rounds.answered_late(node),
            (OpKind::Wait, word) if is_current => {
                let ignored = matches!(self.policy.then, Then::Wait { ignored: true });
                let enough = ignored || matches!(word, Word::Integer(1..));
                self.vote(node, if enough { Vote::Yes } else { Vote::No }, now);
            }
            _ => {}
        }
    }

    pub(in crate::subject) fn handle_timeout(&mut self, now: Now) {
        match self.state {
            State::Trying { timeout_boot_ns } if timeout_boot_ns <= now.boot_ns => {
                for vote in self.votes.iter_mut().filter(|vote| **vote == Vote::Pending) {
                    *vote = Vote::No;
                }
                self.settle(Settlement::TooFewNodes, now);
            }
            State::Waiting { until_boot_ns } if until_boot_ns <= now.boot_ns => self.due(),
            State::Held { .. } => self.watch(now),
            _ => {}
        }
    }

    pub(in crate::subject) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(in crate::subject) fn poll_timeout_boot_ns(&self) -> Option<u64> {
        match self.state {
            State::Trying { timeout_boot_ns } if timeout_boot_ns < u64::MAX => {
                Some(timeout_boot_ns)
            }
            State::Waiting { until_boot_ns } => Some(until_boot_ns),
            State::Held { lost } => {
                let watched = !lost && self.deadline_ns < u64::MAX;
                let look_again = watched.then_some(self.look_again_boot_ns);
                [look_again, self.rounds.timeout_boot_ns()].into_iter().flatten().min()
            }
            _ => None,
        }
    }

    fn due(&mut self) {
        self.state = State::Due;
        self.actions.push_back(Action::AttemptDue);
    }

    fn token(&mut self, fresh: FreshAttempt, now: Now) -> Token {
        let mut stamp = [0; Token::LENGTH];
        stamp[..8].copy_from_slice(&(now.lease_ns / 1_000_000).to_le_bytes());
        match self.policy.token {
            TokenFrom::Attempt => fresh.token,
            TokenFrom::Client => *self.first_token.get_or_insert(fresh.token),
            TokenFrom::WallClock => Token::from_bytes(stamp),
            TokenFrom::WallClockAndClient => {
                stamp[8] = fresh.attempt.client;
                Token::from_bytes(stamp)
            }
        }
    }

    /// Decides who is asked, and how many of them have to agree.
    fn choose_voters(&mut self) {
        self.votes.fill(Vote::Unasked);
        let mut voters = self.settings.nodes;
        if self.policy.quorum == Quorum::MajorityOfConnected {
            let connected = self.transports.iter().filter(|it| it.is_open()).count();
            if connected > 0 {
                voters = connected;
                for (vote, transport) in self.votes.iter_mut().zip(&self.transports) {
                    *vote = if transport.is_open() { Vote::Unasked } else { Vote::No };
                }
            }
        }
        self.needed = self.quorum_of(voters);
    }

    fn ask_next(&mut self, now: Now) {
        let timeout_ns = match self.policy.has_node_timeout {
            true => now.boot_ns + nanos(self.settings.node_timeout),
            false => u64::MAX,
        };
        self.state = State::Trying { timeout_boot_ns: timeout_ns };
        for node in 0..self.settings.nodes {
            if self.votes[node] != Vote::Unasked {
                continue;
            }
            self.votes[node] = Vote::Pending;
            self.send(node, self.set(now));
            if self.policy.then == Then::ExpirePipelined {
                self.send(node, Ask::Expire { ttl_ms: self.ttl_ms() });
            }
            if self.policy.asking == Asking::Sequential {
                return;
            }
        }
    }

    /// The command that sets the key.
    pub(super) fn set(&self, now: Now) -> Ask {
        let ttl_ms = self.ttl_ms();
        match (self.policy.expiry, self.policy.fencing) {
            (Expiry::Never, _) => Ask::Set { ttl_ms: None },
            (Expiry::Px, Fencing::Counters) => Ask::SetAndCount { ttl_ms },
            (Expiry::Px, _) => Ask::Set { ttl_ms: Some(ttl_ms) },
            (Expiry::PxAt, _) => Ask::SetUntil { wall_ms: now.lease_ns / 1_000_000 + ttl_ms },
        }
    }

    fn ttl_ms(&self) -> u64 {
        self.settings.ttl.as_millis() as u64
    }

    fn set_answered(&mut self, node: usize, word: Word, now: Now) {
        if !matches!(self.state, State::Trying { .. }) || self.votes[node] != Vote::Pending {
            return;
        }
        let count = match word {
            Word::Ok => 0,
            Word::Integer(count @ 1..) => count as u64,
            _ => return self.vote(node, Vote::No, now),
        };
        self.counters[node] = count;
        match self.policy.then {
            Then::Expire => self.send(node, Ask::Expire { ttl_ms: self.ttl_ms() }),
            // Its answer has to come before the node timeout, which began with the SET.
            Then::Wait { .. } => {
                let timeout_ms = self.settings.node_timeout.as_millis() as u64 / 2;
                self.send(node, Ask::Wait { replicas: 1, timeout_ms });
            }
            Then::ExpirePipelined | Then::Nothing => self.vote(node, Vote::Yes, now),
        }
    }

    fn vote(&mut self, node: usize, vote: Vote, now: Now) {
        if !matches!(self.state, State::Trying { .. }) || self.votes[node] != Vote::Pending {
            return;
        }
        self.votes[node] = vote;
        self.settle(Settlement::Taken, now);
    }

    /// Decides if that can be done, or asks on.
    fn settle(&mut self, refusal: Settlement, now: Now) {
        let count = |wanted| self.votes.iter().filter(|&&vote| vote == wanted).count();
        let (yes, pending, unasked) =
            (count(Vote::Yes), count(Vote::Pending), count(Vote::Unasked));
        let open = pending + unasked;
        let is_certain = yes >= self.needed || yes + open < self.needed;
        if open == 0 || (is_certain && self.policy.settling == Settling::WhenCertain) {
            if yes >= self.needed {
                self.decide(now);
            } else {
                self.fail(refusal, self.policy.release_after_failure, now);
            }
        } else if pending == 0 {
            self.ask_next(now);
        }
    }

    /// `now` is T2.
    fn decide(&mut self, now: Now) {
        self.deadline_ns = match self.profile().expires {
            true => self.deadline_from(self.t1_ns, nanos(self.settings.ttl)),
            false => u64::MAX,
        };
        let left_ns = self.deadline_ns.saturating_sub(now.lease_ns);
        if self.policy.checks_validity && left_ns == 0 {
            return self.fail(Settlement::TooSlow, self.policy.release_when_too_slow, now);
        }
        self.state = State::Decided { left_ns };
        let counted = mask(&self.votes);
        self.fencing_token = match self.policy.fencing {
            Fencing::Nowhere => None,
            Fencing::Counters => {
                let votes = self.votes.iter().zip(&self.counters);
                votes.filter(|(vote, _)| **vote == Vote::Yes).map(|(_, &count)| count).max()
            }
            Fencing::WallClock => Some(now.lease_ns / 1_000_000),
        };
        let (attempt, deadline_ns) = (self.fresh.attempt, self.deadline_ns);
        self.actions.push_back(Action::Decided { attempt, counted, deadline_ns });
    }

    /// When a lease is over whose keys live for `ttl_ns` from `from_ns` at least.
    pub(super) fn deadline_from(&self, from_ns: u64, ttl_ns: u64) -> u64 {
        let drift_ns = if self.policy.gives_up_drift { nanos(self.settings.drift) } else { 0 };
        (from_ns + ttl_ns).saturating_sub(drift_ns)
    }

    fn fail(&mut self, outcome: Settlement, released: ReleaseTo, now: Now) {
        self.unlock(released);
        let attempt = self.fresh.attempt;
        self.actions.push_back(Action::AttemptSettled { attempt, outcome });
        self.failures += 1;
        let delay = match self.policy.fixed_retry {
            Some(delay) => delay,
            None => {
                let jitter = self.fresh.jitter;
                self.settings.retry.after(self.failures, core::time::Duration::ZERO, jitter)
            }
        };
        let until_boot_ns = now.boot_ns + nanos(delay);
        let again = match self.patience {
            Patience::Attempts(most) => self.failures < most,
            Patience::UntilBoot(end_ns) => until_boot_ns < end_ns,
        };
        if again {
            self.state = State::Waiting { until_boot_ns };
        } else {
            self.state = State::Idle;
            self.actions.push_back(Action::GaveUp);
        }
    }

    pub(super) fn unlock(&mut self, whom: ReleaseTo) {
        let ask = match self.policy.unlock {
            Unlock::CompareAndDelete => Ask::CompareAndDelete,
            Unlock::Delete => Ask::Delete,
            Unlock::GetThenDelete => Ask::Get,
        };
        for node in 0..self.settings.nodes {
            let wanted = match whom {
                ReleaseTo::Acknowledged => self.votes[node] == Vote::Yes,
                ReleaseTo::Everyone => true,
                ReleaseTo::Nobody => false,
            };
            if wanted {
                self.send(node, ask);
            }
        }
    }

    pub(super) fn send(&mut self, node: usize, ask: Ask) {
        let command = (self.fresh.attempt, ask, self.fresh.token);
        let transport = &mut self.transports[node];
        transport.send(self.policy.connect, node as u8, command, &mut self.actions);
    }
}

/// The nodes that said yes.
pub(super) fn mask(votes: &[Vote]) -> NodeMask {
    let mut agreed = NodeMask::EMPTY;
    for (node, _) in votes.iter().enumerate().filter(|(_, vote)| **vote == Vote::Yes) {
        agreed.insert(NodeIndex::new(node));
    }
    agreed
}
