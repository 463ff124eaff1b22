//! The queue of future events, in the order of true time.

use std::collections::VecDeque;

/// A queue over true time. Events at the same instant come in the order in which they were
/// scheduled.
///
/// It is kept sorted: what is scheduled is nearly always due soon, as messages are, or after all
/// others, as timeouts are. So few events move.
#[derive(Clone, Debug)]
pub struct Queue<T>(VecDeque<(u64, T)>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(VecDeque::with_capacity(64))
    }
}

impl<T> Queue<T> {
    /// Empties the queue, but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Schedules `what` for `at_ns`.
    pub fn schedule(&mut self, at_ns: u64, what: T) {
        let place = self.0.partition_point(|&(other_ns, _)| other_ns <= at_ns);
        self.0.insert(place, (at_ns, what));
    }

    /// Takes the next event; returns its time and the event.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        self.0.pop_front()
    }

    /// Returns the time of the next event.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.0.front().map(|&(at_ns, _)| at_ns)
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
