//! Delays before the next attempt.

use core::time::Duration;

use super::time::saturating_nanos;

/// Random delays of an acquisition before its attempts, and its longest silence.
///
/// An acquisition that may wait sleeps until a server pushes that the lock's key has changed. Then
/// it waits for a short random delay, and attempts unless another client has taken the lock
/// meanwhile. An acquisition with a limit of attempts sleeps for a random delay between two
/// attempts. Without randomness, two clients could split the nodes between them for ever
/// (counterexamples L1, L2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryDelay {
    /// Bound of the first random delays; raised to twice the observed round trip if that is longer.
    /// For an acquisition that may wait, the bound is at most `longest`, and adapts to the number
    /// of clients that want the same lock. For one with a limit of attempts, it grows with the
    /// failures.
    ///
    /// With a shorter bound a lock is handed over sooner. A longer bound saves commands if many
    /// clients begin to wait for one lock.
    pub first: Duration,
    /// Upper limit of the bound, unless the first bound is longer. Choose more than two round
    /// trips: a shorter delay ends before the push that another client has taken the lock can
    /// arrive.
    pub longest: Duration,
    /// Longest time for which a sleeping acquisition sends nothing. Then it asks again, and so
    /// detects a server or connection that is gone, or a server that does not push.
    pub silence: Duration,
}

/// Number of failures after which the bound doubles.
const DOUBLES_AFTER: u32 = 64;

/// Longest interval between the attempts of an acquisition that no server wakes.
const PACE_LONGEST: Duration = Duration::from_secs(1);

impl Default for RetryDelay {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(5),
            longest: Duration::from_millis(200),
            silence: Duration::from_secs(5),
        }
    }
}

impl RetryDelay {
    /// Returns the wait between two attempts of an acquisition that is limited by their number,
    /// after `failures` failed ones. `jitter` is uniform over `u64`, drawn from the client's own
    /// source; `round_trip` is the longest recent round trip.
    ///
    /// The bound doubles slowly, so that it stays a nearly constant share of the time that the
    /// client has already waited.
    #[must_use]
    pub fn after(self, failures: u32, round_trip: Duration, jitter: u64) -> Duration {
        let first = self.first.max(round_trip.saturating_mul(2));
        let doublings = (failures.saturating_sub(1) / DOUBLES_AFTER).min(16);
        let bound = first.saturating_mul(1 << doublings).min(self.longest.max(first));
        share(bound, jitter)
    }
}

/// Returns the interval before the next attempt of an acquisition that has waited for `waited` and
/// that no server wakes: about a tenth of that time, at most a second.
#[must_use]
pub(crate) fn pace(waited: Duration, jitter: u64) -> Duration {
    let tenth = (waited / 10).min(PACE_LONGEST * 2 / 3);
    tenth / 2 + share(tenth, jitter)
}

/// Returns the part of `whole` that `jitter` is of the range of `u64`.
#[must_use]
pub(crate) fn share(whole: Duration, jitter: u64) -> Duration {
    Duration::from_nanos(share_of(saturating_nanos(whole), jitter))
}

/// Returns a number below `whole`, or 0: the part of it that `jitter` is of the range of `u64`.
#[must_use]
pub(crate) const fn share_of(whole: u64, jitter: u64) -> u64 {
    ((whole as u128 * jitter as u128) >> 64) as u64
}

/// Derives the draw with the number `number` from one random value (SplitMix64, by Steele, Lea and
/// Flood): an attempt has one draw of the driver, and may wait several times.
#[must_use]
pub(crate) const fn draw(jitter: u64, number: u32) -> u64 {
    let step = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = jitter.wrapping_add(step);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
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

    #[test]
    fn without_pushes_attempts_are_a_tenth_of_the_wait_apart() {
        let interval = |waited_ms, jitter| pace(Duration::from_millis(waited_ms), jitter);
        for (waited_ms, least, most) in [(0, 0, 0), (1_000, 50, 150), (60_000, 333, 1_000)] {
            assert_eq!(interval(waited_ms, 0).as_millis(), least);
            assert!(interval(waited_ms, u64::MAX).as_millis().abs_diff(most) <= 1);
        }
    }

    #[test]
    fn draws_of_one_jitter_are_spread() {
        let bound = Duration::from_secs(1);
        let draws: Vec<Duration> = (0..1_000).map(|number| share(bound, draw(7, number))).collect();
        for tenth in 0..10 {
            let (from, to) = (bound / 10 * tenth, bound / 10 * (tenth + 1));
            let within = draws.iter().filter(|it| (from..to).contains(it)).count();
            assert!((70..130).contains(&within), "{tenth}: {within}");
        }
    }
}
