//! Instants on the one clock by which the protocol measures leases.

use core::time::Duration;

/// A reading of the client's boot clock, in nanoseconds.
///
/// The clock counts time asleep and never goes back (`CLOCK_BOOTTIME` on Linux). The type keeps
/// readings of other clocks out of the arithmetic of leases: counterexamples C1, C2 and C8 describe what
/// happens with a wall clock or with a clock that stops during suspend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(u64);

impl BootInstant {
    /// The clock's origin. No reading lies before it.
    pub const ZERO: Self = Self(0);

    /// The last representable instant: one that never comes.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// Returns the reading that is `nanos` nanoseconds after the clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the clock's origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this instant; zero if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the instant `duration` after this one, or the last representable instant if that
    /// overflows.
    #[must_use]
    pub const fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(duration)))
    }

    /// Returns the instant `duration` before this one, or the clock's origin if that lies before
    /// it.
    #[must_use]
    pub const fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanos(duration)))
    }
}

/// Returns `duration` in nanoseconds; `u64::MAX` (584 years) if it is longer.
pub(crate) const fn saturating_nanos(duration: Duration) -> u64 {
    let whole_seconds = duration.as_secs().saturating_mul(1_000_000_000);
    whole_seconds.saturating_add(duration.subsec_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let late = BootInstant::from_nanos(u64::MAX - 1);
        assert_eq!(late.after(Duration::from_secs(1)).as_nanos(), u64::MAX);
        assert_eq!(late.after(Duration::MAX).as_nanos(), u64::MAX);
        assert_eq!(BootInstant::from_nanos(1).before(Duration::from_secs(1)), BootInstant::ZERO);
        assert_eq!(BootInstant::ZERO.since(late), Duration::ZERO);
    }
}
