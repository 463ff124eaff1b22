//! The notation of time in all parts of the oracle.

/// Time of an event that has not happened.
pub(super) const NEVER: u64 = u64::MAX;

/// A millisecond in nanoseconds.
pub(super) const MS_NS: u64 = 1_000_000;
