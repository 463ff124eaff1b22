//! The types of a scenario. The doc comment of a field documents the file format for authors.

mod at;
mod client;
mod cluster;
mod fault;
mod lock;
mod resources;

pub use at::{At, AttemptPoint, AttemptStep, WhichAttempt};
pub use client::{Acquire, Client, Connections, Enter, Extend, Hold, Nothing, Repeat, Step, Write};
pub use cluster::{
    ActiveExpiry, ClockSpec, Cluster, Disk, LinkSpec, Network, NodeSpec, Persistence, Replica,
    Rights, Server, Start,
};
pub use fault::{
    Cause, ClockBy, ClockRate, Delay, Demotion, Descriptor, Ends, Failover, Family, Fault,
    FaultKind, Flush, HostNames, Hosts, Lost, Message, OneHost, OneKey, Partition, Restarting,
    Stopwatch, Swap, Time,
};
pub use lock::{Checks, Drift, Lock, RestartGuard, Retry, Store};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::expect::Expectations;
use super::span::{SeedRange, Span};
use crate::ids::{ClientId, FaultId, HostId, Id, NodeId};

/// A scenario file, or one of its cases with the settings applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Version of the format: 1.
    pub schema: u32,
    /// Name of the scenario: lower-case words joined by `-`. Must equal the file's stem.
    pub name: String,
    /// One line that says what happens.
    pub title: String,
    /// Families, and codes of counterexamples: `docs/counterexamples.md`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Source that first described the scenario.
    #[serde(default)]
    pub source: String,
    /// A paragraph for the report: what to look at, and what it shows.
    #[serde(default)]
    pub story: String,
    /// The masters, the network and the clocks.
    #[serde(default)]
    pub cluster: Cluster,
    /// The lock's parameters, as every client is configured with them.
    #[serde(default)]
    pub lock: Lock,
    /// The protected resource.
    #[serde(default)]
    pub store: Store,
    /// The clients that compete for the lock.
    #[serde(rename = "client", default)]
    pub clients: Vec<Client>,
    /// The faults, in any order.
    #[serde(rename = "fault", default)]
    pub faults: Vec<Fault>,
    /// Seeds and duration of the run.
    #[serde(default)]
    pub run: Run,
    /// The expected verdicts and quantities. A property that is not named is expected to hold.
    #[serde(default)]
    pub expect: Expectations,
    /// Variations of the scenario. Each is a test of its own.
    #[serde(rename = "case", default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseSpec>,
    /// Paths, each with a list of values. Every combination of values is a case of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Vec<serde_json::Value>>"))]
    pub sweep: BTreeMap<String, Vec<toml::Value>>,
    /// Paths, each with a list of as many values. The values at one place of all lists make a case of
    /// its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Vec<serde_json::Value>>"))]
    pub zip: BTreeMap<String, Vec<toml::Value>>,
}

/// A variation of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CaseSpec {
    /// Name that says what the case shows. Its slug is the test's name.
    pub name: String,
    /// Paths, each with the value to set there.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, serde_json::Value>"))]
    pub set: BTreeMap<String, toml::Value>,
    /// Expectations in place of the base's; without them every property is expected to hold.
    #[serde(default)]
    pub expect: Expectations,
    /// Paths, each with a list of values. Every combination of values is a case of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Vec<serde_json::Value>>"))]
    pub sweep: BTreeMap<String, Vec<toml::Value>>,
    /// Paths, each with a list of as many values. The values at one place of all lists make a case of
    /// its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Vec<serde_json::Value>>"))]
    pub zip: BTreeMap<String, Vec<toml::Value>>,
}

/// One case, ready to run: a scenario without cases or sweeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Case {
    /// Slug of the case; `None` for the base scenario.
    pub slug: Option<String>,
    /// Name of the case as its author wrote it; `None` for the base scenario.
    pub name: Option<String>,
    /// The scenario with the case's settings applied.
    pub scenario: Scenario,
    /// Settings from the command line, as `path=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
}

impl Case {
    /// Returns `scenario` or `scenario::case`.
    #[must_use]
    pub fn full_name(&self) -> String {
        match &self.slug {
            Some(slug) => format!("{}::{slug}", self.scenario.name),
            None => self.scenario.name.clone(),
        }
    }
}

/// Seeds and duration of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Run {
    /// The seeds `a..b`; `b` is excluded.
    pub seeds: SeedRange,
    /// The seeds on the engine `turmoil`.
    pub turmoil_seeds: SeedRange,
    /// Latest end of the run, in true time. The engine computes it if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
}

impl Default for Run {
    fn default() -> Self {
        Self { seeds: SeedRange(0..100), turmoil_seeds: SeedRange(0..2), duration: None }
    }
}

impl Scenario {
    /// Returns the longest TTL that any client uses: `lock.fleet-max-ttl`, or else the largest TTL
    /// in the file.
    #[must_use]
    pub fn fleet_max_ttl(&self) -> Span {
        let steps = self.clients.iter().flat_map(Client::all_steps);
        let of_steps = steps.flat_map(Step::ttls).map(|(_, ttl)| ttl);
        let own = self.clients.iter().filter_map(|client| client.ttl).chain(of_steps);
        let longest = own.fold(self.lock.ttl, Ord::max);
        self.lock.fleet_max_ttl.unwrap_or(longest)
    }

    /// Returns the TTL of `client`: its own, or the lock's.
    #[must_use]
    pub fn ttl_of(&self, client: &Client) -> Span {
        client.ttl.unwrap_or(self.lock.ttl)
    }

    /// Returns the number of hosts: nodes, clients, the probes, the store and the replicas.
    #[must_use]
    pub fn host_count(&self) -> usize {
        self.cluster.nodes.len() + self.clients.len() + 2 + self.cluster.replicas.len()
    }

    /// Returns the nodes.
    #[must_use]
    pub fn node_ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        NodeId::first(self.cluster.nodes.len())
    }

    /// Returns the clients without the probes.
    #[must_use]
    pub fn client_ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = ClientId> + ExactSizeIterator + use<> {
        ClientId::first(self.clients.len())
    }

    /// Returns the hosts.
    #[must_use]
    pub fn host_ids(&self) -> impl DoubleEndedIterator<Item = HostId> + ExactSizeIterator + use<> {
        HostId::first(self.host_count())
    }

    /// Returns the node with this name, if there is one.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.cluster.nodes.iter().position(|node| node == name).map(NodeId::at)
    }

    /// Returns the node that has `name` in clients' lists of nodes: as its own name or as an alias.
    #[must_use]
    pub fn node_listed_as(&self, name: &str) -> Option<NodeId> {
        let own = self.cluster.aliases.get(name).map_or(name, String::as_str);
        self.node_named(own)
    }

    /// Returns the client with this name, if there is one.
    #[must_use]
    pub fn client_named(&self, name: &str) -> Option<ClientId> {
        self.clients.iter().position(|client| client.id == name).map(ClientId::at)
    }

    /// Returns the client; `None` for a probe.
    #[must_use]
    pub fn client(&self, client: ClientId) -> Option<&Client> {
        self.clients.get(client.index())
    }

    /// Returns the nodes that a client locks on, in the order of its list. A node under two names is
    /// there twice. The probes have the first client's.
    #[must_use]
    pub fn members(&self, client: ClientId) -> Vec<NodeId> {
        let own = self.client(self.process(client)).or(self.clients.first());
        let own = own.and_then(|it| it.nodes.as_ref());
        match own {
            Some(names) => names.iter().filter_map(|name| self.node_listed_as(name)).collect(),
            None => self.node_ids().collect(),
        }
    }

    /// Returns the client whose process `client` is a task of: itself, unless it has `task-of`. The
    /// probes are tasks of one process.
    #[must_use]
    pub fn process(&self, client: ClientId) -> ClientId {
        if self.is_probe(client) {
            return self.probe();
        }
        let process = self.client(client).and_then(|it| it.task_of.as_deref());
        process.and_then(|name| self.client_named(name)).unwrap_or(client)
    }

    /// Returns the client whose random numbers `client` draws: itself, unless it runs on a copy.
    #[must_use]
    pub fn original(&self, client: ClientId) -> ClientId {
        let original = self.client(client).and_then(|it| it.copy_of.as_deref());
        original.and_then(|name| self.client_named(name)).unwrap_or(client)
    }

    /// Returns the fault, if there is one.
    #[must_use]
    pub fn fault(&self, fault: FaultId) -> Option<&Fault> {
        self.faults.get(fault.index())
    }

    /// Returns the host of the client, or of the probes. The tasks of a process are on one host.
    #[must_use]
    pub fn client_host(&self, client: ClientId) -> HostId {
        HostId::at(self.cluster.nodes.len() + self.process(client).index())
    }

    /// Returns the client on `host`, or the first probe; `None` if the host is of another kind.
    #[must_use]
    pub fn client_on(&self, host: HostId) -> Option<ClientId> {
        let index = host.index().checked_sub(self.cluster.nodes.len())?;
        (index <= self.clients.len()).then(|| ClientId::at(index))
    }

    /// Returns the host of the protected resource.
    #[must_use]
    pub fn store_host(&self) -> HostId {
        HostId::at(self.cluster.nodes.len() + self.clients.len() + 1)
    }

    /// Returns the host of the replica at `place`.
    #[must_use]
    pub fn replica_host(&self, place: usize) -> HostId {
        HostId::at(self.cluster.nodes.len() + self.clients.len() + 2 + place)
    }

    /// Returns the name of `host`.
    ///
    /// # Panics
    ///
    /// If the scenario has no such host.
    #[must_use]
    pub fn host_name(&self, host: HostId) -> &str {
        let nodes = self.cluster.nodes.len();
        match host.index() {
            place if place < nodes => &self.cluster.nodes[place],
            place if place < nodes + self.clients.len() => &self.clients[place - nodes].id,
            place if place == nodes + self.clients.len() => "probe",
            _ if host == self.store_host() => "store",
            place => &self.cluster.replicas[place - nodes - self.clients.len() - 2].id,
        }
    }

    /// Returns the host called `name`, if there is one.
    #[must_use]
    pub fn host_named(&self, name: &str) -> Option<HostId> {
        self.host_ids().find(|&host| self.host_name(host) == name)
    }
}

/// For `skip_serializing_if`.
fn is_false(it: &bool) -> bool {
    !it
}
