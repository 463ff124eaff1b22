//! Time and clocks, shared by all parts of the oracle.

/// Time of an event that has not happened.
pub(super) const NEVER: u64 = u64::MAX;
