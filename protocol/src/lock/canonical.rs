//! Encodes a lock for [`NodeSet::canonical`](crate::NodeSet::canonical).

use super::{Lock, Phase};
use crate::canonical::{Encoder, Meaning};
use crate::command::CommandId;
use crate::quorum::NodeIndex;

impl Lock {
    /// Encodes the state that does not belong to a single node.
    pub(crate) fn encode(&self, out: &mut Encoder) {
        let idle = self.to_set.is_empty() && self.to_release.is_empty();
        assert!(idle && self.to_extend.is_empty(), "the links have been told what is wanted");
        out.word(u64::from(self.resource.0));
        match self.phase {
            Phase::Due => out.word(0),
            // Votes are judged by T1; the wait before the next attempt depends on this attempt's
            // jitter.
            Phase::Trying | Phase::Decided => {
                out.word(1 + u64::from(self.phase == Phase::Decided));
                out.age(self.t1);
                out.word(self.fresh.jitter);
            }
            Phase::Held { lost } => {
                out.word(3);
                out.word(lost.map_or(0, |reason| 1 + reason as u64));
            }
            Phase::Waiting { until } => {
                out.word(4);
                out.ahead(until);
            }
            Phase::Releasing(_) => out.word(5),
            Phase::Ended => out.word(6),
            Phase::Queued => out.word(7),
            Phase::AskingTimeLeft => out.word(8),
            Phase::Listening => out.word(9),
        }
        out.word(u64::from(self.failures));
        out.word(self.why_behind as u64);
        out.ahead(self.deadline);
        out.word(self.key_ttl.as_nanos() as u64);
        out.token(self.fresh.token);
        if let Some(listening) = &self.listening {
            listening.encode(out);
        }
        if self.config.watched {
            self.watching.encode(out);
        }
        self.extension.encode(out);
        self.renewal.encode(self.fresh.jitter, out);
    }

    /// Encodes the state that belongs to `node`.
    pub(crate) fn encode_node(&self, node: NodeIndex, out: &mut Encoder) {
        out.word(self.votes[node.get()] as u64);
        if self.phase == Phase::Trying {
            self.blocking_keys.encode_node(node, out);
        }
        out.flag(self.confirming.contains(node));
        if let Phase::Releasing(outcome) = self.phase {
            out.flag(outcome.deleted.contains(node));
            out.flag(outcome.absent.contains(node));
            out.flag(outcome.unconfirmed.contains(node));
            out.flag(outcome.failed.contains(node));
        }
        if self.phase == Phase::AskingTimeLeft {
            self.time_left.encode_node(node, out);
        }
        if let Some(listening) = &self.listening {
            listening.encode_node(node, out);
        }
        if self.config.watched {
            self.watching.encode_node(node, out);
        }
        self.extension.encode_node(node, out);
    }

    /// Returns the effect that an answer of `node` to the command `id` would have.
    pub(crate) fn meaning(&self, node: NodeIndex, id: CommandId) -> Meaning {
        if self.confirming.contains(node) && id.serial == self.release_serial(node) {
            Meaning::Release
        } else if self.is_time_left(node, id) {
            Meaning::TimeLeft
        } else if self.is_look(node, id) {
            Meaning::Look
        } else if self.is_read(node, id) {
            Meaning::Read
        } else if self.is_of_round(node, id.serial) {
            Meaning::Extension
        } else if id.serial == self.set_serial(node)
            && self.votes[node.get()] == super::Vote::Pending
        {
            Meaning::Set
        } else if self.is_behind_set(node, id) {
            Meaning::Superseded
        } else {
            Meaning::Nothing
        }
    }
}
