//! Passes of an acquisition that takes several locks, or any of several.

use core::time::Duration;

use crate::lock::Limit;
use crate::retry::{RetryDelay, pace};
use crate::time::BootInstant;

/// Passes of tries, and the waits between them.
///
/// A pass waits only before it holds a lock. While it holds one, it tries each further lock without
/// waiting for its holder; a pass that fails releases what it has. So no client waits while it
/// holds, and no two wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct Passes {
    limit: Limit,
    retry: RetryDelay,
    began: BootInstant,
    failures: u32,
}

impl Passes {
    /// Creates the passes of an acquisition that begins at `now` and stops at `limit`.
    #[must_use]
    pub fn new(limit: Limit, retry: RetryDelay, now: BootInstant) -> Self {
        Self { limit, retry, began: now, failures: 0 }
    }

    /// Returns the number of failed passes.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns the waits between attempts and between passes.
    #[must_use]
    pub fn retry(&self) -> RetryDelay {
        self.retry
    }

    /// Returns the end of the wait; `None` if the passes are limited by number, and none waits.
    #[must_use]
    pub fn wait_ends(&self) -> Option<BootInstant> {
        self.limit.end()
    }

    /// Returns the limit of a use of a lock that begins while nothing is held.
    #[must_use]
    pub fn empty_handed(&self) -> Limit {
        self.wait_ends().map_or(Limit::AT_ONCE, Limit::Until)
    }

    /// Records a failed pass that tried for `took` without waiting. `contended` is true if another
    /// client's use of a lock was the reason. Returns the instant at which the next pass begins;
    /// `None` if none follows.
    ///
    /// The delay before it is random. Without it, clients that need the same locks could fail
    /// because of each other again and again. If the nodes are the reason, it grows with the wait.
    /// `jitter` is uniform over `u64`.
    pub fn failed(
        &mut self,
        took: Duration,
        contended: bool,
        jitter: u64,
        now: BootInstant,
    ) -> Option<BootInstant> {
        self.failures += 1;
        let delay = self.retry.after(self.failures, took, jitter);
        let pace = if contended { Duration::ZERO } else { pace(now.since(self.began), jitter) };
        let next = now.after(delay.max(pace));
        let follows = match self.limit {
            Limit::Attempts(most) => self.failures < most,
            Limit::Until(end) => next < end,
            Limit::WhileSplit(_) => false,
        };
        follows.then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn passes(limit: Limit) -> Passes {
        Passes::new(limit, RetryDelay::default(), at(0))
    }

    fn at(ms: u32) -> BootInstant {
        BootInstant::ZERO.after(MS * ms)
    }

    #[test]
    fn no_pass_begins_at_the_end_of_the_wait_or_after_it() {
        let mut passes = passes(Limit::Until(at(100)));
        assert_eq!(passes.failed(MS, true, 0, at(99)), Some(at(99)));
        assert_eq!(passes.failed(MS, true, 0, at(100)), None);
        assert_eq!(passes.failed(MS, true, u64::MAX, at(99)), None, "the delay ends too late");
    }

    #[test]
    fn passes_are_counted() {
        let mut passes = passes(Limit::Attempts(2));
        assert_eq!(passes.failed(MS, true, 0, at(1)), Some(at(1)));
        assert_eq!(passes.failed(MS, true, 0, at(1)), None);
        assert_eq!(passes.failures(), 2);
        assert_eq!(self::passes(Limit::AT_ONCE).failed(MS, true, 0, at(1)), None);
    }

    #[test]
    fn delay_of_a_pass_is_random_and_grows_with_its_length() {
        let delay = |took, jitter| {
            let next = passes(Limit::Attempts(9)).failed(took, true, jitter, at(0));
            next.unwrap().since(at(0)).as_millis()
        };
        assert_eq!([delay(MS, 0), delay(MS, u64::MAX)], [0, 4]);
        assert_eq!([delay(MS * 150, 0), delay(MS * 150, u64::MAX)], [0, 299]);
    }

    #[test]
    fn delay_grows_with_the_wait_if_nodes_are_the_reason() {
        let delay = |now| {
            let next = passes(Limit::Attempts(9)).failed(MS, false, 0, at(now));
            next.unwrap().since(at(now)).as_millis()
        };
        assert_eq!([delay(0), delay(1_000), delay(60_000)], [0, 50, 333]);
    }

    #[test]
    fn only_an_acquisition_that_holds_nothing_waits() {
        let waits = passes(Limit::Until(at(100)));
        assert_eq!(waits.empty_handed(), Limit::Until(at(100)));
        assert_eq!(passes(Limit::Attempts(9)).empty_handed(), Limit::AT_ONCE);
    }
}
