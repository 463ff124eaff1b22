//! One run: in every millisecond the world goes first, then turmoil's hosts.
//!
//! Turmoil's own time is ignored. While nothing is under way between its hosts, time leaps to the
//! next event.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use lock_judge::history::{ClientId, EventKind, Id, NodeIds};
use turmoil::{Builder, Sim};

use super::client::Process;
use super::names::{client_name, server_name};
use super::server::Carrier;
use super::shared::{Line, Phase, Shared, State};
use crate::engine::run::{self, Run};
use crate::engine::{Kept, Outcome};
use crate::plan::{Plan, probe_ops};
use crate::world::World;

const TICK_NS: u64 = 1_000_000;

/// Bound on the steps while time stands still. More steps are a bug of the engine or of the client.
const STILL_STEPS_MAX: u32 = 64;

/// A run.
pub(super) struct Simulation {
    shared: Arc<Shared>,
    sim: Sim<'static>,
    seed: u64,
    /// True if turmoil's hosts have nothing to do until the next event.
    idle: bool,
}

impl Simulation {
    pub(super) fn new(plan: Plan, seed: u64, keeps: bool) -> Self {
        let sim = Builder::new()
            .rng_seed(seed)
            .epoch(UNIX_EPOCH)
            .simulation_duration(Duration::MAX)
            .tick_duration(Duration::from_nanos(TICK_NS))
            .tcp_capacity(65_536)
            .min_message_latency(Duration::ZERO)
            .max_message_latency(Duration::ZERO)
            .build();
        let shared = Arc::new(Shared::new(plan, seed, keeps));
        let mut simulation = Self { shared, sim, seed, idle: false };
        simulation.register();
        simulation
    }

    /// Registers clients before servers: clients act first in every step, so their bytes arrive
    /// within the step.
    fn register(&mut self) {
        for client in ClientId::first(self.shared.plan.scenario.clients.len() + 1) {
            let shared = Arc::clone(&self.shared);
            let ops = self.shared.plan.ops.get(client).cloned().unwrap_or_else(probe_ops);
            let process = move || Process::new(&shared, client, ops.clone());
            self.sim.host(client_name(client), process);
        }
        for server in self.shared.plan.servers.ids() {
            let shared = Arc::clone(&self.shared);
            self.sim.host(server_name(server), move || Carrier::new(&shared, server));
        }
    }

    /// Runs to the end.
    pub(super) fn run(mut self, kept: Kept<'_>) -> Outcome {
        // Servers must listen before a client dials.
        self.turn();
        for client in self.shared.plan.scenario.client_ids() {
            self.start(client, self.shared.plan.warm);
        }
        self.warm_up();
        self.tick(0);
        let done = run::run(&mut self);
        let mut state = self.shared.lock();
        let outcome = run::judge(&mut state.world, (self.seed, done), kept);
        state.ended = true;
        outcome
    }

    /// Starts a client; with `warm`, its connections are open at its beginning.
    fn start(&self, client: ClientId, warm: bool) {
        let mut state = self.shared.lock();
        state.open_store(client);
        if warm {
            state.open_nodes(client);
        }
        let phase = if warm { Phase::Warming } else { Phase::Started };
        state.clients[client].phase = phase;
        state.wake_client(client);
    }

    /// Lets time stand still until every warming client has an answer from every node.
    fn warm_up(&mut self) {
        let plan = Arc::clone(&self.shared.plan);
        let everybody = |client| plan.members(client).iter().copied().collect::<NodeIds>();
        for _ in 0..STILL_STEPS_MAX {
            let state = self.shared.lock();
            let is_warm = state.clients.iter().all(|(client, it)| {
                it.phase != Phase::Warming || it.introduced == everybody(client)
            });
            drop(state);
            if is_warm {
                return self.shared.lock().warmed_up();
            }
            self.turn();
        }
        panic!("a client does not warm up, by seed {}", self.seed);
    }

    /// Returns the time of the next tick; `None` if nothing will ever happen again.
    fn due_ns(&self) -> Option<u64> {
        let state = self.shared.lock();
        let next_ns = state.world.now_ns() + TICK_NS;
        if !self.idle {
            return Some(next_ns);
        }
        let timers = state.timers.values();
        let timers = timers.filter_map(|timer| state.due_ns(timer.due));
        let due_ns = timers.chain(state.world.agenda.next_ns()).min()?;
        Some(due_ns.next_multiple_of(TICK_NS).max(next_ns))
    }

    /// Runs the world's part of a millisecond, then turmoil's.
    fn tick(&mut self, at_ns: u64) {
        let shared = Arc::clone(&self.shared);
        let mut guard = shared.lock();
        let state = &mut *guard;
        while let Some((happens_ns, what)) = state.world.agenda.pop_until(at_ns) {
            state.world.agenda.advance_to(happens_ns);
            state.world.happen(what);
        }
        state.world.agenda.advance_to(at_ns);
        state.hand_over();
        let due = state.timers.values().filter(|timer| state.is_due(timer.due));
        let wakers: Vec<_> = due.map(|timer| timer.waker.clone()).collect();
        let dead = state.newly_dead();
        drop(guard);
        wakers.into_iter().for_each(std::task::Waker::wake);
        for client in dead {
            self.sim.crash(client_name(client));
        }
        self.turn();
    }

    /// Lets turmoil's hosts act once.
    fn turn(&mut self) {
        let seed = self.seed;
        self.sim.step().unwrap_or_else(|error| panic!("a host failed by seed {seed}: {error}"));
        let mut state = self.shared.lock();
        self.idle = !core::mem::take(&mut state.active);
        state.hand_over();
    }
}

impl Run for Simulation {
    fn with_world<T>(&self, at: impl FnOnce(&World) -> T) -> T {
        at(&self.shared.lock().world)
    }

    fn are_clients_done(&self) -> bool {
        let state = self.shared.lock();
        let mut clients = self.shared.plan.scenario.client_ids();
        clients.all(|client| state.clients[client].done || state.world.clients.is_dead(client))
    }

    fn start_probes(&mut self) {
        let mut state = self.shared.lock();
        let probe = self.shared.plan.probe();
        state.world.record_clocks(self.shared.plan.client_host(probe));
        state.record(EventKind::Healed { probe });
        drop(state);
        self.start(probe, true);
        self.warm_up();
    }

    fn have_probes_leases(&self) -> bool {
        self.shared.lock().clients[self.shared.plan.probe()].got_lease
    }

    fn has_timers(&self) -> bool {
        !self.shared.lock().timers.is_empty()
    }

    fn step(&mut self, limit_ns: u64) -> bool {
        let due_ns = self.due_ns().filter(|&due_ns| due_ns <= limit_ns);
        due_ns.map(|due_ns| self.tick(due_ns)).is_some()
    }
}

impl State {
    fn open_store(&mut self, client: ClientId) {
        let plan = &self.world.plan;
        let (from, to) = (plan.client_host(client), plan.scenario.store_host());
        self.clients[client].store = self.world.open(from, to, 0);
    }

    /// Opens the connections of a client that warms up.
    pub(super) fn open_nodes(&mut self, client: ClientId) {
        let plan = Arc::clone(&self.world.plan);
        for &node in plan.members(client) {
            let server = self.world.cluster.known(client, node);
            if !self.world.cluster[server].redis.is_running() {
                continue;
            }
            let (from, to) = (plan.client_host(client), plan.servers[server].host);
            let number = self.world.open(from, to, 0);
            self.lines.insert(number, Line::new(client, node, server, true));
            let host = &mut self.clients[client];
            host.connected[node] = Some(number);
            host.epochs[node] = 1;
        }
    }

    /// Ends the warm-up: time passes for every client again.
    fn warmed_up(&mut self) {
        self.lines.values_mut().for_each(|line| line.still = false);
        for client in self.clients.ids() {
            let host = &mut self.clients[client];
            if host.phase == Phase::Idle || host.is_known {
                continue;
            }
            (host.phase, host.is_known) = (Phase::Started, true);
            let plan = Arc::clone(&self.world.plan);
            for &node in plan.members(client) {
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
            let is_dead = self.world.clients.is_dead(id);
            if is_dead && !core::mem::replace(&mut client.crashed, true) {
                dead.push(id);
            }
        }
        dead
    }
}
