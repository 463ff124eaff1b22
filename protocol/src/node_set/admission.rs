//! Admission control: how many attempts of one client are under way at once.
//!
//! An attempt has the node timeout for its answers from T1 on. If thousands of tasks began theirs at
//! once, most would spend this time behind each other's commands, fail, and begin again: hardly any
//! would ever succeed. So an attempt waits for its turn *before* T1 is read.

use std::collections::VecDeque;

use super::{Event, NodeSet};
use crate::command::LockId;
use crate::lock::Phase;
use crate::time::BootInstant;

/// The attempts that are under way, and those that wait for their turn.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    /// Most attempts that are under way at once.
    most: usize,
    under_way: usize,
    /// First come, first served; some of them may have ended since.
    waiting: VecDeque<LockId>,
}

impl Admission {
    pub(super) fn new(most: usize) -> Self {
        Self { most, under_way: 0, waiting: VecDeque::new() }
    }

    pub(super) fn clear(&mut self) {
        self.under_way = 0;
        self.waiting.clear();
    }

    pub(super) fn place_of(&self, lock: LockId) -> Option<usize> {
        self.waiting.iter().position(|&waiting| waiting == lock)
    }
}

impl NodeSet {
    /// Makes the attempt of `lock` due: at once, or when another one is over.
    pub(super) fn attempt_is_due(&mut self, lock: LockId, now: BootInstant) {
        if self.admission.under_way < self.admission.most {
            return self.admit(lock);
        }
        self.admission.waiting.push_back(lock);
        let machine = self.lock_mut(lock).expect("its attempt is due");
        machine.await_admission();
        let timeout = machine.poll_timeout(now);
        self.timers.arm(lock.slot, timeout);
    }

    fn admit(&mut self, lock: LockId) {
        self.admission.under_way += 1;
        self.slots[lock.slot as usize].is_admitted = true;
        self.events.push_back(Event::AttemptDue(lock));
    }

    /// Admits the attempts that wait for the one of `lock`, if that is over.
    #[inline]
    pub(super) fn note_attempt(&mut self, lock: LockId, now: BootInstant) {
        if !self.slots[lock.slot as usize].is_admitted {
            return;
        }
        let is_over = |phase| !matches!(phase, Phase::Due | Phase::Trying);
        if self.lock(lock).is_some_and(|machine| is_over(machine.phase())) {
            self.slots[lock.slot as usize].is_admitted = false;
            self.admission.under_way -= 1;
            self.admit_waiting(now);
        }
    }

    fn admit_waiting(&mut self, now: BootInstant) {
        while self.admission.under_way < self.admission.most {
            let Some(lock) = self.admission.waiting.pop_front() else { return };
            if self.lock_mut(lock).is_some_and(|machine| machine.admit(now)) {
                self.timers.arm(lock.slot, None);
                self.admit(lock);
            }
        }
    }
}

#[cfg(test)]
mod tests;
