//! The queue of future events, in the order of true time.

/// A queue over true time. Events at the same instant come in the order in which they were
/// scheduled.
///
/// It is a sorted list with the next event at its end: what is scheduled is nearly always due soon,
/// as messages are, so few events are compared and few move.
#[derive(Clone, Debug)]
pub struct Queue<T>(Vec<(u64, T)>);

/// Number of events at the end that are compared one by one before the others are bisected.
const SOON: usize = 16;

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Vec::with_capacity(64))
    }
}

impl<T> Queue<T> {
    /// Empties the queue, but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Schedules `what` for `at_ns`.
    pub fn schedule(&mut self, at_ns: u64, what: T) {
        let is_later = |&(other_ns, _): &(u64, T)| other_ns > at_ns;
        let (far, soon) = self.0.split_at(self.0.len().saturating_sub(SOON));
        let place = match soon.iter().rposition(is_later) {
            Some(place) => far.len() + place + 1,
            None => far.partition_point(is_later),
        };
        self.0.insert(place, (at_ns, what));
    }

    /// Takes the next event; returns its time and the event.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        self.0.pop()
    }

    /// Returns the time of the next event.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.0.last().map(|&(at_ns, _)| at_ns)
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

    #[test]
    fn order_is_the_same_in_a_long_queue() {
        let times = (0..500_u64).map(|count| count * 7_919 % 101);
        let mut expected: Vec<_> = times.zip(0..).collect();
        let mut queue = Queue::default();
        expected.iter().for_each(|&(at, number)| queue.schedule(at, number));
        expected.sort_unstable();
        assert!(core::iter::from_fn(|| queue.pop()).eq(expected));
    }
}
