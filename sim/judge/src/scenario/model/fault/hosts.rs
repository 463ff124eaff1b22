//! The hosts of a fault.

use core::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::text;

/// The hosts of a fault. In a file, a name or a list of names; the fault happens to all of them at
/// once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNames(pub Vec<String>);

impl fmt::Display for HostNames {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&text::list(&self.0))
    }
}

impl HostNames {
    /// Returns the words that fit the number of names, such as the verb after them: `is` after one,
    /// `are` after several.
    pub(super) fn by_number<W>(&self, one: W, several: W) -> W {
        if self.0.len() == 1 { one } else { several }
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

/// Groups of hosts that a fault may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// The client processes.
    Clients,
    /// The client processes and the masters.
    ClientsAndNodes,
    /// The masters.
    Nodes,
    /// The masters and the replicas.
    NodesAndReplicas,
    /// All hosts with clocks and processes of their own: clients, masters and replicas.
    Machines,
    /// The machines and the protected resource.
    All,
}

impl Hosts {
    /// Returns the description of one such host, for messages.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Clients => "a client",
            Self::ClientsAndNodes => "a client or a node",
            Self::Nodes => "a node",
            Self::NodesAndReplicas => "a node or a replica",
            Self::Machines => "a client, a node or a replica",
            Self::All => "a client, a node, a replica or `store`",
        }
    }
}
