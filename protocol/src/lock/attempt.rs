//! One attempt: a SET to every node, the votes, and the result.

use super::ballot::{Ballot, NodeVerdict};
use super::extension::Extension;
use super::refusal::BlockingKeys;
use super::{AttemptError, Fresh, Lock, Phase};
use crate::command::{NoAnswer, Reply};
use crate::quorum::{MAX_NODES, NodeIndex, NodeMask};
use crate::time::BootInstant;
use crate::validity::{deadline, remaining};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    /// No SET of this attempt can have been executed.
    NotSent,
    Pending,
    /// Refused: another attempt's key is there.
    Refused,
    /// Granted by an eligible node.
    Counted,
    /// Granted by a node in quarantine: the key blocks other attempts, but the vote does not count.
    Ineligible,
    /// Written, and unanswered in time: the key may be there.
    Unknown,
    /// No SET is on its way, and the key may be there: the node's identity was not confirmed in time,
    /// or its process has ended since. The vote does not count.
    Unconfirmed,
    /// Answered by an error: nothing was set, and no SET is on its way.
    Failed,
}

impl Lock {
    /// Returns the nodes whose votes count for the current attempt.
    pub(crate) fn counted(&self) -> NodeMask {
        self.voting(Vote::Counted)
    }

    /// Returns the nodes that granted the current attempt, those in quarantine among them.
    pub(super) fn granted(&self) -> NodeMask {
        self.voting(Vote::Counted).union(self.voting(Vote::Ineligible))
    }

    /// Begins an attempt. `now` is T1: it is read before any command of the attempt exists
    /// (specification, step 1).
    pub(crate) fn begin(&mut self, fresh: Fresh, now: BootInstant) {
        assert_eq!(self.phase, Phase::Due, "an attempt begins when it is due");
        assert!(self.to_release.is_empty(), "the last attempt's releases go out first");
        self.phase = Phase::Trying;
        self.fresh = fresh;
        self.t1 = now;
        self.deadline = deadline(now, self.config.ttl, self.config.drift);
        self.votes = [Vote::Pending; MAX_NODES];
        self.key_ttl = self.config.ttl;
        self.extension = Extension::NONE;
        self.ballot = Ballot::default();
        self.crowded = NodeMask::EMPTY;
        self.blocking_keys = BlockingKeys::NOTHING;
        self.first_set = self.next_serial;
        self.next_serial += 3 * self.config.nodes.get() as u32;
        self.to_set = self.all_nodes();
    }

    /// Settles the attempt as soon as its outcome is certain: a grant does not wait for the
    /// remaining nodes. `None` without an attempt whose outcome is open.
    pub(crate) fn settle(&mut self, now: BootInstant) -> Option<Result<(), AttemptError>> {
        if self.phase != Phase::Trying {
            return None;
        }
        let quorum = self.config.nodes.quorum();
        let counted = self.voting(Vote::Counted).len();
        if counted >= quorum {
            // `now` is T2: it is read after the last answer that counts (specification, step 3).
            if self.is_worth_having(now) {
                self.phase = Phase::Decided;
                self.why_behind = AttemptError::Taken;
                self.stop_listening();
                return Some(Ok(()));
            }
            return Some(Err(AttemptError::TooSlow));
        }
        if counted + self.voting(Vote::Pending).len() >= quorum {
            return None;
        }
        self.why_not().map(Err)
    }

    /// Returns true if this use waits for further answers, and for nothing else: it has neither a
    /// command for a link nor a timeout.
    pub(crate) fn awaits_answers(&self) -> bool {
        match self.phase {
            Phase::Trying => true,
            Phase::Releasing(_) => !self.confirming.is_empty(),
            _ => false,
        }
    }

    /// Returns the nodes' verdicts on the attempt; a node that has not answered is pending.
    pub(crate) fn ballot(&self) -> Ballot {
        let mut ballot = self.ballot;
        for node in self.voting(Vote::Pending).iter() {
            ballot.record(node, NodeVerdict::Pending);
        }
        ballot
    }

    pub(super) fn record_answer(
        &mut self,
        node: NodeIndex,
        outcome: Result<Reply, NoAnswer>,
        now: BootInstant,
    ) {
        let verdict = match (self.votes[node.get()], outcome) {
            (Vote::Counted, _) => NodeVerdict::Granted,
            (Vote::Ineligible, _) => NodeVerdict::NotCounted,
            (Vote::Refused, _) => NodeVerdict::Taken,
            (_, Ok(_)) => NodeVerdict::Error,
            (_, Err(NoAnswer::Crowded | NoAnswer::NotSent)) => NodeVerdict::NotAsked,
            (_, Err(NoAnswer::Unknown | NoAnswer::Unconfirmed)) => NodeVerdict::Silent,
        };
        self.ballot.record(node, verdict);
        self.ballot.heard(node, self.t1, now);
    }

    pub(super) fn is_worth_having(&self, now: BootInstant) -> bool {
        remaining(self.deadline, now).is_some_and(|left| left > self.config.min_validity)
    }

    pub(super) fn voting(&self, vote: Vote) -> NodeMask {
        let mut mask = NodeMask::EMPTY;
        for node in self.config.nodes.iter().filter(|node| self.votes[node.get()] == vote) {
            mask.insert(node);
        }
        mask
    }

    /// Returns the serial of the last SET to `node`.
    pub(super) fn set_serial(&self, node: NodeIndex) -> u32 {
        self.extension.repair_serial(node).unwrap_or(self.first_set + node.get() as u32)
    }
}
