//! The details that an author gives for each kind of fault.

use core::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::hosts::HostNames;
use crate::scenario::model::is_false;
use crate::scenario::span::{SignedSpanRange, Span, SpanRange};

/// A fault without details other than its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OneHost {
    /// Names of the hosts.
    pub host: HostNames,
}

/// Nodes on which something happens to the key of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OneKey {
    /// Names of the nodes.
    pub host: HostNames,
    /// Name of the lock's resource; `lock.resource` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

/// Nodes that are flushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flush {
    /// Names of the nodes.
    pub host: HostNames,
    /// Number of the database that is emptied; all of them if not given. Locks are in database 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<u8>,
}

/// Nodes on which two databases change places (`SWAPDB`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Swap {
    /// Names of the nodes.
    pub host: HostNames,
    /// Numbers of the two databases. Locks are in database 0.
    pub databases: [u8; 2],
}

/// A host that dies, and perhaps restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Restarting {
    /// Names of the hosts.
    pub host: HostNames,
    /// Time from the death to the restart, drawn from a range; the host stays dead if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_after: Option<SpanRange>,
    /// Clock that measures `restart-after`: one on the same host, or true time.
    #[serde(default)]
    pub measured_on: Stopwatch,
    /// Before the restart, the disk is restored to its state at this true time, whatever it stored
    /// since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_of: Option<Span>,
    /// The death tears the write that was under way: some of the unsynced tail survives, and the
    /// last record of it only in part. Only with `power`.
    #[serde(default)]
    pub torn: bool,
    /// A proxy keeps the clients' connections open across the death and the restart. Messages sent
    /// in between are lost.
    #[serde(default)]
    pub behind_a_proxy: bool,
    /// Another machine takes over the name: it starts with an empty disk, whatever the old one
    /// stored.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replaced: bool,
}

/// Clock that measures the delay of a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stopwatch {
    /// The host's boot clock, which may run at a wrong rate but cannot be set.
    Boot,
    /// True time.
    #[default]
    True,
    /// The host's wall clock, which can be set.
    Wall,
}

/// A replacement of a node's master: by a replica, or by the old master when it returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Failover {
    /// Node that gets a new master.
    pub node: String,
    /// The new master: one of the node's replicas, or the node's own server after an earlier
    /// failover.
    pub to: String,
    /// Clients that learn of the failover at once; all of them if not given. The others keep using
    /// the old master, if it lives, until the fault ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Vec<String>>,
}

/// Masters that become replicas while connections stay open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Demotion {
    /// Names of the nodes.
    pub host: HostNames,
    /// The node's own replica, whose keys the server receives. If not given, the server follows one
    /// outside the scenario that has no keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The server resynchronises partially and loses no key.
    #[serde(default)]
    pub keeps_keys: bool,
}

/// A partition: nothing passes between two groups of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Partition {
    /// The two groups; clients, nodes, replicas or `store`.
    #[serde(deserialize_with = "groups")]
    pub between: [Vec<String>; 2],
    /// Block only messages from the first group to the second.
    #[serde(default)]
    pub one_way: bool,
    /// Effect on the blocked messages and their connections.
    #[serde(default)]
    pub lost: Lost,
}

/// Reads two groups of hosts. The message about anything else shows two groups.
fn groups<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[Vec<String>; 2], D::Error> {
    struct Group(Vec<String>);

    struct GroupVisitor;

    impl<'de> Visitor<'de> for GroupVisitor {
        type Value = Group;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("two lists of hosts, such as `[[\"c1\"], [\"A\", \"B\"]]`")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Group, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(names)).map(Group)
        }
    }

    impl<'de> Deserialize<'de> for Group {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_seq(GroupVisitor)
        }
    }

    let [one, other] = <[Group; 2]>::deserialize(deserializer)?;
    Ok([one.0, other.0])
}

/// Effect of a partition on the connections across it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Lost {
    /// Messages arrive after the partition heals, with the next retransmission.
    #[default]
    Hold,
    /// Both ends see a reset.
    Reset,
    /// Nothing ever arrives on a connection that was open, and neither end notices.
    Silent,
}

/// Messages from one group to another take longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Delay {
    /// Names of the hosts whose messages take longer.
    pub from: Vec<String>,
    /// Names of the hosts to which those messages go.
    pub to: Vec<String>,
    /// Additional delay; drawn from a range.
    pub by: SpanRange,
    /// Kind of message to delay; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Message>,
}

/// Kinds of messages that a delay can be limited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// Replies of nodes.
    Answer,
    /// Extension requests.
    Extend,
    /// Release requests.
    Release,
    /// SET requests.
    Set,
    /// Writes to the resource.
    Write,
}

/// A clock that is moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClockBy {
    /// Hosts of the clocks.
    pub host: HostNames,
    /// Amount, drawn from a range; positive is forward.
    pub by: SignedSpanRange,
}

/// A clock that runs at a wrong rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClockRate {
    /// Hosts of the clocks.
    pub host: HostNames,
    /// Rate relative to the clock's usual rate, in parts per million; positive is faster.
    pub ppm: i32,
}
