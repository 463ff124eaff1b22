//! When a node was asked last who it is, and the votes that wait for its answer.

use core::time::Duration;
use std::collections::VecDeque;

use crate::protocol::command::CommandId;
#[cfg(any(test, feature = "simulation"))]
use crate::protocol::link::LinkConfig;
use crate::protocol::time::BootInstant;

/// What one connection knows of the introductions on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Introductions {
    /// When the last one was asked for. What is written within a moment behind it is answered by who
    /// answers it, and is not answered before it.
    asked_at: Option<BootInstant>,
    /// The one that must be answered before any vote counts: the node has said that keys are gone.
    suspended_until: Option<CommandId>,
    /// It has said so again since that one was asked for.
    suspended_again: bool,
    /// Votes that the next answer is to confirm, and when they were asked for.
    withheld: VecDeque<(CommandId, BootInstant)>,
}

impl Introductions {
    /// Takes note that one is asked for.
    pub(super) fn ask(&mut self, now: BootInstant) {
        self.asked_at = Some(now);
    }

    /// No vote counts before an introduction has been answered that is asked for from now on. Whether
    /// the caller is to ask, and to call [`Introductions::suspend_until`]; otherwise that will be so
    /// when the one is answered that is awaited: whoever says a million times a second that keys are
    /// gone is asked once a round trip.
    pub(super) fn suspend(&mut self) -> bool {
        self.suspended_again = self.is_suspended();
        !self.suspended_again
    }

    /// No vote counts before the answer to `id`.
    pub(super) fn suspend_until(&mut self, id: CommandId) {
        (self.suspended_until, self.suspended_again) = (Some(id), false);
    }

    /// Whether votes are worth nothing for now.
    pub(super) fn is_suspended(&self) -> bool {
        self.suspended_until.is_some()
    }

    /// Whether one was asked for no longer than `max_age` ago.
    pub(super) fn is_known_since(&self, max_age: Duration, now: BootInstant) -> bool {
        self.asked_at.is_some_and(|at| now.since(at) < max_age)
    }

    /// Takes note of the answer to `id`, whatever it is. Whether another one must be asked for, and
    /// [`Introductions::suspend_until`] be called.
    pub(super) fn answered(&mut self, id: CommandId) -> bool {
        let awaited = self.suspended_until == Some(id);
        if awaited && !self.suspended_again {
            self.suspended_until = None;
        }
        awaited && self.suspended_again
    }

    /// Keeps a vote until the next answer.
    pub(super) fn withhold(&mut self, vote: CommandId, since: BootInstant) {
        self.withheld.push_back((vote, since));
    }

    /// The votes to tell, oldest first: those that were withheld, unless they still are to be.
    pub(super) fn confirmed(&mut self) -> impl Iterator<Item = CommandId> {
        let count = if self.is_suspended() { 0 } else { self.withheld.len() };
        self.withheld.drain(..count).map(|(vote, _)| vote)
    }

    /// Whether one that is asked for at `now` tells nothing new, and what else decides, as the canonical
    /// state tells it; returns the votes that are withheld.
    #[cfg(any(test, feature = "simulation"))]
    pub(super) fn encode(
        &self,
        config: &LinkConfig,
        out: &mut crate::protocol::canonical::Encoder,
    ) -> impl Iterator<Item = CommandId> {
        out.maybe_ahead(self.asked_at.map(|at| at.after(config.introduction_max_age)));
        out.flag(self.is_suspended());
        out.flag(self.suspended_again);
        out.word(self.withheld.len() as u64);
        self.withheld.iter().for_each(|(_, since)| out.ahead(since.after(config.node_timeout)));
        self.withheld.iter().map(|&(vote, _)| vote)
    }

    /// Since when the oldest vote waits that is withheld.
    pub(super) fn oldest_withheld(&self) -> Option<BootInstant> {
        self.withheld.front().map(|&(_, since)| since)
    }

    /// The oldest vote that is withheld, if `is_over` says so of when it was asked for.
    pub(super) fn give_up(&mut self, is_over: impl Fn(BootInstant) -> bool) -> Option<CommandId> {
        let &(_, since) = self.withheld.front()?;
        if is_over(since) { self.withheld.pop_front().map(|(vote, _)| vote) } else { None }
    }
}

#[cfg(test)]
mod tests;
