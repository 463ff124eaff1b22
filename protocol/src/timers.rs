//! Timers of the lock slots; the earliest timer determines which use of the lock acts next.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::time::BootInstant;

/// Stale entries are swept out when the heap holds more than this many of them, plus one for each
/// armed timer.
const STALE_LEAST: usize = 64;

/// At most one timer for each slot.
///
/// A heap, in which a slot's earlier entries stay until they are due or swept out: changing a timer
/// costs one push, so a change costs with ten thousand leases about as much as with one.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(BootInstant, u32)>>,
    /// The instant for which each slot waits.
    armed: Vec<Option<BootInstant>>,
    waiting: usize,
}

impl Timers {
    /// Sets the timer of `slot` to `at`, replacing any earlier timer; `None` disarms it.
    pub(super) fn arm(&mut self, slot: u32, at: Option<BootInstant>) {
        let place = slot as usize;
        if self.armed.len() <= place {
            self.armed.resize(place + 1, None);
        }
        let before = core::mem::replace(&mut self.armed[place], at);
        if before == at {
            return;
        }
        self.waiting = self.waiting + usize::from(at.is_some()) - usize::from(before.is_some());
        if let Some(at) = at {
            self.heap.push(Reverse((at, slot)));
        }
        let Self { heap, armed, waiting } = self;
        if heap.len() > 2 * *waiting + STALE_LEAST {
            heap.retain(|&Reverse((at, slot))| armed[slot as usize] == Some(at));
        }
        self.drop_stale();
    }

    /// Returns the earliest instant for which any slot waits.
    pub(super) fn next(&self) -> Option<BootInstant> {
        self.heap.peek().map(|&Reverse((at, _))| at)
    }

    /// Returns a slot whose timer is due at `now`, and disarms that timer.
    pub(super) fn take_due(&mut self, now: BootInstant) -> Option<u32> {
        let &Reverse((at, slot)) = self.heap.peek()?;
        if at > now {
            return None;
        }
        self.armed[slot as usize] = None;
        self.waiting -= 1;
        self.drop_stale();
        Some(slot)
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
        self.armed.clear();
        self.waiting = 0;
    }

    /// Removes stale entries from the top of the heap, so that the first entry is an armed timer.
    fn drop_stale(&mut self) {
        while let Some(&Reverse((at, slot))) = self.heap.peek() {
            if self.armed[slot as usize] == Some(at) {
                return;
            }
            self.heap.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::at_ms;

    #[test]
    fn a_slot_waits_for_the_last_instant_it_named() {
        let mut timers = Timers::default();
        timers.arm(0, Some(at_ms(5)));
        timers.arm(0, Some(at_ms(9)));
        assert_eq!(timers.next(), Some(at_ms(9)));
        timers.arm(0, None);
        assert_eq!((timers.next(), timers.take_due(at_ms(99))), (None, None));
    }

    #[test]
    fn timers_set_again_do_not_pile_up() {
        let mut timers = Timers::default();
        for round in 0..100_000 {
            timers.arm(0, Some(at_ms(round)));
            timers.arm(1, Some(at_ms(round + 1_000)));
            timers.arm(1, None);
        }
        assert!(timers.heap.len() <= 2 + STALE_LEAST, "{}", timers.heap.len());
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_look_at_every_slot(
            steps in prop::collection::vec((0..6_u32, prop::option::of(0..40_u64), 0..40_u64), 0..200),
        ) {
            let (mut timers, mut naive) = (Timers::default(), [None; 6]);
            for (slot, at, now) in steps {
                let at = at.map(at_ms);
                timers.arm(slot, at);
                naive[slot as usize] = at;
                prop_assert_eq!(timers.next(), naive.iter().flatten().copied().min());
                if let Some(due) = timers.take_due(at_ms(now)) {
                    let earliest = naive.iter().flatten().copied().min();
                    prop_assert!(naive[due as usize] == earliest && earliest <= Some(at_ms(now)));
                    naive[due as usize] = None;
                } else {
                    prop_assert!(naive.iter().flatten().all(|&at| at > at_ms(now)));
                }
            }
        }
    }
}
