//! Times and sets of nodes, as every part of the oracle has them.

/// It has not happened.
pub(super) const NEVER: u64 = u64::MAX;

/// The set of just `node`; empty if there can be no such node.
pub(super) fn just(node: u8) -> u16 {
    1u16.checked_shl(u32::from(node)).unwrap_or(0)
}

/// The nodes in a set, bit by bit.
pub(super) fn nodes_in(mut set: u16) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || {
        let node = set.trailing_zeros() as u8;
        (set != 0).then(|| {
            set &= set - 1;
            node
        })
    })
}
