//! Number of nodes, sets of nodes, and majorities.

use core::fmt;

use super::time::BootInstant;

/// The most nodes one lock may span. More adds latency and no safety (specification, "N=5").
pub const MAX_NODES: usize = 9;

/// Index of a node in the configured list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(u8);

impl NodeIndex {
    /// Returns the node at `index` of the list.
    ///
    /// # Panics
    ///
    /// If `index` is not below `MAX_NODES`, nine.
    #[must_use]
    #[inline]
    pub const fn new(index: usize) -> Self {
        assert!(index < MAX_NODES, "node index out of range");
        Self(index as u8)
    }

    /// Returns the index in the list.
    #[must_use]
    #[inline]
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

/// Number of *configured* nodes, reachable or not.
///
/// A quorum is counted over the configured nodes, never over the nodes that happen to be connected
/// (counterexample Q4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCount(u8);

impl NodeCount {
    /// Returns a count of `count` nodes; `None` unless it is at least one and at most
    /// [`MAX_NODES`].
    #[must_use]
    pub const fn new(count: usize) -> Option<Self> {
        if count >= 1 && count <= MAX_NODES { Some(Self(count as u8)) } else { None }
    }

    /// Returns the number of nodes.
    #[must_use]
    #[inline]
    pub const fn get(self) -> usize {
        self.0 as usize
    }

    /// Returns the quorum: the smallest size for which any two sets of nodes share a node,
    /// ⌊N/2⌋ + 1, in integers (counterexamples Q1 to Q3).
    #[must_use]
    pub const fn quorum(self) -> usize {
        self.get() / 2 + 1
    }

    /// Returns how many nodes may be missing while the others still form a majority: N − q.
    #[must_use]
    pub const fn tolerated(self) -> usize {
        self.get() - self.quorum()
    }

    /// Returns the first instant at which a quorum counts, if each node counts from its instant in
    /// `from`; `None`: never.
    pub(crate) fn quorum_from(self, mut from: [BootInstant; MAX_NODES]) -> Option<BootInstant> {
        let from = &mut from[..self.get()];
        from.sort_unstable();
        Some(from[self.quorum() - 1]).filter(|at| *at != BootInstant::NEVER)
    }

    /// Returns the set of all nodes.
    #[must_use]
    pub const fn all(self) -> NodeMask {
        NodeMask((1 << self.0) - 1)
    }

    /// Iterates over all nodes, in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = NodeIndex> + Clone {
        (0..self.get()).map(NodeIndex::new)
    }
}

/// A set of nodes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct NodeMask(u16);

impl NodeMask {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// Returns the set of `node` alone.
    #[must_use]
    pub const fn of(node: NodeIndex) -> Self {
        Self(1 << node.0)
    }

    /// Returns the set as bits; the first node is the lowest bit.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Adds `node`.
    pub const fn insert(&mut self, node: NodeIndex) {
        self.0 |= 1 << node.0;
    }

    /// Removes `node`.
    pub const fn remove(&mut self, node: NodeIndex) {
        self.0 &= !(1 << node.0);
    }

    /// Returns true if `node` is in the set.
    #[must_use]
    pub const fn contains(self, node: NodeIndex) -> bool {
        self.0 & (1 << node.0) != 0
    }

    /// Returns the number of nodes in the set.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the nodes that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the nodes that are in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the nodes of this set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Removes the first node of the set and returns it.
    pub fn pop(&mut self) -> Option<NodeIndex> {
        let first = self.iter().next()?;
        self.remove(first);
        Some(first)
    }

    /// Iterates over the nodes of the set, in order.
    pub fn iter(self) -> impl Iterator<Item = NodeIndex> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let lowest = left.trailing_zeros();
            left &= left.checked_sub(1)?;
            Some(NodeIndex::new(lowest as usize))
        })
    }
}

impl fmt::Debug for NodeMask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter().map(NodeIndex::get)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_quorums_share_a_node() {
        for count in 1..=MAX_NODES {
            let nodes = NodeCount::new(count).unwrap();
            assert!(2 * nodes.quorum() > count, "{count}");
            assert!(2 * (nodes.quorum() - 1) <= count, "{count}: larger than needed");
        }
    }

    #[test]
    fn no_nodes_and_too_many_are_refused() {
        assert_eq!(NodeCount::new(0), None);
        assert_eq!(NodeCount::new(MAX_NODES + 1), None);
    }
}
