//! Validity: the time for which a client may believe in a lease.

use core::time::Duration;

use super::time::{BootInstant, saturating_nanos};

/// The safety margin by which a lease is shortened, because clocks run at different rates and Redis
/// rounds to milliseconds: a share of the TTL plus a constant.
///
/// The default, 1 % and 2 ms, covers half a per cent of drift on each side (counterexamples C5, K8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The share of the TTL, in parts per million.
    pub share_ppm: u32,
    /// The constant added to the share.
    pub constant: Duration,
}

impl Default for Drift {
    fn default() -> Self {
        Self { share_ppm: 10_000, constant: Duration::from_millis(2) }
    }
}

impl Drift {
    /// Returns the margin for a lease of `ttl`; the share is rounded up to a nanosecond.
    #[must_use]
    pub const fn of(self, ttl: Duration) -> Duration {
        self.between_clocks(ttl).saturating_add(self.constant)
    }

    /// Returns by how much two clocks may differ after `time`, rounded up to a nanosecond.
    pub(crate) const fn between_clocks(self, time: Duration) -> Duration {
        let share = (time.as_nanos().saturating_mul(self.share_ppm as u128)).div_ceil(1_000_000);
        let share = if share > u64::MAX as u128 { u64::MAX } else { share as u64 };
        Duration::from_nanos(share)
    }
}

/// Returns the deadline of a lease begun at `t1`: `t1 + ttl − drift` (specification, step 3;
/// counterexample C5). From that instant on the lease must not be believed. The deadline is `t1` if the
/// drift uses up the whole TTL.
#[must_use]
pub(crate) const fn deadline(t1: BootInstant, ttl: Duration, drift: Drift) -> BootInstant {
    let allowance = saturating_nanos(drift.of(ttl));
    t1.after(Duration::from_nanos(saturating_nanos(ttl).saturating_sub(allowance)))
}

/// Returns the rest of a lease at `now`, or `None` if nothing is left: a lease is over *at* its
/// deadline.
#[must_use]
pub(crate) const fn remaining(deadline: BootInstant, now: BootInstant) -> Option<Duration> {
    let left = deadline.since(now);
    if left.is_zero() { None } else { Some(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at_ms(ms: u64) -> BootInstant {
        BootInstant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_canonical_lease_ends_102_ms_early() {
        assert_eq!(deadline(at_ms(0), 10 * SECOND, Drift::default()), at_ms(9_898));
    }

    #[test]
    fn a_ttl_smaller_than_the_drift_leaves_nothing() {
        let end = deadline(at_ms(7), Duration::from_millis(2), Drift::default());
        assert_eq!(end, at_ms(7));
        assert_eq!(remaining(end, at_ms(7)), None);
    }

    #[test]
    fn nothing_is_left_at_the_deadline_itself() {
        assert_eq!(remaining(at_ms(10), at_ms(9)), Some(Duration::from_millis(1)));
        assert_eq!(remaining(at_ms(10), at_ms(10)), None);
        assert_eq!(remaining(at_ms(10), at_ms(11)), None);
    }

    #[test]
    fn absurd_values_do_not_wrap() {
        let drift = Drift { share_ppm: u32::MAX, constant: Duration::MAX };
        assert_eq!(drift.of(Duration::MAX), Duration::MAX);
        assert_eq!(deadline(at_ms(1), Duration::MAX, drift), at_ms(1));
    }
}
