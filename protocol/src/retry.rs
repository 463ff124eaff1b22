//! Delay before the next attempt.

use core::time::Duration;

/// The random wait between two attempts: uniform below a bound that grows with the failures.
///
/// The bound doubles slowly, so that it stays a nearly constant share of the time that a client has
/// already waited. Where leases are short, the next one is taken soon after a release; where leases
/// are long, many waiting clients soon ask rarely.
///
/// Without randomness, two clients can split the nodes between them for ever (catalogue L1, L2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryDelay {
    /// The bound after the first failures; raised to twice the observed round trip if that is
    /// longer.
    pub first: Duration,
    /// Upper limit of the bound, unless the first bound is longer.
    pub longest: Duration,
}

/// Number of failures after which the bound doubles.
const DOUBLES_AFTER: u32 = 64;

impl Default for RetryDelay {
    fn default() -> Self {
        Self { first: Duration::from_millis(5), longest: Duration::from_millis(200) }
    }
}

impl RetryDelay {
    /// Returns the wait after `failures` failed attempts. `jitter` is uniform over `u64`, drawn
    /// from the client's own source; `round_trip` is the longest recent round trip.
    #[must_use]
    pub fn after(self, failures: u32, round_trip: Duration, jitter: u64) -> Duration {
        let first = self.first.max(round_trip.saturating_mul(2));
        let doublings = (failures.saturating_sub(1) / DOUBLES_AFTER).min(16);
        let bound = first.saturating_mul(1 << doublings).min(self.longest.max(first));
        let scaled = (bound.as_nanos() * u128::from(jitter)) >> 64;
        Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_up_to_the_longest() {
        let delay = RetryDelay::default();
        let bound = |failures| delay.after(failures, Duration::ZERO, u64::MAX).as_millis();
        assert_eq!([bound(1), bound(64), bound(65), bound(129)], [4, 4, 9, 19]);
        assert_eq!([bound(400), bound(u32::MAX)], [199, 199]);
        assert_eq!(delay.after(400, Duration::ZERO, 0), Duration::ZERO);
    }

    #[test]
    fn a_long_round_trip_widens_the_first_bound() {
        let wait = RetryDelay::default().after(1, Duration::from_millis(150), u64::MAX);
        assert_eq!(wait.as_millis(), 299);
    }
}
