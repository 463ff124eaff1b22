//! A lease that detects the loss of its keys.
//!
//! The client *reads* the key of a lease that is held for more than a moment on every node. The
//! reply says whether the node has the lease's token, and from then on the node pushes the key's
//! next change.
//!
//! - The lease's own extension, its own SET and the end of a connection end the registration for
//!   the push. So a read follows each of them.
//! - After a push, of this key or of all keys, and after a new connection, the client reads the key
//!   on *all* nodes: a push is a hint, and the cause of one loss may have caused others.
//! - Only a node's own reply shows that it lacks the key. The lease is lost as soon as so many
//!   nodes lack the key that no majority is left. A node that is silent or does not push is no
//!   evidence.
//! - A reply shows this even if it answers a read or an extension that a later one has superseded:
//!   only a SET creates the key. A superseded read shows as well that a node has the key: if rounds
//!   follow each other faster than a node answers, no other read of it is ever answered.
//!
//! No answer of an extension counts because of a read.

mod canonical;
mod lease;

use core::time::Duration;

use super::listening::idle_delay;
use crate::command::{NoAnswer, Reply};
use crate::quorum::{MAX_NODES, NodeCount, NodeIndex, NodeMask};
use crate::time::BootInstant;

/// Time after the grant for which a lease is not watched: at least this long, and this fraction of
/// its TTL.
const UNWATCHED_LEAST: Duration = Duration::from_millis(50);
const UNWATCHED: u32 = 20;

/// Time after which a push has nothing to do with the pushes before it.
const CALM: Duration = Duration::from_secs(1);

/// Time after which a node that did not answer a read is asked again.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// A lease's knowledge of its keys, by the nodes' last replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watching {
    nodes: NodeCount,
    /// Instant of the first reads; `None` if they were made, or are not to be made.
    begins_at: Option<BootInstant>,
    has_begun: bool,
    /// Nodes to read on.
    to_read: NodeMask,
    /// Nodes whose reply to the last read is outstanding, and the serials of these reads.
    asked: NodeMask,
    serials: [u32; MAX_NODES],
    /// Nodes among these that pushed before they replied.
    overtaken: NodeMask,
    /// Nodes whose connection has ended; they are read when the next one opens.
    away: NodeMask,
    /// Nodes that do not push.
    mute: NodeMask,
    /// Nodes that last reported the key.
    has: NodeMask,
    /// Nodes whose last read showed that they lack the key, and that were sent no SET since.
    lacks: NodeMask,
    /// Nodes that may have lost the key since their last report: they pushed, lost the connection,
    /// or did not answer a read. Only a read that registers the key ends the doubt.
    unsure: NodeMask,
    /// Number of pushes that came without a loss, and the instant of the last one.
    idle_pushes: u32,
    pushed_at: BootInstant,
    /// Nodes whose read is put off, and until when.
    later: NodeMask,
    later_at: Option<BootInstant>,
    /// Nodes to read on when there is room on their connections.
    waits: NodeMask,
}

impl Watching {
    pub(super) const fn none(nodes: NodeCount) -> Self {
        Self {
            nodes,
            begins_at: None,
            has_begun: false,
            to_read: NodeMask::EMPTY,
            asked: NodeMask::EMPTY,
            serials: [0; MAX_NODES],
            overtaken: NodeMask::EMPTY,
            away: NodeMask::EMPTY,
            mute: NodeMask::EMPTY,
            has: NodeMask::EMPTY,
            lacks: NodeMask::EMPTY,
            unsure: NodeMask::EMPTY,
            idle_pushes: 0,
            pushed_at: BootInstant::ZERO,
            later: NodeMask::EMPTY,
            later_at: None,
            waits: NodeMask::EMPTY,
        }
    }

    /// Records what the client knows of the nodes: those that do not push, and those without a
    /// connection.
    pub(crate) fn begin(&mut self, mute: NodeMask, away: NodeMask) {
        (self.mute, self.away) = (mute, away);
    }

    /// Records that `node` pushes.
    pub(super) fn is_heard(&mut self, node: NodeIndex) {
        self.mute.remove(node);
    }

    pub(super) fn has(&self) -> NodeMask {
        self.has
    }

    pub(super) fn lacks(&self) -> NodeMask {
        self.lacks
    }

    /// Returns the nodes that have the key, and would have pushed its loss.
    pub(super) fn confirmed(&self) -> NodeMask {
        if self.has_begun { self.has.without(self.mute).without(self.unsure) } else { self.has }
    }

    /// Records that `node` has the key, by its reply to a command other than a read.
    pub(super) fn key_was_there(&mut self, node: NodeIndex) {
        self.has.insert(node);
        self.lacks.remove(node);
    }

    pub(super) fn key_was_missing(&mut self, node: NodeIndex) {
        self.has.remove(node);
    }

    /// Records that `node` lacks the key, by its reply to a command behind the last SET.
    fn key_is_gone(&mut self, node: NodeIndex) {
        // A node that never reported the key has lost none.
        if self.has.contains(node) {
            self.idle_pushes = 0;
        }
        self.has.remove(node);
        self.lacks.insert(node);
    }

    /// Records that `node` has set the key. The reply may have been withheld for so long that a
    /// read has shown since that the key is gone.
    pub(super) fn key_was_set(&mut self, node: NodeIndex) {
        if !self.lacks.contains(node) {
            self.has.insert(node);
        }
    }

    /// Reads behind a SET that sets the missing key of `node` again.
    pub(super) fn set_again(&mut self, node: NodeIndex) {
        self.has.remove(node);
        self.lacks.remove(node);
        // A read under way is in front of the SET.
        self.asked.remove(node);
        self.overtaken.remove(node);
        self.read_behind(NodeMask::of(node));
    }

    /// Reads behind an own change of the key on `nodes`: it is not pushed, and the node forgets that
    /// the connection wants to hear of the next one.
    pub(super) fn read_behind(&mut self, nodes: NodeMask) {
        if self.has_begun {
            self.to_read = self.to_read.union(nodes.without(self.mute));
        }
    }

    /// Handles a push of `node`: its key has changed, or may have. Returns true if there may be
    /// reads, or another timeout.
    pub(super) fn key_changed(&mut self, node: NodeIndex, now: BootInstant) -> bool {
        if self.lacks.contains(node) {
            // The key of another attempt.
            return false;
        }
        self.unsure.insert(node);
        if self.asked.contains(node) {
            // The reply under way may be older than this change.
            self.overtaken.insert(node);
            return false;
        }
        let before = self.later_at;
        self.look_into_push(now);
        !self.to_read.is_empty() || self.later_at != before
    }

    /// Reads on all nodes: at once, or later if many pushes came without a loss. A read under way
    /// stays: if each push replaced it, a slow node would never be judged.
    fn look_into_push(&mut self, now: BootInstant) {
        if now.since(self.pushed_at) > CALM {
            self.idle_pushes = 0;
        }
        match idle_delay(self.idle_pushes) {
            None => self.read_unasked(self.nodes.all()),
            Some(delay) => self.read_later(self.nodes.all(), now.after(delay)),
        }
        self.idle_pushes = self.idle_pushes.saturating_add(1);
        self.pushed_at = now;
    }

    /// Reads on those of `nodes` that owe no reply to a read.
    fn read_unasked(&mut self, nodes: NodeMask) {
        self.to_read = self.to_read.union(nodes.without(self.asked));
    }

    fn read_later(&mut self, nodes: NodeMask, at: BootInstant) {
        if !nodes.is_empty() {
            self.later = self.later.union(nodes);
            self.later_at = Some(self.later_at.map_or(at, |it| it.min(at)));
        }
    }

    fn no_longer_later(&mut self, node: NodeIndex) {
        self.later.remove(node);
        self.later_at = self.later_at.filter(|_| !self.later.is_empty());
    }

    /// Handles the end of the connection to `node`, and with it of all that the node would push.
    pub(super) fn connection_lost(&mut self, node: NodeIndex) {
        self.away.insert(node);
        self.unsure.insert(node);
        self.waits.remove(node);
        self.no_longer_later(node);
    }

    /// Forgets that the last read showed that `node` lacks the key.
    fn may_have(&mut self, node: NodeIndex) {
        self.lacks.remove(node);
    }

    /// Handles the opening of a connection to `node`: reads on the node at once, and on the others as
    /// after a push.
    pub(super) fn connection_opened(&mut self, node: NodeIndex, now: BootInstant) {
        self.away.remove(node);
        self.mute.remove(node);
        self.to_read.insert(node);
        self.look_into_push(now);
    }

    /// Waits for room on the connection to `node`, where a read found none. Returns false if the lease
    /// waits there already.
    pub(crate) fn wait_for_room(&mut self, node: NodeIndex) -> bool {
        let waits_already = self.waits.contains(node);
        self.waits.insert(node);
        !waits_already
    }

    /// Reads on `node`: there is room on its connection.
    pub(crate) fn has_room(&mut self, node: NodeIndex) {
        self.waits.remove(node);
        self.read_unasked(NodeMask::of(node));
    }

    fn poll_timeout(&self) -> Option<BootInstant> {
        self.begins_at.into_iter().chain(self.later_at).min()
    }

    fn handle_timeout(&mut self, now: BootInstant) {
        if self.begins_at.take_if(|at| *at <= now).is_some() {
            self.has_begun = true;
            self.to_read = self.nodes.all();
        }
        if self.later_at.take_if(|at| *at <= now).is_some() {
            let later = core::mem::take(&mut self.later);
            self.read_unasked(later);
        }
    }

    fn poll_read(&mut self, serial: u32) -> Option<NodeIndex> {
        let node = self.to_read.pop()?;
        self.no_longer_later(node);
        self.overtaken.remove(node);
        self.asked.insert(node);
        self.serials[node.get()] = serial;
        Some(node)
    }

    /// Handles the outcome of the last read on `node`. Without an answer nothing is known. A read that
    /// found no room is not put off: the lease waits for room ([`Watching::wait_for_room`]).
    fn read(&mut self, node: NodeIndex, outcome: Result<Reply, NoAnswer>, now: BootInstant) {
        self.asked.remove(node);
        let overtaken = self.overtaken.contains(node);
        self.overtaken.remove(node);
        let (has_key, pushes) = match outcome {
            Ok(Reply::Registered(number)) => (number > 0, true),
            Ok(Reply::Integer(number)) => (number > 0, false),
            Err(NoAnswer::Unknown | NoAnswer::NotSent) => {
                self.unsure.insert(node);
                let again = NodeMask::of(node).without(self.away);
                return self.read_later(again, now.after(READ_AGAIN));
            }
            Ok(_) | Err(NoAnswer::Crowded | NoAnswer::Unconfirmed) => {
                self.unsure.insert(node);
                return;
            }
        };
        if !pushes {
            self.mute.insert(node);
        }
        if !has_key {
            self.key_is_gone(node);
        } else if pushes && !overtaken {
            self.key_is_registered(node);
        } else {
            self.key_was_there(node);
        }
        if overtaken {
            self.look_into_push(now);
        }
    }

    /// Records that `node` has the key, and pushes its next change.
    fn key_is_registered(&mut self, node: NodeIndex) {
        self.key_was_there(node);
        self.unsure.remove(node);
    }

    /// Handles the reply to a read or an extension that a later one has superseded.
    fn superseded(&mut self, node: NodeIndex, reply: Reply) {
        match reply {
            Reply::Integer(..=0) | Reply::Registered(..=0) => self.key_is_gone(node),
            Reply::Registered(_) if !self.overtaken.contains(node) => self.key_is_registered(node),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
