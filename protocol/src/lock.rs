//! One use of the lock: attempts until one is granted, then the lease, then its release.

mod attempt;
mod ballot;
mod canonical;
mod extension;
mod listening;
mod refusal;
mod release;
mod renewal;
mod terms;
mod time_left;
mod waiting;
mod watching;

use core::time::Duration;

use self::attempt::Vote;
pub use self::ballot::{Ballot, NodeVerdict};
use self::extension::Extension;
use self::listening::Listening;
use self::refusal::BlockingKeys;
use self::renewal::Renewal;
pub use self::terms::{
    AttemptError, ExtendError, Fresh, Grant, Limit, LockConfig, LostReason, ReleaseOutcome, Votes,
};
use self::time_left::TimeLeft;
use self::watching::Watching;
use super::command::{CommandId, LockId, NoAnswer, Op, Reply, ResourceId, Send};
use super::crowd::Crowd;
use super::quorum::{MAX_NODES, NodeIndex, NodeMask};
use super::time::BootInstant;
use super::token::Token;
use super::validity::remaining;

/// Result of an answer, or of its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockOutcome {
    /// The attempt was settled.
    Settled(Result<(), AttemptError>),
    /// The extension round was settled: the nodes counted, or why the round failed.
    Extended(Result<NodeMask, ExtendError>),
    /// No further attempt follows, and the remaining life of the blocking keys is known as far as
    /// it ever will be.
    GaveUp,
    /// The lease is over. `extending` is true if a round was under way; that round has failed, too.
    Lost { reason: LostReason, extending: bool },
}

/// Phase of a use of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting behind another use of the same client.
    Queued,
    /// The next attempt begins when the driver has drawn its randomness.
    Due,
    Trying,
    /// Granted, but not yet handed to the caller.
    Decided,
    Held {
        lost: Option<LostReason>,
    },
    Waiting {
        until: BootInstant,
    },
    /// An attempt has failed; the use sleeps until the lock may be free.
    Listening,
    Releasing(ReleaseOutcome),
    /// The last attempt has failed, and the nodes are asked how long the blocking keys live.
    AskingTimeLeft,
    Ended,
}

/// State machine of one use of the lock. [`NodeSet`](super::NodeSet) passes its commands to the
/// links.
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
    /// State of the last SET to each node.
    votes: [Vote; MAX_NODES],
    /// Longest time to live that the current attempt has requested for a key.
    key_ttl: Duration,
    extension: Extension,
    renewal: Renewal,
    watching: Watching,
    /// The nodes' verdicts on the current attempt.
    ballot: Ballot,
    blocking_keys: BlockingKeys,
    time_left: TimeLeft,
    /// Between the first failed attempt and the grant, unless the attempts are limited by number.
    listening: Option<Box<Listening>>,
    crowd: Crowd,
    /// Best known reason why a use that waits behind this one does not get the lock.
    why_behind: AttemptError,
    /// Serial of the current attempt's SET to the first node; the other commands' serials follow.
    first_set: u32,
    next_serial: u32,
    to_extend: NodeMask,
    to_set: NodeMask,
    to_release: NodeMask,
    /// Nodes whose answer to the release is outstanding.
    confirming: NodeMask,
    /// Nodes not asked in the current attempt or round because other commands were ahead.
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
            renewal: Renewal::NONE,
            watching: Watching::none(config.nodes),
            ballot: Ballot::default(),
            blocking_keys: BlockingKeys::NOTHING,
            time_left: TimeLeft::UNKNOWN,
            listening: None,
            crowd: Crowd::default(),
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

    pub(crate) fn deadline(&self) -> BootInstant {
        self.deadline
    }

    /// Returns why a use that waits behind this one does not get the lock: this use holds it, or
    /// the last attempt failed for this reason.
    pub(crate) fn why_behind(&self) -> AttemptError {
        self.why_behind
    }

    /// Returns true if the lease is held, or is granted and not yet fetched by the caller.
    pub(crate) fn has_lease(&self) -> bool {
        matches!(self.phase, Phase::Decided | Phase::Held { lost: None })
    }

    /// Returns true if the next use in the queue need not wait for this one any more.
    pub(crate) fn unblocks_line(&self) -> bool {
        match self.phase {
            Phase::AskingTimeLeft | Phase::Ended | Phase::Releasing(_) => true,
            Phase::Held { lost } => lost.is_some(),
            _ => false,
        }
    }

    pub(crate) fn token(&self) -> Token {
        self.fresh.token
    }

    /// Returns T1 and TTL of the last extension that the machine, not the caller, began.
    pub(crate) fn renewed(&self) -> Option<(BootInstant, Duration)> {
        self.renewal.round()
    }

    /// Returns the rest of the lease at `now`, or why the lease is over. Without a lease the result
    /// is [`LostReason::DeadlinePassed`].
    pub(crate) fn remaining(&self, now: BootInstant) -> Result<Duration, LostReason> {
        match self.phase {
            Phase::Held { lost: None } => remaining(self.deadline, now).ok_or(self.why_over()),
            Phase::Held { lost: Some(reason) } => Err(reason),
            _ => Err(LostReason::DeadlinePassed),
        }
    }

    /// Handles the outcome of one of this lock's commands to `node`. `eligible_from` is the node's
    /// current value. An attempt is not settled yet: see [`Lock::settle`].
    pub(crate) fn handle_outcome(
        &mut self,
        id: CommandId,
        node: NodeIndex,
        outcome: Result<Reply, NoAnswer>,
        eligible_from: Option<BootInstant>,
        now: BootInstant,
    ) -> Option<LockOutcome> {
        if self.confirming.contains(node) && id.serial == self.release_serial(node) {
            self.confirm(node, outcome);
            return None;
        }
        if self.is_time_left(node, id) {
            return self.handle_time_left(node, outcome);
        }
        if self.is_look(node, id) {
            return self.handle_look(node, outcome, now);
        }
        if self.is_read(node, id) {
            return self.handle_read(node, outcome, now);
        }
        let is_of_round = self.is_of_round(node, id.serial);
        let is_awaited = match self.votes[node.get()] {
            Vote::Pending => true,
            // A late answer ends the doubt whether the node has yet to set the key of a lease.
            Vote::Unknown => matches!(self.phase, Phase::Held { .. }),
            _ => false,
        };
        let is_set = id.serial == self.set_serial(node) && is_awaited;
        if outcome == Err(NoAnswer::Crowded) && (is_of_round || is_set) {
            self.crowded.insert(node);
        }
        if is_of_round {
            let happened = self.handle_extension(node, outcome, now);
            self.count_all_soon(now);
            return happened;
        }
        if !is_set {
            return self.handle_superseded(node, id, outcome, now);
        }
        // INFO may have shown after T1 that the node is young: it may have forgotten a lease that
        // was alive at T1. Its vote is therefore judged by T1, not by the time of its answer.
        let eligible = eligible_from.is_some_and(|from| from <= self.t1);
        self.votes[node.get()] = match outcome {
            Ok(Reply::Ok) if eligible => Vote::Counted,
            Ok(Reply::Ok) => Vote::Ineligible,
            Ok(refusal @ (Reply::Nil | Reply::Held(_) | Reply::Gone)) => {
                self.blocking_keys.record(node, refusal);
                Vote::Refused
            }
            Ok(_) => Vote::Failed,
            Err(NoAnswer::Unknown) => Vote::Unknown,
            Err(NoAnswer::Unconfirmed) => Vote::Unconfirmed,
            Err(NoAnswer::Crowded | NoAnswer::NotSent) => Vote::NotSent,
        };
        if matches!(self.phase, Phase::Trying | Phase::Decided) {
            self.record_answer(node, outcome, now);
        }
        if !matches!(self.phase, Phase::Decided | Phase::Held { .. }) {
            return None;
        }
        self.set_settled(node);
        if self.votes[node.get()] == Vote::Refused {
            self.set_again_soon(now);
        }
        self.count_all_soon(now);
        self.look_for_loss()
    }

    /// Handles the timeout that [`Lock::poll_timeout`] returned.
    pub(crate) fn handle_timeout(&mut self, now: BootInstant) -> Option<LockOutcome> {
        match self.phase {
            Phase::Waiting { until } if until <= now => self.phase = Phase::Due,
            Phase::Listening => return self.handle_listening_timeout(now),
            Phase::Queued if self.config.limit.is_over(now) => self.phase = Phase::Ended,
            // A caller that never fetches its lease must not block the queue.
            Phase::Decided if !self.is_worth_having(now) => {
                return Some(LockOutcome::Settled(Err(AttemptError::TooSlow)));
            }
            Phase::Held { lost: None } if self.lost_at() <= now => {
                return Some(self.lose(self.why_over()));
            }
            Phase::Held { lost: None } => {
                self.handle_watching_timeout(now);
                return self.renew(now);
            }
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

    /// Hands the grant to the caller if more than the minimum validity is left at `now`: the caller
    /// may have been suspended since the decision (counterexample K6).
    pub(crate) fn deliver(&mut self, now: BootInstant) -> Result<Grant, AttemptError> {
        assert_eq!(self.phase, Phase::Decided, "a grant is delivered once, when it is decided");
        if !self.is_worth_having(now) {
            return Err(AttemptError::TooSlow);
        }
        self.phase = Phase::Held { lost: None };
        self.start_keeping(now);
        self.start_watching(now);
        Ok(Grant { deadline: self.deadline, token: self.fresh.token })
    }

    /// Returns the next command to send to a node.
    pub(crate) fn poll_send(&mut self) -> Option<Send> {
        let (resource, token, key_ttl) = (self.resource, self.fresh.token, self.key_ttl);
        if let Some(node) = self.to_extend.pop() {
            let plain = self.extension.is_plain();
            let op = Op::Extend { resource, token, ttl: self.extension.ttl(), plain };
            let id = self.command(self.extension.extend_serial(node));
            let write_before = Some(self.deadline);
            return Some(Send { node, id, op, after: None, write_before, key_ttl });
        }
        if let Some(node) = self.to_set.pop() {
            // A held lease sets the keys that were found missing, before its deadline. An attempt
            // sets its keys without a limit: a release follows each SET, so a SET may wait as long
            // as the link allows.
            let held = matches!(self.phase, Phase::Held { .. });
            let write_before = held.then_some(self.deadline);
            let ttl = if held { self.extension.ttl() } else { self.config.ttl };
            let op = Op::Set { resource, token, ttl };
            let id = self.command(self.set_serial(node));
            return Some(Send { node, id, op, after: None, write_before, key_ttl });
        }
        let Some(node) = self.to_release.pop() else {
            return self.ask_time_left().or_else(|| self.poll_look()).or_else(|| self.poll_read());
        };
        let unanswered = matches!(self.votes[node.get()], Vote::Pending | Vote::Unknown);
        let after = unanswered.then(|| self.command(self.set_serial(node)));
        let id = self.command(self.release_serial(node));
        let op = Op::Release { resource, token };
        Some(Send { node, id, op, after, write_before: None, key_ttl })
    }

    /// Returns the instant at which [`Lock::handle_timeout`] has something to do, as of `now`.
    pub(crate) fn poll_timeout(&self, now: BootInstant) -> Option<BootInstant> {
        match self.phase {
            Phase::Waiting { until } => Some(until),
            Phase::Listening => self.poll_listening_timeout(now),
            Phase::Queued => self.config.limit.end(),
            Phase::Decided => Some(self.deadline.before(self.config.min_validity)),
            Phase::Held { lost: None } => {
                let others = self.renewal.next().into_iter().chain(self.poll_watching_timeout());
                others.chain([self.lost_at()]).min()
            }
            _ => None,
        }
    }

    /// Returns the deadline less a margin of 1 % of the TTL, at most 2 ms: a timer that fires
    /// slightly late is still in time.
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
