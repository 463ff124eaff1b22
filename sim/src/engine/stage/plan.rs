//! A scenario prepared for a run: names resolved, times in nanoseconds, steps split into
//! operations.

mod faults;

use redlock_client::protocol::{self, RetryDelay};

use self::faults::planned_faults;
use crate::engine::Unsupported;
use crate::history::{ClientId, ClientIds, ClockKind, FaultId, HostId, HostIds, Id, NodeId};
use crate::ids::{IdVec, ServerId, StrikeId};
use crate::master::Storage;
use crate::scenario::{
    Acquire, At, Case, Client, Connections, Hold, Lost, Message, Persistence, Point, Scenario,
    Span, Start, Step, WORKER,
};
use crate::subject::{
    Connect, GetSetClient, Kind, PhpClient, PolicyClient, RedlockClient, Settings, Subject, kind,
};

/// One operation of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Acquire(Acquire),
    AwaitLost,
    Enter,
    Leave,
    Look,
    Read,
    Extend {
        ttl_ns: u64,
    },
    Release,
    Sleep {
        ns: u64,
    },
    /// Sleeps until `ns` have passed or the lease is over.
    SleepOrLost {
        ns: u64,
    },
    Write {
        blind: bool,
    },
}

/// An [`Op`] and the earliest true time at which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedOp {
    pub(crate) not_before_ns: u64,
    pub(crate) op: Op,
}

/// Beginning of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    At(u64),
    /// When the first attempt of `client`, or its attempt with the number `attempt`, reaches
    /// `point`.
    Before {
        client: ClientId,
        attempt: Option<u16>,
        point: Point,
        node: Option<NodeId>,
    },
}

/// End of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    At(u64),
    After(u64),
    /// `after_ns` after the beginning, measured on a clock of the host under fault.
    Measured {
        clock: ClockKind,
        after_ns: u64,
    },
    Never,
    /// At once: the fault has no duration.
    Instantly,
}

/// Effect of a fault, with names resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultEffect {
    Attach {
        replica: ServerId,
    },
    ClockJump {
        host: HostId,
        by_ns: i64,
    },
    ClockRate {
        host: HostId,
        rate_ppb: i32,
    },
    Delay {
        from: HostIds,
        to: HostIds,
        by_ns: u64,
        only: Option<Message>,
    },
    Delete {
        node: NodeId,
    },
    /// `of` is the server whose keys the demoted server gets; `None` if that server is outside the
    /// scenario.
    Demote {
        node: NodeId,
        of: Option<ServerId>,
        keeps_keys: bool,
    },
    Die {
        host: HostId,
        death: Death,
    },
    DiskStall {
        server: ServerId,
    },
    Evict {
        node: NodeId,
    },
    /// `told` are the clients that are notified at once.
    FailOver {
        node: NodeId,
        to: ServerId,
        told: ClientIds,
    },
    Flush {
        node: NodeId,
        database: Option<u8>,
    },
    MemoryFull {
        server: ServerId,
    },
    Partition {
        from: HostIds,
        to: HostIds,
        one_way: bool,
        lost: Lost,
    },
    Snapshot {
        server: ServerId,
    },
    Stall {
        server: ServerId,
    },
    Stop {
        host: HostId,
        suspended: bool,
    },
    Swap {
        node: NodeId,
        databases: [u8; 2],
    },
}

/// Manner of a host's death, and its effect on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    pub(crate) manner: Manner,
    /// Part of the unsynced data survives; its last record is incomplete.
    pub(crate) torn: bool,
    /// Time of the backup that is put back.
    pub(crate) backup_of_ns: Option<u64>,
    /// True if a proxy keeps the clients' connections.
    pub(crate) is_hidden: bool,
}

/// Manner of a host's death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The process dies; its host lives.
    Killed,
    /// The host dies.
    PowerLost,
    /// The process shuts down on command.
    ShutDown,
}

/// A fault at one host, with names resolved. A fault on a group of hosts is planned once for each
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedFault {
    /// The fault of the scenario.
    pub(crate) fault: FaultId,
    /// True for the first fault of its group; its beginning is recorded as the group's beginning.
    pub(crate) opens: bool,
    /// True for the last fault of its group.
    pub(crate) closes: bool,
    pub(crate) begin: Begin,
    pub(crate) end: End,
    pub(crate) doing: FaultEffect,
}

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
}

impl PlannedServer {
    /// Returns true if a reply waits for a sync that takes time.
    pub(crate) fn answers_after_sync(&self) -> bool {
        self.storage.slow && self.storage.persistence == Persistence::Always
    }
}

/// Shortest and longest one-way delay from host to host.
pub(crate) type Delays = IdVec<HostId, IdVec<HostId, (u64, u64)>>;

/// Everything about a case that does not depend on the seed.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) scenario: Scenario,
    pub(crate) ops: IdVec<ClientId, Vec<PlannedOp>>,
    pub(crate) faults: IdVec<StrikeId, PlannedFault>,
    /// The servers of the nodes, in their order, followed by the replicas.
    pub(crate) servers: IdVec<ServerId, PlannedServer>,
    /// Number of nodes.
    pub(crate) node_count: usize,
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
    /// The lock's key, the same on every node.
    pub(crate) key: Vec<u8>,
    /// Key of the fencing counter beside it.
    pub(crate) counter_key: Vec<u8>,
    /// Longest time after the end of the last client in which its remaining messages may arrive.
    pub(crate) grace_ns: u64,
    /// Longest time that the probe may try.
    pub(crate) probe_patience_ns: u64,
    /// Latest end of a run.
    pub(crate) end_ns: u64,
}

impl Plan {
    pub(crate) fn new(case: &Case) -> Result<Self, Unsupported> {
        let scenario = case.scenario.clone();
        if scenario.clients.iter().any(|client| client.subject == WORKER) {
            return Err(unsupported("the subject `worker`: `serve` puts such clients under test"));
        }
        let fleet_ns = scenario.fleet_max_ttl().0;
        let timeout_ns = scenario.lock.node_timeout.0;
        let faults = IdVec::from(planned_faults(&scenario)?);
        let last_ns = last_time_named(&scenario);
        let end_ns =
            scenario.run.duration.map_or(last_ns + 10 * fleet_ns + 60_000_000_000, |it| it.0);
        Ok(Self {
            ops: scenario
                .clients
                .iter()
                .map(|client| planned_ops(client, scenario.lock.ttl))
                .collect(),
            servers: planned_servers(&scenario, &faults),
            node_count: scenario.cluster.nodes.len(),
            clocks: planned_clocks(&scenario),
            delays: planned_delays(&scenario),
            sync_takes_ns: scenario.cluster.disk.sync_takes.0,
            sync_at_ns: scenario.cluster.disk.sync_at.map(|at| at.0),
            has_faults: scenario.faults.iter().any(|fault| fault.enabled),
            has_points: faults.values().any(|it| matches!(it.begin, Begin::Before { .. })),
            warm: scenario.cluster.connections == Start::Warm,
            key: scenario.lock.resource.clone().into_bytes(),
            counter_key: format!("{}:counter", scenario.lock.resource).into_bytes(),
            grace_ns: 2 * (4 * timeout_ns).max(500_000_000) + 2_000_000_000,
            probe_patience_ns: 3 * fleet_ns + 5_000_000_000,
            end_ns,
            faults,
            scenario,
        })
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

    /// Returns true if the scenario has this node.
    pub(crate) fn has_node(&self, node: NodeId) -> bool {
        node.index() < self.node_count
    }

    /// Returns the nodes.
    pub(crate) fn node_ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        NodeId::first(self.node_count)
    }

    /// Returns the probe.
    pub(crate) fn probe(&self) -> ClientId {
        self.scenario.probe()
    }

    /// Returns the host of a client.
    #[inline]
    pub(crate) fn client_host(&self, client: ClientId) -> HostId {
        HostId::at(self.node_count + client.index())
    }

    /// Returns the client on this host.
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

    /// Returns the subject of a client. The probe has the first client's.
    pub(crate) fn subject(&self, id: ClientId) -> Subject {
        let scenario = &self.scenario;
        let is_probe = id == self.probe();
        let client = scenario.client(id).unwrap_or(&scenario.clients[0]);
        let ttl = client.ttl.unwrap_or(scenario.lock.ttl).duration();
        let fleet_max_ttl = scenario.fleet_max_ttl().duration();
        let nodes = scenario.cluster.nodes.len();
        let settings = Settings {
            nodes,
            ttl,
            drift: protocol::Drift::from(scenario.lock.drift).of(ttl),
            node_timeout: scenario.lock.node_timeout.duration(),
            retry: RetryDelay::from(scenario.lock.retry),
            extensions_max: scenario.lock.extensions_max,
            plain_extensions: scenario.lock.plain_extensions,
        };
        match kind_of(client) {
            Kind::GetSet => Subject::GetSet(Box::new(GetSetClient::new(settings))),
            Kind::Ours => {
                let ours = RedlockClient::new(id, &scenario.lock, ttl, fleet_max_ttl, nodes);
                Subject::Redlock(Box::new(ours))
            }
            Kind::Php { socket_timeout } => {
                Subject::Php(Box::new(PhpClient::new(settings, socket_timeout)))
            }
            Kind::Policy(mut policy) => {
                if is_probe {
                    policy.fixed_retry = None;
                }
                policy.connect = match client.connections {
                    Some(Connections::FreshPerCommand) => Connect::FreshPerCommand,
                    Some(Connections::Pooled) => Connect::Pooled,
                    Some(Connections::SecondForRelease) => Connect::SecondForRelease,
                    None => policy.connect,
                };
                Subject::Policy(Box::new(PolicyClient::new(policy, settings)))
            }
        }
    }
}

fn kind_of(client: &Client) -> Kind {
    kind(&client.subject).expect("a valid scenario names a known subject")
}

fn planned_ops(client: &Client, ttl: Span) -> Vec<PlannedOp> {
    let own_ttl_ns = client.ttl.unwrap_or(ttl).0;
    let looks = kind_of(client).looks_before_section();
    let mut ops = Vec::new();
    for step in &client.steps {
        let first = ops.len();
        plan_step(step, (looks, own_ttl_ns), &mut ops);
        if let (Some(at), Some(planned)) = (step.at, ops.get_mut(first)) {
            planned.not_before_ns = at.0;
        }
    }
    ops
}

fn plan_step(step: &Step, (looks, ttl_ns): (bool, u64), ops: &mut Vec<PlannedOp>) {
    let mut push = |op| ops.push(PlannedOp { not_before_ns: 0, op });
    if let Some(acquire) = step.acquire {
        push(Op::Acquire(acquire));
    }
    if step.look.is_some() {
        push(Op::Look);
    }
    let enters = step.enter.map(|enter| enter.unchecked);
    if let Some(unchecked) = enters.or(step.hold.map(|_| false)) {
        if looks && !unchecked {
            push(Op::Look);
        }
        push(Op::Enter);
    }
    match step.hold {
        Some(Hold::For { length, or_lost: false }) => push(Op::Sleep { ns: length.0 }),
        Some(Hold::For { length, or_lost: true }) => push(Op::SleepOrLost { ns: length.0 }),
        Some(Hold::UntilDeadline) => push(Op::AwaitLost),
        None => {}
    }
    if step.read.is_some() {
        push(Op::Read);
    }
    if let Some(write) = step.write {
        push(Op::Write { blind: write.blind });
    }
    if let Some(extend) = step.extend {
        for _ in 0..extend.times.unwrap_or(1) {
            if let Some(every) = extend.every {
                push(Op::Sleep { ns: every.0 });
            }
            push(Op::Extend { ttl_ns: extend.ttl.map_or(ttl_ns, |ttl| ttl.0) });
        }
    }
    if step.leave.is_some() || step.hold.is_some() {
        push(Op::Leave);
    }
    if step.release.is_some() {
        push(Op::Release);
    }
    if let Some(span) = step.sleep {
        push(Op::Sleep { ns: span.0 });
    }
}

fn planned_servers(
    scenario: &Scenario,
    faults: &IdVec<StrikeId, PlannedFault>,
) -> IdVec<ServerId, PlannedServer> {
    let cluster = &scenario.cluster;
    let service = scenario.clients.iter().any(|client| client.subject.starts_with("lease-service"));
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
            return PlannedServer { storage, ideal: true, node, is_new: false, host };
        }
        let of_node = cluster.node.get(&cluster.nodes[node.index()]);
        let own = cluster.node.get(name).or(of_node).and_then(|node| node.persistence);
        let stalls = |fault: &PlannedFault| fault.doing == FaultEffect::DiskStall { server };
        let storage = Storage {
            persistence: own.unwrap_or(cluster.persistence),
            slow: cluster.disk.sync_takes.0 > 0 || faults.values().any(stalls),
            lies: cluster.disk.lies,
        };
        let attaches = FaultEffect::Attach { replica: server };
        let is_new = faults.values().any(|fault| fault.doing == attaches);
        PlannedServer { storage, ideal: false, node, is_new, host }
    });
    planned.collect()
}

fn planned_clocks(scenario: &Scenario) -> IdVec<HostId, (i64, i32)> {
    let clocks = scenario.host_ids().map(|host| {
        let name = scenario.host_name(host);
        let spec = scenario.cluster.clocks.get(name).copied().unwrap_or_default();
        (spec.offset.0, spec.rate_ppm * 1_000)
    });
    clocks.collect()
}

fn planned_delays(scenario: &Scenario) -> Delays {
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

fn last_time_named(scenario: &Scenario) -> u64 {
    let steps = scenario.clients.iter().flat_map(|client| &client.steps);
    let steps = steps.flat_map(|step| [step.at, step.acquire.and_then(|acquire| acquire.until)]);
    let faults = scenario.faults.iter().flat_map(|fault| {
        let at = match fault.at {
            At::Time(span) => Some(span),
            At::Point(_) => None,
        };
        [at, fault.until, fault.lasts]
    });
    let spans = scenario.clients.iter().flat_map(|client| &client.steps).map(|step| {
        let held = match step.hold {
            Some(Hold::For { length, .. }) => length.0,
            _ => 0,
        };
        let extending = step.extend.map_or(0, |extend| {
            extend.every.map_or(0, |every| every.0) * u64::from(extend.times.unwrap_or(1))
        });
        held + step.sleep.map_or(0, |span| span.0) + extending
    });
    steps.chain(faults).flatten().map(|span| span.0).max().unwrap_or(0) + spans.sum::<u64>()
}

fn host_named(scenario: &Scenario, name: &str) -> HostId {
    scenario.host_named(name).expect("a valid scenario names hosts that exist")
}

fn client_named(scenario: &Scenario, name: &str) -> ClientId {
    scenario.client_named(name).expect("a valid scenario names clients that exist")
}

fn node_named(scenario: &Scenario, name: &str) -> NodeId {
    scenario.node_named(name).expect("a valid scenario names nodes that exist")
}

fn unsupported(what: &str) -> Unsupported {
    Unsupported { engine: "event", what: String::from(what) }
}
