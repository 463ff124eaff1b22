//! End of a use of the lock: the keys that it may have set are deleted, or left to expire.

use super::attempt::Vote;
use super::{Lock, Phase, ReleaseOutcome};
use crate::command::{NoAnswer, Reply};
use crate::quorum::NodeIndex;

impl Lock {
    /// Releases all keys that the current attempt has or may have set, and makes no further
    /// attempt.
    pub(crate) fn release(&mut self) {
        self.cancel_round();
        match self.phase {
            Phase::Trying | Phase::Decided | Phase::Held { .. } => {
                self.release_everywhere();
                self.confirming = self.to_release;
                self.phase = Phase::Releasing(ReleaseOutcome::default());
            }
            Phase::Queued
            | Phase::Due
            | Phase::Waiting { .. }
            | Phase::Listening
            | Phase::AskingTimeLeft => {
                self.phase = Phase::Ended;
            }
            Phase::Releasing(_) | Phase::Ended => {}
        }
    }

    /// Ends the lease without a release: the keys live until they expire.
    pub(crate) fn leave(&mut self) {
        assert!(matches!(self.phase, Phase::Held { .. }), "only a lease can be left");
        self.cancel_round();
        self.phase = Phase::Ended;
    }

    /// Returns the result of the release once every node has answered or been given up.
    pub(crate) fn poll_released(&mut self) -> Option<ReleaseOutcome> {
        match self.phase {
            Phase::Releasing(outcome) if self.confirming.is_empty() => {
                self.phase = Phase::Ended;
                Some(outcome)
            }
            _ => None,
        }
    }

    pub(super) fn release_everywhere(&mut self) {
        let never_sent = self.voting(Vote::NotSent);
        self.to_release = self.all_nodes();
        for node in never_sent.iter() {
            self.to_release.remove(node);
        }
    }

    pub(super) fn confirm(&mut self, node: NodeIndex, outcome: Result<Reply, NoAnswer>) {
        self.confirming.remove(node);
        let Phase::Releasing(releasing) = &mut self.phase else {
            return;
        };
        match outcome {
            Ok(Reply::Integer(1..)) => releasing.deleted.insert(node),
            Ok(Reply::Integer(_)) | Err(NoAnswer::NotSent) => releasing.absent.insert(node),
            Ok(_) => {
                releasing.unconfirmed.insert(node);
                releasing.failed.insert(node);
            }
            Err(_) => releasing.unconfirmed.insert(node),
        }
    }

    pub(super) fn release_serial(&self, node: NodeIndex) -> u32 {
        self.first_set + (self.config.nodes.get() + node.get()) as u32
    }
}
