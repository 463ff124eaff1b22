//! All the links of a client and all its locks, and the routes between them.

use core::time::Duration;
use std::collections::VecDeque;

use super::command::{CommandId, LockId, Op, Reply, ResourceId};
use super::link::{Link, LinkCommand, LinkConfig, Note};
use super::lock::{
    AttemptError, ExtendError, Fresh, Grant, Happened, Lock, LockConfig, LostReason, Phase,
    ReleaseOutcome,
};
use super::quorum::{MAX_NODES, NodeCount, NodeIndex, NodeMask};
use super::time::BootInstant;
use super::token::Token;

/// What the driver is to do to a node's transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Open a connection, and say how it went under this epoch.
    Dial {
        /// The node.
        node: NodeIndex,
        /// Names the connection.
        epoch: u32,
    },
    /// Drop the connection at once, unsent bytes and all. Nothing of it is to be reported any more.
    Reset {
        /// The node.
        node: NodeIndex,
        /// Names the connection.
        epoch: u32,
    },
    /// Write the command. It counts as written for good.
    Write {
        /// The node.
        node: NodeIndex,
        /// Names the connection.
        epoch: u32,
        /// Names the command.
        id: CommandId,
        /// What to write.
        op: Op,
    },
}

/// What the driver is to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The driver is to draw randomness and call [`NodeSet::begin`].
    AttemptDue(LockId),
    /// An attempt failed; whatever it may have set is being released.
    AttemptFailed {
        /// The use of the lock.
        lock: LockId,
        /// The attempt's token.
        token: Token,
        /// Why.
        reason: AttemptError,
    },
    /// An attempt was granted; the driver is to call [`NodeSet::deliver`] when it hands the lease
    /// to the caller.
    Decided {
        /// The use of the lock.
        lock: LockId,
        /// The attempt's token.
        token: Token,
        /// The nodes whose votes were counted.
        counted: NodeMask,
        /// When the lease will be over.
        deadline: BootInstant,
    },
    /// There will be no further attempt, and nothing more is said of this use of the lock.
    GaveUp {
        /// The use of the lock.
        lock: LockId,
        /// Why the last attempt failed.
        reason: AttemptError,
    },
    /// The lease was extended.
    Extended {
        /// The use of the lock.
        lock: LockId,
        /// The lease's token.
        token: Token,
        /// The nodes whose answers were counted.
        counted: NodeMask,
        /// When the lease will be over now.
        deadline: BootInstant,
    },
    /// An extension failed. The lease is what it was.
    ExtensionFailed {
        /// The use of the lock.
        lock: LockId,
        /// The lease's token.
        token: Token,
        /// Why.
        reason: ExtendError,
    },
    /// The lease is over, whether or not the caller has noticed.
    Lost {
        /// The use of the lock.
        lock: LockId,
        /// Why.
        reason: LostReason,
    },
    /// The lease was released, and nothing more is said of this use of the lock.
    Released {
        /// The use of the lock.
        lock: LockId,
        /// What the nodes answered.
        outcome: ReleaseOutcome,
    },
}

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

    /// T1 of the current attempt of `lock`.
    #[must_use]
    pub fn t1(&self, lock: LockId) -> Option<BootInstant> {
        self.lock(lock).map(Lock::t1)
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

    /// Whether any use of the lock speaks of `resource`, or any command or debt of a link.
    #[must_use]
    pub fn uses(&self, resource: ResourceId) -> bool {
        let mut locks = self.slots.iter().filter_map(|slot| slot.lock.as_ref());
        locks.any(|lock| lock.resource() == resource)
            || self.links.iter().any(|link| link.speaks_of(resource))
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

    /// The connection could not be opened, was closed, or was reset by the other side.
    pub fn handle_closed(&mut self, node: NodeIndex, epoch: u32, now: BootInstant) {
        self.advance(now);
        self.touched.insert(node);
        self.links[node.get()].handle_closed(epoch, now, &mut self.notes);
        self.route(now);
    }

    /// The next reply on the connection. `now` is read after the reply was.
    pub fn handle_reply(&mut self, node: NodeIndex, epoch: u32, reply: Reply, now: BootInstant) {
        self.advance(now);
        self.touched.insert(node);
        self.links[node.get()].handle_reply(epoch, reply, now, &mut self.notes);
        self.route(now);
    }

    /// The instant that [`NodeSet::poll_timeout`] named has come. Harmless at any other time.
    pub fn handle_timeout(&mut self, now: BootInstant) {
        self.advance(now);
        for node in self.nodes.iter() {
            self.touched.insert(node);
            self.links[node.get()].handle_timeout(now, &mut self.notes);
            self.route(now);
        }
        for slot in 0..self.slots.len() {
            let Some(lock) = self.slots[slot].lock.as_mut() else {
                continue;
            };
            let id = lock.id();
            let (waiting, token) = (matches!(lock.phase(), Phase::Waiting { .. }), lock.token());
            if let Some(happened) = lock.handle_timeout(now) {
                self.tell(id, token, happened);
            } else if waiting && lock.phase() == Phase::Due {
                self.events.push_back(Event::AttemptDue(id));
            }
        }
    }

    /// Opens every connection that nobody has needed so far.
    pub fn connect(&mut self, now: BootInstant) {
        self.advance(now);
        self.nodes.iter().for_each(|node| self.touch(node).connect());
    }

    /// A new use of the lock on `resource`; its first attempt is due.
    ///
    /// # Panics
    ///
    /// If the TTL is zero or the number of nodes is not this client's.
    pub fn open(&mut self, resource: ResourceId, config: LockConfig) -> LockId {
        assert_eq!(config.nodes, self.nodes, "a quorum is counted over the configured nodes");
        let free = self.slots.iter().position(|slot| slot.lock.is_none());
        let slot = free.unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, lock: None });
            self.slots.len() - 1
        });
        let entry = &mut self.slots[slot];
        entry.generation += 1;
        let id = LockId { slot: slot as u32, generation: entry.generation };
        entry.lock = Some(Lock::new(id, resource, config));
        self.events.push_back(Event::AttemptDue(id));
        id
    }

    /// Begins the attempt that is due. `now` is T1. Nothing happens if none is due any more.
    pub fn begin(&mut self, lock: LockId, fresh: Fresh, now: BootInstant) {
        self.advance(now);
        let Some(machine) = self.lock_mut(lock).filter(|it| it.phase() == Phase::Due) else {
            return;
        };
        machine.begin(fresh, now);
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
        let round_trip = self.round_trip();
        let machine = self.lock_mut(lock).filter(|it| it.phase() == Phase::Decided);
        let Some(machine) = machine else {
            return Err(AttemptError::Cancelled);
        };
        let (token, delivered) = (machine.token(), machine.deliver(now, round_trip));
        if let Err(reason) = delivered {
            self.failed(lock, token, reason);
            self.carry(lock, now);
            self.route(now);
        }
        delivered
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
        let (before, token) = (machine.phase(), machine.token());
        let extending = machine.is_extending();
        machine.release();
        if extending {
            self.tell(lock, token, Happened::Extended(Err(ExtendError::Cancelled)));
        }
        match before {
            Phase::Trying | Phase::Decided => {
                let reason = AttemptError::Cancelled;
                self.events.push_back(Event::AttemptFailed { lock, token, reason });
            }
            Phase::Due | Phase::Waiting { .. } => {
                let reason = AttemptError::Cancelled;
                self.events.push_back(Event::GaveUp { lock, reason });
            }
            _ => {}
        }
        self.carry(lock, now);
        self.route(now);
    }

    /// What a transport is to do next.
    pub fn poll_command(&mut self) -> Option<Command> {
        let now = self.clock;
        while let Some(node) = self.touched.iter().next() {
            let command = self.links[node.get()].poll_command(now, &mut self.notes);
            if command.is_none() {
                self.touched.remove(node);
                self.timeouts[node.get()] = self.links[node.get()].poll_timeout();
            }
            // What was dropped as too late may have consequences at this very link.
            self.route(now);
            match command {
                Some(LinkCommand::Dial { epoch }) => return Some(Command::Dial { node, epoch }),
                Some(LinkCommand::Reset { epoch }) => return Some(Command::Reset { node, epoch }),
                Some(LinkCommand::Write { epoch, id, op }) => {
                    return Some(Command::Write { node, epoch, id, op });
                }
                None => {}
            }
        }
        None
    }

    /// What the driver is to know next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The earliest instant at which [`NodeSet::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<BootInstant> {
        let links = self.nodes.iter().filter_map(|node| {
            let known = !self.touched.contains(node);
            let link = &self.links[node.get()];
            if known { self.timeouts[node.get()] } else { link.poll_timeout() }
        });
        let locks = self.slots.iter().filter_map(|slot| slot.lock.as_ref()?.poll_timeout());
        links.chain(locks).min()
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

    fn touch(&mut self, node: NodeIndex) -> &mut Link {
        self.touched.insert(node);
        &mut self.links[node.get()]
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

    fn round_trip(&self) -> Duration {
        self.links.iter().map(Link::round_trip).max().unwrap_or_default()
    }

    /// Takes what the links have to tell to the locks it concerns, until they have no more to tell.
    /// A loop, for a connection that is lost tells a thousand things at once.
    fn route(&mut self, now: BootInstant) {
        while let Some(Note { node, id, outcome }) = self.notes.pop_front() {
            let Some(lock) = id.lock else { continue };
            let eligible_from = self.links[node.get()].eligible_from();
            let round_trip = self.round_trip();
            let Some(machine) = self.lock_mut(lock) else {
                continue;
            };
            let token = machine.token();
            let happened =
                machine.handle_outcome(id, node, outcome, eligible_from, now, round_trip);
            if let Some(happened) = happened {
                self.tell(lock, token, happened);
            }
            self.carry(lock, now);
        }
    }

    fn tell(&mut self, lock: LockId, token: Token, happened: Happened) {
        let machine = self.lock(lock).expect("it has just said so");
        let deadline = machine.deadline();
        let event = match happened {
            Happened::Settled(Ok(())) => {
                Event::Decided { lock, token, counted: machine.counted(), deadline }
            }
            Happened::Settled(Err(reason)) => return self.failed(lock, token, reason),
            Happened::Extended(Ok(counted)) => Event::Extended { lock, token, counted, deadline },
            Happened::Extended(Err(reason)) => Event::ExtensionFailed { lock, token, reason },
            Happened::Lost { reason, extending } => {
                if extending {
                    let reason = ExtendError::Lost(reason);
                    self.events.push_back(Event::ExtensionFailed { lock, token, reason });
                }
                Event::Lost { lock, reason }
            }
        };
        self.events.push_back(event);
    }

    fn failed(&mut self, lock: LockId, token: Token, reason: AttemptError) {
        self.events.push_back(Event::AttemptFailed { lock, token, reason });
        if self.lock(lock).is_some_and(|machine| machine.phase() == Phase::Ended) {
            self.events.push_back(Event::GaveUp { lock, reason });
        }
    }

    /// Takes the wishes of `lock` to the links, and forgets the lock once it is done. What the links
    /// tell in return waits for [`NodeSet::route`].
    fn carry(&mut self, lock: LockId, now: BootInstant) {
        while let Some(send) = self.lock_mut(lock).and_then(Lock::poll_send) {
            self.touched.insert(send.node);
            self.links[send.node.get()].send(send, now, &mut self.notes);
        }
        let Some(machine) = self.lock_mut(lock) else {
            return;
        };
        if let Some(outcome) = machine.poll_released() {
            self.events.push_back(Event::Released { lock, outcome });
        }
        if machine_ended(self.lock(lock)) {
            self.slots[lock.slot as usize].lock = None;
        }
    }
}

fn machine_ended(lock: Option<&Lock>) -> bool {
    lock.is_some_and(|lock| lock.phase() == Phase::Ended)
}

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
