//! Instants on the one clock that the protocol measures leases with.

use core::time::Duration;

/// A reading of the client's boot clock, in nanoseconds.
///
/// The clock counts time asleep and never goes back (`CLOCK_BOOTTIME` on Linux). The type keeps
/// readings of any other clock out of the arithmetic of leases: catalogue C1, C2 and C8 are what
/// happens when a wall clock or a clock that stops during suspend gets in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(u64);

impl BootInstant {
    /// The clock's origin. No reading lies before it.
    pub const ZERO: Self = Self(0);

    /// A reading of `nanos` nanoseconds since the clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this instant; zero if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The instant `duration` after this one; the last representable instant if there is none.
    #[must_use]
    pub const fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(duration)))
    }

    /// The instant `duration` before this one; the clock's origin if there is none.
    #[must_use]
    pub const fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanos(duration)))
    }
}

/// `duration` in nanoseconds; `u64::MAX` (584 years) if it is longer.
pub(crate) const fn saturating_nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
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
