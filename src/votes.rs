//! Votes for a lease.

/// Numbers of nodes that have the key of a lease, according to their last replies and pushes. A
/// snapshot: it may be outdated as soon as it is returned.
///
/// A lease is watched once it has been held for 50 ms or a twentieth of its TTL, whichever is
/// longer: the nodes push changes of its key. The lease is lost when fewer than
/// [`majority`](Self::majority) votes are possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Votes {
    /// Number of nodes that have reported the key and would have pushed its loss: they can push,
    /// and their connections have not ended since. Until the lease is watched, the number of nodes
    /// that granted it.
    pub confirmed: usize,
    /// Number of nodes that may have the key: all but those that are known to lack it. Besides the
    /// confirmed nodes, these are nodes that reported the key but cannot push, and nodes whose
    /// state is unknown.
    pub possible: usize,
    /// Number of nodes that form a majority.
    pub majority: usize,
}
