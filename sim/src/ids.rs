//! The names of what a run is made of: on the ground floor, so that everything else can use them.

use serde::{Deserialize, Serialize};

/// A host: the nodes come first, then the clients, then the protected resource.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct HostIndex(pub u8);

impl HostIndex {
    /// The place of the host.
    #[must_use]
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

/// One attempt of one client, and the lease if it is granted one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
pub struct AttemptId {
    /// The place of the client among the clients.
    pub client: u8,
    /// Counts the client's attempts from 1.
    pub number: u16,
}

/// Who made a key what it is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "kebab-case")]
pub enum Writer {
    /// There is no key.
    #[default]
    Nobody,
    /// The attempt whose command it was, whatever token the command carried.
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
    /// Counts time asleep, is never set.
    #[default]
    Boot,
    /// Stops while the host is suspended, is never set.
    Monotonic,
    /// Can be set.
    Wall,
}

impl ClockKind {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Boot, Self::Monotonic, Self::Wall];
}
