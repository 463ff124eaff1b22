//! The masters, the network and the clocks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::scenario::span::{SignedSpan, Span, SpanRange};

/// The masters and the network around them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Cluster {
    /// Names of the nodes, at most nine.
    pub nodes: Vec<String>,
    /// Further names of nodes, for the `nodes` of clients: each stands for another address of the
    /// node, such as `B2 = "B"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
    /// The default behaviour of every link; `links` overrides it.
    pub network: Network,
    /// Links that differ from `network`.
    pub links: Vec<LinkSpec>,
    /// Server software of the masters.
    #[serde(skip_serializing_if = "Server::is_default")]
    pub server: Server,
    /// Data that a master keeps across a restart.
    pub persistence: Persistence,
    /// When a master deletes expired keys that no client accesses.
    #[serde(skip_serializing_if = "ActiveExpiry::is_default")]
    pub active_expiry: ActiveExpiry,
    /// Rights of the clients' user on the masters.
    #[serde(skip_serializing_if = "Rights::is_default")]
    pub rights: Rights,
    /// Behaviour of the disks under the masters.
    pub disk: Disk,
    /// Replicas; each is a host of its own.
    #[serde(rename = "replica", skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<Replica>,
    /// Masters and replicas with settings of their own, by name.
    pub node: BTreeMap<String, NodeSpec>,
    /// Clocks that differ from true time, by the name of the host.
    pub clocks: BTreeMap<String, ClockSpec>,
    /// Time for which the masters have been up when the scenario begins.
    pub uptime: Span,
    /// State of the clients' connections when the scenario begins.
    pub connections: Start,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            nodes: ["A", "B", "C", "D", "E"].map(String::from).to_vec(),
            aliases: BTreeMap::new(),
            network: Network::default(),
            links: Vec::new(),
            server: Server::default(),
            persistence: Persistence::None,
            active_expiry: ActiveExpiry::default(),
            rights: Rights::default(),
            disk: Disk::default(),
            replicas: Vec::new(),
            node: BTreeMap::new(),
            clocks: BTreeMap::new(),
            uptime: Span(30 * 24 * 60 * 60 * 1_000_000_000),
            connections: Start::Warm,
        }
    }
}

impl Cluster {
    /// Returns the data that the master or replica `server` of `node` keeps across a restart. A replica is
    /// like its master unless it has a setting of its own.
    #[must_use]
    pub fn persistence_on(&self, server: &str, node: &str) -> Persistence {
        self.own(server, node, |it| it.persistence).unwrap_or(self.persistence)
    }

    /// Returns the rights of the clients' user on the master or replica `server` of `node`. A replica is
    /// like its master unless it has a setting of its own.
    #[must_use]
    pub fn rights_on(&self, server: &str, node: &str) -> Rights {
        self.own(server, node, |it| it.rights).unwrap_or(self.rights)
    }

    fn own<T>(
        &self,
        server: &str,
        node: &str,
        setting: impl Fn(&NodeSpec) -> Option<T>,
    ) -> Option<T> {
        let of = |name: &str| self.node.get(name).and_then(&setting);
        of(server).or_else(|| of(node))
    }

    /// Returns the rights that the clients' user has on any server.
    pub fn rights(&self) -> impl Iterator<Item = Rights> {
        self.node.values().filter_map(|it| it.rights).chain([self.rights])
    }
}

/// Server software of the masters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

    /// Returns true if the server has `SET key value IFEQ value PX ttl`, which sets the TTL
    /// regardless of the old one. With other servers an extension is a script, which never shortens
    /// a TTL.
    #[must_use]
    pub const fn extends_plainly(self) -> bool {
        matches!(self, Self::Redis84 | Self::Valkey9)
    }
}

/// The acknowledged data that a server keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// Everything, even after a power loss: `appendfsync always`. A reply waits for the sync.
    Always,
    /// `appendfsync everysec`: written before the reply, synced once a second in the background.
    Everysec,
    /// `appendfsync no`: written before the reply, synced whenever the kernel decides.
    No,
    /// Nothing: no AOF and no snapshots.
    #[default]
    None,
    /// Only snapshots: a restart loads the last one.
    Rdb,
}

/// State of connections when the scenario begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Closed; clients must dial first.
    Cold,
    /// Open, with the handshake done.
    #[default]
    Warm,
}

/// Effect of links on messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[serde(expecting = "a table, such as `{ delay = \"1ms\" }`")]
pub struct Network {
    /// One-way delay, drawn for every message.
    pub delay: SpanRange,
}

impl Default for Network {
    fn default() -> Self {
        Self { delay: SpanRange::exactly(Span::from_ms(1)) }
    }
}

/// The links between two groups of hosts, in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkSpec {
    /// The two groups.
    pub between: [Vec<String>; 2],
    /// One-way delay, drawn for every message.
    pub delay: SpanRange,
}

/// When a master deletes expired keys that no client accesses. An accessed key counts as gone once
/// the clock reads more than the key's expiry time; the active cycle deletes it as soon as the
/// clock reads the expiry time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ActiveExpiry {
    /// The cycle runs one millisecond late, when the key counts as gone anyway.
    #[default]
    Late,
    /// The cycle runs in the very millisecond of the expiry time.
    Prompt,
}

impl ActiveExpiry {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Rights of the clients' user on a master, as far as introductions need them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rights {
    /// Its process and its data set, by `INFO` and a canary.
    #[default]
    All,
    /// Its process, by `INFO`, but not its data set: the user may not use the canary's key.
    NoCanary,
    /// Neither: the user may not call `INFO`.
    NoInfo,
}

impl Rights {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Behaviour of the disks under the masters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Disk {
    /// Duration of a sync.
    pub sync_takes: Span,
    /// Offset of the background syncs of `everysec` from each full second of true time; drawn for
    /// every node if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_at: Option<Span>,
    /// True if the disk acknowledges syncs without storing anything.
    pub lies: bool,
}

impl Default for Disk {
    fn default() -> Self {
        Self { sync_takes: Span(0), sync_at: None, lies: false }
    }
}

/// A replica of one master.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Replica {
    /// Name of the replica.
    pub id: String,
    /// Name of the master that it follows.
    pub of: String,
    /// One-way delay between master and replica, in either direction; drawn for every effect.
    #[serde(default = "one_ms")]
    pub delay: SpanRange,
}

fn one_ms() -> SpanRange {
    SpanRange::exactly(Span::from_ms(1))
}

/// Settings of one master or replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NodeSpec {
    /// Data that this server keeps across a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    /// Rights of the clients' user on this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rights: Option<Rights>,
}

/// The clocks of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ClockSpec {
    /// Lead of the wall clock over true time at the beginning; negative if it is behind.
    pub offset: SignedSpan,
    /// Rate of all three clocks relative to true time, in parts per million; positive is faster.
    pub rate_ppm: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_place_of_a_network_is_answered_with_an_example() {
        let error = serde_json::from_str::<Network>("\"1ms\"").unwrap_err().to_string();
        assert!(error.contains("expected a table, such as `{ delay = \"1ms\" }`"), "{error}");
    }
}
