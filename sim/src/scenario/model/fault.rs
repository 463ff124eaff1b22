//! What goes wrong, and when.

use core::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::at::At;
use crate::scenario::span::{SignedSpan, Span};

/// Something that goes wrong: exactly one kind, when, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fault {
    /// Its name, for `set` and for reports.
    pub id: String,
    /// When it begins.
    pub at: At,
    /// The true time at which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// How long it lasts; for faults that begin at a point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Whether it happens at all.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// A client takes no step; the world goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<OneHost>,
    /// The same, and the host sleeps: its monotonic clock stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<OneHost>,
    /// The process dies, its host lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill: Option<Restarting>,
    /// The host dies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Restarting>,
    /// A node executes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<OneHost>,
    /// Nothing passes between two groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    /// Messages take longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// The wall clock is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_jump: Option<ClockBy>,
    /// All three clocks run at another rate, until the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_rate: Option<ClockRate>,
    /// The clocks are slewed by an amount between the beginning and the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_slew: Option<ClockBy>,
    /// The lock's key is evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evict: Option<OneHost>,
    /// Every key of a node is deleted, or of one of its databases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<Flush>,
    /// Two databases of a node change places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<Swap>,
    /// An operator deletes the lock's key on a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<OneHost>,
    /// A node's memory is full and its policy is `noeviction`: it refuses to set, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_full: Option<OneHost>,
    /// Syncs of a node's disk that are under way or begin do not finish until the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_stall: Option<OneHost>,
    /// A node writes a snapshot, done at this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<OneHost>,
    /// A node's process is told to stop: it writes what its persistence says, and closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<Restarting>,
    /// A replica takes the place of its master.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<Failover>,
    /// A node's server becomes a replica under live connections, and a master again at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demote: Option<Demotion>,
    /// A replica is new: it begins to follow its node at this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<OneHost>,
}

fn yes() -> bool {
    true
}

/// What a fault is, once its one kind key has been found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind<'a> {
    /// See [`Fault::attach`].
    Attach(&'a OneHost),
    /// See [`Fault::clock_jump`].
    ClockJump(&'a ClockBy),
    /// See [`Fault::clock_rate`].
    ClockRate(&'a ClockRate),
    /// See [`Fault::clock_slew`].
    ClockSlew(&'a ClockBy),
    /// See [`Fault::delay`].
    Delay(&'a Delay),
    /// See [`Fault::delete`].
    Delete(&'a OneHost),
    /// See [`Fault::demote`].
    Demote(&'a Demotion),
    /// See [`Fault::disk_stall`].
    DiskStall(&'a OneHost),
    /// See [`Fault::evict`].
    Evict(&'a OneHost),
    /// See [`Fault::failover`].
    Failover(&'a Failover),
    /// See [`Fault::flush`].
    Flush(&'a Flush),
    /// See [`Fault::kill`].
    Kill(&'a Restarting),
    /// See [`Fault::memory_full`].
    MemoryFull(&'a OneHost),
    /// See [`Fault::partition`].
    Partition(&'a Partition),
    /// See [`Fault::pause`].
    Pause(&'a OneHost),
    /// See [`Fault::power`].
    Power(&'a Restarting),
    /// See [`Fault::shutdown`].
    Shutdown(&'a Restarting),
    /// See [`Fault::snapshot`].
    Snapshot(&'a OneHost),
    /// See [`Fault::stall`].
    Stall(&'a OneHost),
    /// See [`Fault::swap`].
    Swap(&'a Swap),
    /// See [`Fault::suspend`].
    Suspend(&'a OneHost),
}

impl Fault {
    /// The kinds that are given; a valid fault has exactly one.
    pub fn kinds(&self) -> impl Iterator<Item = FaultKind<'_>> {
        [
            self.pause.as_ref().map(FaultKind::Pause),
            self.suspend.as_ref().map(FaultKind::Suspend),
            self.kill.as_ref().map(FaultKind::Kill),
            self.power.as_ref().map(FaultKind::Power),
            self.stall.as_ref().map(FaultKind::Stall),
            self.partition.as_ref().map(FaultKind::Partition),
            self.delay.as_ref().map(FaultKind::Delay),
            self.clock_jump.as_ref().map(FaultKind::ClockJump),
            self.clock_rate.as_ref().map(FaultKind::ClockRate),
            self.clock_slew.as_ref().map(FaultKind::ClockSlew),
            self.evict.as_ref().map(FaultKind::Evict),
            self.flush.as_ref().map(FaultKind::Flush),
            self.swap.as_ref().map(FaultKind::Swap),
            self.delete.as_ref().map(FaultKind::Delete),
            self.memory_full.as_ref().map(FaultKind::MemoryFull),
            self.disk_stall.as_ref().map(FaultKind::DiskStall),
            self.snapshot.as_ref().map(FaultKind::Snapshot),
            self.shutdown.as_ref().map(FaultKind::Shutdown),
            self.failover.as_ref().map(FaultKind::Failover),
            self.demote.as_ref().map(FaultKind::Demote),
            self.attach.as_ref().map(FaultKind::Attach),
        ]
        .into_iter()
        .flatten()
    }

    /// What the fault is.
    ///
    /// # Panics
    ///
    /// If it has no kind; validation refuses such a fault.
    #[must_use]
    pub fn kind(&self) -> FaultKind<'_> {
        self.kinds().next().expect("a validated fault has a kind")
    }
}

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
