//! The notation of time in all parts of the oracle.

/// Time of an event that has not happened.
pub(super) const NEVER: u64 = u64::MAX;

/// A millisecond in nanoseconds.
pub(super) const MS_NS: u64 = 1_000_000;

/// Returns `to_ns` minus `from_ns`; negative if a clock was set back.
pub(super) fn since(from_ns: u64, to_ns: u64) -> i64 {
    (to_ns as i64).saturating_sub(from_ns as i64)
}
