//! The hosts that a fault is about.

use core::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The hosts that a fault is about. In a file a name, or a list of names to which it happens at
/// once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNames(pub Vec<String>);

impl fmt::Display for HostNames {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join(", "))
    }
}

impl Serialize for HostNames {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            names => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for HostNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HostNamesVisitor)
    }
}

struct HostNamesVisitor;

impl<'de> Visitor<'de> for HostNamesVisitor {
    type Value = HostNames;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a host, or a list of names")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<HostNames, E> {
        Ok(HostNames(vec![name.to_owned()]))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, names: A) -> Result<HostNames, A::Error> {
        Vec::deserialize(de::value::SeqAccessDeserializer::new(names)).map(HostNames)
    }
}

/// Kinds of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// The processes that lock.
    Clients,
    /// The masters.
    Nodes,
    /// The masters and the servers that follow them.
    NodesAndReplicas,
    /// Every host that has clocks and processes of its own.
    Machines,
    /// The protected resource, too.
    All,
}

impl Hosts {
    /// One of them, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Clients => "a client",
            Self::Nodes => "a node",
            Self::NodesAndReplicas => "a node or a replica",
            Self::Machines => "a client, a node or a replica",
            Self::All => "a client, a node, a replica or `store`",
        }
    }
}
