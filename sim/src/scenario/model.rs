//! The types of a scenario. Every field is documented as its author meets it in a file.

use core::fmt;
use std::collections::BTreeMap;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::expect::{Expectation, Property};
use super::span::{SeedRange, SignedSpan, Span, SpanRange};
use crate::history::HostIndex;

/// A scenario file, or one case of it as it is played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// The version of the format: 1.
    pub schema: u32,
    /// Lower case, words joined by `-`; the file's own name.
    pub name: String,
    /// One line: what happens.
    pub title: String,
    /// Catalogue numbers and families.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Where the scenario was described first.
    #[serde(default)]
    pub source: String,
    /// A paragraph for the report: what to look at, and what it shows.
    #[serde(default)]
    pub story: String,
    /// The masters.
    #[serde(default)]
    pub cluster: Cluster,
    /// The lock, as every client is told it.
    #[serde(default)]
    pub lock: Lock,
    /// The protected resource.
    #[serde(default)]
    pub store: Store,
    /// Who locks.
    #[serde(rename = "client", default)]
    pub clients: Vec<Client>,
    /// What goes wrong, in any order.
    #[serde(rename = "fault", default)]
    pub faults: Vec<Fault>,
    /// How it is run.
    #[serde(default)]
    pub run: Run,
    /// What is expected; properties not named are expected to hold.
    #[serde(default)]
    pub expect: BTreeMap<Property, Expectation>,
    /// Variations of the scenario, each a test of its own.
    #[serde(rename = "case", default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseSpec>,
    /// Paths and the values to give them; every combination is a case of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, Vec<toml::Value>>,
}

/// A variation of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CaseSpec {
    /// Says what the case shows; its slug is the test's name.
    pub name: String,
    /// Paths and the values to give them.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// Replaces the base's expectations.
    #[serde(default)]
    pub expect: BTreeMap<Property, Expectation>,
    /// Paths and values; every combination is a case of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, Vec<toml::Value>>,
}

/// One thing to play: a scenario without cases or sweeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Case {
    /// The case's slug; `None` for the base.
    pub slug: Option<String>,
    /// The case's name as its author wrote it; `None` for the base.
    pub name: Option<String>,
    /// With the case's settings applied.
    pub scenario: Scenario,
    /// Settings from the command line, as `path=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
}

impl Case {
    /// `scenario` or `scenario::case`.
    #[must_use]
    pub fn full_name(&self) -> String {
        match &self.slug {
            Some(slug) => format!("{}::{slug}", self.scenario.name),
            None => self.scenario.name.clone(),
        }
    }
}

/// The masters and the network around them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Cluster {
    /// Their names, at most nine.
    pub nodes: Vec<String>,
    /// Every link, unless `links` says otherwise.
    pub network: Network,
    /// Links that differ.
    pub links: Vec<LinkSpec>,
    /// What a master keeps over a restart.
    pub persistence: Persistence,
    /// Masters that differ, by name.
    pub node: BTreeMap<String, NodeSpec>,
    /// Clocks that differ, by the name of a node or a client.
    pub clocks: BTreeMap<String, ClockSpec>,
    /// How long the masters have been up when the scenario begins.
    pub uptime: Span,
    /// Whether the clients' connections are open when the scenario begins.
    pub connections: Start,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            nodes: ["A", "B", "C", "D", "E"].map(String::from).to_vec(),
            network: Network::default(),
            links: Vec::new(),
            persistence: Persistence::None,
            node: BTreeMap::new(),
            clocks: BTreeMap::new(),
            uptime: Span(30 * 24 * 60 * 60 * 1_000_000_000),
            connections: Start::Warm,
        }
    }
}

/// Whether connections are open when the scenario begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// To be dialled first.
    Cold,
    /// Open, and introduced.
    #[default]
    Warm,
}

/// What links do to messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Network {
    /// One way, drawn for every message.
    pub delay: SpanRange,
}

impl Default for Network {
    fn default() -> Self {
        Self { delay: SpanRange::exactly(Span::from_ms(1)) }
    }
}

/// The links between two groups of hosts, in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkSpec {
    /// The two groups.
    pub between: [Vec<String>; 2],
    /// One way, drawn for every message.
    pub delay: SpanRange,
}

/// What a master keeps of what it acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// Everything, whatever dies: `appendfsync always` on an honest disk.
    Always,
    /// Nothing: no AOF, no snapshots.
    #[default]
    None,
}

/// A master that differs from the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NodeSpec {
    /// What it keeps over a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
}

/// A host's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ClockSpec {
    /// How far the wall clock is ahead at the beginning.
    pub offset: SignedSpan,
    /// How much faster than true time all three clocks run, in parts per million.
    pub rate_ppm: i32,
}

/// The lock as the clients are told it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Lock {
    /// Its name, the key on every master.
    pub resource: String,
    /// How long a key lives.
    pub ttl: Span,
    /// What a lease gives up for drift.
    pub drift: Drift,
    /// How long a node may take to answer.
    pub node_timeout: Span,
    /// A grant with no more than this left is none.
    pub min_validity: Span,
    /// The wait between attempts.
    pub retry: Retry,
    /// The longest TTL that any client uses. The largest of the file unless it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet_max_ttl: Option<Span>,
    /// What the clients are *told* of the masters' memory; `cluster.persistence` is what is true.
    pub restart_guard: RestartGuard,
}

impl Default for Lock {
    fn default() -> Self {
        Self {
            resource: String::from("res"),
            ttl: Span::from_ms(10_000),
            drift: Drift::default(),
            node_timeout: Span::from_ms(50),
            min_validity: Span(0),
            retry: Retry::default(),
            fleet_max_ttl: None,
            restart_guard: RestartGuard::Quarantine,
        }
    }
}

/// What a lease gives up for clocks that run at different rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Drift {
    /// A share of the TTL, in parts per million.
    pub share_ppm: u32,
    /// And this.
    pub constant: Span,
}

impl Default for Drift {
    fn default() -> Self {
        Self { share_ppm: 10_000, constant: Span::from_ms(2) }
    }
}

/// The wait between two attempts: below a bound that doubles from `first` to `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Retry {
    /// The first bound.
    pub first: Span,
    /// The largest bound.
    pub longest: Span,
}

impl Default for Retry {
    fn default() -> Self {
        Self { first: Span::from_ms(5), longest: Span::from_ms(200) }
    }
}

/// What the operator promises the clients of the masters' memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartGuard {
    /// A crashed master stays away for longer than the longest TTL.
    DelayedRestart,
    /// A restart loses nothing.
    Durable,
    /// Nothing.
    #[default]
    Quarantine,
}

/// The protected resource: a host of its own behind the network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Store {
    /// What it checks.
    pub checks: Checks,
    /// One way to it, drawn for every message.
    pub delay: SpanRange,
}

impl Default for Store {
    fn default() -> Self {
        Self { checks: Checks::Nothing, delay: SpanRange::exactly(Span::from_ms(1)) }
    }
}

/// What the protected resource checks. The fencing modes draw a token from an ideal monotonic
/// source when a lease is delivered: control runs, no claim that Redlock has such a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checks {
    /// Nothing.
    #[default]
    Nothing,
    /// Fencing tokens, on writes.
    TokenOnWrite,
    /// Fencing tokens, when it is opened or read, and on writes.
    TokenOnOpenAndWrite,
    /// That the owner tag is still the writer's: a holder tags the resource with its random token
    /// when it opens it, and writes only while the tag is there.
    CompareAndSetOwner,
}

/// A client process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Client {
    /// Its name.
    pub id: String,
    /// Which lock client it runs: `redlock` is ours.
    #[serde(default = "ours")]
    pub subject: String,
    /// How it connects; each subject has its own habit. Not for `redlock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Its own TTL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// What the application does, in order. When an acquisition fails it goes on at the next one.
    pub steps: Vec<Step>,
}

fn ours() -> String {
    String::from("redlock")
}

/// How a subject uses connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// A new one for every command.
    FreshPerCommand,
    /// One a node, for everything.
    #[default]
    Pooled,
    /// One a node, and a second one for releases.
    SecondForRelease,
}

/// One step of an application: exactly one of the kinds, and perhaps when it begins at the
/// earliest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Step {
    /// Not before this true time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Span>,
    /// Acquire the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquire: Option<Acquire>,
    /// Ask the lease; go on at the next `release` if it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<Nothing>,
    /// Look, and enter the critical section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enter: Option<Enter>,
    /// Read the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Nothing>,
    /// Write the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Write>,
    /// Leave the section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave: Option<Nothing>,
    /// Release the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<Nothing>,
    /// Wait for this long on the client's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<Span>,
    /// Enter, stay, leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// A step without options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// How long to try. At most one is given; none is one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Acquire {
    /// Until this true time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// For this long on the client's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
    /// So many times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

/// How to enter a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Enter {
    /// Do not look first.
    pub unchecked: bool,
}

/// What to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Write {
    /// A value that is not computed from what was read.
    pub blind: bool,
}

/// How long a section lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// This long on the client's clock.
    For(Span),
    /// Until the client is told that the lease is over.
    UntilDeadline,
}

impl Serialize for Hold {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::For(span) => span.serialize(serializer),
            Self::UntilDeadline => serializer.serialize_str("until-deadline"),
        }
    }
}

impl<'de> Deserialize<'de> for Hold {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "until-deadline" {
            return Ok(Self::UntilDeadline);
        }
        let span = text
            .parse()
            .map_err(|error| serde::de::Error::custom(format!("{error}, or `until-deadline`")))?;
        Ok(Self::For(span))
    }
}

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
    /// Every key of a node is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<OneHost>,
}

fn yes() -> bool {
    true
}

/// When a fault begins. In a file either the bare time or a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum At {
    /// At this true time.
    Time(Span),
    /// Just before a step of an attempt.
    Point(HostAt),
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AtVisitor)
    }
}

struct AtVisitor;

impl<'de> Visitor<'de> for AtVisitor {
    type Value = At;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a time such as `250ms`, or a table with `client` and `before`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<At, E> {
        text.parse().map(At::Time).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<At, A::Error> {
        HostAt::deserialize(de::value::MapAccessDeserializer::new(map)).map(At::Point)
    }
}

/// A point in the course of a client's attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostAt {
    /// The client.
    pub client: String,
    /// Which of its attempts, from 1.
    #[serde(default = "first")]
    pub attempt: u16,
    /// Which step.
    pub before: Point,
    /// Which node's, for `write`, `execute` and `reply`; the first one to come if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

fn first() -> u16 {
    1
}

/// A step of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Point {
    /// The first reading of the clock.
    T1,
    /// A SET leaves the client.
    Write,
    /// A node executes it.
    Execute,
    /// The client takes the answer in.
    Reply,
    /// The reading of the clock that decides: at the last answer that counts.
    T2,
    /// The application gets the lease.
    Deliver,
    /// The application's last look at the lease before the section.
    Look,
    /// The section begins.
    Enter,
    /// All of them, each a case of its own.
    #[serde(rename = "*")]
    Every,
}

/// What a fault is, once its one kind key has been found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind<'a> {
    /// See [`Fault::clock_jump`].
    ClockJump(&'a ClockBy),
    /// See [`Fault::clock_rate`].
    ClockRate(&'a ClockRate),
    /// See [`Fault::clock_slew`].
    ClockSlew(&'a ClockBy),
    /// See [`Fault::delay`].
    Delay(&'a Delay),
    /// See [`Fault::evict`].
    Evict(&'a OneHost),
    /// See [`Fault::flush`].
    Flush(&'a OneHost),
    /// See [`Fault::kill`].
    Kill(&'a Restarting),
    /// See [`Fault::partition`].
    Partition(&'a Partition),
    /// See [`Fault::pause`].
    Pause(&'a OneHost),
    /// See [`Fault::power`].
    Power(&'a Restarting),
    /// See [`Fault::stall`].
    Stall(&'a OneHost),
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

/// The host that a fault is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OneHost {
    /// Its name.
    pub host: String,
}

/// A host that dies, and perhaps comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Restarting {
    /// Its name.
    pub host: String,
    /// How long after its death it starts again; never if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_after: Option<Span>,
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
    pub host: String,
    /// By how much; forward if positive.
    pub by: SignedSpan,
}

/// A clock that runs wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClockRate {
    /// Whose.
    pub host: String,
    /// How much faster than true time, in parts per million.
    pub ppm: i32,
}

/// How a scenario is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Run {
    /// The seeds `a..b`, `b` excluded.
    pub seeds: SeedRange,
    /// The seeds on the engine `turmoil`.
    pub turmoil_seeds: SeedRange,
    /// When it ends at the latest, in true time; the engine works it out if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
}

impl Default for Run {
    fn default() -> Self {
        Self { seeds: SeedRange(0..100), turmoil_seeds: SeedRange(0..2), duration: None }
    }
}

/// The most clients a scenario may have, the probe not counted.
pub const CLIENTS_MAX: usize = 8;

impl Scenario {
    /// How many hosts there are: nodes, clients, the probe, the store.
    #[must_use]
    pub fn host_count(&self) -> usize {
        self.cluster.nodes.len() + self.clients.len() + 2
    }

    /// The host of the node at `place`.
    #[must_use]
    pub fn node_host(&self, place: usize) -> HostIndex {
        HostIndex(place as u8)
    }

    /// The host of the client at `place`; the place after the last client is the probe's.
    #[must_use]
    pub fn client_host(&self, place: usize) -> HostIndex {
        HostIndex((self.cluster.nodes.len() + place) as u8)
    }

    /// The host of the protected resource.
    #[must_use]
    pub fn store_host(&self) -> HostIndex {
        HostIndex((self.cluster.nodes.len() + self.clients.len() + 1) as u8)
    }

    /// The name of a host.
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[must_use]
    pub fn host_name(&self, host: HostIndex) -> &str {
        let nodes = self.cluster.nodes.len();
        match host.get() {
            place if place < nodes => &self.cluster.nodes[place],
            place if place < nodes + self.clients.len() => &self.clients[place - nodes].id,
            place if place == nodes + self.clients.len() => "probe",
            place => {
                assert_eq!(host, self.store_host(), "no host {place}");
                "store"
            }
        }
    }

    /// The host of this name.
    #[must_use]
    pub fn host_named(&self, name: &str) -> Option<HostIndex> {
        let hosts = 0..self.host_count() as u8;
        hosts.map(HostIndex).find(|&host| self.host_name(host) == name)
    }
}
