//! Introductions on one connection: when the last one was requested, and the votes that wait for
//! one.

use core::time::Duration;
use std::collections::VecDeque;

use super::pending::Pending;
use super::{CommandOutcome, Link, State};
use crate::command::{CommandId, LockId, NoAnswer, Op, Reply};
use crate::link::LinkConfig;
use crate::time::BootInstant;

/// Age from which a look asks for another introduction, even if every vote does.
const SILENT: Duration = Duration::from_secs(1);

/// Longest pause before a node that has refused to introduce itself is asked again.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// State of the introductions on one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Introductions {
    /// Time of the last request for an introduction. A command written shortly after it reaches the
    /// same process, and is answered after it.
    asked_at: Option<BootInstant>,
    /// No vote counts before the next introduction: the node has reported lost keys.
    suspended: bool,
    /// The node has reported lost keys again since then.
    lost_again: bool,
    /// Votes that the next introduction must confirm, and the times at which their SETs were taken.
    withheld: VecDeque<(CommandId, BootInstant)>,
}

impl Introductions {
    /// Records that an introduction is requested.
    pub(super) fn ask(&mut self, now: BootInstant) {
        self.asked_at = Some(now);
    }

    /// Suspends votes until an introduction is answered. Returns true if the caller must request it:
    /// none is awaited yet. A node that reports lost keys a million times a second is thus asked once
    /// per round trip.
    fn suspend(&mut self) -> bool {
        self.lost_again = self.suspended;
        !core::mem::replace(&mut self.suspended, true)
    }

    /// Returns true while no vote counts.
    #[inline]
    pub(super) fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// Returns true if an introduction was requested less than `max_age` ago.
    pub(super) fn is_known_since(&self, max_age: Duration, now: BootInstant) -> bool {
        self.asked_at.is_some_and(|at| now.since(at) < max_age)
    }

    /// Records an answer, whatever it is. Replies and pushes keep their order, so it is newer than all
    /// reports of lost keys before it, even if it was requested earlier.
    fn answered(&mut self) {
        (self.suspended, self.lost_again) = (false, false);
    }

    /// Forgets the requests, but not a report of lost keys: a node without a canary shows nothing on the
    /// next connection that would explain it.
    pub(super) fn connection_lost(&mut self) {
        *self = Self { suspended: self.suspended, ..Self::default() };
    }

    /// Keeps a vote until the next introduction is answered.
    pub(super) fn withhold(&mut self, vote: CommandId, since: BootInstant) {
        self.withheld.push_back((vote, since));
    }

    /// Returns true if the SET `id` was answered, and its vote is withheld.
    pub(super) fn withholds(&self, id: CommandId) -> bool {
        self.withheld.iter().any(|&(vote, _)| vote == id)
    }

    /// Removes and returns the withheld votes, oldest first; none while votes are suspended.
    pub(super) fn confirmed(&mut self) -> impl Iterator<Item = CommandId> {
        let count = if self.is_suspended() { 0 } else { self.withheld.len() };
        self.withheld.drain(..count).map(|(vote, _)| vote)
    }

    /// Encodes the age of the last request and whatever else decides, for the canonical state;
    /// returns the withheld votes.
    pub(super) fn encode(
        &self,
        config: &LinkConfig,
        out: &mut crate::canonical::Encoder,
    ) -> impl Iterator<Item = CommandId> {
        out.maybe_ahead(self.asked_at.map(|at| at.after(config.introduction_max_age)));
        out.flag(self.is_suspended());
        out.flag(self.lost_again);
        out.word(self.withheld.len() as u64);
        self.withheld.iter().for_each(|(_, since)| out.ahead(since.after(config.node_timeout)));
        self.withheld.iter().map(|&(vote, _)| vote)
    }

    /// Returns when the SET of the oldest withheld vote was taken.
    pub(super) fn oldest_withheld(&self) -> Option<BootInstant> {
        self.withheld.front().map(|&(_, since)| since)
    }

    /// Removes and returns the oldest withheld vote, if `is_over` is true of the time its SET was
    /// taken.
    pub(super) fn give_up(&mut self, is_over: impl Fn(BootInstant) -> bool) -> Option<CommandId> {
        let &(_, since) = self.withheld.front()?;
        if is_over(since) { self.withheld.pop_front().map(|(vote, _)| vote) } else { None }
    }
}

impl Link {
    /// Returns the instant since which the node's votes count; `None` while they do not.
    #[inline]
    pub(crate) fn eligible_from(&self) -> Option<BootInstant> {
        self.eligibility.from().filter(|_| !self.is_suspended())
    }

    /// Returns the instant from which the node's data set counts, by its last introduction. It
    /// changes when the node may have lost keys.
    pub(crate) fn memory_from(&self) -> Option<BootInstant> {
        self.eligibility.from()
    }

    /// Returns true if the node has reported lost keys and no introduction has been answered since.
    pub(crate) fn is_suspended(&self) -> bool {
        self.introductions.is_suspended()
    }

    /// Returns true if the node has reported lost keys at least twice since the last introduction.
    pub(crate) fn has_lost_again(&self) -> bool {
        self.introductions.lost_again
    }

    /// Returns true if nobody executes an earlier SET of `lock` any more: the node's process is not the
    /// one of the connection before, and was sent no SET of `lock`.
    pub(crate) fn has_outlived_sets_of(&self, lock: LockId) -> bool {
        let is_set = |it: &Pending| it.id.lock == Some(lock) && matches!(it.op, Op::Set { .. });
        self.eligibility.has_restarted() && !self.pipeline.iter().any(is_set)
    }

    /// Returns the earliest instant from which the node's votes may count; `None`: never, as far as
    /// is known. A node that has no connection, has reported lost keys, or has refused to introduce
    /// itself is asked again and may count after that.
    pub(crate) fn may_count_from(&self) -> Option<BootInstant> {
        match (self.is_open(), self.memory_from(), self.asked_again_at()) {
            (false, ..) => Some(BootInstant::ZERO),
            (true, Some(from), Some(again)) => Some(from.min(again)),
            (true, from, again) => from.or(again),
        }
    }

    /// Returns when a node that has refused to introduce itself is asked again, with the next SET:
    /// the node may have been busy. The pause doubles with each refusal: the user may lack the right.
    pub(super) fn asked_again_at(&self) -> Option<BootInstant> {
        self.refused.map(|(at, pause)| at.after(pause))
    }

    /// Handles the node's report, on the connection `epoch`, that keys are gone: all keys, or those
    /// of one database.
    pub(crate) fn handle_keys_lost(&mut self, epoch: u32, now: BootInstant) {
        if epoch != self.epoch || !matches!(self.state, State::Introducing | State::Open) {
            return;
        }
        if self.introductions.suspend() {
            self.ask(now);
        }
    }

    /// Handles the node's answer to an introduction.
    pub(super) fn introduced(
        &mut self,
        reply: Reply,
        now: BootInstant,
        notes: &mut VecDeque<CommandOutcome>,
    ) {
        let explains_loss = self.explains_loss(reply);
        match reply {
            Reply::NotServing => {}
            Reply::Introduction(introduction) => {
                self.eligibility.introduced(introduction, now);
                self.refused = None;
                self.state = State::Open;
            }
            _ => {
                let pause = match self.refused {
                    None => self.config.patience(),
                    Some((_, pause)) => (pause * 2).min(PAUSE_MAX),
                };
                // One connection leads to one process, so the quarantine runs from the first
                // refusal if the node has not reported lost keys.
                if self.refused.replace((now, pause)).is_none() {
                    self.eligibility.refused(now);
                }
                self.state = State::Open;
            }
        }
        if self.is_suspended() && !explains_loss {
            self.eligibility.forgot(now);
        }
        self.introductions.answered();
        self.tell_withheld(notes);
    }

    /// Returns true if an answer to an introduction shows what a report of lost keys was about: the
    /// canary does, if the process is still the one that made the report. A promise about restarts says
    /// nothing about keys that were lost otherwise.
    fn explains_loss(&self, reply: Reply) -> bool {
        let known = self.eligibility.known().map(|it| it.run_id);
        matches!(reply, Reply::Introduction(it) if it.canary.is_some() && known == Some(it.run_id))
    }

    /// Requests another introduction from a node that has refused one. Only on an empty pipeline:
    /// the introduction must come before every other command.
    pub(super) fn ask_again(&mut self, now: BootInstant) {
        let is_due = self.asked_again_at().is_some_and(|at| at <= now);
        if is_due && self.state == State::Open && self.pipeline.is_empty() {
            self.ask(now);
        }
    }

    /// Requests an introduction, behind all queued commands.
    pub(super) fn ask(&mut self, now: BootInstant) {
        let id = self.own_id();
        self.introductions.ask(now);
        self.pipeline.push_back(Pending::of_link(id, Op::Introduce, Duration::ZERO, now));
    }

    /// Requests an introduction behind the SET just queued, unless the last one is recent. A proxy
    /// may have kept the connection while another process replaced the one behind it.
    pub(super) fn confirm_behind(&mut self, now: BootInstant) {
        let max_age = self.config.introduction_max_age;
        let is_known = match self.state {
            State::Introducing | State::Open => self.introductions.is_known_since(max_age, now),
            // The connection begins with an introduction; the SET follows shortly after it.
            _ => !max_age.is_zero(),
        };
        if is_known {
            return;
        }
        let set = self.pipeline.back_mut().expect("the SET was just taken");
        set.confirmed_behind = true;
        self.ask(now);
    }

    /// Requests an introduction behind the look just queued, unless the last one is recent. A client
    /// that has slept for long so learns what has become of the node when it looks, and the next
    /// attempt need not wait for that.
    pub(super) fn identify_behind(&mut self, now: BootInstant) {
        let max_age = self.config.introduction_max_age.max(SILENT);
        if self.is_open() && !self.introductions.is_known_since(max_age, now) {
            self.ask(now);
        }
    }

    /// Reports the withheld votes to their locks, unless votes are suspended. The lock decides
    /// whether they count.
    pub(super) fn tell_withheld(&mut self, notes: &mut VecDeque<CommandOutcome>) {
        let node = self.node;
        let votes = self.introductions.confirmed();
        notes.extend(votes.map(|id| CommandOutcome { node, id, outcome: Ok(Reply::Ok) }));
    }

    /// Reports votes that were not confirmed within the node timeout.
    pub(super) fn expire_withheld(
        &mut self,
        now: BootInstant,
        notes: &mut VecDeque<CommandOutcome>,
    ) {
        let (node, timeout) = (self.node, self.config.node_timeout);
        while let Some(id) = self.introductions.give_up(|since| since.after(timeout) <= now) {
            notes.push_back(CommandOutcome { node, id, outcome: Err(NoAnswer::Unconfirmed) });
        }
    }
}

#[cfg(test)]
mod tests;
