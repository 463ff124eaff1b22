//! The types of a scenario. Every field is documented as its author meets it in a file.

mod at;
mod client;
mod cluster;
mod fault;
mod lock;

pub use at::{At, HostAt, Point, WhichAttempt};
pub use client::{Acquire, Client, Connections, Enter, Extend, Hold, Nothing, Step, Write};
pub use cluster::{
    ActiveExpiry, ClockSpec, Cluster, Disk, LinkSpec, Network, NodeSpec, Persistence, Replica,
    Server, Start,
};
pub use fault::{
    ClockBy, ClockRate, Delay, Demotion, Descriptor, Ends, Failover, Family, Fault, FaultKind,
    Flush, HostNames, Hosts, Lost, Message, OneHost, Partition, Restarting, Stopwatch, Swap, Time,
};
pub use lock::{Checks, Drift, Lock, RestartGuard, Retry, Store};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::expect::{Expectation, Property};
use super::span::{SeedRange, Span};
use crate::ids::HostIndex;

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
    /// The longest TTL that any client uses: `lock.fleet-max-ttl`, or else the largest in the file.
    #[must_use]
    pub fn fleet_max_ttl(&self) -> Span {
        let steps = self.clients.iter().flat_map(|client| &client.steps);
        let extended = steps.filter_map(|step| step.extend?.ttl);
        let own = self.clients.iter().filter_map(|client| client.ttl).chain(extended);
        let longest = own.fold(self.lock.ttl, Ord::max);
        self.lock.fleet_max_ttl.unwrap_or(longest)
    }

    /// How many hosts there are: nodes, clients, the probe, the store, replicas.
    #[must_use]
    pub fn host_count(&self) -> usize {
        self.cluster.nodes.len() + self.clients.len() + 2 + self.cluster.replicas.len()
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

    /// The host of the replica at `place`.
    #[must_use]
    pub fn replica_host(&self, place: usize) -> HostIndex {
        HostIndex((self.cluster.nodes.len() + self.clients.len() + 2 + place) as u8)
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
            _ if host == self.store_host() => "store",
            place => &self.cluster.replicas[place - nodes - self.clients.len() - 2].id,
        }
    }

    /// The host of this name.
    #[must_use]
    pub fn host_named(&self, name: &str) -> Option<HostIndex> {
        let hosts = 0..self.host_count() as u8;
        hosts.map(HostIndex).find(|&host| self.host_name(host) == name)
    }
}
