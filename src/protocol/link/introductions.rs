//! When a node was asked last who it is, and the votes that wait for its answer.

use core::time::Duration;
use std::collections::VecDeque;

use super::pending::Pending;
use super::{Link, Note, State};
use crate::protocol::command::{CommandId, NoAnswer, Op, Reply};
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

impl Link {
    /// Since when the node's votes count; `None` while they do not.
    pub(crate) fn eligible_from(&self) -> Option<BootInstant> {
        self.eligibility.from().filter(|_| !self.introductions.is_suspended())
    }

    /// From which instant on the node's votes may turn out to count; `None`: never, as far as is
    /// known. A node without a connection, or one that has refused to introduce itself, is asked again.
    pub(crate) fn may_count_from(&self) -> Option<BootInstant> {
        match (self.is_open(), self.eligible_from(), self.asked_again_at()) {
            (false, ..) => Some(BootInstant::ZERO),
            (true, Some(from), Some(again)) => Some(from.min(again)),
            (true, from, again) => from.or(again),
        }
    }

    /// When a node that has refused to introduce itself is asked once more, with the next SET: it
    /// may have been busy.
    pub(super) fn asked_again_at(&self) -> Option<BootInstant> {
        self.refused_at.map(|at| at.after(self.config.patience()))
    }

    /// The node says on the connection `epoch` that its keys are gone: all, or those of one database.
    pub(crate) fn handle_forgot(&mut self, epoch: u32, now: BootInstant) {
        if epoch != self.epoch || !matches!(self.state, State::Introducing | State::Open) {
            return;
        }
        if self.introductions.suspend() {
            let id = self.ask(now);
            self.introductions.suspend_until(id);
        }
    }

    /// The node has answered the introduction `id`.
    pub(super) fn introduced(
        &mut self,
        id: CommandId,
        reply: Reply,
        now: BootInstant,
        notes: &mut VecDeque<Note>,
    ) {
        match reply {
            Reply::NotServing => {}
            Reply::Introduction(introduction) => {
                self.eligibility.introduced(introduction, now);
                self.refused_at = None;
                self.state = State::Open;
            }
            _ => {
                // On one connection it is one process: it is quarantined from its first refusal on.
                if self.refused_at.replace(now).is_none() {
                    self.eligibility.refused(now);
                }
                self.state = State::Open;
            }
        }
        if self.introductions.answered(id) {
            let id = self.ask(now);
            self.introductions.suspend_until(id);
        }
        self.tell_withheld(notes);
    }

    /// Asks a node that has refused to introduce itself once more. Only in front of everything else:
    /// there the introduction always is.
    pub(super) fn ask_again(&mut self, now: BootInstant) {
        let is_due = self.asked_again_at().is_some_and(|at| at <= now);
        if is_due && self.state == State::Open && self.pipeline.is_empty() {
            self.ask(now);
        }
    }

    /// Asks the node who it is, behind everything else.
    pub(super) fn ask(&mut self, now: BootInstant) -> CommandId {
        let id = self.own_id();
        self.introductions.ask(now);
        self.pipeline.push_back(Pending::of_link(id, Op::Introduce, Duration::ZERO, now));
        id
    }

    /// Behind a SET: asks who answers if that is not known from a moment ago. A proxy may have
    /// kept the connection while another process took the place of the one behind it.
    pub(super) fn confirm_behind(&mut self, now: BootInstant) {
        let max_age = self.config.introduction_max_age;
        let is_known = match self.state {
            State::Introducing | State::Open => self.introductions.is_known_since(max_age, now),
            // The connection begins with an introduction; what follows is a moment behind it.
            _ => !max_age.is_zero(),
        };
        if is_known {
            return;
        }
        let set = self.pipeline.back_mut().expect("the SET was just taken");
        set.confirmed_behind = true;
        self.ask(now);
    }

    /// The votes that an introduction was to confirm, if none is awaited any more: what they are worth
    /// is for who asked to say.
    pub(super) fn tell_withheld(&mut self, notes: &mut VecDeque<Note>) {
        let node = self.node;
        let votes = self.introductions.confirmed();
        notes.extend(votes.map(|id| Note { node, id, outcome: Ok(Reply::Ok) }));
    }

    /// The votes that were not confirmed within the node timeout: what the node did is not known.
    pub(super) fn expire_withheld(&mut self, now: BootInstant, notes: &mut VecDeque<Note>) {
        let (node, timeout) = (self.node, self.config.node_timeout);
        while let Some(id) = self.introductions.give_up(|since| since.after(timeout) <= now) {
            notes.push_back(Note { node, id, outcome: Err(NoAnswer::Unknown) });
        }
    }
}

#[cfg(test)]
mod tests;
