//! Identities of nodes, servers, clients, hosts, commands, writes, faults and so on, tables and
//! sets that are indexed by them, and other names for parts of a run. This module imports no other
//! module, so that every other module can use it.

mod fault_set;
mod set;
mod table;

use core::fmt;

use serde::{Deserialize, Serialize};

pub use self::fault_set::FaultIds;
pub use self::set::{ClientIds, HostIds, NodeIds};
pub use self::table::{IdVec, PerClient, PerHost, PerNode};

/// Maximum number of nodes of a scenario.
pub const NODES_MAX: usize = 9;

/// Maximum number of clients of a scenario, not counting the probe of the first resource.
pub const CLIENTS_MAX: usize = 64;

/// Maximum number of resources of a scenario. Each has a probe.
pub const RESOURCES_MAX: usize = 8;

/// Maximum number of faults of a scenario.
pub const FAULTS_MAX: usize = 256;

/// Maximum number of replicas of all nodes of a scenario together.
pub const REPLICAS_MAX: usize = 9;

/// Maximum number of hosts of a scenario, with those of the probe and of the protected resource.
pub const HOSTS_MAX: usize = NODES_MAX + CLIENTS_MAX + 2 + REPLICAS_MAX;

/// The identity of one thing among its like: an index into the list of all of them.
pub trait Id: Copy {
    /// Returns the identity of the thing at `index`.
    fn at(index: usize) -> Self;

    /// Returns the index of the thing.
    fn index(self) -> usize;

    /// Returns the identities of the first `count` things.
    fn first(count: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (0..count).map(Self::at)
    }
}

/// Declares identities: numbers that cannot be mistaken for one another.
macro_rules! ids {
    ($($(#[$documentation:meta])* $name:ident($number:ty);)+) => {$(
        $(#[$documentation])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
            Default,
        )]
        #[serde(transparent)]
        pub struct $name(pub $number);

        impl Id for $name {
            #[inline]
            fn at(index: usize) -> Self {
                debug_assert!(index <= <$number>::MAX as usize, "{index} is no index");
                Self(index as $number)
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    )+};
}

ids! {
    /// A node: a place in the lists that clients lock on.
    NodeId(u8);
    /// A server: first the server that each node begins with, then the replicas.
    ServerId(u8);
    /// A client; the identities after the last client's are the probes', one for each resource.
    ClientId(u8);
    /// A host: first those of the nodes, then those of the clients and of the probe, then the
    /// protected resource, then those of the replicas.
    HostId(u8);
    /// A command of a run, in the order of writing.
    CommandId(u32);
    /// A connection of a run, in the order of dialling.
    ConnectionId(u32);
    /// A fault of the scenario.
    FaultId(u16);
    /// An extension of a lease, from 1 in the order in which they began.
    RoundId(u16);
    /// A resource that clients lock: a key of its own on every node, and a register of its own that
    /// the lock protects.
    ResourceId(u8);
    /// A write to the protected resource, in the order of sending.
    WriteId(u32);
    /// A fault at one of its hosts: a fault on a group of hosts strikes each of them.
    StrikeId(u16);
}

impl NodeId {
    /// Returns the server that the node begins with.
    #[must_use]
    pub const fn first_server(self) -> ServerId {
        ServerId(self.0)
    }

    /// Returns the host of the server that the node begins with.
    #[must_use]
    pub const fn first_host(self) -> HostId {
        HostId(self.0)
    }
}

/// Identifies one attempt of one client, and the lease if the attempt is granted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
pub struct AttemptId {
    /// The client.
    pub client: ClientId,
    /// Number of the attempt among the client's attempts, from 1.
    pub number: u16,
}

/// A number by which the protected resource rejects writes of earlier leases: later leases have
/// larger ones.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct FencingToken(pub u64);

impl FencingToken {
    /// Stands for the token of a lease that has none.
    pub const NONE: Self = Self(0);
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
