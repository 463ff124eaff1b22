//! The notation of time in all parts of the oracle.

use crate::ids::PerNode;

/// Time of an event that has not happened.
pub(super) const NEVER: u64 = u64::MAX;

/// A millisecond in nanoseconds.
pub(super) const MS_NS: u64 = 1_000_000;

/// Error of a time that is converted to another clock: both ends are whole nanoseconds.
pub(super) const ROUNDING_NS: u64 = 2;

/// Returns since when at least `count` nodes have been in a state, if each node has been since the time
/// in `since_ns`; [`NEVER`] if fewer are.
pub(super) fn kth_since_ns(mut since_ns: PerNode<u64>, count: usize) -> u64 {
    since_ns.values_mut().into_slice().sort_unstable();
    count.checked_sub(1).and_then(|place| since_ns.values().nth(place)).copied().unwrap_or(NEVER)
}

/// Returns true if a clock that has gained `gained_ns` is further ahead than a lease's drift allows.
pub(super) fn exceeds(gained_ns: i64, drift_ns: u64) -> bool {
    u64::try_from(gained_ns).is_ok_and(|gained_ns| gained_ns > drift_ns)
}

/// Returns `to_ns` minus `from_ns`; negative if a clock was set back.
pub(super) fn since(from_ns: u64, to_ns: u64) -> i64 {
    (to_ns as i64).saturating_sub(from_ns as i64)
}
