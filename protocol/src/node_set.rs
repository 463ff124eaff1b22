//! All links and all locks of one client, and the routing between them.

mod admission;
mod canonical;
mod connecting;
mod event;
mod getters;
mod handle;
mod room;
mod route;
mod waking;

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use self::admission::Admission;
pub use self::event::Event;
use self::room::Room;
use super::command::{LockId, ResourceId};
use super::crowd::Crowd;
use super::lines::Lines;
use super::link::{CommandOutcome, Link, LinkConfig};
use super::lock::{
    AttemptError, ExtendError, Fresh, Grant, Limit, Lock, LockConfig, LockOutcome, LostReason,
    Phase,
};
use super::quorum::{MAX_NODES, NodeCount, NodeMask};
use super::time::BootInstant;
use super::timers::Timers;

/// The protocol of one client: takes inputs, returns commands, events and timeouts.
///
/// Methods fall into four groups.
///
/// - **Getters** return state: [`check`](Self::check), [`token`](Self::token), …
/// - **`handle_*`** report what the transports and the clock did.
/// - **Mutators** state what the caller wants: [`open`](Self::open), [`begin`](Self::begin),
///   [`deliver`](Self::deliver), [`release`](Self::release).
/// - **`poll_*`** return what the driver must do next. After any call of a `handle_*` method or a
///   mutator, drain [`poll_command`](Self::poll_command) and [`poll_event`](Self::poll_event) until
///   both return `None`, then arm one timer for [`poll_timeout`](Self::poll_timeout).
///
/// Every `now` is a reading of the *same* clock, taken just before the call: for
/// [`handle_reply`](Self::handle_reply) after the reply was read from the transport, for
/// [`begin`](Self::begin) before anything is written. Readings never go back. A late call is safe;
/// a `now` that lies before the event is not.
#[derive(Clone, Debug)]
pub struct NodeSet {
    nodes: NodeCount,
    links: Vec<Link>,
    slots: Vec<Slot>,
    /// Slots without a lock, the lowest index on top.
    free: BinaryHeap<Reverse<u32>>,
    timers: Timers,
    lines: Lines,
    admission: Admission,
    /// Uses whose first attempt waits for connections; some of them may have moved on since.
    connecting: Vec<LockId>,
    /// Leases that are watched, by their resource.
    watched: BTreeSet<(ResourceId, LockId)>,
    /// Uses that wait for a change of their lock.
    listeners: BTreeSet<LockId>,
    /// Leases whose reads found no room.
    room: Room,
    /// Contention for each resource.
    crowds: Vec<Crowd>,
    /// Randomness of the last attempt.
    jitter: u64,
    /// Nodes that are connected, and nodes that do not push although they are.
    open: NodeMask,
    mute: NodeMask,
    notes: VecDeque<CommandOutcome>,
    events: VecDeque<Event>,
    clock: BootInstant,
    /// Links that may have a command; their timeout is not in `timeouts`.
    touched: NodeMask,
    /// Next timeout of every other link; [`BootInstant::NEVER`] if it has none.
    timeouts: [BootInstant; MAX_NODES],
}

#[derive(Clone, Debug, Default)]
struct Slot {
    generation: u32,
    lock: Option<Lock>,
    /// The lock is in the queue of its resource.
    in_line: bool,
    /// The attempt of the lock is due or under way.
    is_admitted: bool,
    /// The lock is a lease that is watched.
    is_watched: bool,
}

impl NodeSet {
    /// Creates a client with one node per configuration.
    ///
    /// # Panics
    ///
    /// If `links` is empty or has more than [`MAX_NODES`](super::MAX_NODES) entries.
    #[must_use]
    pub fn new(links: &[LinkConfig]) -> Self {
        let nodes = NodeCount::new(links.len()).expect("one to nine nodes");
        let attempts = links.iter().map(|link| link.window.attempts()).min().unwrap_or(1);
        Self {
            nodes,
            links: nodes.iter().map(|node| Link::new(node, links[node.get()])).collect(),
            slots: Vec::with_capacity(4),
            free: BinaryHeap::with_capacity(4),
            timers: Timers::default(),
            lines: Lines::default(),
            admission: Admission::new(attempts),
            connecting: Vec::new(),
            watched: BTreeSet::new(),
            listeners: BTreeSet::new(),
            room: Room::new(nodes),
            crowds: Vec::new(),
            jitter: 0,
            open: NodeMask::EMPTY,
            mute: NodeMask::EMPTY,
            notes: VecDeque::with_capacity(16),
            events: VecDeque::with_capacity(16),
            clock: BootInstant::ZERO,
            touched: NodeMask::EMPTY,
            timeouts: [BootInstant::NEVER; MAX_NODES],
        }
    }

    /// Copies the state of `idle`, reusing this value's allocations.
    ///
    /// # Panics
    ///
    /// If `idle` has another number of nodes, has or had a use of the lock, or has anything under
    /// way.
    pub fn reset_to(&mut self, idle: &Self) {
        assert_eq!(idle.nodes, self.nodes, "another number of nodes");
        assert!(idle.is_idle() && idle.slots.is_empty(), "it is in use");
        assert!(idle.notes.is_empty() && idle.events.is_empty(), "it has something to tell");
        for (link, idle) in self.links.iter_mut().zip(&idle.links) {
            link.reset_to(idle);
        }
        self.slots.clear();
        self.free.clear();
        self.timers.clear();
        self.lines.clear();
        self.admission.clear();
        self.connecting.clear();
        self.watched.clear();
        self.listeners.clear();
        self.room.clear();
        self.crowds.clear();
        (self.jitter, self.open, self.mute) = (idle.jitter, idle.open, idle.mute);
        self.notes.clear();
        self.events.clear();
        self.clock = idle.clock;
        self.touched = idle.touched;
        self.timeouts = idle.timeouts;
    }

    /// Opens every connection that was not needed so far.
    pub fn connect(&mut self, now: BootInstant) {
        self.advance(now);
        self.nodes.iter().for_each(|node| self.touch(node).connect());
    }

    /// Starts a new use of the lock on `resource`. Its first attempt is due at once, or, for a new
    /// client, as soon as the connections are open. If other uses of this client are ahead and the
    /// limit is [`Limit::Until`], the new use waits in the queue for its turn. A use that is
    /// limited by attempts asks the nodes without queueing. If a wait in the queue times out, the
    /// reported reason is that of the queue's head.
    ///
    /// # Panics
    ///
    /// If the TTL is zero or the number of nodes is not this client's.
    pub fn open(&mut self, resource: ResourceId, config: LockConfig, now: BootInstant) -> LockId {
        self.advance(now);
        assert_eq!(config.nodes, self.nodes, "a quorum is counted over the configured nodes");
        let slot = self.free.pop().map_or(self.slots.len(), |Reverse(slot)| slot as usize);
        if slot == self.slots.len() {
            self.slots.push(Slot::default());
        }
        let crowd = self.crowd_of(resource).remembered(now);
        let entry = &mut self.slots[slot];
        entry.generation += 1;
        let id = LockId { slot: slot as u32, generation: entry.generation };
        let lock = entry.lock.insert(Lock::new(id, resource, config));
        let is_first = self.lines.is_empty(resource);
        if is_first || matches!(config.limit, Limit::Until(_)) {
            entry.in_line = true;
            self.lines.join(resource, id);
        }
        lock.set_crowd(crowd);
        if !is_first && entry.in_line {
            lock.queue();
            self.timers.arm(id.slot, lock.poll_timeout(now));
        } else if !self.lets_others_go_first(id, now) {
            self.first_attempt_is_due(id, now);
        }
        id
    }

    /// Begins the attempt that is due. `now` is T1. Does nothing if no attempt is due any more.
    pub fn begin(&mut self, lock: LockId, fresh: Fresh, now: BootInstant) {
        self.advance(now);
        let Some(machine) = self.lock_mut(lock).filter(|it| it.phase() == Phase::Due) else {
            return;
        };
        machine.begin(fresh, now);
        self.jitter = fresh.jitter;
        self.links.iter_mut().for_each(|link| link.set_jitter(fresh.jitter));
        self.carry(lock, now);
        self.route(now);
    }

    /// Hands the lease of `lock` to the caller. The grant contains a deadline, not a duration.
    ///
    /// # Errors
    ///
    /// If no more than the minimum validity of the lease is left at `now`, or if the caller has
    /// cancelled. In the first case everything is released, and another attempt follows if the
    /// limit allows one.
    pub fn deliver(&mut self, lock: LockId, now: BootInstant) -> Result<Grant, AttemptError> {
        self.advance(now);
        let machine = self.lock_mut(lock).filter(|it| it.phase() == Phase::Decided);
        let Some(machine) = machine else {
            return Err(AttemptError::Cancelled);
        };
        let (token, delivered) = (machine.token(), machine.deliver(now));
        if let Err(reason) = delivered {
            self.fail(lock, token, reason);
        }
        self.carry(lock, now);
        self.route(now);
        delivered
    }

    /// Gives up the lease of `lock` without a release: its keys live until they expire. No further
    /// event about this use of the lock follows, except that an extension under way fails. Does
    /// nothing if there is no lease.
    pub fn leave(&mut self, lock: LockId, now: BootInstant) {
        self.advance(now);
        let machine = self.lock_mut(lock).filter(|it| matches!(it.phase(), Phase::Held { .. }));
        let Some(machine) = machine else {
            return;
        };
        let (token, extending) = (machine.token(), machine.is_extending());
        machine.leave();
        if extending {
            self.tell(lock, token, LockOutcome::Extended(Err(ExtendError::Cancelled)));
        }
        self.carry(lock, now);
        self.route(now);
    }

    /// Begins to extend the lease of `lock` to `ttl` from `now`, which is read before anything is
    /// written. [`Event::Extended`] or [`Event::ExtensionFailed`] follows.
    ///
    /// # Errors
    ///
    /// Returns the reason if no extension was begun. No event follows then.
    pub fn extend(
        &mut self,
        lock: LockId,
        ttl: Duration,
        now: BootInstant,
    ) -> Result<(), ExtendError> {
        self.advance(now);
        let longest = self.links.iter().map(Link::fleet_max_ttl).min().unwrap_or_default();
        let machine = self.lock_mut(lock);
        let machine = machine.ok_or(ExtendError::Lost(LostReason::DeadlinePassed))?;
        if ttl > longest {
            return Err(ExtendError::TooLong);
        }
        let token = machine.token();
        if let Some(happened) = machine.extend(ttl, now)? {
            self.tell(lock, token, happened);
        }
        self.carry(lock, now);
        self.route(now);
        Ok(())
    }

    /// Releases the lease of `lock`, or cancels its attempts.
    pub fn release(&mut self, lock: LockId, now: BootInstant) {
        self.advance(now);
        let Some(machine) = self.lock_mut(lock) else {
            return;
        };
        let (before, token, ballot) = (machine.phase(), machine.token(), machine.ballot());
        let extending = machine.is_extending();
        machine.release();
        if extending {
            self.tell(lock, token, LockOutcome::Extended(Err(ExtendError::Cancelled)));
        }
        if matches!(before, Phase::Held { .. }) {
            self.note_given_up(lock, now);
        }
        match before {
            Phase::Trying | Phase::Decided => {
                let reason = AttemptError::Cancelled;
                self.events.push_back(Event::AttemptFailed { lock, token, reason, ballot });
            }
            Phase::Queued
            | Phase::Due
            | Phase::Waiting { .. }
            | Phase::Listening
            | Phase::AskingTimeLeft => {
                let reason = AttemptError::Cancelled;
                self.events.push_back(Event::GaveUp { lock, reason, taken_for: None });
            }
            _ => {}
        }
        self.carry(lock, now);
        self.route(now);
    }

    fn advance(&mut self, now: BootInstant) {
        assert!(now >= self.clock, "the clock went back");
        self.clock = now;
    }

    fn lock(&self, id: LockId) -> Option<&Lock> {
        let slot = self.slots.get(id.slot as usize)?;
        slot.lock.as_ref().filter(|_| slot.generation == id.generation)
    }

    fn lock_mut(&mut self, id: LockId) -> Option<&mut Lock> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        slot.lock.as_mut().filter(|_| slot.generation == id.generation)
    }
}

#[cfg(test)]
mod connecting_tests;
#[cfg(test)]
mod crowd_tests;
#[cfg(test)]
mod doubt_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod queue_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
