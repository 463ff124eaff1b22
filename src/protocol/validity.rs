//! How long a lease may be believed.

use core::time::Duration;

use super::time::{BootInstant, saturating_nanos};

/// What a lease gives up for clocks that run at different rates and for the millisecond to which
/// Redis rounds: a share of the TTL, and a constant.
///
/// The default, 1 % and 2 ms, covers half a per cent of drift on each side (catalogue §2, C5, K8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The share of the TTL, in parts per million.
    pub share_ppm: u32,
    /// The constant added to it.
    pub constant: Duration,
}

impl Default for Drift {
    fn default() -> Self {
        Self { share_ppm: 10_000, constant: Duration::from_millis(2) }
    }
}

impl Drift {
    /// What is given up of a lease of `ttl`, rounded up.
    #[must_use]
    pub const fn of(self, ttl: Duration) -> Duration {
        let share = (ttl.as_nanos().saturating_mul(self.share_ppm as u128)).div_ceil(1_000_000);
        let share = if share > u64::MAX as u128 { u64::MAX } else { share as u64 };
        Duration::from_nanos(share).saturating_add(self.constant)
    }
}

/// The instant from which a lease begun at `t1` must not be believed any more: `t1 + ttl − drift`
/// (specification, step 3; catalogue §2). Not after `t1` if the drift eats the whole TTL.
#[must_use]
pub(crate) const fn deadline(t1: BootInstant, ttl: Duration, drift: Drift) -> BootInstant {
    let allowance = saturating_nanos(drift.of(ttl));
    t1.after(Duration::from_nanos(saturating_nanos(ttl).saturating_sub(allowance)))
}

/// What is left of a lease at `now`, or `None` when nothing is: a lease is over *at* its deadline.
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
