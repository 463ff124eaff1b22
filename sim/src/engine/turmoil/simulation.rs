//! One run: the world goes first in every millisecond, then turmoil's hosts.
//!
//! Nobody looks at turmoil's own time. While nothing is under way between its hosts, time leaps to
//! the next thing that happens.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use turmoil::{Builder, Sim};

use super::client::Process;
use super::names::server_name;
use super::server::Carrier;
use super::world::{Line, Phase, State, World};
use crate::engine::stage::plan::{Op, Plan, PlannedOp};
use crate::engine::{Kept, Outcome};
use crate::history::EventKind;
use crate::scenario::Acquire;
use crate::world::ConnectionState;

const TICK_NS: u64 = 1_000_000;

/// More steps than this while time stands still is a bug of the engine or of the client.
const STILL_STEPS_MAX: u32 = 64;

/// The name of the client at `place`; the place after the last one is the probe's.
fn client_name(place: usize) -> String {
    format!("client-{place}")
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stretch {
    /// The clients are at it.
    Clients,
    /// The probe tries until then.
    Probe { until_ns: u64 },
    /// What was left behind may arrive until then.
    Drain { until_ns: u64 },
}

/// A run.
pub(super) struct Simulation {
    world: Arc<World>,
    sim: Sim<'static>,
    seed: u64,
    now_ns: u64,
    /// Turmoil's hosts have nothing to do before something happens.
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

    /// Clients go before servers in every step: what they write has arrived at its end.
    fn register(&mut self) {
        let clients = self.world.plan.scenario.clients.len();
        for client in 0..=clients {
            let world = Arc::clone(&self.world);
            let ops = self.world.plan.ops.get(client).cloned().unwrap_or_else(probing);
            let process = move || Process::new(&world, client as u8, ops.clone());
            self.sim.host(client_name(client), process);
        }
        for server in 0..self.world.plan.nodes.len() {
            let world = Arc::clone(&self.world);
            self.sim.host(server_name(server), move || Carrier::new(&world, server as u8));
        }
    }

    /// Plays the run to its end.
    pub(super) fn run(mut self, kept: Kept<'_>) -> Outcome {
        // Servers listen before anybody dials.
        self.step();
        for client in 0..self.world.plan.scenario.clients.len() {
            self.start(client as u8, self.world.plan.warm);
        }
        self.warm_up();
        self.tick(0);
        let mut stretch = Stretch::Clients;
        while let Some(next) = self.stretch(stretch) {
            stretch = next;
            let limit_ns = match stretch {
                Stretch::Clients => self.world.plan.end_ns,
                Stretch::Drain { until_ns } | Stretch::Probe { until_ns } => until_ns,
            };
            let due_ns = self.due_ns().filter(|&due_ns| due_ns <= limit_ns);
            let Some(due_ns) = due_ns else { break };
            self.tick(due_ns);
        }
        self.end(kept)
    }

    /// A client is called for; `warm`: its connections are open when it begins.
    fn start(&self, client: u8, warm: bool) {
        let mut state = self.world.lock();
        state.open_store(&self.world.plan, client);
        if warm {
            state.open_nodes(&self.world.plan, client);
        }
        let phase = if warm { Phase::Warming } else { Phase::Started };
        state.clients[usize::from(client)].phase = phase;
        state.wake_client(client);
    }

    /// Time stands still until everybody who warms up has heard from every node.
    fn warm_up(&mut self) {
        let everybody = (1 << self.world.plan.node_count) - 1;
        for _ in 0..STILL_STEPS_MAX {
            let state = self.world.lock();
            let mut warming = state.clients.iter().filter(|it| it.phase == Phase::Warming);
            if warming.all(|it| it.introduced == everybody) {
                drop(state);
                return self.world.lock().warmed_up(&self.world.plan);
            }
            drop(state);
            self.step();
        }
        panic!("a client does not warm up, by seed {}", self.seed);
    }

    /// When the next tick is; `None` if nothing will ever happen again.
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

    /// The world's part of a millisecond, then turmoil's.
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

    /// Which stretch the run is in now; `None` when it is over.
    fn stretch(&mut self, current: Stretch) -> Option<Stretch> {
        let state = self.world.lock();
        let (now_ns, plan) = (self.now_ns, &self.world.plan);
        let probe = state.clients.len() - 1;
        let drain = Stretch::Drain { until_ns: now_ns + plan.grace_ns };
        match current {
            Stretch::Clients => {
                let is_done =
                    |client: usize| state.clients[client].done || state.stage.clients[client].dead;
                if !(0..probe).all(is_done) {
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
                Some(Stretch::Probe { until_ns })
            }
            Stretch::Probe { .. } if state.clients[probe].got_lease => Some(drain),
            Stretch::Probe { .. } => Some(current),
            Stretch::Drain { .. } => {
                let waiting = state.stage.recorder.oracle.is_waiting_until_ns();
                let quiet = waiting.is_none_or(|until_ns| until_ns <= now_ns)
                    && state.stage.arrivals_due == 0
                    && state.timers.is_empty();
                (!quiet).then_some(current)
            }
        }
    }

    /// The client that shows that the lock can be had again once the faults are over.
    fn start_probe(&mut self) {
        let mut state = self.world.lock();
        let probe = state.clients.len() as u8 - 1;
        let host = State::client_host(&self.world.plan, probe);
        state.stage.record_clocks(&self.world.plan, host);
        state.record(EventKind::Healed { probe });
        drop(state);
        self.start(probe, true);
        self.warm_up();
    }

    fn end(self, kept: Kept<'_>) -> Outcome {
        let mut state = self.world.lock();
        // Nothing more happens: time passes until what was left behind can be judged.
        if let Some(until_ns) = state.stage.recorder.oracle.is_waiting_until_ns() {
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

/// What the probe does.
fn probing() -> Vec<PlannedOp> {
    let patient = Acquire { attempts: Some(u32::MAX), ..Acquire::default() };
    [Op::Acquire(patient), Op::Release].map(|op| PlannedOp { not_before_ns: 0, op }).to_vec()
}

impl State {
    fn open_store(&mut self, plan: &Plan, client: u8) {
        let store = plan.scenario.store_host().0;
        self.clients[usize::from(client)].store = self.open(plan, client, store);
    }

    /// The connections of a client that warms up are there.
    pub(super) fn open_nodes(&mut self, plan: &Plan, client: u8) {
        for node in 0..plan.node_count as u8 {
            let server = self.stage.server_of(plan, client, node);
            if !self.stage.nodes[usize::from(server)].master.is_running() {
                continue;
            }
            let host = plan.nodes[usize::from(server)].host.0;
            let number = self.open(plan, client, host);
            self.lines.insert(number, Line::new(client, node, server, true));
            let host = &mut self.clients[usize::from(client)];
            host.connected[usize::from(node)] = Some(number);
            host.epochs[usize::from(node)] = 1;
        }
    }

    /// A connection that is open at once.
    fn open(&mut self, plan: &Plan, client: u8, to: u8) -> u16 {
        let from = Self::client_host(plan, client).0;
        let number = self.stage.network.dial(from, to, 0, 1);
        let connection = self.stage.network.connection_mut(number);
        connection.state = ConnectionState::Open;
        connection.served = true;
        number
    }

    /// Time goes on for everybody.
    fn warmed_up(&mut self, plan: &Plan) {
        self.lines.values_mut().for_each(|line| line.still = false);
        for client in 0..self.clients.len() as u8 {
            let host = &mut self.clients[usize::from(client)];
            if host.phase == Phase::Idle || host.is_known {
                continue;
            }
            (host.phase, host.is_known) = (Phase::Started, true);
            for node in 0..plan.node_count as u8 {
                let host = &self.clients[usize::from(client)];
                let from_local_ns = host.eligible_from_ns[usize::from(node)];
                if from_local_ns != 0 {
                    self.record(EventKind::Eligible { client, node, from_local_ns });
                }
            }
            self.wake_client(client);
        }
    }

    /// The clients that have died since it was asked last.
    fn newly_dead(&mut self) -> Vec<usize> {
        let mut dead = Vec::new();
        for (place, client) in self.clients.iter_mut().enumerate() {
            let is_dead = self.stage.clients[place].dead;
            if is_dead && !core::mem::replace(&mut client.crashed, true) {
                dead.push(place);
            }
        }
        dead
    }
}
