//! Routing between the links and the locks.

use core::time::Duration;

use super::{Event, NodeSet};
use crate::command::{LockId, NoAnswer};
use crate::link::{Command, CommandOutcome, Link};
use crate::lock::{AttemptError, ExtendError, Lock, LockOutcome, Phase};
use crate::quorum::{MAX_NODES, NodeIndex};
use crate::time::BootInstant;
use crate::token::Token;

impl NodeSet {
    /// Returns the next command for a transport.
    pub fn poll_command(&mut self) -> Option<Command> {
        let now = self.clock;
        while let Some(node) = self.touched.iter().next() {
            let command = self.links[node.get()].poll_command(now, &mut self.notes);
            if command.is_none() {
                self.note_idle(node);
            }
            // A command dropped as too late may have consequences at this very link.
            self.route(now);
            if command.is_some() {
                return command;
            }
        }
        None
    }

    /// Notes that the link of `node` has no command for now, and when it next needs a timeout.
    pub(super) fn note_idle(&mut self, node: NodeIndex) {
        self.touched.remove(node);
        self.timeouts[node.get()] = self.timeout_of_link(node);
    }

    /// Returns the next event for the driver.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the earliest instant at which [`NodeSet::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<BootInstant> {
        let mut at = self.lock_timeout().unwrap_or(BootInstant::NEVER);
        for node in self.nodes.iter() {
            at = at.min(self.next_timeout(node));
        }
        (at != BootInstant::NEVER).then_some(at)
    }

    /// Returns the earliest instant at which [`NodeSet::handle_lock_timeout`] has something to do.
    #[must_use]
    #[inline]
    pub fn lock_timeout(&self) -> Option<BootInstant> {
        self.timers.next()
    }

    /// Returns the earliest instant at which [`NodeSet::handle_node_timeout`] has something to do.
    #[must_use]
    #[inline]
    pub fn node_timeout(&self, node: NodeIndex) -> Option<BootInstant> {
        Some(self.next_timeout(node)).filter(|&at| at != BootInstant::NEVER)
    }

    /// Returns the next timeout of the link of `node`; [`BootInstant::NEVER`] if it has none.
    #[inline]
    fn next_timeout(&self, node: NodeIndex) -> BootInstant {
        let is_known = !self.touched.contains(node);
        if is_known { self.timeouts[node.get()] } else { self.timeout_of_link(node) }
    }

    fn timeout_of_link(&self, node: NodeIndex) -> BootInstant {
        self.links[node.get()].poll_timeout().unwrap_or(BootInstant::NEVER)
    }

    /// Passes the links' reports to the locks concerned, until no report is left.
    #[inline]
    pub(super) fn route(&mut self, now: BootInstant) {
        // Most inputs lead to no report.
        if !self.notes.is_empty() {
            self.route_notes(now);
        }
    }

    /// Passes on the reports. A loop, not a recursion: a lost connection produces a thousand reports
    /// at once.
    fn route_notes(&mut self, now: BootInstant) {
        while let Some(CommandOutcome { node, id, outcome }) = self.notes.pop_front() {
            let Some(lock) = id.lock else { continue };
            let eligible_from = self.links[node.get()].eligible_from();
            // SETs that are refused at once are reported together. All these reports come before the
            // result: a release would be sent, or owed, to a node that was never asked.
            let is_last = self.notes.front().is_none_or(|next| next.id.lock != id.lock);
            let Some(machine) = self.lock_mut(lock) else {
                continue;
            };
            let token = machine.token();
            let finds_no_room = outcome == Err(NoAnswer::Crowded) && machine.is_read(node, id);
            let handled = machine.handle_outcome(id, node, outcome, eligible_from, now);
            let settled = if is_last { machine.settle(now) } else { None };
            let awaits_answers = machine.awaits_answers();
            if finds_no_room && machine.watches().is_some_and(|it| it.wait_for_room(node)) {
                self.room.wait(node, lock);
            }
            match handled.or(settled.map(LockOutcome::Settled)) {
                Some(happened) => self.tell(lock, token, happened),
                None if awaits_answers => continue,
                None => {}
            }
            self.carry(lock, now);
        }
    }

    pub(super) fn tell(&mut self, lock: LockId, token: Token, happened: LockOutcome) {
        let machine = self.lock(lock).expect("it has just said so");
        let deadline = machine.deadline();
        let event = match happened {
            LockOutcome::Settled(Ok(())) => {
                Event::Decided { lock, token, counted: machine.counted(), deadline }
            }
            LockOutcome::Settled(Err(reason)) => return self.fail(lock, token, reason),
            LockOutcome::GaveUp => return self.give_up(lock),
            LockOutcome::Extended(Ok(counted)) => {
                Event::Extended { lock, token, counted, deadline }
            }
            LockOutcome::Extended(Err(reason)) => Event::ExtensionFailed { lock, token, reason },
            LockOutcome::Lost { reason, extending } => {
                if extending {
                    let reason = ExtendError::Lost(reason);
                    self.events.push_back(Event::ExtensionFailed { lock, token, reason });
                }
                Event::Lost { lock, reason }
            }
        };
        self.events.push_back(event);
    }

    /// Handles the failure of the attempt of `lock`, and schedules the next one if there is to be
    /// one.
    pub(super) fn fail(&mut self, lock: LockId, token: Token, reason: AttemptError) {
        // The nodes may not show the owner that this client itself knows.
        let held_here = self.held_here_for(lock).is_some();
        let reason = if held_here { AttemptError::Taken } else { reason };
        let round_trip = self.quorum_round_trip();
        let quarantined = reason == AttemptError::Quarantined;
        let may_count_from = quarantined.then(|| self.by_node(Link::may_count_from));
        let (now, mute) = (self.clock, self.mute);
        let machine = self.lock_mut(lock).expect("it has just failed");
        let ballot = machine.ballot();
        machine.fail(reason, round_trip, may_count_from, mute, now);
        if !held_here {
            machine.ask_for_time_left();
        }
        let gave_up = machine.phase() == Phase::Ended;
        self.events.push_back(Event::AttemptFailed { lock, token, reason, ballot });
        if gave_up {
            self.give_up(lock);
        }
    }

    /// Reports that no further attempt of `lock` follows.
    fn give_up(&mut self, lock: LockId) {
        let machine = self.lock(lock).expect("it has just ended");
        let (reason, told) = (machine.why_behind(), machine.taken_for());
        let taken_for = told.or_else(|| self.held_here_for(lock));
        self.events.push_back(Event::GaveUp { lock, reason, taken_for });
    }

    /// Returns the rest of the lease that another use of this client holds on the resource of
    /// `lock`.
    pub(super) fn held_here_for(&self, lock: LockId) -> Option<Duration> {
        let head = self.lines.head(self.lock(lock)?.resource()).filter(|&head| head != lock)?;
        // After a stop of the process, a lease can be over before its own timeout is handled.
        let is_held = |head: &&Lock| head.has_lease() && head.deadline() > self.clock;
        let head = self.lock(head).filter(is_held)?;
        Some(head.deadline().since(self.clock))
    }

    /// Passes the commands of `lock` to the links, and forgets the lock once it has ended. The
    /// links' reports wait for [`NodeSet::route`].
    pub(super) fn carry(&mut self, lock: LockId, now: BootInstant) {
        while let Some(send) = self.lock_mut(lock).and_then(Lock::poll_send) {
            if self.links[send.node.get()].send(send, now, &mut self.notes) {
                self.touched.insert(send.node);
            }
        }
        self.note_attempt(lock, now);
        self.note_waiting(lock, now);
        self.note_watched(lock);
        let Some(machine) = self.lock_mut(lock) else {
            return;
        };
        let (resource, gone) = (machine.resource(), machine.unblocks_line());
        let why_behind = machine.why_behind();
        if let Some(outcome) = machine.poll_released() {
            self.events.push_back(Event::Released { lock, outcome });
        }
        let machine = self.lock(lock).expect("it was there");
        let (timeout, ended) = (machine.poll_timeout(now), machine.phase() == Phase::Ended);
        self.timers.arm(lock.slot, timeout);
        let slot = &mut self.slots[lock.slot as usize];
        if ended {
            slot.lock = None;
            // A slot whose generations are used up is retired: handles of uses that ended long ago
            // still exist, and none of them may name another use.
            if slot.generation < u32::MAX {
                self.free.push(core::cmp::Reverse(lock.slot));
            }
        }
        // Only after the releases are queued, so that the next use's SETs find the keys gone.
        if gone && core::mem::take(&mut slot.in_line) {
            let next = self.lines.leave(resource, lock);
            self.advance_line(next, why_behind, now);
        }
    }

    /// Makes the first attempt due for the first use in the queue that still has time. `why` is the
    /// reason that the previous head gave to the uses behind it.
    fn advance_line(&mut self, mut head: Option<LockId>, why: AttemptError, now: BootInstant) {
        while let Some(lock) = head {
            let resource = self.lock(lock).expect("who stands in line is there").resource();
            let crowd = self.crowd_of(resource);
            let machine = self.lock_mut(lock).expect("who stands in line is there");
            machine.set_crowd(crowd);
            machine.become_head(why, now);
            if machine.phase() == Phase::Due {
                self.timers.arm(lock.slot, None);
                if !self.lets_others_go_first(lock, now) {
                    self.first_attempt_is_due(lock, now);
                }
                return;
            }
            self.events.push_back(Event::GaveUp { lock, reason: why, taken_for: None });
            self.slots[lock.slot as usize].in_line = false;
            head = self.lines.leave(resource, lock);
            self.carry(lock, now);
        }
    }

    /// Returns the instant from which a majority of the nodes counts, if nothing changes; `None`:
    /// never.
    #[must_use]
    pub fn quorum_from(&self) -> Option<BootInstant> {
        self.nodes.quorum_from(self.by_node(Link::eligible_from))
    }

    /// Returns the instant that `of` returns for the link of each node.
    fn by_node(&self, of: impl Fn(&Link) -> Option<BootInstant>) -> [BootInstant; MAX_NODES] {
        let mut instants = [BootInstant::NEVER; MAX_NODES];
        for (node, link) in self.nodes.iter().zip(&self.links) {
            instants[node.get()] = of(link).unwrap_or(BootInstant::NEVER);
        }
        instants
    }

    pub(super) fn touch(&mut self, node: NodeIndex) -> &mut Link {
        self.touched.insert(node);
        &mut self.links[node.get()]
    }
}
