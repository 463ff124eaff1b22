//! Timeouts of a link: commands that have waited for too long.

use std::collections::VecDeque;

use super::pending::Pending;
use super::{CommandOutcome, GivenUp, Link, State};
use crate::command::{NoAnswer, Op};
use crate::time::BootInstant;

impl Link {
    /// Handles a timeout that [`Link::poll_timeout`] returned.
    pub(crate) fn handle_timeout(
        &mut self,
        now: BootInstant,
        notes: &mut VecDeque<CommandOutcome>,
    ) {
        self.owed_releases.forget_until(now);
        match self.state {
            State::Backoff { until } if until <= now => self.state = State::DialWanted,
            State::Dialing { since } if since.after(self.config.connect_timeout) <= now => {
                return self.reset(GivenUp::NoAnswer, now, notes);
            }
            _ => {}
        }
        if self.gives_up_at().is_some_and(|at| at <= now) {
            return self.reset(GivenUp::NoAnswer, now, notes);
        }
        self.expire(now, notes);
        self.expire_withheld(now, notes);
        self.queue_due_releases(now);
    }

    /// Returns the earliest instant at which [`Link::handle_timeout`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<BootInstant> {
        let idle = self.pipeline.is_empty() && self.owed_releases.len() == 0;
        if idle && matches!(self.state, State::Open | State::Idle) {
            return None;
        }
        let connection = match self.state {
            State::Backoff { until } => Some(until),
            State::Dialing { since } => Some(since.after(self.config.connect_timeout)),
            _ => None,
        };
        let unanswered = self.waits_since().map(|since| since.after(self.config.node_timeout));
        let stale = if self.written < self.pipeline.len() {
            self.pipeline.range(self.written..).filter_map(|it| it.write_before).min()
        } else {
            None
        };
        // Without room, a release that falls due waits for an answer that makes room.
        let owed_releases = self.owed_releases.next_timeout().filter(|_| self.has_room());
        let link = earlier(connection, self.gives_up_at());
        let commands = earlier(unanswered, stale);
        earlier(earlier(link, commands), owed_releases)
    }

    /// Returns since when the oldest command waits that is not overdue, or the oldest withheld vote.
    fn waits_since(&self) -> Option<BootInstant> {
        // The pipeline is in the order of `since`, except that the connection's first introduction
        // stands at the front. Overdue commands precede all others, and are skipped by binary
        // search: a node that hangs leaves hundreds of them.
        let since = |it: &Pending| it.since;
        let live = match self.pipeline.front() {
            Some(front) if front.overdue || self.state == State::Introducing => {
                let is_past = |it: &Pending| it.overdue || it.id == front.id;
                let next = self.pipeline.get(self.pipeline.partition_point(is_past));
                earlier((!front.overdue).then_some(front.since), next.map(since))
            }
            front => front.map(since),
        };
        earlier(live, self.introductions.oldest_withheld())
    }

    /// Returns true if the node owes an answer beyond the node timeout. A command that was written
    /// late, because other commands were ahead, has the node timeout from when it was written.
    pub(crate) fn is_stuck(&self, now: BootInstant) -> bool {
        let is_late = |at: BootInstant| at.after(self.config.node_timeout) <= now;
        let oldest = self.pipeline.front();
        oldest.is_some_and(|oldest| oldest.overdue && oldest.written_at.is_none_or(is_late))
    }

    /// Returns the instant at which the oldest command has been written for too long without an
    /// answer.
    pub(super) fn gives_up_at(&self) -> Option<BootInstant> {
        Some(self.pipeline.front()?.written_at?.after(self.config.patience()))
    }

    /// Reports commands that have waited for the node timeout, and commands that have become too
    /// late to write, to their senders. Unwritten commands leave the pipeline, except releases and
    /// introductions. Written commands stay, because their replies come before those to later
    /// commands.
    pub(super) fn expire(&mut self, now: BootInstant, notes: &mut VecDeque<CommandOutcome>) {
        let (node, mut place) = (self.node, 0);
        while let Some(pending) = self.pipeline.get_mut(place) {
            let unwritten = place >= self.written;
            let due = pending.since.after(self.config.node_timeout) <= now
                || unwritten && pending.is_stale(now);
            if !due || pending.overdue {
                place += 1;
                continue;
            }
            let id = pending.id;
            if unwritten && !matches!(pending.op, Op::Release { .. } | Op::Introduce) {
                let crowded = self.is_open() && self.writable && !self.is_stuck(now);
                let why = if crowded { NoAnswer::Crowded } else { NoAnswer::NotSent };
                self.drop_unwritten(place, why, notes);
            } else {
                pending.overdue = true;
                place += 1;
                if id.lock.is_some() {
                    notes.push_back(CommandOutcome { node, id, outcome: Err(NoAnswer::Unknown) });
                }
            }
        }
    }

    pub(super) fn drop_unwritten(
        &mut self,
        place: usize,
        why: NoAnswer,
        notes: &mut VecDeque<CommandOutcome>,
    ) {
        assert!(place >= self.written, "what was written stays until it is answered");
        let dropped = self.pipeline.remove(place).expect("the caller found it there");
        notes.push_back(CommandOutcome { node: self.node, id: dropped.id, outcome: Err(why) });
    }
}

/// Returns the earlier of two instants, if there is any.
fn earlier(one: Option<BootInstant>, other: Option<BootInstant>) -> Option<BootInstant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}
