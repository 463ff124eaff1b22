//! Time and node-set helpers shared by all parts of the oracle.

/// Time of an event that has not happened.
pub(super) const NEVER: u64 = u64::MAX;

/// Returns the bit set that contains only `node`; empty if there can be no such node.
pub(super) fn just(node: u8) -> u16 {
    1u16.checked_shl(u32::from(node)).unwrap_or(0)
}

/// Iterates over the nodes in a bit set.
pub(super) fn nodes_in(mut set: u16) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || {
        let node = set.trailing_zeros() as u8;
        (set != 0).then(|| {
            set &= set - 1;
            node
        })
    })
}
