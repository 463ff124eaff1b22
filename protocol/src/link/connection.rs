//! The life of a link's connections: dialled, introduced, open, lost, dialled again.

use core::time::Duration;
use std::collections::VecDeque;

use super::pending::Pending;
use super::{CommandOutcome, GivenUp, Link, State};
use crate::command::{NoAnswer, Op};
use crate::retry::share;
use crate::time::BootInstant;

/// First wait between two dials, and the longest wait that doubling reaches.
pub(super) const REDIAL_FIRST: Duration = Duration::from_millis(10);
const REDIAL_LONGEST: Duration = Duration::from_secs(1);

impl Link {
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Returns true if `epoch` names the connection that is open.
    pub(crate) fn is_current(&self, epoch: u32) -> bool {
        epoch == self.epoch && self.is_open()
    }

    /// Returns true if the connection is open and there is room for another read.
    pub(crate) fn has_room_to_read(&self) -> bool {
        self.is_open() && self.pipeline.len() < self.config.window.reads()
    }

    /// Returns true if the link's first connection is still to be opened.
    pub(crate) fn opens_first(&self) -> bool {
        self.is_first && !self.is_open()
    }

    /// Returns the time that a connection may take to open.
    pub(crate) fn connect_timeout(&self) -> Duration {
        self.config.connect_timeout
    }

    /// Requests a connection if none was requested so far.
    pub(crate) fn connect(&mut self) {
        if self.state == State::Idle {
            self.state = State::DialWanted;
        }
    }

    /// Handles the beginning of the dial `epoch`, from which its time counts. Until now the transport
    /// could not run.
    pub(crate) fn handle_dialing(&mut self, epoch: u32, now: BootInstant) {
        if epoch == self.epoch && matches!(self.state, State::Dialing { .. }) {
            self.state = State::Dialing { since: now };
        }
    }

    /// Handles the opening of the connection dialled as `epoch`.
    pub(crate) fn handle_connected(&mut self, epoch: u32, now: BootInstant) {
        if epoch != self.epoch || !matches!(self.state, State::Dialing { .. }) {
            return;
        }
        self.state = State::Introducing;
        self.writable = true;
        self.lasts_from = now.after(REDIAL_LONGEST);
        let id = self.own_id();
        self.introductions.ask(now);
        self.pipeline.push_front(Pending::of_link(id, Op::Introduce, Duration::ZERO, now));
    }

    /// Records whether the transport of `epoch` takes bytes.
    pub(crate) fn handle_writable(&mut self, epoch: u32, writable: bool) {
        if epoch == self.epoch {
            self.writable = writable;
        }
    }

    /// Handles the loss of the transport of `epoch`: refused, closed or reset by the other side.
    pub(crate) fn handle_closed(
        &mut self,
        epoch: u32,
        now: BootInstant,
        notes: &mut VecDeque<CommandOutcome>,
    ) {
        if epoch == self.epoch && self.has_transport() {
            self.drop_connection(now, notes);
        }
    }

    /// Handles the end of the transport of `epoch` by the client's own side: the runtime that it ran
    /// on has ended. That says nothing about the node, so the next dial is as the first one: without
    /// a wait, and not before the link is used or a release is owed.
    pub(crate) fn handle_abandoned(
        &mut self,
        epoch: u32,
        now: BootInstant,
        notes: &mut VecDeque<CommandOutcome>,
    ) {
        if epoch != self.epoch || !self.has_transport() {
            return;
        }
        self.drop_connection(now, notes);
        let owes = self.owed_releases.len() > 0;
        self.state = if owes { State::DialWanted } else { State::Idle };
        (self.redial_after, self.is_first) = (REDIAL_FIRST, true);
    }

    pub(super) fn has_transport(&self) -> bool {
        matches!(self.state, State::Dialing { .. } | State::Introducing | State::Open)
    }

    pub(super) fn is_down(&self) -> bool {
        matches!(self.state, State::Backoff { .. })
    }

    /// Gives up the connection and orders the transport to reset it.
    pub(super) fn reset(
        &mut self,
        why: GivenUp,
        now: BootInstant,
        notes: &mut VecDeque<CommandOutcome>,
    ) {
        self.reset_wanted = Some(why);
        self.drop_connection(now, notes);
    }

    pub(super) fn drop_connection(
        &mut self,
        now: BootInstant,
        notes: &mut VecDeque<CommandOutcome>,
    ) {
        let written = core::mem::take(&mut self.written);
        for place in 0..self.pipeline.len() {
            let pending = self.pipeline[place];
            if let Op::Release { resource, token } = pending.op
                && pending.id.lock.is_some()
            {
                self.owed_releases.owe(resource, token, now.after(pending.key_ttl));
            }
            if pending.id.lock.is_some() && !pending.overdue {
                let sent = place < written || matches!(pending.op, Op::Release { .. });
                let why = if sent { NoAnswer::Unknown } else { NoAnswer::NotSent };
                notes.push_back(CommandOutcome {
                    node: self.node,
                    id: pending.id,
                    outcome: Err(why),
                });
            }
        }
        self.pipeline.clear();
        while let Some(id) = self.introductions.give_up(|_| true) {
            notes.push_back(CommandOutcome {
                node: self.node,
                id,
                outcome: Err(NoAnswer::Unconfirmed),
            });
        }
        self.introductions.connection_lost();
        self.owed_releases.connection_lost();
        (self.writable, self.refused, self.is_first) = (false, None, false);
        if now >= self.lasts_from {
            // A server or a proxy may close a connection that was idle: that says nothing about the
            // next one, and dials are rare anyway.
            self.redial_after = REDIAL_FIRST;
        }
        self.lasts_from = BootInstant::NEVER;
        // The factor is odd and differs for each epoch: one draw serves all dials until the next
        // attempt.
        let mixed = self.jitter.wrapping_mul(2 * u64::from(self.epoch) + 1);
        let sooner = share(self.redial_after / 4, mixed);
        self.state = State::Backoff { until: now.after(self.redial_after - sooner) };
        self.redial_after = (self.redial_after * 2).min(REDIAL_LONGEST);
    }
}
