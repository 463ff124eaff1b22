//! The queue of future events, in the order of true time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A priority queue over true time. Events at the same instant come in the order in which they were
/// scheduled.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    scheduled: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    at_ns: u64,
    order: u64,
    what: T,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::with_capacity(64), scheduled: 0 }
    }
}

impl<T> Queue<T> {
    /// Empties the queue, but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.scheduled = 0;
    }

    /// Schedules `what` for `at_ns`.
    pub fn schedule(&mut self, at_ns: u64, what: T) {
        self.scheduled += 1;
        self.heap.push(Reverse(Entry { at_ns, order: self.scheduled, what }));
    }

    /// Takes the next event; returns its time and the event.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at_ns, entry.what))
    }

    /// Returns the time of the next event.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at_ns)
    }
}

impl<T> Entry<T> {
    /// Returns time and order as one number, so that one comparison without a branch is enough.
    fn key(&self) -> u128 {
        u128::from(self.at_ns) << 64 | u128::from(self.order)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_comes_first_and_scheduling_order_second() {
        let mut queue = Queue::default();
        for (at, what) in [(5, 'd'), (1, 'a'), (3, 'b'), (3, 'c')] {
            queue.schedule(at, what);
        }
        let order: String = core::iter::from_fn(|| queue.pop()).map(|(_, what)| what).collect();
        assert_eq!(order, "abcd");
    }
}
