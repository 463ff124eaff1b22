//! Wake-ups of the uses that wait: by pushes, changes by this client itself, connections.

use super::{Event, NodeSet};
use crate::command::{LockId, ResourceId};
use crate::crowd::Crowd;
use crate::lock::{Lock, Phase};
use crate::quorum::{NodeIndex, NodeMask};
use crate::retry::draw;
use crate::time::BootInstant;

impl NodeSet {
    /// Wakes the use that waits for `resource`, unless it is `by` itself: its key on `node` has
    /// changed, or may have. Returns true if there is such a use.
    pub(super) fn key_changed(
        &mut self,
        node: NodeIndex,
        resource: ResourceId,
        by: Option<LockId>,
        now: BootInstant,
    ) -> bool {
        // Of one client's uses of a resource only the first in line waits for changes.
        let head = self.lines.head(resource).filter(|&head| Some(head) != by);
        let Some(head) = head else { return false };
        let Some(listening) = self.lock_mut(head).and_then(Lock::heeds) else { return false };
        listening.key_changed(node, now);
        self.carry(head, now);
        self.route(now);
        true
    }

    /// Tells the uses that wait if the connection to `node` has opened or ended.
    pub(super) fn note_connection(&mut self, node: NodeIndex, now: BootInstant) {
        let is_open = self.links[node.get()].is_open();
        if is_open == self.open.contains(node) {
            return;
        }
        if is_open {
            self.open.insert(node);
            self.deaf.remove(node);
        } else {
            self.open.remove(node);
        }
        let locks = self.listening();
        for &lock in &locks {
            match self.lock_mut(lock).and_then(Lock::heeds) {
                Some(listening) if is_open => listening.connection_opened(node, now),
                Some(listening) => listening.connection_lost(node, now),
                None => {}
            }
        }
        for lock in locks {
            self.carry(lock, now);
            self.route(now);
        }
    }

    /// Believes `node` again that it pushes: it has just done so.
    pub(super) fn note_push(&mut self, node: NodeIndex) {
        if !self.deaf.contains(node) {
            return;
        }
        self.deaf.remove(node);
        for lock in self.listening() {
            if let Some(listening) = self.lock_mut(lock).and_then(Lock::heeds) {
                listening.is_heard(node);
            }
        }
    }

    /// Wakes all uses that wait: all keys of `node` are gone.
    pub(super) fn all_keys_changed(&mut self, node: NodeIndex, now: BootInstant) {
        for lock in self.listening() {
            if let Some(listening) = self.lock_mut(lock).and_then(Lock::heeds) {
                listening.key_changed(node, now);
                self.carry(lock, now);
                self.route(now);
            }
        }
    }

    /// Returns the uses that wait for a change of their lock.
    fn listening(&self) -> Vec<LockId> {
        self.listeners.iter().copied().collect()
    }

    /// Makes the attempt of `lock` due if the lock has decided so, and keeps what it has learned.
    pub(super) fn note_waiting(&mut self, lock: LockId) {
        let Some(machine) = self.lock_mut(lock) else { return };
        let (is_due, resource) = (machine.take_due(), machine.resource());
        let (crowd, deaf) = (machine.crowd(), machine.deaf());
        if machine.phase() == Phase::Listening {
            self.listeners.insert(lock);
        } else {
            self.listeners.remove(&lock);
        }
        if is_due {
            self.events.push_back(Event::AttemptDue(lock));
        }
        self.deaf = self.deaf.union(deaf.unwrap_or(NodeMask::EMPTY));
        let place = resource.0 as usize;
        if self.slots[lock.slot as usize].in_line && self.crowd_of(resource) != crowd {
            if self.crowds.len() <= place {
                self.crowds.resize_with(place + 1, Default::default);
            }
            self.crowds[place] = crowd;
        }
    }

    /// Returns the contention for `resource`, as this client knows it.
    pub(super) fn crowd_of(&self, resource: ResourceId) -> Crowd {
        self.crowds.get(resource.0 as usize).copied().unwrap_or_default()
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
