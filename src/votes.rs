//! Votes for a lease.

/// Numbers of nodes that have the key of a lease, by their last replies and pushes. A snapshot: it
/// is outdated as soon as it is returned.
///
/// A lease that is held for longer than 50 ms and a twentieth of its TTL is watched: the nodes push
/// the changes of its key. The lease is lost when fewer than [`majority`](Self::majority) votes
/// are possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Votes {
    /// Number of nodes that reported the key, and that would have pushed its loss: they can push,
    /// and their connections have not ended since. Until the lease is watched, all nodes that
    /// granted it.
    pub confirmed: usize,
    /// Number of nodes that may have the key: all but those that are known to lack it. Besides the
    /// confirmed ones these are nodes that reported the key and cannot push, and nodes about which
    /// nothing is known.
    pub possible: usize,
    /// Number of nodes that are a majority.
    pub majority: usize,
}
