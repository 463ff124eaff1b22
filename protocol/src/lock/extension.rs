//! Extends a lease, and sets missing keys again.
//!
//! A round asks every node to prolong the lease's key if the key is still there. A success is valid
//! only if each counted key has existed *all the time* since the grant, because then no other
//! attempt can have had a majority meanwhile. So an answer counts only in the following cases. Any
//! other existing key is *young*.
//!
//! - The node answered the attempt's SET before the grant, and has been sent no SET of the attempt
//!   since.
//! - The node's key is younger than the grant (it was set again, or its SET was answered late or
//!   never), and a round that began *after the key was known* has succeeded without it. That
//!   success shows that no other attempt had a majority before the round began, and so none before
//!   the key existed.
//!
//! After a SET with an unknown outcome, the client does not know whether the SET was executed or
//! will be executed later, until the node reports the key. Before that, the client sends the node
//! no other SET.

use core::time::Duration;

use super::{ExtendError, Lock, LockOutcome, LostReason, Phase, Vote};
use crate::canonical::Encoder;
use crate::command::{NoAnswer, Reply};
use crate::quorum::{MAX_NODES, NodeIndex, NodeMask};
use crate::time::BootInstant;
use crate::validity::deadline;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    None,
    UnderWay,
    Failed,
    Succeeded,
}

/// State of the extension rounds of one lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extension {
    round: Round,
    /// The caller asked for the round, so it counts against the limit.
    is_callers: bool,
    successes: u32,
    /// Serial of the round's command to the first node; those to the other nodes follow.
    first: u32,
    ttl: Duration,
    /// The lease's deadline if the round succeeds.
    deadline: BootInstant,
    /// Nodes whose answer to the round is outstanding.
    awaited: NodeMask,
    /// Nodes that reported in this round that they had the key.
    had: NodeMask,
    /// Nodes that reported in this round that they lacked the key, and were not sent it again.
    lacked: NodeMask,
    /// Nodes whose key is younger than the grant and does not count yet.
    young: NodeMask,
    /// Young nodes whose key was known when the round began.
    ripening: NodeMask,
    /// The round uses plain SETs on nodes that support them.
    plain: bool,
    /// Nodes that were sent a plain SET whose answer is unknown: the SET may be late.
    plain_unheard: NodeMask,
    /// Shortest time to live that such a SET asks for.
    late_ttl: Duration,
    /// Serials of the last repairs.
    repairs: [Option<u32>; MAX_NODES],
}

impl Extension {
    /// State before the first round.
    pub(super) const NONE: Self = Self {
        round: Round::None,
        is_callers: false,
        successes: 0,
        first: 0,
        ttl: Duration::ZERO,
        deadline: BootInstant::ZERO,
        awaited: NodeMask::EMPTY,
        had: NodeMask::EMPTY,
        lacked: NodeMask::EMPTY,
        young: NodeMask::EMPTY,
        ripening: NodeMask::EMPTY,
        plain: false,
        plain_unheard: NodeMask::EMPTY,
        late_ttl: Duration::MAX,
        repairs: [None; MAX_NODES],
    };

    pub(super) fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    pub(super) fn repair_serial(&self, node: NodeIndex) -> Option<u32> {
        self.repairs[node.get()]
    }

    /// Forgets that `node` has reported that it lacks the key.
    pub(super) fn may_have(&mut self, node: NodeIndex) {
        self.lacked.remove(node);
    }

    pub(super) fn extend_serial(&self, node: NodeIndex) -> u32 {
        self.first + node.get() as u32
    }

    /// Encodes the state that does not belong to a single node, for the canonical state.
    pub(super) fn encode(&self, out: &mut Encoder) {
        out.word(self.round as u64);
        out.word(u64::from(self.successes));
        out.word(self.ttl.as_nanos() as u64);
        out.word(self.late_ttl.as_nanos() as u64);
        if self.round == Round::UnderWay {
            out.ahead(self.deadline);
        }
    }

    /// Encodes the state that belongs to `node`, for the canonical state.
    pub(super) fn encode_node(&self, node: NodeIndex, out: &mut Encoder) {
        out.flag(self.lacked.contains(node));
        out.flag(self.young.contains(node));
        out.flag(self.repairs[node.get()].is_some());
        if self.round == Round::UnderWay {
            out.flag(self.awaited.contains(node));
            out.flag(self.had.contains(node));
            out.flag(self.ripening.contains(node));
        }
        if self.late_ttl != Duration::MAX {
            out.flag(self.plain_unheard.contains(node));
        }
    }

    /// Records that plain SETs of this round may reach `nodes` late.
    fn may_be_late(&mut self, nodes: NodeMask) {
        if self.plain && !nodes.is_empty() {
            self.plain_unheard = self.plain_unheard.union(nodes);
            self.late_ttl = self.late_ttl.min(self.ttl);
        }
    }

    /// Returns the nodes at which a late plain SET would leave the key less than the round asks for.
    fn overshadowed(&self) -> NodeMask {
        if self.ttl > self.late_ttl { self.plain_unheard } else { NodeMask::EMPTY }
    }
}

impl Lock {
    /// Returns true if a round is under way.
    pub(crate) fn is_extending(&self) -> bool {
        self.extension.round == Round::UnderWay
    }

    /// Returns true if `node` has not prolonged its key in the last round, if there was one: its key ends
    /// before those of the others.
    pub(super) fn has_missed_round(&self, node: NodeIndex) -> bool {
        self.extension.round != Round::None && !self.extension.had.contains(node)
    }

    /// Begins a round for the caller. `now` is its T1: it is read before any command of the round
    /// exists. A round that cannot succeed is settled at once, but its answers may still end the
    /// lease.
    pub(crate) fn extend(
        &mut self,
        ttl: Duration,
        now: BootInstant,
    ) -> Result<Option<LockOutcome>, ExtendError> {
        self.remaining(now).map_err(ExtendError::Lost)?;
        if self.is_extending() {
            return Err(ExtendError::Busy);
        }
        if self.extension.successes >= self.config.extensions_max {
            return Err(ExtendError::TooMany);
        }
        if deadline(now, ttl, self.config.drift) <= self.deadline {
            return Err(ExtendError::WouldShorten);
        }
        let happened = self.begin_round(ttl, now);
        self.extension.is_callers = true;
        Ok(happened)
    }

    /// Begins a round whose success would move the deadline.
    pub(super) fn begin_round(&mut self, ttl: Duration, now: BootInstant) -> Option<LockOutcome> {
        let (nodes, deadline) = (self.config.nodes, deadline(now, ttl, self.config.drift));
        self.plan_plain(ttl);
        self.key_ttl = self.key_ttl.max(ttl);
        self.extension = Extension {
            round: Round::UnderWay,
            is_callers: false,
            first: self.next_serial,
            ttl,
            deadline,
            awaited: nodes.all(),
            had: NodeMask::EMPTY,
            lacked: NodeMask::EMPTY,
            ripening: self.extension.young,
            ..self.extension
        };
        self.next_serial += nodes.get() as u32;
        self.crowded = NodeMask::EMPTY;
        self.to_extend = nodes.all();
        self.watching.read_behind(nodes.all());
        self.settle_round(now)
    }

    /// Decides whether the round may use plain SETs. A plain SET replaces the time to live,
    /// whatever it is, so one that asks for less than an earlier command would shorten it. One that
    /// asks for the most so far can shorten only if it is executed after a later, longer request.
    /// The longer round therefore counts no node at which that can happen. A round that asks for no
    /// more than the late SET counts it: the SET is executed since T1, or before the round's command.
    fn plan_plain(&mut self, ttl: Duration) {
        let it = &mut self.extension;
        it.may_be_late(it.awaited);
        it.plain = self.config.plain_extensions && ttl >= self.key_ttl;
    }

    /// Returns true if `serial` names the latest round's command to `node`.
    pub(super) fn is_of_round(&self, node: NodeIndex, serial: u32) -> bool {
        self.extension.round != Round::None && serial == self.extension.extend_serial(node)
    }

    /// Handles the outcome of the latest round's command to `node`. An outcome that comes after the
    /// round was settled changes what is known of the node, not the round.
    pub(super) fn handle_extension(
        &mut self,
        node: NodeIndex,
        outcome: Result<Reply, NoAnswer>,
        now: BootInstant,
    ) -> Option<LockOutcome> {
        if self.phase != (Phase::Held { lost: None }) {
            return None;
        }
        self.extension.awaited.remove(node);
        match outcome {
            Ok(Reply::Integer(1..)) => {
                self.key_was_there(node);
                self.watching.key_was_there(node);
            }
            Ok(Reply::Integer(_)) => {
                self.key_was_missing(node);
                self.watching.key_was_missing(node);
            }
            Err(NoAnswer::Unknown) => self.extension.may_be_late(NodeMask::of(node)),
            _ => {}
        }
        self.look_for_loss().or_else(|| self.settle_round(now))
    }

    /// Records the outcome, after the grant, of the last SET to `node`.
    pub(super) fn set_settled(&mut self, node: NodeIndex) {
        let vote = &mut self.votes[node.get()];
        match *vote {
            Vote::Counted | Vote::Ineligible => {
                self.extension.young.insert(node);
                self.extension.lacked.remove(node);
                self.watching.key_was_set(node);
            }
            // An earlier SET was written, so the node must be released like every other node.
            Vote::NotSent if self.extension.repair_serial(node).is_some() => *vote = Vote::Refused,
            _ => {}
        }
    }

    /// Latches the loss of the lease if so many nodes lack the key that the others are no majority.
    /// From then on no round can succeed, and without a success no key is set again.
    pub(super) fn look_for_loss(&mut self) -> Option<LockOutcome> {
        let held = self.phase == (Phase::Held { lost: None });
        let too_many_lack = self.lacking().len() > self.config.nodes.tolerated();
        (held && too_many_lack).then(|| self.lose(LostReason::KeysGone))
    }

    pub(super) fn lose(&mut self, reason: LostReason) -> LockOutcome {
        assert_eq!(self.phase, Phase::Held { lost: None }, "a lease is lost once");
        self.phase = Phase::Held { lost: Some(reason) };
        LockOutcome::Lost { reason, extending: self.end_round(Round::Failed) }
    }

    /// Cancels the round that is under way, if there is one.
    pub(super) fn cancel_round(&mut self) {
        self.end_round(Round::Failed);
    }

    fn end_round(&mut self, round: Round) -> bool {
        let under_way = self.is_extending();
        if under_way {
            self.extension.round = round;
            match round {
                Round::Succeeded => self.keep_on(),
                _ => self.renewal.round_failed(),
            }
        }
        under_way
    }

    fn key_was_there(&mut self, node: NodeIndex) {
        self.extension.had.insert(node);
        let vote = &mut self.votes[node.get()];
        if !matches!(vote, Vote::Counted | Vote::Ineligible) {
            // A SET without an answer was executed after all, at an unknown time.
            *vote = Vote::Counted;
            self.extension.young.insert(node);
        }
    }

    fn key_was_missing(&mut self, node: NodeIndex) {
        self.extension.lacked.insert(node);
        let vote = &mut self.votes[node.get()];
        if matches!(vote, Vote::Counted | Vote::Ineligible | Vote::Unconfirmed) {
            *vote = Vote::Refused;
            self.extension.young.remove(node);
            self.extension.ripening.remove(node);
        }
    }

    /// Settles the round as soon as its outcome is certain, either way. After a success, sets the
    /// keys again that the round has shown to be missing.
    fn settle_round(&mut self, now: BootInstant) -> Option<LockOutcome> {
        match self.extension.round {
            Round::UnderWay => {}
            Round::Succeeded => {
                self.repair(now);
                return None;
            }
            Round::None | Round::Failed => return None,
        }
        if now >= self.deadline {
            self.end_round(Round::Failed);
            return Some(LockOutcome::Extended(Err(ExtendError::TooSlow)));
        }
        let quorum = self.config.nodes.quorum();
        let trusted = self.trusted();
        let counted = self.extension.had.intersection(trusted);
        if counted.len() >= quorum {
            assert!(self.extension.deadline > self.deadline, "an extension never shortens");
            self.deadline = self.extension.deadline;
            self.end_round(Round::Succeeded);
            self.extension.successes += u32::from(self.extension.is_callers);
            self.extension.young = self.extension.young.without(self.extension.ripening);
            self.repair(now);
            return Some(LockOutcome::Extended(Ok(counted)));
        }
        let possible = self.extension.awaited.intersection(trusted);
        if counted.len() + possible.len() >= quorum {
            return None;
        }
        self.end_round(Round::Failed);
        self.nodes_failed();
        let without_the_crowd = counted.union(self.crowded.intersection(trusted));
        let overloaded = without_the_crowd.len() >= quorum;
        let why = if overloaded { ExtendError::Overloaded } else { ExtendError::TooFewNodes };
        Some(LockOutcome::Extended(Err(why)))
    }

    /// Sets the keys again that the round has shown to be missing, unless a SET may be on its way.
    fn repair(&mut self, now: BootInstant) {
        assert_eq!(self.extension.round, Round::Succeeded, "nothing is set again before a success");
        if now >= self.deadline {
            return;
        }
        let missing = self.extension.lacked.intersection(self.missing());
        for node in missing.iter() {
            self.extension.lacked.remove(node);
            self.votes[node.get()] = Vote::Pending;
            self.extension.repairs[node.get()] = Some(self.next_serial);
            self.next_serial += 1;
            self.to_set.insert(node);
            self.watching.set_again(node);
        }
    }

    /// Returns the nodes whose report of a key proves that the key was there since the grant.
    fn trusted(&self) -> NodeMask {
        let there = self.granted();
        there.without(self.extension.young).without(self.extension.overshadowed())
    }

    /// Returns the nodes whose key does not count until a round has succeeded without it.
    pub(super) fn young(&self) -> NodeMask {
        self.extension.young
    }

    /// Returns the nodes that lack the key and to which no SET is on its way.
    fn missing(&self) -> NodeMask {
        let refused = self.voting(Vote::Refused).union(self.voting(Vote::Failed));
        refused.union(self.voting(Vote::NotSent))
    }

    /// Returns the nodes that lack the key, as far as is known.
    pub(super) fn lacking(&self) -> NodeMask {
        let lacking = self.missing().union(self.extension.lacked);
        lacking.without(self.watching.has()).union(self.watching.lacks())
    }
}

#[cfg(test)]
mod tests;
