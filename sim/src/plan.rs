//! A scenario prepared for a run: names resolved, times in nanoseconds, steps split into
//! operations. It does not depend on who runs it, and on the seed only where the scenario leaves a
//! value to the seed.

mod clients;
mod cluster;
mod draws;
mod faults;
mod script;
pub(crate) mod steps;
mod strike;

use lock_judge::history::{ClientId, FaultId, HostId, Id, NodeId};
use lock_judge::ids::{IdVec, ResourceId, ServerId, StrikeId};
use lock_judge::scenario::{
    At, Case, Client, Fault, FaultKind, Hold, Scenario, SpanRange, Start, Step,
};

pub(crate) use self::clients::{Op, PlannedOp, probe_ops};
pub(crate) use self::cluster::PlannedServer;
use self::cluster::{Delays, planned_clocks, planned_delays, planned_servers};
use self::draws::Draws;
use self::faults::planned_faults;
pub(crate) use self::script::Script;
pub(crate) use self::strike::{Begin, Death, End, FaultEffect, Manner, PlannedFault};
use crate::choice::Choices;
use crate::subject::Kind;

/// Error: the scenario asks for something that cannot be planned, in the words of the scenario
/// file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unplannable(pub(crate) String);

/// A case prepared for runs. [`Plan::draw`] sets what the scenario leaves to the seed.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) scenario: Scenario,
    /// True if the scenario leaves values of faults or steps to the seed.
    pub(crate) is_drawn: bool,
    /// The subject of each client; empty if the clients are programs outside.
    subjects: IdVec<ClientId, Kind>,
    pub(crate) ops: IdVec<ClientId, Vec<PlannedOp>>,
    pub(crate) faults: IdVec<StrikeId, PlannedFault>,
    /// The servers of the nodes, in their order, followed by the replicas.
    pub(crate) servers: IdVec<ServerId, PlannedServer>,
    /// Number of nodes.
    pub(crate) node_count: usize,
    /// Nodes that each client and each probe lock on, in the order of the client's list.
    members: IdVec<ClientId, Vec<NodeId>>,
    /// Client on whose host each client and each probe run: another only for a further task.
    processes: IdVec<ClientId, ClientId>,
    originals: IdVec<ClientId, ClientId>,
    /// Wall-clock offset and rate of each host.
    pub(crate) clocks: IdVec<HostId, (i64, i32)>,
    /// Shortest and longest one-way delay from host to host.
    pub(crate) delays: Delays,
    pub(crate) sync_takes_ns: u64,
    /// Phase within a second at which nodes begin their syncs; `None` if it is drawn.
    pub(crate) sync_at_ns: Option<u64>,
    pub(crate) has_faults: bool,
    pub(crate) has_points: bool,
    pub(crate) warm: bool,
    /// The key of each lock, the same on every node.
    keys: IdVec<ResourceId, Vec<u8>>,
    /// Key of the fencing counter beside the first.
    pub(crate) counter_key: Vec<u8>,
    /// Longest time after the end of the last client in which its remaining messages may arrive.
    pub(crate) grace_ns: u64,
    /// Longest time that the probes may try.
    pub(crate) probe_patience_ns: u64,
    /// Latest end of a run.
    pub(crate) end_ns: u64,
}

impl Plan {
    /// Prepares a case whose clients are simulated.
    ///
    /// # Errors
    ///
    /// If the scenario asks for something that cannot be planned.
    pub(crate) fn new(case: &Case) -> Result<Self, Unplannable> {
        Self::with_subjects(case, clients::subjects(&case.scenario)?)
    }

    /// Prepares the servers, the network and the faults of a case whose clients are programs
    /// outside.
    ///
    /// # Errors
    ///
    /// If the scenario asks for something that cannot be planned.
    pub(crate) fn without_subjects(case: &Case) -> Result<Self, Unplannable> {
        Self::with_subjects(case, IdVec::new())
    }

    fn with_subjects(case: &Case, subjects: IdVec<ClientId, Kind>) -> Result<Self, Unplannable> {
        let scenario = case.scenario.clone();
        let fleet_ns = scenario.fleet_max_ttl().0;
        let timeout_ns = scenario.lock.node_timeout.0;
        let faults = IdVec::from(planned_faults(&scenario, Draws::Least)?);
        let latest_ns =
            last_time_named(&scenario, fleet_ns).saturating_add(10 * fleet_ns + 60_000_000_000);
        let end_ns = scenario.run.duration.map_or(latest_ns, |it| it.0);
        Ok(Self {
            is_drawn: is_drawn(&scenario),
            ops: clients::planned_ops(&scenario, &subjects, Draws::Least),
            subjects,
            servers: planned_servers(&scenario, &faults),
            node_count: scenario.cluster.nodes.len(),
            members: (0..scenario.client_count())
                .map(|client| scenario.members(ClientId::at(client)))
                .collect(),
            processes: (0..scenario.client_count())
                .map(|client| scenario.process(ClientId::at(client)))
                .collect(),
            originals: (0..scenario.client_count())
                .map(|client| scenario.original(ClientId::at(client)))
                .collect(),
            clocks: planned_clocks(&scenario),
            delays: planned_delays(&scenario),
            sync_takes_ns: scenario.cluster.disk.sync_takes.0,
            sync_at_ns: scenario.cluster.disk.sync_at.map(|at| at.0),
            has_faults: scenario.faults.iter().any(|fault| fault.enabled),
            has_points: faults.values().any(|it| matches!(it.begin, Begin::Before { .. })),
            warm: scenario.cluster.connections == Start::Warm,
            keys: scenario
                .resource_ids()
                .map(|resource| scenario.resource_name(resource).as_bytes().to_vec())
                .collect(),
            counter_key: format!("{}:counter", scenario.lock.resource).into_bytes(),
            grace_ns: 2 * (4 * timeout_ns).max(500_000_000) + 2_000_000_000,
            probe_patience_ns: 3 * fleet_ns + 5_000_000_000,
            end_ns,
            faults,
            scenario,
        })
    }

    /// Sets the values that the scenario leaves to the seed.
    pub(crate) fn draw(&mut self, choices: &Choices) {
        if !self.is_drawn {
            return;
        }
        let draws = Draws::Seeded(choices);
        let faults = planned_faults(&self.scenario, draws);
        self.faults = IdVec::from(faults.expect("no drawn value makes a plan impossible"));
        self.ops = clients::planned_ops(&self.scenario, &self.subjects, draws);
    }

    /// Returns true if the scenario has replicas.
    pub(crate) fn has_replicas(&self) -> bool {
        self.servers.len() > self.node_count
    }

    /// Returns the server on this host, if the host has one.
    #[inline]
    pub(crate) fn server_at(&self, host: HostId) -> Option<ServerId> {
        if host.index() < self.node_count {
            return Some(ServerId(host.0));
        }
        let first = self.servers.get(ServerId::at(self.node_count))?;
        let replica = host.0.checked_sub(first.host.0)?;
        Some(ServerId::at(self.node_count + usize::from(replica)))
    }

    /// Returns the node that begins with this server; `None` for a replica.
    pub(crate) fn first_node_of(&self, server: ServerId) -> Option<NodeId> {
        (server.index() < self.node_count).then_some(NodeId(server.0))
    }

    /// Returns the name of a fault.
    pub(crate) fn fault_name(&self, fault: FaultId) -> &str {
        &self.scenario.faults[fault.index()].id
    }

    /// Returns the nodes that a client locks on, in the order of its list.
    #[inline]
    pub(crate) fn members(&self, client: ClientId) -> &[NodeId] {
        &self.members[client]
    }

    /// Returns the nodes.
    pub(crate) fn node_ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        NodeId::first(self.node_count)
    }

    /// Returns the first probe, which names the process of all.
    pub(crate) fn probe(&self) -> ClientId {
        self.scenario.probe()
    }

    /// Returns the key of the lock on `resource`.
    #[inline]
    pub(crate) fn key(&self, resource: ResourceId) -> &[u8] {
        &self.keys[resource]
    }

    /// Returns the resource of the lock whose key is `key`, if it is a lock's.
    #[inline]
    pub(crate) fn resource_at(&self, key: &[u8]) -> Option<ResourceId> {
        self.keys.iter().find(|(_, own)| **own == *key).map(|(resource, _)| resource)
    }

    /// Returns the client whose random numbers a client draws.
    pub(crate) fn original(&self, client: ClientId) -> ClientId {
        self.originals[client]
    }

    /// Returns the host of a client.
    #[inline]
    pub(crate) fn client_host(&self, client: ClientId) -> HostId {
        HostId::at(self.node_count + self.processes[client].index())
    }

    /// Returns the tasks of the process of `client`; none if `client` is a further task of another.
    pub(crate) fn tasks(&self, client: ClientId) -> Vec<ClientId> {
        let all = self.processes.iter().filter(|(_, process)| **process == client);
        all.map(|(task, _)| task).collect()
    }

    /// Returns true if a process is on this host of a node or a client: a further task is on the host
    /// of its process, and its own is empty.
    pub(crate) fn has_process(&self, host: HostId) -> bool {
        host.index() < self.node_count || self.client_host(self.client_at(host)) == host
    }

    /// Returns the client on this host: the first task of its process.
    ///
    /// # Panics
    ///
    /// If the host is a server's.
    #[inline]
    pub(crate) fn client_at(&self, host: HostId) -> ClientId {
        ClientId::at(host.index() - self.node_count)
    }

    /// Returns the node whose server is, or may be, on this host.
    ///
    /// # Panics
    ///
    /// If the host has no server.
    pub(crate) fn node_at(&self, host: HostId) -> NodeId {
        let server = self.server_at(host).expect("the host of a server");
        self.servers[server].node
    }
}

/// Returns true if a value of a fault or a step is drawn, or a fault or a loop is repeated.
fn is_drawn(scenario: &Scenario) -> bool {
    let is_drawn_fault = |fault: &Fault| {
        let is_range = |range: SpanRange| !range.is_exact();
        let at = matches!(fault.at, At::Time(at) if is_range(at));
        let by = match &fault.kind {
            FaultKind::ClockJump(it) | FaultKind::ClockSlew(it) => it.by.min != it.by.max,
            FaultKind::Delay(it) => is_range(it.by),
            kind => kind.restarting().and_then(|it| it.restart_after).is_some_and(is_range),
        };
        at || by
            || fault.lasts.is_some_and(is_range)
            || fault.times.is_some()
            || !fault.chance.is_certain()
    };
    let is_drawn_step = |step: &Step| {
        let hold = match step.hold {
            Some(Hold::For { length, .. }) => Some(length),
            _ => None,
        };
        let wait = step.acquire.and_then(|acquire| acquire.wait);
        let every = step.extend.and_then(|extend| extend.every);
        let ranges = [step.at, step.sleep, hold, wait, every].into_iter().flatten();
        step.repeat.is_some() || ranges.into_iter().any(|range| !range.is_exact())
    };
    scenario.faults.iter().any(is_drawn_fault)
        || scenario.clients.iter().flat_map(Client::all_steps).any(is_drawn_step)
}

/// Returns the latest instant that the scenario names, plus the longest time that all steps take.
fn last_time_named(scenario: &Scenario, ttl_ns: u64) -> u64 {
    let steps = scenario.clients.iter().flat_map(|client| &client.steps);
    let all_steps = scenario.clients.iter().flat_map(Client::all_steps);
    let instants = all_steps.flat_map(|step| {
        let until = step.acquire.and_then(|acquire| acquire.until);
        [step.at.map(|at| at.max), until]
    });
    let faults = scenario.faults.iter().flat_map(|fault| {
        let lasts = fault.lasts.map(|lasts| lasts.max);
        [fault.last_start(), fault.until, lasts]
    });
    let spans: u64 = steps.map(|step| longest_ns(step, ttl_ns)).fold(0, u64::saturating_add);
    instants.chain(faults).flatten().map(|span| span.0).max().unwrap_or(0).saturating_add(spans)
}

/// Returns the longest time that a step takes by its own values, with all its repetitions. A
/// section until the deadline may last for as long as the lease is kept alive, and a TTL more.
fn longest_ns(step: &Step, ttl_ns: u64) -> u64 {
    let acquiring = step.acquire.map_or(0, |acquire| {
        let waits_ns = acquire.wait.map_or(0, |wait| wait.max.0);
        waits_ns.saturating_add(acquire.keep_alive.map_or(0, |span| span.0))
    });
    let held = match step.hold {
        Some(Hold::For { length, .. }) => length.max.0,
        Some(Hold::UntilDeadline) => ttl_ns,
        None => 0,
    };
    let extending = step.extend.map_or(0, |extend| {
        extend.every.map_or(0, |every| every.max.0) * u64::from(extend.times.unwrap_or(1))
    });
    let repeated = step.repeat.as_ref().map_or(0, |repeat| {
        let once = repeat.steps.iter().map(|step| longest_ns(step, ttl_ns));
        once.fold(0, u64::saturating_add).saturating_mul(repeat.times.max.into())
    });
    let slept = step.sleep.map_or(0, |span| span.max.0);
    [acquiring, extending, repeated, slept].into_iter().fold(held, u64::saturating_add)
}

fn host_named(scenario: &Scenario, name: &str) -> HostId {
    scenario.host_named(name).expect("a valid scenario names hosts that exist")
}

fn node_named(scenario: &Scenario, name: &str) -> NodeId {
    scenario.node_named(name).expect("a valid scenario names nodes that exist")
}
