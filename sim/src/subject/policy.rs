//! Every other lock client: one machine with a few knobs.

use core::time::Duration;
use std::collections::VecDeque;

use redlock_client::protocol::{NodeIndex, NodeMask, RetryDelay, Token};

use super::transport::Transport;
use super::{Action, Ask, Delivered, FreshAttempt, Now, Patience, Response, Route, Word};
use crate::history::{AttemptId, ClockKind, OpKind, Settlement};

/// How a client locks. Each knob is a decision that some published client got wrong, or that the
/// next version of the lock improved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What T1, T2 and the deadline are read from.
    pub clock: Clock,
    /// Step 3: refuse a grant of which nothing is left at T2.
    pub checks_validity: bool,
    /// A token for every attempt, not one for the life of the lock object.
    pub fresh_token: bool,
    /// Votes needed; a majority if not given.
    pub quorum: Option<usize>,
    /// Whom a failed attempt releases.
    pub release_after_failure: ReleaseTo,
    /// How a key is deleted.
    pub unlock: Unlock,
    /// Whether keys have a TTL.
    pub expires: bool,
    /// Whether the lease ends before the TTL does.
    pub gives_up_drift: bool,
    /// In what form the caller gets the lease.
    pub lasting: Lasting,
    /// Whether the application asks the lease before it enters a section.
    pub looks_before_section: bool,
    /// A retry delay without randomness.
    pub fixed_retry: Option<Duration>,
    /// How it connects.
    pub connect: Connect,
    /// Whether it locks on the first node alone.
    pub one_node: bool,
    /// What follows a SET.
    pub then: Then,
}

/// What follows a SET that was answered yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing: the SET says it all.
    Nothing,
    /// `WAIT` for one replica, on the connection of the SET.
    Wait {
        /// The key counts whatever the answer.
        ignored: bool,
    },
}

/// A clock to measure leases with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Counts time asleep.
    Boot,
    /// Does not.
    Monotonic,
    /// Can be set.
    Wall,
}

/// In what form the caller gets the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// An instant of the lease clock.
    Deadline,
    /// What was left at T2, counted by the caller from when it gets it.
    Duration,
}

/// Whom a failed attempt releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseTo {
    /// Nodes that said yes.
    Acknowledged,
    /// All nodes.
    Everyone,
    /// None.
    Nobody,
}

/// How a key is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlock {
    /// By a script, if it is the client's own.
    CompareAndDelete,
    /// Whosever it is.
    Delete,
    /// After a GET that showed it to be the client's own.
    GetThenDelete,
}

/// How a client uses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// A new one for every command.
    FreshPerCommand,
    /// One a node.
    Pooled,
    /// One a node, and a second one for releases.
    SecondForRelease,
}

/// What a policy client is configured with besides its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many nodes it locks.
    pub nodes: usize,
    /// How long keys live.
    pub ttl: Duration,
    /// What leases give up.
    pub drift: Duration,
    /// How long a node may take.
    pub node_timeout: Duration,
    /// The wait between attempts.
    pub retry: RetryDelay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Due,
    Trying { timeout_boot_ns: u64 },
    Waiting { until_boot_ns: u64 },
    Decided { left_ns: u64 },
    Held { lost: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vote {
    Pending,
    Yes,
    No,
}

/// A client that follows a [`Policy`].
#[derive(Clone, Debug)]
pub struct PolicyClient {
    policy: Policy,
    settings: Settings,
    transports: Vec<Transport>,
    actions: VecDeque<Action>,
    state: State,
    patience: Patience,
    failures: u32,
    fresh: FreshAttempt,
    first_token: Option<Token>,
    votes: Vec<Vote>,
    t1_ns: u64,
    deadline_ns: u64,
    /// When to compare the lease clock with the deadline again.
    look_again_boot_ns: u64,
}

impl PolicyClient {
    /// A client of `settings.nodes` nodes.
    #[must_use]
    pub fn new(policy: Policy, mut settings: Settings) -> Self {
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
            t1_ns: 0,
            deadline_ns: 0,
            look_again_boot_ns: 0,
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
    }

    /// How many nodes it locks: the first ones of the cluster.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.settings.nodes
    }

    /// How many connections it keeps to each node.
    #[must_use]
    pub fn lanes(&self) -> u16 {
        match self.policy.connect {
            Connect::FreshPerCommand => 0,
            Connect::Pooled => 1,
            Connect::SecondForRelease => 2,
        }
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
        let token = match self.first_token {
            Some(first) if !self.policy.fresh_token => first,
            _ => fresh.token,
        };
        self.first_token = Some(token);
        self.fresh = FreshAttempt { token, ..fresh };
        self.t1_ns = now.lease_ns;
        self.votes.fill(Vote::Pending);
        let timeout_boot_ns = now.boot_ns + nanos(self.settings.node_timeout);
        self.state = State::Trying { timeout_boot_ns };
        let ttl_ms = self.policy.expires.then_some(self.settings.ttl.as_millis() as u64);
        for node in 0..self.settings.nodes {
            self.send(node, Ask::Set { ttl_ms });
        }
    }

    pub(super) fn deliver(&mut self, now: Now) -> Option<Delivered> {
        let State::Decided { left_ns } = self.state else { return None };
        self.state = State::Held { lost: false };
        if self.policy.lasting == Lasting::Duration {
            self.deadline_ns = now.lease_ns.saturating_add(left_ns);
        }
        let left_ns = self.deadline_ns.saturating_sub(now.lease_ns);
        self.look_again_boot_ns = now.boot_ns.saturating_add(left_ns);
        let clock = match self.policy.clock {
            Clock::Boot => ClockKind::Boot,
            Clock::Monotonic => ClockKind::Monotonic,
            Clock::Wall => ClockKind::Wall,
        };
        let (attempt, deadline_ns) = (self.fresh.attempt, self.deadline_ns);
        Some(Delivered { attempt, clock, deadline_ns, fencing_token: None })
    }

    pub(super) fn is_alive(&self, now: Now) -> bool {
        matches!(self.state, State::Held { .. }) && now.lease_ns < self.deadline_ns
    }

    pub(super) fn extend(&mut self, ttl_ns: u64, now: Now) -> bool {
        let _ = (ttl_ns, now);
        false
    }

    pub(super) fn release(&mut self) {
        let attempt = self.fresh.attempt;
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

    pub(super) fn handle_connected(&mut self, route: Route) {
        self.transports[usize::from(route.node)].connected(route, &mut self.actions);
    }

    pub(super) fn handle_closed(&mut self, route: Route) {
        self.transports[usize::from(route.node)].closed(route);
    }

    pub(super) fn handle_response(&mut self, route: Route, response: Response, now: Now) {
        let node = usize::from(route.node);
        match (response.op, response.word) {
            (OpKind::Get, Word::Value { own: true, .. }) => {
                let command = (response.attempt, Ask::Delete, self.fresh.token);
                let transport = &mut self.transports[node];
                transport.send(self.policy.connect, route.node, command, &mut self.actions);
            }
            (OpKind::Set, word) if response.attempt == self.fresh.attempt => {
                let yes = matches!(word, Word::Ok | Word::Integer(1));
                match self.policy.then {
                    Then::Wait { .. } if yes => self.send(node, self.wait()),
                    _ => self.vote(node, if yes { Vote::Yes } else { Vote::No }, now),
                }
            }
            (OpKind::Wait, word) if response.attempt == self.fresh.attempt => {
                let ignored = matches!(self.policy.then, Then::Wait { ignored: true });
                let enough = matches!(word, Word::Integer(1..));
                self.vote(node, if enough || ignored { Vote::Yes } else { Vote::No }, now);
            }
            _ => {}
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Now) {
        match self.state {
            State::Trying { timeout_boot_ns } if timeout_boot_ns <= now.boot_ns => {
                self.fail(Settlement::TooFewNodes, now);
            }
            State::Waiting { until_boot_ns } if until_boot_ns <= now.boot_ns => self.due(),
            State::Held { lost: false } if self.look_again_boot_ns <= now.boot_ns => {
                let left_ns = self.deadline_ns.saturating_sub(now.lease_ns);
                self.look_again_boot_ns = now.boot_ns + left_ns;
                if left_ns == 0 {
                    self.state = State::Held { lost: true };
                    self.actions.push_back(Action::Lost { attempt: self.fresh.attempt });
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
            State::Held { lost: false } if self.deadline_ns < u64::MAX => {
                Some(self.look_again_boot_ns)
            }
            _ => None,
        }
    }

    /// `WAIT` answers half a node timeout later at the latest, so that its answer is still heard.
    fn wait(&self) -> Ask {
        Ask::Wait { replicas: 1, timeout_ms: self.settings.node_timeout.as_millis() as u64 / 2 }
    }

    fn due(&mut self) {
        self.state = State::Due;
        self.actions.push_back(Action::AttemptDue);
    }

    fn vote(&mut self, node: usize, vote: Vote, now: Now) {
        if !matches!(self.state, State::Trying { .. }) || self.votes[node] != Vote::Pending {
            return;
        }
        self.votes[node] = vote;
        let quorum = self.policy.quorum.unwrap_or(self.settings.nodes / 2 + 1);
        let yes = self.votes.iter().filter(|&&vote| vote == Vote::Yes).count();
        let open = self.votes.iter().filter(|&&vote| vote == Vote::Pending).count();
        if yes >= quorum {
            self.decide(now);
        } else if yes + open < quorum {
            self.fail(Settlement::Taken, now);
        }
    }

    /// `now` is T2.
    fn decide(&mut self, now: Now) {
        self.deadline_ns = if self.policy.expires {
            let drift =
                if self.policy.gives_up_drift { self.settings.drift } else { Duration::ZERO };
            (self.t1_ns + nanos(self.settings.ttl)).saturating_sub(nanos(drift))
        } else {
            u64::MAX
        };
        let left_ns = self.deadline_ns.saturating_sub(now.lease_ns);
        if self.policy.checks_validity && left_ns == 0 {
            return self.fail(Settlement::TooSlow, now);
        }
        self.state = State::Decided { left_ns };
        let mut counted = NodeMask::EMPTY;
        for node in (0..self.settings.nodes).filter(|&node| self.votes[node] == Vote::Yes) {
            counted.insert(NodeIndex::new(node));
        }
        let (attempt, deadline_ns) = (self.fresh.attempt, self.deadline_ns);
        self.actions.push_back(Action::Decided { attempt, counted, deadline_ns });
    }

    fn fail(&mut self, outcome: Settlement, now: Now) {
        self.unlock(self.policy.release_after_failure);
        let attempt = self.fresh.attempt;
        self.actions.push_back(Action::AttemptSettled { attempt, outcome });
        self.failures += 1;
        let delay = match self.policy.fixed_retry {
            Some(delay) => delay,
            None => self.settings.retry.after(self.failures, Duration::ZERO, self.fresh.jitter),
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

    fn unlock(&mut self, whom: ReleaseTo) {
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

    fn send(&mut self, node: usize, ask: Ask) {
        let command = (self.fresh.attempt, ask, self.fresh.token);
        let transport = &mut self.transports[node];
        transport.send(self.policy.connect, node as u8, command, &mut self.actions);
    }

    /// The knobs.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
