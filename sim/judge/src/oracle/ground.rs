//! Time, as all parts of the oracle note it.

/// Time of an event that has not happened.
pub(super) const NEVER: u64 = u64::MAX;
