//! One run: in every millisecond the world goes first, then turmoil's hosts.
//!
//! Turmoil's own time is ignored. While nothing is under way between its hosts, time leaps to the
//! next event.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use turmoil::{Builder, Sim};

use super::client::Process;
use super::names::{client_name, server_name};
use super::server::Carrier;
use super::world::{Line, Phase, State, World};
use crate::engine::stage::plan::{Op, Plan, PlannedOp};
use crate::engine::{Kept, Outcome};
use crate::history::{ClientId, EventKind, HostId, Id, NodeIds};
use crate::ids::ConnectionId;
use crate::scenario::Acquire;
use crate::world::ConnectionState;

const TICK_NS: u64 = 1_000_000;

/// Bound on the steps while time stands still. More steps are a bug of the engine or of the client.
const STILL_STEPS_MAX: u32 = 64;

/// Part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPhase {
    /// The clients run.
    Clients,
    /// The probe may try until `until_ns`.
    Probe { until_ns: u64 },
    /// The remaining messages may arrive until `until_ns`.
    Drain { until_ns: u64 },
}

/// A run.
pub(super) struct Simulation {
    world: Arc<World>,
    sim: Sim<'static>,
    seed: u64,
    now_ns: u64,
    /// True if turmoil's hosts have nothing to do until the next event.
    idle: bool,
}

impl Simulation {
    pub(super) fn new(plan: Plan, seed: u64, keep: bool) -> Self {
        let sim = Builder::new()
            .rng_seed(seed)
            .epoch(UNIX_EPOCH)
            .simulation_duration(Duration::MAX)
            .tick_duration(Duration::from_nanos(TICK_NS))
            .tcp_capacity(65_536)
            .min_message_latency(Duration::ZERO)
            .max_message_latency(Duration::ZERO)
            .build();
        let world = Arc::new(World::new(plan, seed, keep));
        let mut simulation = Self { world, sim, seed, now_ns: 0, idle: false };
        simulation.register();
        simulation
    }

    /// Registers clients before servers: clients act first in every step, so their bytes arrive
    /// within the step.
    fn register(&mut self) {
        for client in ClientId::first(self.world.plan.scenario.clients.len() + 1) {
            let world = Arc::clone(&self.world);
            let ops = self.world.plan.ops.get(client).cloned().unwrap_or_else(probing);
            let process = move || Process::new(&world, client, ops.clone());
            self.sim.host(client_name(client), process);
        }
        for server in self.world.plan.servers.ids() {
            let world = Arc::clone(&self.world);
            self.sim.host(server_name(server), move || Carrier::new(&world, server));
        }
    }

    /// Runs to the end.
    pub(super) fn run(mut self, kept: Kept<'_>) -> Outcome {
        // Servers must listen before a client dials.
        self.step();
        for client in self.world.plan.scenario.client_ids() {
            self.start(client, self.world.plan.warm);
        }
        self.warm_up();
        self.tick(0);
        let mut stretch = RunPhase::Clients;
        while let Some(next) = self.stretch(stretch) {
            stretch = next;
            let limit_ns = match stretch {
                RunPhase::Clients => self.world.plan.end_ns,
                RunPhase::Drain { until_ns } | RunPhase::Probe { until_ns } => until_ns,
            };
            let due_ns = self.due_ns().filter(|&due_ns| due_ns <= limit_ns);
            let Some(due_ns) = due_ns else { break };
            self.tick(due_ns);
        }
        self.end(kept)
    }

    /// Starts a client; with `warm`, its connections are open at its beginning.
    fn start(&self, client: ClientId, warm: bool) {
        let mut state = self.world.lock();
        state.open_store(&self.world.plan, client);
        if warm {
            state.open_nodes(&self.world.plan, client);
        }
        let phase = if warm { Phase::Warming } else { Phase::Started };
        state.clients[client].phase = phase;
        state.wake_client(client);
    }

    /// Lets time stand still until every warming client has an answer from every node.
    fn warm_up(&mut self) {
        let everybody = NodeIds::first(self.world.plan.node_count);
        for _ in 0..STILL_STEPS_MAX {
            let state = self.world.lock();
            let mut warming = state.clients.values().filter(|it| it.phase == Phase::Warming);
            if warming.all(|it| it.introduced == everybody) {
                drop(state);
                return self.world.lock().warmed_up(&self.world.plan);
            }
            drop(state);
            self.step();
        }
        panic!("a client does not warm up, by seed {}", self.seed);
    }

    /// Returns the time of the next tick; `None` if nothing will ever happen again.
    fn due_ns(&self) -> Option<u64> {
        let next_ns = self.now_ns + TICK_NS;
        if !self.idle {
            return Some(next_ns);
        }
        let state = self.world.lock();
        let timers = state.timers.values();
        let timers = timers.filter_map(|timer| state.due_ns(&self.world.plan, timer.due));
        let due_ns = timers.chain(state.stage.queue.next_ns()).min()?;
        Some(due_ns.next_multiple_of(TICK_NS).max(next_ns))
    }

    /// Runs the world's part of a millisecond, then turmoil's.
    fn tick(&mut self, at_ns: u64) {
        self.now_ns = at_ns;
        let world = Arc::clone(&self.world);
        let mut guard = world.lock();
        let state = &mut *guard;
        while state.stage.queue.next_ns().is_some_and(|next_ns| next_ns <= at_ns)
            && let Some((happens_ns, what)) = state.stage.queue.pop()
        {
            state.stage.now_ns = state.stage.now_ns.max(happens_ns);
            state.stage.happen(&world.plan, what);
        }
        state.stage.now_ns = at_ns;
        state.hand_over();
        let due = state.timers.values().filter(|timer| state.is_due(&world.plan, timer.due));
        let wakers: Vec<_> = due.map(|timer| timer.waker.clone()).collect();
        let dead = state.newly_dead();
        drop(guard);
        wakers.into_iter().for_each(std::task::Waker::wake);
        for client in dead {
            self.sim.crash(client_name(client));
        }
        self.step();
    }

    fn step(&mut self) {
        let seed = self.seed;
        self.sim.step().unwrap_or_else(|error| panic!("a host failed by seed {seed}: {error}"));
        let mut state = self.world.lock();
        self.idle = !core::mem::take(&mut state.active);
        state.hand_over();
    }

    /// Returns the present stretch of the run; `None` if the run is over.
    fn stretch(&mut self, current: RunPhase) -> Option<RunPhase> {
        let state = self.world.lock();
        let (now_ns, plan) = (self.now_ns, &self.world.plan);
        let probe = plan.probe();
        let drain = RunPhase::Drain { until_ns: now_ns + plan.grace_ns };
        match current {
            RunPhase::Clients => {
                let is_done = |client: ClientId| {
                    state.clients[client].done || state.stage.clients[client].dead
                };
                if !plan.scenario.client_ids().all(is_done) {
                    return Some(current);
                }
                if !plan.has_faults {
                    return Some(drain);
                }
                if state.stage.faults_open > 0 {
                    return Some(current);
                }
                let until_ns = now_ns + plan.probe_patience_ns;
                drop(state);
                self.start_probe();
                Some(RunPhase::Probe { until_ns })
            }
            RunPhase::Probe { .. } if state.clients[probe].got_lease => Some(drain),
            RunPhase::Probe { .. } => Some(current),
            RunPhase::Drain { .. } => {
                let waiting = state.stage.recorder.oracle.must_last_until_ns();
                let quiet = waiting.is_none_or(|until_ns| until_ns <= now_ns)
                    && state.stage.arrivals_due == 0
                    && state.timers.is_empty();
                (!quiet).then_some(current)
            }
        }
    }

    /// Starts the probe: the client that shows that the lock is available again after the faults.
    fn start_probe(&mut self) {
        let mut state = self.world.lock();
        let probe = self.world.plan.probe();
        let host = self.world.plan.client_host(probe);
        state.stage.record_clocks(&self.world.plan, host);
        state.record(EventKind::Healed { probe });
        drop(state);
        self.start(probe, true);
        self.warm_up();
    }

    fn end(self, kept: Kept<'_>) -> Outcome {
        let mut state = self.world.lock();
        // No further event follows: time passes until the oracle can judge what is left.
        if let Some(until_ns) = state.stage.recorder.oracle.must_last_until_ns() {
            let last_ns = self.now_ns + self.world.plan.grace_ns;
            state.stage.now_ns = self.now_ns.max(until_ns.min(last_ns));
        }
        state.record(EventKind::Ended);
        state.ended = true;
        let recorder = &mut state.stage.recorder;
        if let Some(kept) = kept {
            *kept = recorder.take_kept();
        }
        let verdicts = recorder.oracle.finish();
        let counters = recorder.oracle.counters();
        let (hash, faults_begun) = (recorder.hash.value(), recorder.oracle.faults_begun());
        Outcome { seed: self.seed, hash, verdicts, counters, faults_begun }
    }
}

/// Returns the probe's steps.
fn probing() -> Vec<PlannedOp> {
    let patient = Acquire { attempts: Some(u32::MAX), ..Acquire::default() };
    [Op::Acquire(patient), Op::Release].map(|op| PlannedOp { not_before_ns: 0, op }).to_vec()
}

impl State {
    fn open_store(&mut self, plan: &Plan, client: ClientId) {
        self.clients[client].store = self.open(plan, client, plan.scenario.store_host());
    }

    /// Opens the connections of a client that warms up.
    pub(super) fn open_nodes(&mut self, plan: &Plan, client: ClientId) {
        for node in plan.node_ids() {
            let server = self.stage.server_of(client, node);
            if !self.stage.servers[server].master.is_running() {
                continue;
            }
            let number = self.open(plan, client, plan.servers[server].host);
            self.lines.insert(number, Line::new(client, node, server, true));
            let host = &mut self.clients[client];
            host.connected[node] = Some(number);
            host.epochs[node] = 1;
        }
    }

    /// Opens a connection at once, without a handshake.
    fn open(&mut self, plan: &Plan, client: ClientId, to: HostId) -> ConnectionId {
        let number = self.stage.network.dial(plan.client_host(client), to, 0, 1);
        let connection = self.stage.network.connection_mut(number);
        connection.state = ConnectionState::Open;
        connection.served = true;
        number
    }

    /// Ends the warm-up: time passes for every client again.
    fn warmed_up(&mut self, plan: &Plan) {
        self.lines.values_mut().for_each(|line| line.still = false);
        for client in self.clients.ids() {
            let host = &mut self.clients[client];
            if host.phase == Phase::Idle || host.is_known {
                continue;
            }
            (host.phase, host.is_known) = (Phase::Started, true);
            for node in plan.node_ids() {
                let host = &self.clients[client];
                let from_local_ns = host.eligible_from_ns[node];
                if from_local_ns != 0 {
                    self.record(EventKind::Eligible { client, node, from_local_ns });
                }
            }
            self.wake_client(client);
        }
    }

    /// Returns the clients that have died since the last call.
    fn newly_dead(&mut self) -> Vec<ClientId> {
        let mut dead = Vec::new();
        for (id, client) in self.clients.iter_mut() {
            let is_dead = self.stage.clients[id].dead;
            if is_dead && !core::mem::replace(&mut client.crashed, true) {
                dead.push(id);
            }
        }
        dead
    }
}
