//! The servers, the clocks and the delays between hosts at the start of a scenario.

use lock_judge::history::{HostId, Id, NodeId};
use lock_judge::ids::{IdVec, ServerId, StrikeId};
use lock_judge::scenario::{Client, Rights, Scenario};
use redis_sim::{Persistence, Storage};

use super::strike::{FaultEffect, PlannedFault};
use super::{host_named, node_named};
use crate::subject::kind;
use crate::terms;

/// A server at the start of the scenario: first the server of each node, then the replicas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedServer {
    pub(crate) storage: Storage,
    /// True for a lock service without faults of its own: perfect clock, perfect memory.
    pub(crate) ideal: bool,
    /// Node that the server belongs to; a replica may take over this node.
    pub(crate) node: NodeId,
    /// True for a replica that does not follow its node from the beginning.
    pub(crate) is_new: bool,
    pub(crate) host: HostId,
    pub(crate) rights: Rights,
}

impl PlannedServer {
    /// Returns true if a reply waits for a sync that takes time.
    pub(crate) fn answers_after_sync(&self) -> bool {
        self.storage.slow && self.storage.persistence == Persistence::Always
    }
}

/// Shortest and longest one-way delay from host to host.
pub(super) type Delays = IdVec<HostId, IdVec<HostId, (u64, u64)>>;

pub(super) fn planned_servers(
    scenario: &Scenario,
    faults: &IdVec<StrikeId, PlannedFault>,
) -> IdVec<ServerId, PlannedServer> {
    let cluster = &scenario.cluster;
    let needs_service =
        |client: &Client| kind(&client.subject).is_some_and(|subject| subject.needs_ideal_server());
    let service = scenario.clients.iter().any(needs_service);
    let nodes = scenario.node_ids().zip(&cluster.nodes);
    let nodes = nodes.map(|(node, name)| (name, node, node.first_host()));
    let replicas = cluster.replicas.iter().enumerate().map(|(place, replica)| {
        let node = node_named(scenario, &replica.of);
        (&replica.id, node, scenario.replica_host(place))
    });
    let servers = nodes.chain(replicas).enumerate();
    let planned = servers.map(|(index, (name, node, host))| {
        let server = ServerId::at(index);
        if service && server == ServerId(0) {
            let storage = Storage::from(Persistence::Always);
            let rights = Rights::All;
            return PlannedServer { storage, ideal: true, node, is_new: false, host, rights };
        }
        let name_of_node = &cluster.nodes[node.index()];
        let stalls = |fault: &PlannedFault| fault.effect == FaultEffect::DiskStall { server };
        let storage = Storage {
            persistence: terms::persistence(cluster.persistence_on(name, name_of_node)),
            slow: cluster.disk.sync_takes.0 > 0 || faults.values().any(stalls),
            lies: cluster.disk.lies,
        };
        let attaches = FaultEffect::Attach { replica: server };
        let is_new = faults.values().any(|fault| fault.effect == attaches);
        let rights = cluster.rights_on(name, name_of_node);
        PlannedServer { storage, ideal: false, node, is_new, host, rights }
    });
    planned.collect()
}

pub(super) fn planned_clocks(scenario: &Scenario) -> IdVec<HostId, (i64, i32)> {
    let clocks = scenario.host_ids().map(|host| {
        let name = scenario.host_name(host);
        let spec = scenario.cluster.clocks.get(name).copied().unwrap_or_default();
        (spec.offset.0, spec.rate_ppm * 1_000)
    });
    clocks.collect()
}

pub(super) fn planned_delays(scenario: &Scenario) -> Delays {
    let hosts = scenario.host_count();
    let usual = scenario.cluster.network.delay;
    let mut delays = IdVec::filled(hosts, IdVec::filled(hosts, (usual.min.0, usual.max.0)));
    let store = scenario.store_host();
    let own = (scenario.store.delay.min.0, scenario.store.delay.max.0);
    delays[store].fill(own);
    delays.values_mut().for_each(|from| from[store] = own);
    for (place, replica) in scenario.cluster.replicas.iter().enumerate() {
        let (one, other) = (scenario.replica_host(place), host_named(scenario, &replica.of));
        let range = (replica.delay.min.0, replica.delay.max.0);
        delays[one][other] = range;
        delays[other][one] = range;
    }
    for link in &scenario.cluster.links {
        let range = (link.delay.min.0, link.delay.max.0);
        for one in &link.between[0] {
            for other in &link.between[1] {
                let (one, other) = (host_named(scenario, one), host_named(scenario, other));
                delays[one][other] = range;
                delays[other][one] = range;
            }
        }
    }
    delays
}
