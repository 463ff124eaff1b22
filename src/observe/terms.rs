//! Types of instants, node sets and reasons in events.

use core::fmt;
use core::time::Duration;

use redlock_protocol::{BootInstant, NodeMask};

/// A reading of the client's own clock. It has no meaning in any other process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(BootInstant);

impl Instant {
    pub(crate) fn new(instant: BootInstant) -> Self {
        Self(instant)
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.since(earlier.0)
    }

    /// Returns the nanoseconds since the clock's origin, for logs.
    pub(super) fn as_nanos(self) -> u64 {
        self.0.as_nanos()
    }
}

impl From<Instant> for BootInstant {
    fn from(instant: Instant) -> Self {
        instant.0
    }
}

/// A set of nodes, identified by their places in the configured list.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nodes(NodeMask);

impl Nodes {
    pub(crate) fn new(mask: NodeMask) -> Self {
        Self(mask)
    }

    /// Iterates over the places, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|node| node.get())
    }

    /// Returns the number of nodes in the set.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Returns true if no node is in the set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

/// Reason why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptError {
    /// The caller cancelled.
    Cancelled,
    /// A majority was not asked within the node timeout, because other commands of this client were
    /// ahead.
    Overloaded,
    /// No majority was possible without nodes that are in quarantine.
    Quarantined,
    /// Votes are split: no other attempt has keys on a majority of the nodes either.
    Split,
    /// Another owner has the lock: a majority of the nodes showed keys of one other attempt, or
    /// another use of this client holds the lease.
    Taken,
    /// Too few nodes answered: it is unknown whether another owner has the lock.
    TooFewNodes,
    /// A majority answered, or the caller fetched the grant, too late for the lease to have enough
    /// time left.
    TooSlow,
}

impl AttemptError {
    /// Returns the reason as one word, for logs and metrics. The words are stable, like the names
    /// of the variants.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Overloaded => "overloaded",
            Self::Quarantined => "quarantined",
            Self::Split => "split",
            Self::Taken => "taken",
            Self::TooFewNodes => "too_few_nodes",
            Self::TooSlow => "too_slow",
        }
    }
}

impl From<redlock_protocol::AttemptError> for AttemptError {
    fn from(reason: redlock_protocol::AttemptError) -> Self {
        use redlock_protocol::AttemptError as Reason;
        match reason {
            Reason::Cancelled => Self::Cancelled,
            Reason::Overloaded => Self::Overloaded,
            Reason::Quarantined => Self::Quarantined,
            Reason::Split => Self::Split,
            Reason::Taken => Self::Taken,
            Reason::TooFewNodes => Self::TooFewNodes,
            Reason::TooSlow => Self::TooSlow,
        }
    }
}

// For the simulator, whose histories tell the reasons of all its engines in one way.
impl From<AttemptError> for redlock_protocol::AttemptError {
    fn from(reason: AttemptError) -> Self {
        match reason {
            AttemptError::Cancelled => Self::Cancelled,
            AttemptError::Overloaded => Self::Overloaded,
            AttemptError::Quarantined => Self::Quarantined,
            AttemptError::Split => Self::Split,
            AttemptError::Taken => Self::Taken,
            AttemptError::TooFewNodes => Self::TooFewNodes,
            AttemptError::TooSlow => Self::TooSlow,
        }
    }
}
