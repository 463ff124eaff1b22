//! The lease whose keys are watched.

use super::{UNWATCHED, UNWATCHED_LEAST, Watching};
use crate::command::{CommandId, NoAnswer, Op, Reply, Send};
use crate::lock::{Lock, LockOutcome, Phase, Vote, Votes};
use crate::quorum::{NodeIndex, NodeMask};
use crate::time::BootInstant;

impl Lock {
    /// Starts to watch the lease when it is handed to the caller at `now`.
    pub(in crate::lock) fn start_watching(&mut self, now: BootInstant) {
        let has = self.granted();
        let unwatched = UNWATCHED_LEAST.max(self.config.ttl / UNWATCHED);
        let begins_at = self.config.watched.then(|| now.after(unwatched));
        self.watching = Watching { has, begins_at, ..Watching::none(self.config.nodes) };
    }

    /// Returns true if the lease is watched at present.
    pub(crate) fn is_watched(&self) -> bool {
        self.watching.has_begun && self.phase == Phase::Held { lost: None }
    }

    /// Returns the nodes that have the key of the lease, and those that may have it.
    pub(crate) fn votes(&self) -> Votes {
        let (confirmed, lacking) = (self.watching.confirmed(), self.lacking());
        Votes { confirmed, possible: self.config.nodes.all().without(lacking) }
    }

    /// Returns what the lease knows of its keys, while it is watched.
    pub(crate) fn watches(&mut self) -> Option<&mut Watching> {
        if self.is_watched() { Some(&mut self.watching) } else { None }
    }

    /// Forgets that `node` lacks the key if a SET may be on its way to it: the push that it has sent
    /// may be that of this SET, executed late, and a connection that has ended pushes nothing.
    pub(in crate::lock) fn doubt_absence(&mut self, node: NodeIndex) {
        if self.is_watched() && matches!(self.votes[node.get()], Vote::Pending | Vote::Unknown) {
            self.watching.may_have(node);
            self.extension.may_have(node);
        }
    }

    pub(in crate::lock) fn poll_watching_timeout(&self) -> Option<BootInstant> {
        self.watching.poll_timeout()
    }

    pub(in crate::lock) fn handle_watching_timeout(&mut self, now: BootInstant) {
        self.watching.handle_timeout(now);
    }

    /// Returns the next read on a node.
    pub(in crate::lock) fn poll_read(&mut self) -> Option<Send> {
        let serial = self.next_serial;
        let node = self.watches()?.poll_read(serial)?;
        self.next_serial += 1;
        let op = Op::Read { resource: self.resource, token: self.fresh.token };
        let (id, write_before) = (self.command(serial), Some(self.deadline));
        Some(Send { node, id, op, after: None, write_before, key_ttl: self.key_ttl })
    }

    /// Returns true if `id` is the last read on `node`, and unanswered.
    pub(crate) fn is_read(&self, node: NodeIndex, id: CommandId) -> bool {
        let is_asked = self.is_watched() && self.watching.asked.contains(node);
        is_asked && self.watching.serials[node.get()] == id.serial
    }

    /// Handles the outcome of the last read on `node`.
    pub(in crate::lock) fn handle_read(
        &mut self,
        node: NodeIndex,
        outcome: Result<Reply, NoAnswer>,
        now: BootInstant,
    ) -> Option<LockOutcome> {
        let had = self.watching.has();
        self.watching.read(node, outcome, now);
        self.after_reply(had, now)
    }

    /// Judges what a reply has shown. Before it, the nodes of `had` were known to have the key.
    fn after_reply(&mut self, had: NodeMask, now: BootInstant) -> Option<LockOutcome> {
        let lost = self.look_for_loss();
        if lost.is_none() && !had.intersection(self.watching.lacks()).is_empty() {
            self.set_again_soon(now);
        }
        lost
    }

    /// Returns true if `id` is an extension or a read behind the last SET to `node`.
    pub(in crate::lock) fn is_behind_set(&self, node: NodeIndex, id: CommandId) -> bool {
        self.is_watched() && id.serial > self.set_serial(node)
    }

    /// Handles the outcome of an extension or a read that a later one has superseded.
    pub(in crate::lock) fn handle_superseded(
        &mut self,
        node: NodeIndex,
        id: CommandId,
        outcome: Result<Reply, NoAnswer>,
        now: BootInstant,
    ) -> Option<LockOutcome> {
        let had = self.watching.has();
        if let Ok(reply) = outcome
            && self.is_behind_set(node, id)
        {
            self.watching.superseded(node, reply);
        }
        self.after_reply(had, now)
    }
}
