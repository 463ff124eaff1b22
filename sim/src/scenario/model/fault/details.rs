//! What a fault's author says of it, kind by kind.

use serde::{Deserialize, Serialize};

use super::hosts::HostNames;
use crate::scenario::span::{SignedSpan, Span};

/// The hosts that a fault is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OneHost {
    /// Their names.
    pub host: HostNames,
}

/// Nodes that somebody empties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flush {
    /// Their names.
    pub host: HostNames,
    /// The number of the database that is emptied; all of them if not given. Locks are in database 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<u8>,
}

/// Nodes of which two databases change places (`SWAPDB`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Swap {
    /// Their names.
    pub host: HostNames,
    /// The numbers of the two. Locks are in database 0.
    pub databases: [u8; 2],
}

/// A host that dies, and perhaps comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Restarting {
    /// Its name.
    pub host: HostNames,
    /// How long after its death it starts again; never if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_after: Option<Span>,
    /// What measures that time: the clock of whoever restarts it, who is on the same host.
    #[serde(default)]
    pub measured_on: Stopwatch,
    /// The disk is put back to what it was at this true time, whatever it has kept since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_of: Option<Span>,
    /// The host's death tears what was being written: some of the unsynced tail survives, and the
    /// last record of it in part. Only with `power`.
    #[serde(default)]
    pub torn: bool,
    /// A proxy keeps the clients' connections open across the death and the restart; what is sent in
    /// between is lost.
    #[serde(default)]
    pub behind_a_proxy: bool,
}

/// What measures the delay of a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopwatch {
    /// The host's boot clock: it can run wrong, it cannot be set.
    Boot,
    /// True time.
    #[default]
    True,
    /// The host's wall clock, which can be set.
    Wall,
}

/// A master that makes way for a replica, or for the old master that comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Failover {
    /// Whose place is taken.
    pub node: String,
    /// Who takes it: one of the node's replicas, or the node itself after an earlier failover.
    pub to: String,
    /// The clients that hear of it at once; all of them if not given. The others go on with the old
    /// master, if it lives, until the fault ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Vec<String>>,
}

/// Masters that become replicas under live connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Demotion {
    /// The nodes.
    pub host: HostNames,
    /// The node's own replica, whose keys the server gets; if not given it follows a server outside
    /// the scenario that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The server is resynchronised in part, and loses no key.
    #[serde(default)]
    pub keeps_keys: bool,
}

/// Nothing passes between two groups of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Partition {
    /// The two groups; clients, nodes, or `store`.
    pub between: [Vec<String>; 2],
    /// Only from the first group to the second.
    #[serde(default)]
    pub one_way: bool,
    /// What becomes of what is sent.
    #[serde(default)]
    pub lost: Lost,
}

/// What a partition does to connections across it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lost {
    /// What was sent arrives after the heal, with the next retransmission.
    #[default]
    Hold,
    /// Both ends see a reset.
    Reset,
    /// Nothing arrives, ever, on a connection that was open; no end notices.
    Silent,
}

/// Messages from one group to another take longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Delay {
    /// Where they come from.
    pub from: Vec<String>,
    /// Where they go.
    pub to: Vec<String>,
    /// How much longer.
    pub by: Span,
    /// Only these messages; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Message>,
}

/// Kinds of messages that a delay can be limited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// Answers of nodes.
    Answer,
    /// Requests that extend.
    Extend,
    /// Requests that release.
    Release,
    /// Requests that set.
    Set,
    /// Writes to the resource.
    Write,
}

/// A clock that is moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClockBy {
    /// Whose.
    pub host: HostNames,
    /// By how much; forward if positive.
    pub by: SignedSpan,
}

/// A clock that runs wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClockRate {
    /// Whose.
    pub host: HostNames,
    /// How much faster than true time, in parts per million.
    pub ppm: i32,
}
