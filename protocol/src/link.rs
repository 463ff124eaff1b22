//! One client's connection to one node, shared by all of the client's locks.

mod canonical;
mod connection;
mod introductions;
mod owed_releases;
mod pending;
mod round_trip;
mod terms;
mod timeouts;
mod window;

use core::time::Duration;
use std::collections::VecDeque;

use self::connection::REDIAL_FIRST;
use self::introductions::Introductions;
use self::owed_releases::OwedReleases;
use self::pending::Pending;
use self::round_trip::RoundTrip;
pub(crate) use self::terms::CommandOutcome;
pub use self::terms::{Command, GivenUp, LinkConfig};
pub use self::window::Window;
use super::command::{CommandId, LockId, NoAnswer, Op, Reply, ResourceId, Send};
use super::quorum::NodeIndex;
use super::restart::Eligibility;
use super::time::BootInstant;
use super::token::Token;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not needed so far.
    Idle,
    /// Dialled as soon as the driver polls.
    DialWanted,
    Dialing {
        since: BootInstant,
    },
    /// Connected; only the introduction may be written.
    Introducing,
    Open,
    /// The connection is gone; the next dial is at `until`.
    Backoff {
        until: BootInstant,
    },
}

/// The FIFO of unanswered commands of one connection, and the state that outlives connections: the
/// node's eligibility and the releases owed to it.
///
/// Replies are matched to commands by order alone, so a connection whose order is in doubt is reset
/// and never used again (counterexample N5). The first `written` entries of the pipeline have been
/// handed out by [`Link::poll_command`] and count as written for good.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    node: NodeIndex,
    config: LinkConfig,
    state: State,
    epoch: u32,
    writable: bool,
    reset_wanted: Option<GivenUp>,
    pipeline: VecDeque<Pending>,
    written: usize,
    redial_after: Duration,
    /// Instant from which the present connection has lasted; [`BootInstant::NEVER`] without one.
    lasts_from: BootInstant,
    /// Spreads the dials of clients that lost a node at the same time; zero before the first
    /// attempt.
    jitter: u64,
    next_serial: u32,
    /// No connection has failed or been lost since the client, or the runtime of its transport, began.
    is_first: bool,
    owed_releases: OwedReleases,
    eligibility: Eligibility,
    /// Last refusal of the node to introduce itself on this connection, and the pause until it is asked
    /// again; `None` if it has introduced itself since.
    refused: Option<(BootInstant, Duration)>,
    introductions: Introductions,
    round_trip: RoundTrip,
}

impl Link {
    pub(crate) fn new(node: NodeIndex, config: LinkConfig) -> Self {
        Self {
            node,
            config,
            state: State::Idle,
            epoch: 0,
            writable: false,
            reset_wanted: None,
            pipeline: VecDeque::with_capacity(8),
            written: 0,
            redial_after: REDIAL_FIRST,
            lasts_from: BootInstant::NEVER,
            jitter: 0,
            next_serial: 0,
            is_first: true,
            owed_releases: OwedReleases::default(),
            eligibility: Eligibility::new(config.restart_guard, config.fleet_max_ttl, config.drift),
            refused: None,
            introductions: Introductions::default(),
            round_trip: RoundTrip::default(),
        }
    }

    /// Copies the state of `idle`, reusing this value's allocations.
    pub(crate) fn reset_to(&mut self, idle: &Self) {
        // Every field by name: the compiler asks for a new one.
        let &Self {
            node,
            config,
            state,
            epoch,
            writable,
            reset_wanted,
            pipeline: _,
            written,
            redial_after,
            lasts_from,
            jitter,
            next_serial,
            is_first,
            owed_releases: _,
            ref eligibility,
            refused,
            ref introductions,
            round_trip,
        } = idle;
        (self.node, self.config, self.state, self.epoch) = (node, config, state, epoch);
        (self.writable, self.reset_wanted, self.written) = (writable, reset_wanted, written);
        (self.redial_after, self.lasts_from) = (redial_after, lasts_from);
        (self.jitter, self.next_serial) = (jitter, next_serial);
        (self.is_first, self.refused, self.round_trip) = (is_first, refused, round_trip);
        self.eligibility.clone_from(eligibility);
        self.introductions.clone_from(introductions);
        self.pipeline.clear();
        self.owed_releases.clear();
    }

    /// Returns the longest TTL that any client of the node uses; it sets the length of the
    /// quarantine.
    pub(crate) fn fleet_max_ttl(&self) -> Duration {
        self.config.fleet_max_ttl
    }

    pub(crate) fn node_timeout(&self) -> Duration {
        self.config.node_timeout
    }

    /// Returns the longest of the recent round trips.
    pub(crate) fn round_trip(&self) -> Duration {
        self.round_trip.estimate()
    }

    pub(crate) fn owes(&self) -> usize {
        self.owed_releases.len()
    }

    /// Returns true if no command is waiting or unanswered and no release is owed.
    pub(crate) fn is_idle(&self) -> bool {
        self.pipeline.is_empty() && self.owed_releases.len() == 0
    }

    /// Calls `mark` with the resource of every command that is waiting or unanswered, and of every
    /// release owed.
    pub(crate) fn for_each_resource(&self, mark: &mut impl FnMut(ResourceId)) {
        self.pipeline.iter().filter_map(|pending| pending.op.resource()).for_each(&mut *mark);
        self.owed_releases.iter().for_each(|owed| mark(owed.resource));
    }

    /// Stores the randomness of an attempt.
    pub(crate) fn set_jitter(&mut self, jitter: u64) {
        self.jitter = jitter;
    }

    /// Queues or rejects a command of a lock; returns true if the link's state changed.
    pub(crate) fn send(
        &mut self,
        send: Send,
        now: BootInstant,
        notes: &mut VecDeque<CommandOutcome>,
    ) -> bool {
        self.connect();
        let node = self.node;
        let Send { id, op, key_ttl, .. } = send;
        // A SET whose vote is withheld has been answered.
        let after = send.after.filter(|set| !self.introductions.withholds(*set));
        match op {
            Op::Extend { .. }
            | Op::Introduce
            | Op::Look { .. }
            | Op::Read { .. }
            | Op::Set { .. }
            | Op::TimeLeft { .. } => {
                if let Some(why) = self.refuses_new_work(op, now) {
                    notes.push_back(CommandOutcome { node, id, outcome: Err(why) });
                    return false;
                }
                self.ask_again(now);
                self.pipeline.push_back(Pending::of_lock(send, now));
                match op {
                    Op::Look { .. } => self.identify_behind(now),
                    Op::Set { .. } => self.confirm_behind(now),
                    _ => {}
                }
            }
            Op::Release { resource, token } => match self.place_of(after) {
                // Neither the SET nor the release was written: dropping both has the same effect.
                Some(place) if place >= self.written => {
                    self.drop_unwritten(place, NoAnswer::NotSent, notes);
                    notes.push_back(CommandOutcome { node, id, outcome: Err(NoAnswer::NotSent) });
                }
                place
                    if !self.has_room()
                        || place.is_none() && (after.is_some() || self.is_down()) =>
                {
                    notes.push_back(CommandOutcome { node, id, outcome: Err(NoAnswer::Unknown) });
                    self.owed_releases.owe(resource, token, now.after(key_ttl));
                    self.queue_due_releases(now);
                }
                _ => self.pipeline.push_back(Pending::of_lock(send, now)),
            },
        }
        true
    }

    /// Handles the next reply on the connection `epoch`. Returns the key that the answered command
    /// has changed, and the lock that sent the command.
    pub(crate) fn handle_reply(
        &mut self,
        epoch: u32,
        reply: Reply,
        now: BootInstant,
        notes: &mut VecDeque<CommandOutcome>,
    ) -> Option<(ResourceId, Option<LockId>)> {
        if epoch != self.epoch || !self.has_transport() {
            return None;
        }
        let answered = match self.pipeline.front() {
            Some(front) if self.written > 0 && front.is_answered_by(reply) => *front,
            _ => {
                self.reset(GivenUp::Mismatch, now, notes);
                return None;
            }
        };
        self.pipeline.pop_front();
        self.written -= 1;
        let written_at = answered.written_at.expect("only what was written is answered");
        self.round_trip.measured(written_at, now);
        let serves = match reply {
            Reply::NotServing => false,
            Reply::Introduction(introduction) => introduction.is_master,
            _ => true,
        };
        if answered.op != Op::Introduce && serves {
            // An introduction alone does not show that the node serves again.
            self.redial_after = REDIAL_FIRST;
        }
        match answered.op {
            Op::Introduce => self.introduced(reply, now, notes),
            Op::Release { resource, token } => {
                self.released(&answered, resource, token, reply, now)
            }
            Op::Extend { .. }
            | Op::Look { .. }
            | Op::Read { .. }
            | Op::Set { .. }
            | Op::TimeLeft { .. } => {}
        }
        if answered.op != Op::Introduce && answered.id.lock.is_some() && answered.is_news() {
            let is_vote = reply == Reply::Ok && !answered.overdue;
            if is_vote && (answered.confirmed_behind || self.introductions.is_suspended()) {
                self.introductions.withhold(answered.id, answered.since);
            } else {
                notes.push_back(CommandOutcome {
                    node: self.node,
                    id: answered.id,
                    outcome: Ok(reply),
                });
            }
        }
        if serves {
            self.queue_due_releases(now);
        } else {
            // The address may lead to another server by now.
            self.eligibility.stopped_serving();
            self.reset(GivenUp::NotServing, now, notes);
        }
        let changed = answered.op.resource().filter(|_| answered.op.has_changed_key(reply));
        changed.map(|resource| (resource, answered.id.lock))
    }

    /// Handles the reply to a release: an error keeps the release owed; any other reply advances a
    /// release that was already owed.
    fn released(
        &mut self,
        answered: &Pending,
        resource: ResourceId,
        token: Token,
        reply: Reply,
        now: BootInstant,
    ) {
        let is_owed = answered.id.lock.is_none();
        if matches!(reply, Reply::Error | Reply::NotServing) {
            // A later release may succeed: the node is loading its data, or its disk is full for
            // now.
            let again_at = now.after(self.config.patience());
            let until = if is_owed { answered.since } else { now }.after(answered.key_ttl);
            self.owed_releases.refused(resource, token, until, again_at);
        } else if is_owed {
            self.owed_releases.answered(token, now.after(self.config.node_timeout));
        }
    }

    /// Returns true if [`Link::poll_command`] may return or drop a command.
    pub(crate) fn has_command(&self) -> bool {
        let has_unwritten = self.written < self.pipeline.len();
        has_unwritten || self.reset_wanted.is_some() || self.state == State::DialWanted
    }

    /// Returns the next command for the transport. Drops commands that are too late to be written.
    pub(crate) fn poll_command(
        &mut self,
        now: BootInstant,
        notes: &mut VecDeque<CommandOutcome>,
    ) -> Option<Command> {
        let node = self.node;
        if let Some(why) = self.reset_wanted.take() {
            return Some(Command::Reset { node, epoch: self.epoch, why });
        }
        if self.state == State::DialWanted {
            self.epoch += 1;
            self.state = State::Dialing { since: now };
            return Some(Command::Dial { node, epoch: self.epoch });
        }
        let may_write = match self.state {
            State::Introducing => self.written == 0,
            State::Open => true,
            _ => false,
        };
        if !may_write || !self.writable || self.written >= self.config.window.in_flight() {
            return None;
        }
        while self.pipeline.get(self.written).is_some_and(|next| next.is_stale(now)) {
            self.drop_unwritten(self.written, NoAnswer::NotSent, notes);
        }
        let next = self.pipeline.get_mut(self.written)?;
        next.written_at = Some(now);
        self.written += 1;
        Some(Command::Write { node, epoch: self.epoch, id: next.id, op: next.op })
    }

    /// Returns why the link does not take the SET, extension or query `op`; `None` if it does. A node
    /// that owes an answer beyond the node timeout gets no more of them until it answers or is
    /// reset: they would only queue up behind the command on which the node is stuck.
    fn refuses_new_work(&self, op: Op, now: BootInstant) -> Option<NoAnswer> {
        if self.is_down() || self.is_stuck(now) {
            return Some(NoAnswer::NotSent);
        }
        let window = self.config.window;
        let most = if matches!(op, Op::Read { .. }) { window.reads() } else { window.new_work() };
        let full = self.pipeline.len() >= most;
        let why = if self.is_open() { NoAnswer::Crowded } else { NoAnswer::NotSent };
        full.then_some(why)
    }

    /// Returns true if there is room for another release.
    fn has_room(&self) -> bool {
        self.pipeline.len() < self.config.window.commands()
    }

    fn place_of(&self, id: Option<CommandId>) -> Option<usize> {
        let id = id?;
        self.pipeline.iter().rposition(|pending| pending.id == id)
    }

    fn own_id(&mut self) -> CommandId {
        self.next_serial += 1;
        CommandId { lock: None, serial: self.next_serial }
    }

    /// Queues the owed releases that are due.
    fn queue_due_releases(&mut self, now: BootInstant) {
        if self.state != State::Open {
            return;
        }
        while self.has_room() {
            let Some(owed) = self.owed_releases.take_due(now) else {
                break;
            };
            let id = self.own_id();
            let op = Op::Release { resource: owed.resource, token: owed.token };
            let key_ttl = owed.until.since(now);
            self.pipeline.push_back(Pending::of_link(id, op, key_ttl, now));
        }
    }
}

#[cfg(test)]
mod tests;
