//! The masters, the network and the clocks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::scenario::span::{SignedSpan, Span, SpanRange};

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
    /// Which server the masters are.
    #[serde(skip_serializing_if = "Server::is_default")]
    pub server: Server,
    /// What a master keeps over a restart.
    pub persistence: Persistence,
    /// When keys are deleted whose time has come and that nobody asks for.
    #[serde(skip_serializing_if = "ActiveExpiry::is_default")]
    pub active_expiry: ActiveExpiry,
    /// How the disks under the masters behave.
    pub disk: Disk,
    /// Replicas, each a host of its own.
    #[serde(rename = "replica", skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<Replica>,
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
            server: Server::default(),
            persistence: Persistence::None,
            active_expiry: ActiveExpiry::default(),
            disk: Disk::default(),
            replicas: Vec::new(),
            node: BTreeMap::new(),
            clocks: BTreeMap::new(),
            uptime: Span(30 * 24 * 60 * 60 * 1_000_000_000),
            connections: Start::Warm,
        }
    }
}

/// Which server the masters are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// Redis 7.0.
    #[default]
    #[serde(rename = "redis-7", alias = "redis-7.0")]
    Redis7,
    /// Redis 7.2.
    #[serde(rename = "redis-7.2")]
    Redis72,
    /// Redis 8.4.
    #[serde(rename = "redis-8.4")]
    Redis84,
    /// Valkey 9.
    #[serde(rename = "valkey-9")]
    Valkey9,
}

impl Server {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it has `SET key value IFEQ value PX ttl`, which sets the time to live whatever it
    /// was. With other servers an extension is a script, which never shortens.
    #[must_use]
    pub const fn extends_plainly(self) -> bool {
        matches!(self, Self::Redis84 | Self::Valkey9)
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// Everything, whatever dies: `appendfsync always`; a reply waits for the sync.
    Always,
    /// `appendfsync everysec`: written before the reply, synced once a second in the background.
    Everysec,
    /// `appendfsync no`: written before the reply, synced when the kernel likes.
    No,
    /// Nothing: no AOF, no snapshots.
    #[default]
    None,
    /// Snapshots alone; the last one is what is left.
    Rdb,
}

/// When a master deletes keys whose time has come and that nobody asks for. A key that is asked for
/// counts as gone once the clock reads more than its time; the active cycle takes it as soon as the
/// clock reads its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActiveExpiry {
    /// The cycle comes a millisecond late, when the key counts as gone anyhow.
    #[default]
    Late,
    /// It comes in the very millisecond.
    Prompt,
}

impl ActiveExpiry {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How the disks under the masters behave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Disk {
    /// How long a sync takes.
    pub sync_takes: Span,
    /// When the background syncs of `everysec` begin, past each full second of true time; drawn
    /// for every node if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_at: Option<Span>,
    /// Syncs are acknowledged and nothing is on the platter.
    pub lies: bool,
}

impl Default for Disk {
    fn default() -> Self {
        Self { sync_takes: Span(0), sync_at: None, lies: false }
    }
}

/// A replica of one master.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Replica {
    /// Its name.
    pub id: String,
    /// Whose replica it is.
    pub of: String,
    /// One way from master to replica and back, drawn for every effect.
    #[serde(default = "one_ms")]
    pub delay: SpanRange,
}

fn one_ms() -> SpanRange {
    SpanRange::exactly(Span::from_ms(1))
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
