//! Pushes, changes by this client itself and connections: they wake waiting uses, cast doubt on the
//! keys of leases, and bring keep-alive rounds forward.

use super::NodeSet;
use crate::command::{LockId, ResourceId};
use crate::crowd::Crowd;
use crate::lock::{Lock, Phase};
use crate::quorum::{NodeIndex, NodeMask};
use crate::retry::{RetryDelay, draw};
use crate::time::BootInstant;

impl NodeSet {
    /// Tells the use that waits for `resource`, and its leases that are watched, unless it is `by`
    /// itself: the key on `node` has changed, or may have. Returns true if one of them acts on it.
    #[inline]
    pub(super) fn key_changed(
        &mut self,
        node: NodeIndex,
        resource: ResourceId,
        by: Option<LockId>,
        now: BootInstant,
    ) -> bool {
        let is_heard = !self.listeners.is_empty() || !self.watched.is_empty();
        is_heard && self.tell_uses_of(resource, node, by, now)
    }

    /// Tells the uses of `resource` but `by`; nobody waits for most changes, so this stays out of the
    /// callers' way.
    #[inline(never)]
    fn tell_uses_of(
        &mut self,
        resource: ResourceId,
        node: NodeIndex,
        by: Option<LockId>,
        now: BootInstant,
    ) -> bool {
        // Of one client's uses of a resource only the first in line waits for changes.
        let is_waiting =
            |&head: &LockId| self.lock(head).is_some_and(|lock| lock.phase() == Phase::Listening);
        let head = self.lines.head(resource).filter(is_waiting);
        let watched = self.watched.range((resource, LockId::FIRST)..);
        let watched = watched.take_while(|(of, _)| *of == resource).map(|&(_, lock)| lock);
        let uses = head.into_iter().chain(watched).filter(|&lock| Some(lock) != by).collect();
        self.tell_of_change(uses, node, now)
    }

    /// Tells `uses` that their keys on `node` have changed, or may have. Returns true if one of them
    /// acts on it.
    fn tell_of_change(&mut self, uses: Vec<LockId>, node: NodeIndex, now: BootInstant) -> bool {
        let mut is_any = false;
        for lock in uses {
            if self.lock_mut(lock).is_some_and(|it| it.key_changed(node, now)) {
                is_any = true;
                self.carry(lock, now);
                self.route(now);
            }
        }
        is_any
    }

    /// Tells all uses if the connection to `node` has opened or ended.
    #[inline]
    pub(super) fn note_connection(&mut self, node: NodeIndex, now: BootInstant) {
        let is_open = self.links[node.get()].is_open();
        if is_open != self.open.contains(node) {
            self.connection_changed(node, is_open, now);
        }
    }

    #[cold]
    fn connection_changed(&mut self, node: NodeIndex, is_open: bool, now: BootInstant) {
        if is_open {
            self.open.insert(node);
            self.mute.remove(node);
        } else {
            self.open.remove(node);
            self.room.connection_lost(node);
        }
        let locks = self.slots.iter().filter_map(|slot| slot.lock.as_ref());
        let locks: Vec<LockId> = locks.map(Lock::id).collect();
        let mut rounds = 0;
        for &lock in &locks {
            let is_void = is_open && self.links[node.get()].has_outlived_sets_of(lock);
            match self.lock_mut(lock) {
                Some(machine) if is_open => {
                    if is_void {
                        machine.set_is_void(node);
                    }
                    rounds += u32::from(machine.connection_opened(node, rounds, now));
                }
                Some(machine) => machine.connection_lost(node, now),
                None => {}
            }
        }
        for lock in locks {
            self.carry(lock, now);
            self.route(now);
        }
    }

    /// Tells the uses that wait: `node` owed an answer for too long and has given it, so it takes
    /// commands again.
    #[cold]
    pub(super) fn answers_again(&mut self, node: NodeIndex, now: BootInstant) {
        for lock in self.listening() {
            if let Some(machine) = self.lock_mut(lock) {
                machine.answers_again(node, now);
            }
            self.carry(lock, now);
            self.route(now);
        }
    }

    /// Believes `node` again that it pushes: it has just done so.
    pub(super) fn note_push(&mut self, node: NodeIndex) {
        if !self.mute.contains(node) {
            return;
        }
        self.mute.remove(node);
        for lock in [self.listening(), self.watched()].concat() {
            if let Some(machine) = self.lock_mut(lock) {
                machine.is_heard(node);
            }
        }
    }

    /// Wakes all uses that wait: all keys of `node` are gone.
    pub(super) fn wake_all(&mut self, node: NodeIndex, now: BootInstant) {
        self.tell_of_change(self.listening(), node, now);
    }

    /// Makes all leases that are watched doubt their keys: all keys of `node` are gone, or may be.
    pub(super) fn doubt_all(&mut self, node: NodeIndex, now: BootInstant) {
        let watched = self.watched();
        for (ahead, &lock) in (0..).zip(&watched) {
            if let Some(machine) = self.lock_mut(lock) {
                machine.take_turn(ahead, now);
            }
        }
        self.tell_of_change(watched, node, now);
    }

    /// Returns the leases that are watched.
    fn watched(&self) -> Vec<LockId> {
        self.watched.iter().map(|&(_, lock)| lock).collect()
    }

    /// Returns the uses that wait for a change of their lock.
    fn listening(&self) -> Vec<LockId> {
        self.listeners.iter().copied().collect()
    }

    /// Makes the attempt of `lock` due if the lock has decided so, and keeps what it has learned.
    pub(super) fn note_waiting(&mut self, lock: LockId, now: BootInstant) {
        let Some(machine) = self.lock_mut(lock) else { return };
        let (is_due, resource) = (machine.take_due(), machine.resource());
        let (crowd, mute) = (machine.crowd(), machine.mute());
        if machine.phase() == Phase::Listening {
            self.listeners.insert(lock);
        } else {
            self.listeners.remove(&lock);
        }
        if is_due {
            self.attempt_is_due(lock, now);
        }
        self.mute = self.mute.union(mute.unwrap_or(NodeMask::EMPTY));
        if self.slots[lock.slot as usize].in_line && self.crowd_of(resource) != crowd {
            self.remember_crowd(resource, crowd);
        }
    }

    /// Keeps the set of watched leases up to date with `lock`.
    pub(super) fn note_watched(&mut self, lock: LockId) {
        let Some(machine) = self.lock(lock) else { return };
        let (is_watched, entry) = (machine.is_watched(), (machine.resource(), lock));
        let before = &mut self.slots[lock.slot as usize].is_watched;
        if core::mem::replace(before, is_watched) == is_watched {
            return;
        }
        if is_watched {
            self.watched.insert(entry);
            let (mute, away) = (self.mute, self.nodes.all().without(self.open));
            if let Some(watching) = self.lock_mut(lock).and_then(Lock::watches) {
                watching.begin(mute, away);
            }
        } else {
            self.watched.remove(&entry);
        }
    }

    /// Returns the contention for `resource`, as this client knows it.
    pub(super) fn crowd_of(&self, resource: ResourceId) -> Crowd {
        self.crowds.get(resource.0 as usize).copied().unwrap_or_default()
    }

    /// Forgets the contention for `resource`. The driver calls this before it gives the number to
    /// another lock.
    pub fn forget(&mut self, resource: ResourceId) {
        if let Some(crowd) = self.crowds.get_mut(resource.0 as usize) {
            *crowd = Crowd::default();
        }
    }

    fn remember_crowd(&mut self, resource: ResourceId, crowd: Crowd) {
        let place = resource.0 as usize;
        if self.crowds.len() <= place {
            self.crowds.resize_with(place + 1, Default::default);
        }
        self.crowds[place] = crowd;
    }

    /// Returns true if a use of the lock on `resource` that begins at `now`, and may wait, would wait:
    /// behind other uses of this client, or to let other clients go first.
    pub fn is_others_turn(
        &mut self,
        resource: ResourceId,
        retry: RetryDelay,
        now: BootInstant,
    ) -> bool {
        let (round_trip, mut crowd) = (self.quorum_round_trip(), self.crowd_of(resource));
        crowd = crowd.remembered(now);
        let is_others_turn = crowd.is_others_turn(now, retry, round_trip);
        self.remember_crowd(resource, crowd);
        is_others_turn || !self.lines.is_empty(resource)
    }

    /// Remembers that this client gives up the lease of `lock`.
    pub(super) fn note_given_up(&mut self, lock: LockId, now: BootInstant) {
        if let Some(machine) = self.lock_mut(lock) {
            machine.given_up(now);
        }
    }

    /// Puts the first attempt of `lock` off for a moment if other clients should go first. Returns
    /// false if they need not.
    pub(super) fn lets_others_go_first(&mut self, lock: LockId, now: BootInstant) -> bool {
        // The waits after the attempt draw from the same randomness.
        let jitter = draw(!self.jitter, lock.generation);
        let round_trip = self.quorum_round_trip();
        let Some(machine) = self.lock_mut(lock) else { return false };
        let Some(delay) = machine.courtesy(now, round_trip, jitter) else { return false };
        machine.put_off(now.after(delay));
        let timeout = machine.poll_timeout(now);
        self.timers.arm(lock.slot, timeout);
        true
    }
}
