//! What observers are told of time and of nodes.

use core::fmt;
use core::time::Duration;

use crate::protocol::{BootInstant, NodeMask};

/// A reading of the client's own clock. It means nothing to any other process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(BootInstant);

impl Instant {
    pub(crate) fn new(instant: BootInstant) -> Self {
        Self(instant)
    }

    /// Time from `earlier` to here; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.since(earlier.0)
    }

    /// Nanoseconds since the clock's origin, for logs.
    pub(super) fn as_nanos(self) -> u64 {
        self.0.as_nanos()
    }

    /// The reading.
    #[cfg(feature = "simulation")]
    #[doc(hidden)]
    #[must_use]
    pub fn boot(self) -> BootInstant {
        self.0
    }
}

/// A set of nodes, named by their places in the configured list.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nodes(NodeMask);

impl Nodes {
    pub(crate) fn new(mask: NodeMask) -> Self {
        Self(mask)
    }

    /// The places, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|node| node.get())
    }

    /// How many nodes are in the set.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether no node is in the set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The set as bits, the first node lowest.
    #[cfg(feature = "simulation")]
    #[doc(hidden)]
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0.bits()
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}
