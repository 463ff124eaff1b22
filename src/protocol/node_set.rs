//! All the links of a client and all its locks, and the routes between them.

mod connecting;
mod route;
mod told;

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};

pub use self::told::{Command, Event};
use super::command::{LockId, Reply, ResourceId};
use super::lines::Lines;
use super::link::{Link, LinkConfig, Note};
use super::lock::{
    AttemptError, ExtendError, Fresh, Grant, Happened, Limit, Lock, LockConfig, LostReason, Phase,
};
use super::quorum::{MAX_NODES, NodeCount, NodeIndex, NodeMask};
use super::restart::Standing;
use super::time::BootInstant;
use super::timers::Timers;
use super::token::Token;

/// The protocol of one client: a value that is told what happened and says what to do.
///
/// Methods fall into four groups.
///
/// - **Getters** answer a question: [`check`](Self::check), [`t1`](Self::t1), …
/// - **`handle_*`** tell what the transports and the clock did.
/// - **Mutators** tell what the caller wants: [`open`](Self::open), [`begin`](Self::begin),
///   [`deliver`](Self::deliver), [`release`](Self::release).
/// - **`poll_*`** say what follows. After any call of the two groups before, drain
///   [`poll_command`](Self::poll_command) and [`poll_event`](Self::poll_event) until both return
///   `None`, then arm one timer for [`poll_timeout`](Self::poll_timeout).
///
/// Every `now` is a reading of the *same* clock, taken just before the call: for
/// [`handle_reply`](Self::handle_reply) after the reply was read from the transport, for
/// [`begin`](Self::begin) before anything is written. Readings never go back. A late call is safe;
/// an early `now` is not.
#[derive(Clone, Debug)]
pub struct NodeSet {
    nodes: NodeCount,
    links: Vec<Link>,
    slots: Vec<Slot>,
    /// Slots without a lock, the first one on top.
    free: BinaryHeap<Reverse<u32>>,
    timers: Timers,
    lines: Lines,
    /// Uses whose first attempt waits for connections, and perhaps some that have gone on.
    connecting: Vec<LockId>,
    notes: VecDeque<Note>,
    events: VecDeque<Event>,
    clock: BootInstant,
    /// Links that may have a command, and whose timeout is not in `timeouts`.
    touched: NodeMask,
    timeouts: [Option<BootInstant>; MAX_NODES],
}

#[derive(Clone, Debug)]
struct Slot {
    generation: u32,
    lock: Option<Lock>,
    /// It stands in the line of its resource.
    in_line: bool,
}

impl NodeSet {
    /// A client of as many nodes as there are configurations.
    ///
    /// # Panics
    ///
    /// If there are none, or more than [`MAX_NODES`](super::MAX_NODES).
    #[must_use]
    pub fn new(links: &[LinkConfig]) -> Self {
        let nodes = NodeCount::new(links.len()).expect("one to nine nodes");
        Self {
            nodes,
            links: nodes.iter().map(|node| Link::new(node, links[node.get()])).collect(),
            slots: Vec::with_capacity(4),
            free: BinaryHeap::with_capacity(4),
            timers: Timers::default(),
            lines: Lines::default(),
            connecting: Vec::new(),
            notes: VecDeque::with_capacity(16),
            events: VecDeque::with_capacity(16),
            clock: BootInstant::ZERO,
            touched: NodeMask::EMPTY,
            timeouts: [None; MAX_NODES],
        }
    }

    /// Becomes what `idle` is, keeping what is allocated.
    ///
    /// # Panics
    ///
    /// If `idle` has another number of nodes, a use of the lock, or anything under way.
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
        self.connecting.clear();
        self.notes.clear();
        self.events.clear();
        self.clock = idle.clock;
        self.touched = idle.touched;
        self.timeouts = idle.timeouts;
    }

    /// How many nodes are configured.
    #[must_use]
    pub fn nodes(&self) -> NodeCount {
        self.nodes
    }

    /// Whether the lease of `lock` has more than `need` left at `now`.
    ///
    /// # Errors
    ///
    /// Says why not; a use of the lock that has no lease counts as past its deadline.
    pub fn check(&self, lock: LockId, need: Duration, now: BootInstant) -> Result<(), LostReason> {
        let left =
            self.lock(lock).map_or(Err(LostReason::DeadlinePassed), |it| it.remaining(now))?;
        if left > need { Ok(()) } else { Err(LostReason::DeadlinePassed) }
    }

    /// When the lease of `lock` is over; `None` while it has none.
    #[must_use]
    pub fn deadline(&self, lock: LockId) -> Option<BootInstant> {
        let lock = self.lock(lock)?;
        matches!(lock.phase(), Phase::Held { .. }).then(|| lock.deadline())
    }

    /// The longest of the recent round trips to `node`; zero while there was none.
    #[must_use]
    pub fn round_trip(&self, node: NodeIndex) -> Duration {
        self.links[node.get()].round_trip()
    }

    /// T1 of the current attempt of `lock`.
    #[must_use]
    pub fn t1(&self, lock: LockId) -> Option<BootInstant> {
        self.lock(lock).map(Lock::t1)
    }

    /// T1 and TTL of the last extension by which the lease of `lock` was kept alive
    /// ([`LockConfig::keep_alive`]), whatever became of it; `None` while there was none.
    #[must_use]
    pub fn renewed(&self, lock: LockId) -> Option<(BootInstant, Duration)> {
        self.lock(lock).and_then(Lock::renewed)
    }

    /// The token of the current attempt of `lock`.
    #[must_use]
    pub fn token(&self, lock: LockId) -> Option<Token> {
        self.lock(lock).map(Lock::token)
    }

    /// Since when the votes of `node` count; `None` while they do not.
    #[must_use]
    pub fn eligible_from(&self, node: NodeIndex) -> Option<BootInstant> {
        self.links[node.get()].eligible_from()
    }

    /// Whether the votes of `node` count for an attempt that begins at `now`.
    #[must_use]
    pub fn standing(&self, node: NodeIndex, now: BootInstant) -> Standing {
        match self.eligible_from(node) {
            None => Standing::NotKnown,
            Some(from) if from > now => Standing::Quarantined(from.since(now)),
            Some(_) => Standing::Counts,
        }
    }

    /// Whether so many nodes are connected and count at `now` that an attempt can succeed.
    #[must_use]
    pub fn has_quorum(&self, now: BootInstant) -> bool {
        let counts =
            |&node: &NodeIndex| self.is_open(node) && self.standing(node, now) == Standing::Counts;
        self.nodes.iter().filter(counts).count() >= self.nodes.quorum()
    }

    /// Whether commands to `node` can be written.
    #[must_use]
    pub fn is_open(&self, node: NodeIndex) -> bool {
        self.links[node.get()].is_open()
    }

    /// How many releases `node` is owed from connections that were lost.
    #[must_use]
    pub fn owed(&self, node: NodeIndex) -> usize {
        self.links[node.get()].owes()
    }

    /// Names every resource that a use of the lock speaks of, or a command or debt of a link; some
    /// more than once.
    pub fn for_each_resource(&self, mut mark: impl FnMut(ResourceId)) {
        let locks = self.slots.iter().filter_map(|slot| slot.lock.as_ref());
        locks.for_each(|lock| mark(lock.resource()));
        self.links.iter().for_each(|link| link.for_each_resource(&mut mark));
    }

    /// Whether [`NodeSet::for_each_resource`] names `resource`.
    #[must_use]
    pub fn uses(&self, resource: ResourceId) -> bool {
        let mut used = false;
        self.for_each_resource(|it| used |= it == resource);
        used
    }

    /// Whether no answer is awaited from `node`, and it is owed no release.
    #[must_use]
    pub fn is_settled(&self, node: NodeIndex) -> bool {
        self.links[node.get()].is_idle()
    }

    /// Whether no answer is awaited from any node and none is owed a release.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.links.iter().all(Link::is_idle)
    }

    /// The connection to `node` dialled as `epoch` is open.
    pub fn handle_connected(&mut self, node: NodeIndex, epoch: u32, now: BootInstant) {
        self.advance(now);
        self.touch(node).handle_connected(epoch, now);
    }

    /// The transport takes bytes again (`true`), or takes none for now.
    pub fn handle_writable(
        &mut self,
        node: NodeIndex,
        epoch: u32,
        writable: bool,
        now: BootInstant,
    ) {
        self.advance(now);
        self.touch(node).handle_writable(epoch, writable);
    }

    /// The node says on the connection `epoch` that keys are gone: all, or those of one database.
    pub fn handle_forgot(&mut self, node: NodeIndex, epoch: u32, now: BootInstant) {
        self.advance(now);
        self.touch(node).handle_forgot(epoch, now);
    }

    /// The connection could not be opened, was closed, or was reset by the other side.
    pub fn handle_closed(&mut self, node: NodeIndex, epoch: u32, now: BootInstant) {
        self.advance(now);
        self.touched.insert(node);
        self.links[node.get()].handle_closed(epoch, now, &mut self.notes);
        self.look_for_connections();
        self.route(now);
    }

    /// The next reply on the connection. `now` is read after the reply was.
    pub fn handle_reply(&mut self, node: NodeIndex, epoch: u32, reply: Reply, now: BootInstant) {
        self.advance(now);
        self.touched.insert(node);
        self.links[node.get()].handle_reply(epoch, reply, now, &mut self.notes);
        self.look_for_connections();
        self.route(now);
    }

    /// The instant that [`NodeSet::poll_timeout`] named has come. Harmless at any other time.
    pub fn handle_timeout(&mut self, now: BootInstant) {
        self.nodes.iter().for_each(|node| self.handle_node_timeout(node, now));
        self.handle_lock_timeout(now);
    }

    /// The instant that [`NodeSet::node_timeout`] named has come. A driver that can look for answers
    /// of the node that have arrived does so first. Harmless at any other time.
    pub fn handle_node_timeout(&mut self, node: NodeIndex, now: BootInstant) {
        self.advance(now);
        if self.node_timeout(node).is_some_and(|at| at <= now) {
            self.touched.insert(node);
            self.links[node.get()].handle_timeout(now, &mut self.notes);
            self.look_for_connections();
            self.route(now);
        }
    }

    /// The instant that [`NodeSet::lock_timeout`] named has come. Harmless at any other time.
    pub fn handle_lock_timeout(&mut self, now: BootInstant) {
        self.advance(now);
        while let Some(slot) = self.timers.take_due(now) {
            let lock = self.slots[slot as usize].lock.as_mut();
            let lock = lock.expect("a slot without a lock waits for nothing");
            let (id, before, token) = (lock.id(), lock.phase(), lock.token());
            let resource = lock.resource();
            let happened = lock.handle_timeout(now);
            match (before, lock.phase()) {
                (Phase::Waiting { .. }, Phase::Due) => self.events.push_back(Event::AttemptDue(id)),
                (Phase::Queued, Phase::Ended) => {
                    let head = self.lines.head(resource).and_then(|head| self.lock(head));
                    let reason = head.expect("somebody is ahead of who waits").why_behind();
                    let taken_for = self.held_here_for(id);
                    self.events.push_back(Event::GaveUp { lock: id, reason, taken_for });
                }
                _ => {}
            }
            if let Some(happened) = happened {
                self.tell(id, token, happened);
            }
            self.carry(id, now);
            self.route(now);
        }
    }

    /// Opens every connection that nobody has needed so far.
    pub fn connect(&mut self, now: BootInstant) {
        self.advance(now);
        self.nodes.iter().for_each(|node| self.touch(node).connect());
    }

    /// A new use of the lock on `resource`. Its first attempt is due at once, or as soon as a new
    /// client has its connections, unless other uses of this client are ahead and the limit is an
    /// instant: then it waits in line for its turn. A limit of attempts asks the nodes, whoever is
    /// ahead. If the wait in line ends, the reason is that of the use at its head.
    ///
    /// # Panics
    ///
    /// If the TTL is zero or the number of nodes is not this client's.
    pub fn open(&mut self, resource: ResourceId, config: LockConfig, now: BootInstant) -> LockId {
        self.advance(now);
        assert_eq!(config.nodes, self.nodes, "a quorum is counted over the configured nodes");
        let slot = self.free.pop().map_or(self.slots.len(), |Reverse(slot)| slot as usize);
        if slot == self.slots.len() {
            self.slots.push(Slot { generation: 0, lock: None, in_line: false });
        }
        let entry = &mut self.slots[slot];
        entry.generation += 1;
        let id = LockId { slot: slot as u32, generation: entry.generation };
        let lock = entry.lock.insert(Lock::new(id, resource, config));
        let is_first = self.lines.is_empty(resource);
        if is_first || matches!(config.limit, Limit::Until(_)) {
            entry.in_line = true;
            self.lines.join(resource, id);
        }
        if is_first || !entry.in_line {
            self.first_attempt_is_due(id, now);
        } else {
            lock.queue();
            self.timers.arm(id.slot, lock.poll_timeout());
        }
        id
    }

    /// Begins the attempt that is due. `now` is T1. Nothing happens if none is due any more.
    pub fn begin(&mut self, lock: LockId, fresh: Fresh, now: BootInstant) {
        self.advance(now);
        let Some(machine) = self.lock_mut(lock).filter(|it| it.phase() == Phase::Due) else {
            return;
        };
        machine.begin(fresh, now);
        self.links.iter_mut().for_each(|link| link.stir(fresh.jitter));
        self.carry(lock, now);
        self.route(now);
    }

    /// Hands the lease of `lock` to the caller, who gets a deadline and not a duration.
    ///
    /// # Errors
    ///
    /// When nothing of the lease is left at `now`, or the caller has cancelled. Everything is
    /// released then, and a further attempt follows if the limit allows one.
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

    /// Lets the lease of `lock` end by itself: its keys live until they expire. Nothing more is said
    /// of this use of the lock. Nothing happens if there is no lease.
    pub fn leave(&mut self, lock: LockId, now: BootInstant) {
        self.advance(now);
        let machine = self.lock_mut(lock).filter(|it| matches!(it.phase(), Phase::Held { .. }));
        let Some(machine) = machine else {
            return;
        };
        let (token, extending) = (machine.token(), machine.is_extending());
        machine.leave();
        if extending {
            self.tell(lock, token, Happened::Extended(Err(ExtendError::Cancelled)));
        }
        self.carry(lock, now);
        self.route(now);
    }

    /// Begins to extend the lease of `lock` to `ttl` from `now`, which is read before anything is
    /// written. [`Event::Extended`] or [`Event::ExtensionFailed`] follows.
    ///
    /// # Errors
    ///
    /// When nothing was begun, and why. No event follows then.
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

    /// Releases the lease of `lock`, or cancels the attempts.
    pub fn release(&mut self, lock: LockId, now: BootInstant) {
        self.advance(now);
        let Some(machine) = self.lock_mut(lock) else {
            return;
        };
        let (before, token, ballot) = (machine.phase(), machine.token(), machine.ballot());
        let extending = machine.is_extending();
        machine.release();
        if extending {
            self.tell(lock, token, Happened::Extended(Err(ExtendError::Cancelled)));
        }
        match before {
            Phase::Trying | Phase::Decided => {
                let reason = AttemptError::Cancelled;
                self.events.push_back(Event::AttemptFailed { lock, token, reason, ballot });
            }
            Phase::Queued | Phase::Due | Phase::Waiting { .. } | Phase::AskingTimeLeft => {
                let reason = AttemptError::Cancelled;
                self.events.push_back(Event::GaveUp { lock, reason, taken_for: None });
            }
            _ => {}
        }
        self.carry(lock, now);
        self.route(now);
    }

    /// Whether nothing is left to be polled or routed.
    #[cfg(any(test, feature = "simulation"))]
    pub(super) fn is_drained(&self) -> bool {
        self.touched.is_empty() && self.notes.is_empty() && self.events.is_empty()
    }

    #[cfg(any(test, feature = "simulation"))]
    pub(super) fn link(&self, node: NodeIndex) -> &Link {
        &self.links[node.get()]
    }

    #[cfg(any(test, feature = "simulation"))]
    pub(super) fn locks(&self) -> impl Iterator<Item = Option<&Lock>> {
        self.slots.iter().map(|slot| slot.lock.as_ref())
    }

    #[cfg(any(test, feature = "simulation"))]
    pub(super) fn place_in_line(&self, lock: &Lock) -> Option<usize> {
        self.lines.place_of(lock.resource(), lock.id())
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
mod memory_tests;
#[cfg(test)]
mod queue_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
