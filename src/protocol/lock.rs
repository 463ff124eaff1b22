//! One use of the lock: attempts until one is granted, then the lease, then its release.

mod attempt;
mod ballot;
#[cfg(any(test, feature = "simulation"))]
mod canonical;
mod extension;
mod refusal;
mod release;
mod renewal;
mod terms;
mod time_left;

use core::time::Duration;

use self::attempt::Vote;
pub use self::ballot::{Ballot, NodeVerdict};
use self::extension::Extension;
use self::refusal::InTheWay;
use self::renewal::Renewal;
pub use self::terms::{
    AttemptError, ExtendError, Fresh, Grant, Limit, LockConfig, LostReason, ReleaseOutcome,
};
use self::time_left::TimeLeft;

use super::command::{CommandId, LockId, NoAnswer, Op, Reply, ResourceId, Send};
use super::quorum::{MAX_NODES, NodeIndex, NodeMask};
use super::time::BootInstant;
use super::token::Token;
use super::validity::remaining;

/// What an answer, or its absence, has brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// The attempt was settled.
    Settled(Result<(), AttemptError>),
    /// The round of extension was settled: it counted these nodes, or failed.
    Extended(Result<NodeMask, ExtendError>),
    /// No further attempt follows, and how long the keys in the way live is known as far as it will be.
    GaveUp,
    /// The lease is over; `extending`: and with it the round that was under way.
    Lost { reason: LostReason, extending: bool },
}

/// Where a use of the lock stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Another use of the same client is ahead.
    Queued,
    /// The next attempt is to begin when the driver has drawn its randomness.
    Due,
    Trying,
    /// Granted, and not yet handed to the caller.
    Decided,
    Held {
        lost: Option<LostReason>,
    },
    Waiting {
        until: BootInstant,
    },
    Releasing(ReleaseOutcome),
    /// The last attempt has failed, and the nodes are asked how long the keys in its way live.
    AskingTimeLeft,
    Ended,
}

/// The machine of one use of the lock. [`NodeSet`](super::NodeSet) carries its wishes to the links.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    id: LockId,
    resource: ResourceId,
    config: LockConfig,
    phase: Phase,
    failures: u32,
    fresh: Fresh,
    t1: BootInstant,
    deadline: BootInstant,
    /// What is known of the last SET to each node.
    votes: [Vote; MAX_NODES],
    /// The longest that a key of the current attempt was asked to live.
    key_ttl: Duration,
    extension: Extension,
    renewal: Renewal,
    /// What the nodes have said to the current attempt.
    ballot: Ballot,
    in_the_way: InTheWay,
    time_left: TimeLeft,
    /// Why a use that waits behind this one does not get the lock, as far as is known.
    why_behind: AttemptError,
    /// Serial of the current attempt's SET to the first node; the others follow.
    first_set: u32,
    next_serial: u32,
    to_extend: NodeMask,
    to_set: NodeMask,
    to_release: NodeMask,
    /// Nodes whose answer to the release is outstanding.
    confirming: NodeMask,
    /// Nodes that were not asked in the current attempt or round, for other commands were ahead.
    crowded: NodeMask,
}

impl Lock {
    pub(crate) fn new(id: LockId, resource: ResourceId, config: LockConfig) -> Self {
        assert!(!config.ttl.is_zero(), "a lease needs a TTL");
        Self {
            id,
            resource,
            config,
            phase: Phase::Due,
            failures: 0,
            fresh: Fresh { token: Token::from_bytes([0; Token::LENGTH]), jitter: 0 },
            t1: BootInstant::ZERO,
            deadline: BootInstant::ZERO,
            votes: [Vote::NotSent; MAX_NODES],
            key_ttl: config.ttl,
            extension: Extension::NONE,
            renewal: Renewal::default(),
            ballot: Ballot::default(),
            in_the_way: InTheWay::NOTHING,
            time_left: TimeLeft::UNKNOWN,
            why_behind: AttemptError::TooFewNodes,
            first_set: 0,
            next_serial: 0,
            to_extend: NodeMask::EMPTY,
            to_set: NodeMask::EMPTY,
            to_release: NodeMask::EMPTY,
            confirming: NodeMask::EMPTY,
            crowded: NodeMask::EMPTY,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn id(&self) -> LockId {
        self.id
    }

    pub(crate) fn resource(&self) -> ResourceId {
        self.resource
    }

    pub(crate) fn t1(&self) -> BootInstant {
        self.t1
    }

    pub(crate) fn deadline(&self) -> BootInstant {
        self.deadline
    }

    /// Waits until another use of the same client is out of the way.
    pub(crate) fn queue(&mut self) {
        assert_eq!(self.phase, Phase::Due, "only what has not begun can wait");
        self.phase = Phase::Queued;
    }

    /// Why a use that waits behind this one does not get the lock: it is held here, or the last
    /// attempt failed for this reason.
    pub(crate) fn why_behind(&self) -> AttemptError {
        self.why_behind
    }

    /// Whether the lease is held, or granted and about to be fetched.
    pub(crate) fn has_lease(&self) -> bool {
        matches!(self.phase, Phase::Decided | Phase::Held { lost: None })
    }

    /// Nobody is ahead any more: the first attempt is due, unless the time for it is over. `why` is
    /// what those who wait were told so far.
    pub(crate) fn come_to_the_head(&mut self, why: AttemptError, now: BootInstant) {
        assert_eq!(self.phase, Phase::Queued, "only what waits can come to the head");
        self.why_behind = why;
        let late = matches!(self.config.limit, Limit::Until(end) if end <= now);
        self.phase = if late { Phase::Ended } else { Phase::Due };
    }

    /// Waits until `until` for connections to open, but for no longer than it may.
    pub(crate) fn wait_for_connections(&mut self, until: BootInstant) {
        assert_eq!(self.phase, Phase::Due, "only a first attempt waits for connections");
        let until = match self.config.limit {
            Limit::Until(end) => until.min(end),
            Limit::Attempts(_) | Limit::WhileSplit(_) => until,
        };
        self.phase = Phase::Waiting { until };
    }

    /// The first attempt is due, if it has waited for connections so far.
    pub(crate) fn connections_are_there(&mut self) -> bool {
        let waits = self.failures == 0 && matches!(self.phase, Phase::Waiting { .. });
        if waits {
            self.phase = Phase::Due;
        }
        waits
    }

    /// Whether the next use in line need not wait for this one any more.
    pub(crate) fn is_out_of_the_way(&self) -> bool {
        match self.phase {
            Phase::AskingTimeLeft | Phase::Ended | Phase::Releasing(_) => true,
            Phase::Held { lost } => lost.is_some(),
            _ => false,
        }
    }

    pub(crate) fn token(&self) -> Token {
        self.fresh.token
    }

    /// T1 and TTL of the last extension that was begun here and not by the caller.
    pub(crate) fn renewed(&self) -> Option<(BootInstant, Duration)> {
        self.renewal.round()
    }

    /// What is left of the lease at `now`, or why it is over; a use of the lock that has no lease
    /// counts as past its deadline.
    pub(crate) fn remaining(&self, now: BootInstant) -> Result<Duration, LostReason> {
        match self.phase {
            Phase::Held { lost: None } => remaining(self.deadline, now).ok_or(self.why_over()),
            Phase::Held { lost: Some(reason) } => Err(reason),
            _ => Err(LostReason::DeadlinePassed),
        }
    }

    /// A node's outcome for one of this lock's commands. `eligible_from` is the node's, now.
    pub(crate) fn handle_outcome(
        &mut self,
        id: CommandId,
        node: NodeIndex,
        outcome: Result<Reply, NoAnswer>,
        eligible_from: Option<BootInstant>,
        now: BootInstant,
    ) -> Option<Happened> {
        if self.confirming.contains(node) && id.serial == self.release_serial(node) {
            self.confirm(node, outcome);
            return None;
        }
        if self.is_time_left(node, id) {
            return self.handle_time_left(node, outcome);
        }
        if outcome == Err(NoAnswer::Crowded) {
            self.crowded.insert(node);
        }
        if self.is_of_round(node, id.serial) {
            return self.handle_extension(node, outcome, now);
        }
        if id.serial != self.set_serial(node) || self.votes[node.get()] != Vote::Pending {
            return None;
        }
        // A node that INFO showed to be young after T1 may have forgotten a lease that was alive
        // at T1: its vote is judged by T1, not by the time of its answer.
        let eligible = eligible_from.is_some_and(|from| from <= self.t1);
        self.votes[node.get()] = match outcome {
            Ok(Reply::Ok) if eligible => Vote::Counted,
            Ok(Reply::Ok) => Vote::Ineligible,
            Ok(refusal @ (Reply::Nil | Reply::Held(_) | Reply::Gone)) => {
                self.in_the_way.record(node, refusal);
                Vote::Refused
            }
            Ok(_) => Vote::Failed,
            Err(NoAnswer::Unknown) => Vote::Unknown,
            Err(NoAnswer::Crowded | NoAnswer::NotSent) => Vote::NotSent,
        };
        if matches!(self.phase, Phase::Trying | Phase::Decided) {
            self.record_answer(node, outcome, now);
        }
        match self.phase {
            Phase::Trying => self.settle(now).map(Happened::Settled),
            Phase::Decided | Phase::Held { .. } => {
                self.set_settled(node);
                self.look_for_loss()
            }
            _ => None,
        }
    }

    /// The instant that [`Lock::poll_timeout`] named has come.
    pub(crate) fn handle_timeout(&mut self, now: BootInstant) -> Option<Happened> {
        match self.phase {
            Phase::Waiting { until } if until <= now => self.phase = Phase::Due,
            Phase::Queued if matches!(self.config.limit, Limit::Until(end) if end <= now) => {
                self.phase = Phase::Ended;
            }
            // A caller that never fetches its lease must not keep the next in line waiting.
            Phase::Decided if !self.is_worth_having(now) => {
                return Some(Happened::Settled(Err(AttemptError::TooSlow)));
            }
            Phase::Held { lost: None } if self.lost_at() <= now => {
                return Some(self.lose(self.why_over()));
            }
            Phase::Held { lost: None } => return self.renew(now),
            _ => {}
        }
        None
    }

    fn why_over(&self) -> LostReason {
        if self.renewal.is_exhausted() {
            LostReason::KeepAliveEnded
        } else if self.renewal.is_failing() {
            LostReason::KeepAliveFailed
        } else {
            LostReason::DeadlinePassed
        }
    }

    /// Hands the grant to the caller, if it is still worth something at `now`. The caller may have
    /// been stopped since the decision (catalogue K6).
    pub(crate) fn deliver(&mut self, now: BootInstant) -> Result<Grant, AttemptError> {
        assert_eq!(self.phase, Phase::Decided, "a grant is delivered once, when it is decided");
        if !self.is_worth_having(now) {
            return Err(AttemptError::TooSlow);
        }
        self.phase = Phase::Held { lost: None };
        self.start_keeping(now);
        Ok(Grant { deadline: self.deadline, token: self.fresh.token })
    }

    /// The next command that a node is to be sent.
    pub(crate) fn poll_send(&mut self) -> Option<Send> {
        let (resource, token, key_ttl) = (self.resource, self.fresh.token, self.key_ttl);
        if let Some(node) = self.to_extend.pop() {
            let plain = self.extension.is_plain();
            let op = Op::Extend { resource, token, ttl: self.extension.ttl(), plain };
            let id = self.command(self.extend_serial(node));
            let write_before = Some(self.deadline);
            return Some(Send { node, id, op, after: None, write_before, key_ttl });
        }
        if let Some(node) = self.to_set.pop() {
            // A lease that is held sets what was found missing; an attempt sets its keys, each
            // with a release behind it, and that may wait for as long as the link lets it.
            let held = matches!(self.phase, Phase::Held { .. });
            let write_before = held.then_some(self.deadline);
            let ttl = if held { self.extension.ttl() } else { self.config.ttl };
            let op = Op::Set { resource, token, ttl };
            let id = self.command(self.set_serial(node));
            return Some(Send { node, id, op, after: None, write_before, key_ttl });
        }
        let Some(node) = self.to_release.pop() else {
            return self.ask_time_left();
        };
        let unanswered = matches!(self.votes[node.get()], Vote::Pending | Vote::Unknown);
        let after = unanswered.then(|| self.command(self.set_serial(node)));
        let id = self.command(self.release_serial(node));
        let op = Op::Release { resource, token };
        Some(Send { node, id, op, after, write_before: None, key_ttl })
    }

    /// The instant at which [`Lock::handle_timeout`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<BootInstant> {
        match self.phase {
            Phase::Waiting { until } => Some(until),
            Phase::Queued => match self.config.limit {
                Limit::Until(end) => Some(end),
                Limit::Attempts(_) | Limit::WhileSplit(_) => None,
            },
            Phase::Decided => Some(self.deadline.before(self.config.min_validity)),
            Phase::Held { lost: None } => {
                let lost_at = self.lost_at();
                Some(self.renewal.next().map_or(lost_at, |next| next.min(lost_at)))
            }
            _ => None,
        }
    }

    /// A margin before the deadline, so that a timer that fires a little late is still in time.
    fn lost_at(&self) -> BootInstant {
        self.deadline.before((self.config.ttl / 100).min(Duration::from_millis(2)))
    }

    fn all_nodes(&self) -> NodeMask {
        self.config.nodes.all()
    }

    fn command(&self, serial: u32) -> CommandId {
        CommandId { lock: Some(self.id), serial }
    }
}

#[cfg(test)]
mod tests;
