//! Identifiers of hosts, attempts, writers and clocks. This module imports no other module, so that
//! every other module can use it.

use serde::{Deserialize, Serialize};

/// Index of a host: first the nodes, then the clients, then the protected resource.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct HostIndex(pub u8);

impl HostIndex {
    /// Returns the index as a `usize`.
    #[must_use]
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

/// Identifies one attempt of one client, and the lease if the attempt is granted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
pub struct AttemptId {
    /// Index of the client.
    pub client: u8,
    /// Number of the attempt among the client's attempts, from 1.
    pub number: u16,
}

/// Writer of the current state of a key.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "kebab-case")]
pub enum Writer {
    /// The key does not exist.
    #[default]
    Nobody,
    /// The attempt whose command wrote the key, whatever token the command carried.
    Attempt(AttemptId),
    /// A person or a program outside the lock.
    Operator,
}

/// One of a host's three clocks.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// Counts time asleep; is never set.
    #[default]
    Boot,
    /// Stops while the host is suspended; is never set.
    Monotonic,
    /// Can be set.
    Wall,
}

impl ClockKind {
    /// The three clocks of a host.
    pub const ALL: [Self; 3] = [Self::Boot, Self::Monotonic, Self::Wall];
}
