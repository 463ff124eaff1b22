//! Numbers of a scenario that the oracle needs.

use super::client_rates::ClientRates;
use super::ground::{MS_NS, NEVER};
use crate::history::{ClientId, ClientIds, HostId, Id, NodeId, NodeIds};
use crate::ids::{CLIENTS_MAX, NODES_MAX, PerClient, PerNode, ResourceId};
use crate::scenario::{Client, Drift, FaultKind, RestartGuard, Scenario, Span, Start, WORKER};

/// Minimum time after which a client gives up a silent connection; the time is four node timeouts
/// if that is more.
const GIVE_UP_LEAST_NS: u64 = 500_000_000;

/// Longest wait before a client dials again, and longest time until a connection opens.
const REDIAL_NS: u64 = 1_000_000_000;
const CONNECT_NS: u64 = 500_000_000;

/// Allowance in a bound for timers and processes.
pub(super) const SLACK_NS: u64 = 10_000_000;

/// Longest time by which a client puts a read off after pushes without a loss.
pub(super) const IDLE_NS: u64 = 128 * MS_NS;

/// Longest interval between two attempts that no push wakes.
pub(super) const PACE_NS: u64 = 1_000_000_000;

/// Longest time for which a sleeping client sends nothing.
const SILENCE_NS: u64 = 5_000_000_000;

/// Facts that the oracle of one lock derives from the scenario before the first event. Bounds of what
/// clients do are in true time: they are as long as the slowest clock of a client makes them.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of clients, with the probes of all locks.
    pub clients: usize,
    /// The probe of this lock.
    pub probe: ClientId,
    /// Total number of hosts.
    pub hosts: usize,
    /// Drift that an extended lease allows for.
    pub drift: Drift,
    /// True if the scenario extends leases.
    pub extends: bool,
    /// Maximum time for which a lease may be held, from its grant on, with all its extensions.
    pub hold_max_ns: u64,
    /// Time for which each client keeps every lease alive; 0 if it does not.
    pub keeps_alive_ns: PerClient<u64>,
    /// Time that a lease must have left when it is delivered.
    pub min_validity_ns: u64,
    /// Time within which a node has to answer.
    pub node_timeout_ns: u64,
    /// Time that a sync of a node's disk takes.
    pub sync_ns: u64,
    /// Shortest time for which a client waits for an answer before it gives up the connection.
    pub give_up_ns: u64,
    /// Longest retry delay of a client that keeps trying, and the bound of its first ones.
    pub retry_ns: u64,
    pub retry_first_ns: u64,
    /// Longest round trip on any link, without faults.
    pub round_trip_ns: u64,
    /// Bound within which an attempt settles, on the client's clock, even if it asks one node after
    /// the other.
    pub attempt_ns: u64,
    /// Bound after a failure or a release within which no key is left on a reachable node: the
    /// client gives up the connection once, then a round trip and a node timeout follow.
    pub release_ns: u64,
    /// The same bound after a node was unreachable: it adds the longest wait before the client
    /// dials the node again, and the time until the connection opens.
    pub heal_ns: u64,
    /// Bound within which a client that keeps trying and can reach a majority sees some client
    /// granted: the existing keys expire by clocks within the drift that the lock allows for, then
    /// one retry delay and one attempt pass.
    pub progress_ns: u64,
    /// The same bound for a client of this project that no node wakes, or that may find no room to
    /// look at a key: it may have made so many attempts in a row that it waits between them.
    pub paced_progress_ns: u64,
    /// Bound within which a client that sleeps attempts once the lock is free and nobody wakes it:
    /// it looks after its longest silence, by a clock within the drift that the lock allows for,
    /// and attempts after one retry delay.
    pub sleep_ns: u64,
    /// True if commands of a client may wait for room on its connection: nothing bounds when it reads
    /// a key, or whether it extends a lease.
    pub narrow: bool,
    /// Bound within which a client that watches its lease notices that the keys of a majority are
    /// gone: a push, and two reads one after the other, each of which it may put off after pushes
    /// without a loss. The push may wait for a sync, and so may a read and its reply.
    pub notice_ns: u64,
    /// Bound within which a client that watches its lease no longer relies on a key that is gone: the
    /// push, or the reply to the read behind an own change, may wait for a sync.
    pub push_ns: u64,
    /// Nodes that may restart behind a proxy.
    pub proxied: NodeIds,
    /// Nodes that may lose keys without a push: they restart behind a proxy, which keeps the
    /// connection, or their databases are swapped.
    pub silent: NodeIds,
    /// True if the rates of all clocks are within half the drift, and no fault changes a clock.
    pub steady: bool,
    /// Time for which a node does not vote after each restart; 0 if a restart guard says otherwise,
    /// or clocks are not steady.
    pub quarantine_ns: u64,
    /// True if connections are open when the run begins.
    pub warm: bool,
    /// The clients that use this lock, without its probe.
    own: ClientIds,
    /// Nodes that each client locks on.
    members: PerClient<NodeIds>,
    /// Number of further names that each of these nodes has in the client's list.
    further_names: PerClient<PerNode<u8>>,
    /// True if a node has two names in a list.
    names_twice: bool,
    /// Client on whose host each client runs: itself, unless it is a further task.
    processes: PerClient<ClientId>,
    /// Tasks of the process on each client's host; none if the client is a further task.
    tasks: PerClient<ClientIds>,
    /// Client whose random numbers each client draws.
    originals: PerClient<ClientId>,
    /// Clients that run the client of this project, and those of them that hear pushes.
    ours: ClientIds,
    hear: ClientIds,
    /// Clients that report `Taken` only if another attempt holds the lock.
    say_whose: ClientIds,
    /// Clients whose acquisitions are all `at-once`.
    ask_at_once: ClientIds,
    /// Clients with acquisitions that are limited by the number of their attempts.
    count_attempts: ClientIds,
    /// Clients outside the simulator.
    workers: ClientIds,
}

impl Setting {
    /// Derives the numbers for the lock on `resource` from `scenario`.
    ///
    /// # Panics
    ///
    /// If the scenario has more nodes or clients than a valid scenario may have.
    pub(super) fn new(scenario: &Scenario, resource: ResourceId) -> Self {
        let (nodes, clients) = (scenario.cluster.nodes.len(), scenario.clients.len());
        assert!(nodes <= NODES_MAX, "{nodes} nodes");
        let probes = scenario.resource_ids().len();
        assert!(clients + probes <= CLIENTS_MAX + 1, "{clients} clients, {probes} probes");
        let links = scenario.cluster.links.iter().map(|link| link.delay.max.0);
        let one_way_ns = links.fold(scenario.cluster.network.delay.max.0, u64::max);
        let round_trip_ns = one_way_ns.saturating_mul(2);
        let node_timeout_ns = scenario.lock.node_timeout.0;
        let retry = scenario.lock.retry;
        let retry_ns = retry.longest.0.max(retry.first.0).max(2 * round_trip_ns);
        let give_up_ns = node_timeout_ns.saturating_mul(4).max(GIVE_UP_LEAST_NS);
        let slack_ns = SLACK_NS + 2 * round_trip_ns;
        let attempt_ns = node_timeout_ns.saturating_mul(nodes as u64) + slack_ns;
        let release_ns = give_up_ns + node_timeout_ns + slack_ns;
        let rates = ClientRates::of(scenario);
        let sync_ns = scenario.cluster.disk.sync_takes.0;
        let ttl_ns = scenario.fleet_max_ttl().0;
        let drift = scenario.lock.drift;
        let drift_ns = drift.of(scenario.fleet_max_ttl()).0;
        let mut steps = scenario.clients.iter().flat_map(Client::all_steps);
        let leases_most = u64::from(scenario.lock.extensions_max).saturating_add(1);
        // Extensions that keep a lease alive are bounded by time, not by their number.
        let kept_ns = steps.clone().filter_map(|step| step.acquire?.keep_alive);
        let kept_ns = kept_ns.map(|at_most| at_most.0).max();
        let processes = PerClient::from_fn(|client| scenario.process(client));
        let further_names = PerClient::from_fn(|client| further_names(scenario, client));
        let is_further = |names: &PerNode<u8>| names.values().any(|count| *count > 0);
        let progress_ns =
            [drift_ns, MS_NS, retry_ns, attempt_ns].into_iter().fold(ttl_ns, u64::saturating_add);
        let steady = has_steady_clocks(scenario);
        let is_quarantined = scenario.lock.restart_guard == RestartGuard::Quarantine && steady;
        let narrow = scenario.lock.window.is_some();
        let notice_ns = rates.longest_ns(slack_ns + 2 * round_trip_ns + 3 * sync_ns + 2 * IDLE_NS);
        Self {
            nodes,
            clients: scenario.client_count(),
            probe: scenario.probe_of(resource),
            own: scenario
                .client_ids()
                .filter(|client| scenario.resource_of(*client) == resource)
                .collect(),
            hosts: scenario.host_count(),
            drift,
            extends: steps.any(|step| step.extend.is_some()),
            hold_max_ns: rates.longest_ns(
                ttl_ns.saturating_mul(leases_most).saturating_add(kept_ns.unwrap_or(0)),
            ),
            min_validity_ns: scenario.lock.min_validity.0,
            node_timeout_ns,
            sync_ns,
            give_up_ns: rates.shortest_ns(give_up_ns),
            retry_ns,
            retry_first_ns: retry.first.0,
            round_trip_ns,
            attempt_ns,
            release_ns: rates.longest_ns(release_ns),
            heal_ns: rates.longest_ns(release_ns + REDIAL_NS + CONNECT_NS),
            progress_ns,
            paced_progress_ns: progress_ns.saturating_add(PACE_NS),
            sleep_ns: SILENCE_NS + drift.of(Span(SILENCE_NS)).0 + retry_ns + 2 * attempt_ns,
            push_ns: slack_ns + round_trip_ns + 2 * sync_ns,
            narrow,
            notice_ns: if narrow { NEVER } else { notice_ns },
            proxied: proxied(scenario),
            silent: proxied(scenario)
                | nodes_struck(scenario, |kind| matches!(kind, FaultKind::Swap(_))),
            steady,
            quarantine_ns: if is_quarantined { ttl_ns } else { 0 },
            warm: scenario.cluster.connections == Start::Warm,
            members: PerClient::from_fn(|client| scenario.members(client).into_iter().collect()),
            names_twice: further_names.values().any(is_further),
            further_names,
            tasks: tasks(&processes),
            processes,
            originals: PerClient::from_fn(|client| scenario.original(client)),
            ours: clients_that(scenario, Client::is_ours),
            hear: processes_that(scenario, |client| client.is_ours() && !client.deaf),
            say_whose: clients_that(scenario, Client::says_whose),
            keeps_alive_ns: PerClient::from_fn(|client| {
                scenario.client(client).and_then(Client::keeps_alive).map_or(0, |it| it.0)
            }),
            ask_at_once: clients_that(scenario, Client::asks_at_once),
            count_attempts: clients_that(scenario, Client::counts_attempts),
            workers: clients_that(scenario, |client| client.subject == WORKER),
        }
    }

    /// Returns true if `client` runs the client of this project.
    pub(super) fn is_ours(&self, client: ClientId) -> bool {
        self.ours.contains(client)
    }

    /// Returns true if `client` runs the client of this project, and servers push to it.
    pub(super) fn hears(&self, client: ClientId) -> bool {
        self.hear.contains(client)
    }

    /// Returns true if `client` reports `Taken` only if another attempt holds the lock.
    pub(super) fn says_whose(&self, client: ClientId) -> bool {
        self.say_whose.contains(client)
    }

    /// Returns true if every acquisition of `client` is `at-once`.
    pub(super) fn asks_at_once(&self, client: ClientId) -> bool {
        self.ask_at_once.contains(client)
    }

    /// Returns true if an acquisition of `client` is limited by the number of its attempts.
    pub(super) fn counts_attempts(&self, client: ClientId) -> bool {
        self.count_attempts.contains(client)
    }

    /// Returns true if `client` is outside the simulator: histories show its commands and sections,
    /// but neither its clock readings nor the end of an acquisition without a lease.
    pub(super) fn is_worker(&self, client: ClientId) -> bool {
        self.workers.contains(client)
    }

    /// Returns the nodes that `client` locks on.
    pub(super) fn members(&self, client: ClientId) -> NodeIds {
        self.members[client]
    }

    /// Returns the number of places of `nodes` in the list of `client`: a node can vote at each.
    #[inline]
    pub(super) fn votes(&self, client: ClientId, nodes: NodeIds) -> u32 {
        let further = |node| u32::from(self.further_names[client][node]);
        let further: u32 = if self.names_twice { nodes.iter().map(further).sum() } else { 0 };
        nodes.count() + further
    }

    /// Returns true if a node has two names in a client's list.
    pub(super) fn has_names_twice(&self) -> bool {
        self.names_twice
    }

    /// Returns true if all clients of this lock have the same nodes, each under one name.
    pub(super) fn has_one_membership(&self) -> bool {
        let is_usual = |client| self.members[client] == self.members[self.probe];
        !self.names_twice && self.client_ids().all(is_usual)
    }

    /// Returns true if the two clients are different and draw the same random numbers.
    pub(super) fn are_copies(&self, one: ClientId, other: ClientId) -> bool {
        one != other && self.originals[one] == self.originals[other]
    }

    /// Returns the nodes.
    pub(super) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        NodeId::first(self.nodes)
    }

    /// Returns the clients that use this lock, without its probe.
    pub(super) fn client_ids(&self) -> impl Iterator<Item = ClientId> + use<> {
        self.own.iter()
    }

    /// Returns true if `client` uses this lock, or probes it.
    pub(super) fn uses_this_lock(&self, client: ClientId) -> bool {
        self.own.contains(client) || client == self.probe
    }

    /// Returns true if the scenario has this node.
    pub(super) fn has_node(&self, node: NodeId) -> bool {
        node.index() < self.nodes
    }

    /// Returns true if the scenario has this client, or it is a probe.
    pub(super) fn has_client(&self, client: ClientId) -> bool {
        client.index() < self.clients
    }

    /// Returns true if the scenario has this host.
    pub(super) fn has_host(&self, host: HostId) -> bool {
        host.index() < self.hosts
    }

    /// Returns the client on whose host `client` runs: itself, unless it is a further task.
    pub(super) fn process(&self, client: ClientId) -> ClientId {
        self.processes[client]
    }

    /// Returns the host of `client`.
    pub(super) fn client_host(&self, client: ClientId) -> HostId {
        HostId::at(self.nodes + self.process(client).index())
    }

    /// Returns the clients that run on `host`: the tasks of one process.
    pub(super) fn clients_on(&self, host: HostId) -> ClientIds {
        let client = host.index().checked_sub(self.nodes).map(ClientId::at);
        client.filter(|it| self.has_client(*it)).map_or(ClientIds::EMPTY, |it| self.tasks[it])
    }

    /// Returns the clients that share the process of `client`, and with it all connections.
    #[inline]
    pub(super) fn tasks_with(&self, client: ClientId) -> ClientIds {
        self.tasks[self.process(client)]
    }

    /// Returns true if the attempts of `client` are judged; the probe's attempts only measure.
    pub(super) fn is_judged(&self, client: ClientId) -> bool {
        self.own.contains(client)
    }
}

/// Returns the nodes that may restart behind a proxy that hides it.
fn proxied(scenario: &Scenario) -> NodeIds {
    let restarts = scenario.faults.iter().filter_map(|fault| fault.kind.restarting());
    nodes_at(scenario, restarts.filter(|it| it.behind_a_proxy).flat_map(|it| &it.host.0))
}

/// Returns the nodes that faults of the kinds that `is_meant` may strike.
fn nodes_struck(scenario: &Scenario, is_meant: impl Fn(&FaultKind) -> bool) -> NodeIds {
    let kinds = scenario.faults.iter().map(|fault| &fault.kind);
    nodes_at(scenario, kinds.filter(|kind| is_meant(kind)).flat_map(FaultKind::hosts))
}

/// Returns true if the rates of all clocks are within half the drift, and no fault changes a clock.
fn has_steady_clocks(scenario: &Scenario) -> bool {
    let mut clocks = scenario.cluster.clocks.values();
    let most_ppm = i64::from(scenario.lock.drift.share_ppm / 2);
    let mut kinds = scenario.faults.iter().map(|fault| &fault.kind);
    clocks.all(|it| i64::from(it.rate_ppm).abs() <= most_ppm)
        && !kinds.any(|kind| {
            matches!(
                kind,
                FaultKind::ClockJump(_) | FaultKind::ClockRate(_) | FaultKind::ClockSlew(_)
            )
        })
}

pub(super) fn nodes_at<'a>(
    scenario: &Scenario,
    hosts: impl Iterator<Item = &'a String>,
) -> NodeIds {
    hosts.filter_map(|name| scenario.node_named(name)).collect()
}

/// Returns the number of names of each node in the client's list beyond the first.
fn further_names(scenario: &Scenario, client: ClientId) -> PerNode<u8> {
    let mut names = PerNode::filled(0_u8);
    if scenario.cluster.aliases.is_empty() {
        return names;
    }
    scenario.members(client).into_iter().for_each(|node| names[node] += 1);
    PerNode::from_fn(|node| names[node].saturating_sub(1))
}

/// Returns the tasks of the process on each client's host.
fn tasks(processes: &PerClient<ClientId>) -> PerClient<ClientIds> {
    let mut tasks = PerClient::filled(ClientIds::EMPTY);
    processes.iter().for_each(|(client, process)| tasks[*process].insert(client));
    tasks
}

/// Returns the clients for whose process `is_meant` returns true.
fn processes_that(scenario: &Scenario, is_meant: impl Fn(&Client) -> bool) -> ClientIds {
    let process = |client: &ClientId| scenario.client(scenario.process(*client));
    scenario.client_ids().filter(|client| process(client).is_some_and(&is_meant)).collect()
}

/// Returns the clients for which `is_meant` returns true.
fn clients_that(scenario: &Scenario, is_meant: impl Fn(&Client) -> bool) -> ClientIds {
    let clients = scenario.client_ids().zip(&scenario.clients);
    clients.filter(|(_, client)| is_meant(client)).map(|(id, _)| id).collect()
}
