//! The machine that follows a policy: attempts, the lease, its release.

mod attempt;
mod extension;

use std::collections::VecDeque;

use lock_judge::history::{AttemptId, FencingToken, NodeId, OpKind, Settlement};
use lock_judge::ids::IdVec;
use redlock_protocol::Token;

use self::extension::Rounds;
use super::{
    AfterSet, Clock, Connect, Errors, Expiry, Fencing, LeaseForm, Policy, Quorum, ReleaseTo,
    Settings, TokenFrom, Unlock,
};
use crate::subject::transport::{Command, Transport};
use crate::subject::{
    Action, CommandKind, Delivered, FreshAttempt, Now, Patience, Profile, Reply, ReplyValue, Route,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Due,
    /// `timeout_boot_ns` is the time at which pending nodes are given up; `u64::MAX` means never.
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
    /// The key exists already.
    Refused,
    /// No vote for another reason: no reply, an error, no expiry, too few replicas.
    No,
}

/// A client that follows a [`Policy`].
#[derive(Clone, Debug)]
pub struct PolicyClient {
    pub(super) policy: Policy,
    pub(super) settings: Settings,
    pub(super) transports: IdVec<NodeId, Transport>,
    pub(super) actions: VecDeque<Action>,
    pub(super) state: State,
    pub(super) patience: Patience,
    pub(super) failures: u32,
    pub(super) fresh: FreshAttempt,
    pub(super) first_token: Option<Token>,
    pub(super) votes: IdVec<NodeId, Vote>,
    /// Number of votes that this attempt needs.
    pub(super) needed: usize,
    /// Reply of each node's counter when the key was set.
    pub(super) counters: IdVec<NodeId, u64>,
    pub(super) fencing_token: Option<FencingToken>,
    pub(super) t1_ns: u64,
    pub(super) deadline_ns: u64,
    /// Time of the next comparison of the lease clock with the deadline.
    pub(super) look_again_boot_ns: u64,
    pub(super) rounds: Rounds,
}

impl PolicyClient {
    /// Returns a client of `settings.nodes` nodes.
    ///
    /// # Panics
    ///
    /// If the policy needs wall-clock times but reads another clock.
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
            transports: IdVec::filled(settings.nodes, Transport::default()),
            actions: VecDeque::with_capacity(16),
            state: State::Idle,
            patience: Patience::Attempts(1),
            failures: 0,
            fresh: FreshAttempt { attempt, token, jitter: 0 },
            first_token: None,
            votes: IdVec::filled(settings.nodes, Vote::No),
            needed: 0,
            counters: IdVec::filled(settings.nodes, 0),
            fencing_token: None,
            t1_ns: 0,
            deadline_ns: 0,
            look_again_boot_ns: 0,
            rounds: Rounds::new(settings.nodes),
        }
    }

    /// Resets to the beginning of a run. With `warm`, the pooled connections are open.
    pub fn reset(&mut self, warm: bool) {
        for transport in self.transports.values_mut() {
            transport.reset(self.policy.connect, warm);
        }
        self.actions.clear();
        self.state = State::Idle;
        self.first_token = None;
        self.rounds.reset();
    }

    /// Returns the client's policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(in crate::subject) fn profile(&self) -> Profile {
        Profile {
            nodes: self.settings.nodes,
            lanes: match self.policy.connect {
                Connect::FreshPerCommand => 0,
                Connect::Pooled | Connect::Resending => 1,
                Connect::SecondForRelease => 2,
            },
            quorum: self.quorum_of(self.settings.nodes),
            expires: self.expires(),
            gives_up_drift: self.policy.gives_up_drift,
        }
    }

    pub(super) fn expires(&self) -> bool {
        self.policy.expiry != Expiry::Never
            || matches!(self.policy.then, AfterSet::Expire | AfterSet::ExpirePipelined)
    }

    pub(super) fn quorum_of(&self, nodes: usize) -> usize {
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
        if self.policy.lasting == LeaseForm::Duration {
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
        self.transports[route.node].connected(route, &mut self.actions);
    }

    pub(in crate::subject) fn handle_closed(&mut self, route: Route, now: Now) {
        let node = route.node;
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

    pub(in crate::subject) fn handle_reply(&mut self, route: Route, reply: Reply, now: Now) {
        let node = route.node;
        let is_current = reply.attempt == self.fresh.attempt;
        match (reply.op, reply.value) {
            (OpKind::Get, ReplyValue::Value { own: true, .. }) => {
                let (attempt, token) = (reply.attempt, self.fresh.token);
                let command = Command { attempt, kind: CommandKind::Delete, token };
                let transport = &mut self.transports[node];
                transport.send(self.policy.connect, node, command, &mut self.actions);
            }
            (OpKind::Set | OpKind::Extend, value) if is_current && self.rounds.are_under_way() => {
                self.extension_answered(node, reply.op, value, now);
            }
            (OpKind::Set, value) if is_current => self.set_answered(node, value, now),
            (OpKind::Expire, value) if is_current && self.policy.then == AfterSet::Expire => {
                let vote = if value == ReplyValue::Integer(1) { Vote::Yes } else { Vote::No };
                self.vote(node, vote, now);
            }
            (OpKind::Extend, _) => self.rounds.answered_late(node),
            (OpKind::Wait, value) if is_current => {
                let ignored = matches!(self.policy.then, AfterSet::Wait { ignored: true });
                let enough = ignored || matches!(value, ReplyValue::Integer(1..));
                self.vote(node, if enough { Vote::Yes } else { Vote::No }, now);
            }
            _ => {}
        }
    }

    pub(in crate::subject) fn handle_timeout(&mut self, now: Now) {
        match self.state {
            State::Trying { timeout_boot_ns } if timeout_boot_ns <= now.boot_ns => {
                for vote in self.votes.values_mut().filter(|vote| **vote == Vote::Pending) {
                    *vote = Vote::No;
                }
                self.settle(now);
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

    pub(super) fn unlock(&mut self, whom: ReleaseTo) {
        let kind = match self.policy.unlock {
            Unlock::CompareAndDelete => CommandKind::CompareAndDelete,
            Unlock::Delete => CommandKind::Delete,
            Unlock::GetThenDelete => CommandKind::Get,
        };
        for node in self.votes.ids() {
            let wanted = match whom {
                ReleaseTo::Acknowledged => self.votes[node] == Vote::Yes,
                ReleaseTo::Everyone => true,
                ReleaseTo::Nobody => false,
            };
            if wanted {
                self.send(node, kind);
            }
        }
    }

    pub(super) fn send(&mut self, node: NodeId, kind: CommandKind) {
        let FreshAttempt { attempt, token, .. } = self.fresh;
        let command = Command { attempt, kind, token };
        let transport = &mut self.transports[node];
        transport.send(self.policy.connect, node, command, &mut self.actions);
    }
}
