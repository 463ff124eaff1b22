//! One run: turmoil's steps, and the world's before each of them.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use turmoil::{Builder, Sim};

use super::client::Process;
use super::faults::Faults;
use super::server::NodeProcess;
use super::world::World;
use crate::engine::stage::plan::{Op, Plan, PlannedOp};
use crate::engine::{Kept, Outcome};
use crate::history::{EventKind, HostIndex};
use crate::scenario::Acquire;

const TICK_NS: u64 = 1_000_000;

/// The name of the node at `place`, for turmoil and for addresses.
pub(super) fn node_name(place: usize) -> String {
    format!("node-{place}")
}

/// The node of this name.
pub(super) fn node_of(name: &str) -> u8 {
    let place = name.strip_prefix("node-").and_then(|place| place.parse().ok());
    place.expect("clients are told the names of nodes")
}

/// The name of the client at `place`; the place after the last one is the probe's.
pub(super) fn client_name(place: usize) -> String {
    format!("client-{place}")
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stretch {
    /// The clients are at it.
    Clients,
    /// The probe opens its connections until then: it begins warm.
    Probed { from_ns: u64 },
    /// The probe tries until then.
    Probe { until_ns: u64 },
    /// What was left behind may arrive until then.
    Drain { until_ns: u64 },
}

/// A run.
pub(super) struct Simulation {
    world: Arc<World>,
    sim: Sim<'static>,
    faults: Faults,
    seed: u64,
    /// A handshake, a request and its answer, and a tick for each of them.
    warm_up_ns: u64,
}

impl Simulation {
    pub(super) fn new(plan: Plan, seed: u64, keep: bool) -> Self {
        let delay_ms = |ns: u64| (ns.saturating_add(TICK_NS / 2) / TICK_NS).max(1);
        let network = plan.scenario.cluster.network.delay;
        let (min_ms, max_ms) = (delay_ms(network.min.0), delay_ms(network.max.0));
        let links = plan.scenario.cluster.links.iter().map(|link| link.delay.max.0);
        let longest_ms = links.map(delay_ms).max().unwrap_or(0).max(max_ms);
        let warm_up_ns = (7 * longest_ms + 14) * TICK_NS;
        let mut builder = Builder::new();
        let sim = builder
            .rng_seed(seed)
            .epoch(UNIX_EPOCH)
            .simulation_duration(Duration::MAX)
            .tick_duration(Duration::from_nanos(TICK_NS))
            .tcp_capacity(65_536)
            .min_message_latency(Duration::from_millis(min_ms))
            .max_message_latency(Duration::from_millis(max_ms))
            .build();
        let faults = Faults::new(&plan.faults);
        let ahead_ns = if plan.warm { warm_up_ns } else { 0 };
        let world = Arc::new(World::new(plan, seed, keep, ahead_ns));
        let mut simulation = Self { world, sim, faults, seed, warm_up_ns };
        simulation.register();
        simulation.set_delays(delay_ms);
        simulation
    }

    /// Plays the run to its end.
    pub(super) fn run(mut self, kept: Kept<'_>) -> Outcome {
        let mut elapsed_ns = 0;
        while self.world.lock().ahead_ns > 0 {
            self.tick();
            elapsed_ns += TICK_NS;
            let mut state = self.world.lock();
            state.ahead_ns = state.ahead_ns.saturating_sub(TICK_NS);
        }
        debug_assert_eq!(u128::from(elapsed_ns), self.sim.elapsed().as_nanos());
        self.begin();
        let mut stretch = Some(Stretch::Clients);
        while let Some(current) = stretch {
            self.faults.run(&self.world, &mut self.sim);
            self.tick();
            self.world.lock().now_ns += TICK_NS;
            stretch = self.stretch(current);
        }
        self.end(kept)
    }

    fn register(&mut self) {
        for node in 0..self.world.plan.nodes.len() {
            let world = Arc::clone(&self.world);
            let process = move || NodeProcess::new(&world, node as u8);
            self.sim.host(node_name(node), process);
        }
        for client in 0..self.world.plan.scenario.clients.len() {
            let ops = self.world.plan.ops[client].clone();
            self.register_client(client as u8, self.world.plan.warm, ops);
        }
    }

    fn register_client(&mut self, client: u8, warm: bool, ops: Vec<PlannedOp>) {
        let world = Arc::clone(&self.world);
        let process = move || Process::new(&world, client, warm, ops.clone());
        self.sim.host(client_name(usize::from(client)), process);
    }

    /// Links whose delay is another than the network's. Who never talks has no link to set.
    fn set_delays(&self, delay_ms: impl Fn(u64) -> u64) {
        let plan = &self.world.plan;
        let (nodes, clients) = (plan.nodes.len(), plan.scenario.clients.len());
        let usual = plan.scenario.cluster.network.delay;
        for node in 0..nodes {
            for client in 0..clients {
                let (min_ns, max_ns) = plan.delays[node][nodes + client];
                if (min_ns, max_ns) != (usual.min.0, usual.max.0) {
                    let delay = Duration::from_millis(delay_ms(max_ns));
                    self.sim.set_link_latency(node_name(node), client_name(client), delay);
                }
            }
        }
    }

    /// The scenario begins.
    fn begin(&mut self) {
        let mut state = self.world.lock();
        let (nodes, clients) = (state.nodes.len(), state.clients.len() - 1);
        for host in 0..nodes + clients {
            state.record_clocks(HostIndex(host as u8));
        }
        for node in 0..nodes as u8 {
            state.record(EventKind::NodeUp { node, incarnation: 0 });
        }
        for client in 0..clients as u8 {
            for node in 0..nodes as u8 {
                let host = &state.clients[usize::from(client)];
                let from_local_ns = host.eligible_from_ns[usize::from(node)];
                if from_local_ns != 0 {
                    state.record(EventKind::Eligible { client, node, from_local_ns });
                }
            }
        }
    }

    /// The world's part of a millisecond, then turmoil's.
    fn tick(&mut self) {
        let mut state = self.world.lock();
        state.expire_keys();
        state.run_store(&self.world.plan);
        let due = state.timers.iter().filter(|(_, timer)| state.is_due(timer.due));
        let wakers: Vec<_> = due.map(|(_, timer)| timer.waker.clone()).collect();
        drop(state);
        wakers.into_iter().for_each(std::task::Waker::wake);
        let seed = self.seed;
        self.sim.step().unwrap_or_else(|error| panic!("a host failed by seed {seed}: {error}"));
    }

    /// Which stretch the run is in now; `None` when it is over.
    fn stretch(&mut self, current: Stretch) -> Option<Stretch> {
        let state = self.world.lock();
        let (now_ns, plan) = (state.now_ns, &self.world.plan);
        let clients = state.clients.len() - 1;
        let drain = Stretch::Drain { until_ns: now_ns + plan.grace_ns };
        match current {
            Stretch::Clients if now_ns > plan.end_ns => None,
            Stretch::Clients => {
                if !state.clients[..clients].iter().all(|client| client.done || client.dead) {
                    return Some(current);
                }
                if plan.faults.is_empty() {
                    return Some(drain);
                }
                if !self.faults.are_over() {
                    return Some(current);
                }
                let from_ns = now_ns + self.warm_up_ns;
                drop(state);
                self.start_probe(from_ns);
                Some(Stretch::Probed { from_ns })
            }
            Stretch::Probed { from_ns } if now_ns < from_ns => Some(current),
            Stretch::Probed { .. } => {
                let until_ns = now_ns + plan.probe_patience_ns;
                drop(state);
                self.world.lock().record(EventKind::Healed { probe: clients as u8 });
                Some(Stretch::Probe { until_ns })
            }
            Stretch::Probe { until_ns } if now_ns > until_ns => None,
            Stretch::Probe { .. } if state.clients[clients].done => Some(drain),
            Stretch::Probe { .. } => Some(current),
            Stretch::Drain { until_ns } => {
                let judged_until_ns = state.recorder.oracle.is_waiting_until_ns();
                let undecided = judged_until_ns.is_some_and(|until_ns| now_ns <= until_ns);
                let busy = now_ns <= until_ns && !state.is_quiet();
                (busy || undecided).then_some(current)
            }
        }
    }

    /// The client that shows that the lock can be had again once the faults are over.
    fn start_probe(&mut self, from_ns: u64) {
        let mut state = self.world.lock();
        let probe = state.clients.len() as u8 - 1;
        let host = HostIndex(state.nodes.len() as u8 + probe);
        state.record_clocks(host);
        drop(state);
        let patient = Acquire { attempts: Some(u32::MAX), ..Acquire::default() };
        let ops = [Op::Acquire(patient), Op::Release];
        let ops = ops.map(|op| PlannedOp { not_before_ns: from_ns, op }).to_vec();
        self.register_client(probe, true, ops);
    }

    fn end(self, kept: Kept<'_>) -> Outcome {
        let mut state = self.world.lock();
        state.record(EventKind::Ended);
        state.ended = true;
        let recorder = &mut state.recorder;
        if let Some(kept) = kept {
            *kept = recorder.take_kept();
        }
        let verdicts = recorder.oracle.finish();
        let counters = recorder.oracle.counters();
        Outcome { seed: self.seed, hash: recorder.hash.value(), verdicts, counters }
    }
}
