//! Everything about a run that is not bytes on the wire, shared by all hosts.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use redlock_client::OwnerToken;
use redlock_client::environment::BoxFuture;

use super::store::StoreQueue;
use crate::engine::stage::plan::Plan;
use crate::engine::stage::recorder::Recorder;
use crate::history::{AttemptId, ClockKind, EventKind, HostIndex, OpKind};
use crate::master::{Master, run_id};
use crate::oracle::Oracle;
use crate::resource::Store;
use crate::world::{Choice, Choices, HostClocks, Label};

/// The world of one run. Hosts hold it; its own lock is taken for moments only and never while a
/// client is called.
pub(super) struct World {
    pub(super) plan: Plan,
    state: Mutex<State>,
}

/// What changes.
pub(super) struct State {
    /// True time since the scenario began.
    pub(super) now_ns: u64,
    /// How long before the scenario's beginning it still is; connections warm up.
    pub(super) ahead_ns: u64,
    /// Nothing is told any more.
    pub(super) ended: bool,
    pub(super) choices: Choices,
    pub(super) clocks: Vec<HostClocks>,
    pub(super) clients: Vec<ClientHost>,
    pub(super) nodes: Vec<NodeHost>,
    pub(super) store: Store,
    pub(super) store_queue: StoreQueue,
    pub(super) timers: BTreeMap<u64, Timer>,
    /// By the client's address.
    pub(super) connections: BTreeMap<SocketAddr, Connection>,
    pub(super) recorder: Recorder,
    next_timer: u64,
    commands: u32,
    pub(super) fencing_tokens: u64,
    pub(super) writes: u32,
}

/// A client process.
#[derive(Default)]
pub(super) struct ClientHost {
    pub(super) dead: bool,
    /// How many faults keep it from running.
    pub(super) stops: u8,
    /// The scenario's steps are done.
    pub(super) done: bool,
    pub(super) got_lease: bool,
    pub(super) waker: Option<Waker>,
    pub(super) spawned: Vec<BoxFuture<'static, ()>>,
    pub(super) attempts: BTreeMap<[u8; OwnerToken::LENGTH], AttemptId>,
    /// The fencing token of the latest grant.
    pub(super) fencing_token: u64,
    /// Since when each node's votes count.
    pub(super) eligible_from_ns: Vec<u64>,
    /// The current connection to each node.
    pub(super) connected: Vec<Option<SocketAddr>>,
    pub(super) draws: u32,
}

/// A node.
pub(super) struct NodeHost {
    pub(super) master: Master,
    pub(super) stalls: u8,
    pub(super) waker: Option<Waker>,
}

/// When a timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// At this reading of the client's boot clock.
    Boot { client: u8, at_ns: u64 },
    /// At this true time.
    True { at_ns: u64 },
}

/// Somebody waits for a time.
pub(super) struct Timer {
    pub(super) due: Due,
    pub(super) waker: Waker,
}

/// A command, as the history knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) command: u32,
    pub(super) attempt: AttemptId,
    pub(super) op: OpKind,
}

/// A connection from a client to a node.
#[derive(Default)]
pub(super) struct Connection {
    pub(super) client: u8,
    pub(super) node: u8,
    /// Commands written that the node has not executed, in order.
    pub(super) to_execute: VecDeque<Told>,
    /// Commands whose answers the client has not taken in, in order.
    pub(super) to_answer: VecDeque<Told>,
    /// The client dropped it: what has not reached the node's kernel never will.
    pub(super) reset: bool,
    /// Both ends see a reset.
    pub(super) cut: bool,
}

impl World {
    pub(super) fn new(plan: Plan, seed: u64, keep: bool, ahead_ns: u64) -> Self {
        let choices = Choices::new(seed);
        let clocks = plan.clocks.iter().enumerate().map(|(host, &(offset_ns, rate_ppb))| {
            let phase = choices.below(Choice::of(Label::Phase, host as u8), 1_000_000);
            HostClocks::new(offset_ns + phase as i64, rate_ppb)
        });
        let client = || ClientHost {
            eligible_from_ns: vec![u64::MAX; plan.nodes.len()],
            connected: vec![None; plan.nodes.len()],
            ..ClientHost::default()
        };
        let nodes = plan.nodes.iter().map(|node| NodeHost {
            master: Master::new(node.storage, [0; 20], 0),
            stalls: 0,
            waker: None,
        });
        let mut recorder = Recorder::new(Oracle::new(&plan.scenario, &[]));
        recorder.reset(keep);
        let mut state = State {
            now_ns: 0,
            ahead_ns,
            ended: false,
            choices,
            clocks: clocks.collect(),
            clients: plan.scenario.clients.iter().map(|_| client()).chain([client()]).collect(),
            nodes: nodes.collect(),
            store: Store::new(plan.scenario.store.checks),
            store_queue: StoreQueue::default(),
            timers: BTreeMap::new(),
            connections: BTreeMap::new(),
            recorder,
            next_timer: 0,
            commands: 0,
            fencing_tokens: 0,
            writes: 0,
        };
        for (node, planned) in plan.nodes.iter().enumerate() {
            let uptime_ms = plan.scenario.cluster.uptime.0 / 1_000_000;
            let started_wall_ms = state.clocks[node].wall_ms(0).saturating_sub(uptime_ms);
            let run_id = run_id(node as u8, 0);
            state.nodes[node].master.reset_to(planned.storage, run_id, started_wall_ms);
        }
        Self { plan, state: Mutex::new(state) }
    }

    /// The state. A panic of a host ends the run; its destructors may still look.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Tells the history, once the scenario has begun.
    pub(super) fn record(&mut self, kind: EventKind) {
        if self.ahead_ns == 0 && !self.ended {
            self.recorder.record(self.now_ns, kind);
        }
    }

    /// What a host's clock reads now.
    pub(super) fn read(&self, host: HostIndex, clock: ClockKind) -> u64 {
        self.clocks[host.get()].read(clock, self.now_ns) - self.ahead_ns
    }

    /// The node's wall clock, in whole milliseconds.
    pub(super) fn wall_ms(&self, node: u8) -> u64 {
        self.read(HostIndex(node), ClockKind::Wall) / 1_000_000
    }

    /// A client's boot clock.
    pub(super) fn boot_ns(&self, client: u8) -> u64 {
        self.read(HostIndex(self.nodes.len() as u8 + client), ClockKind::Boot)
    }

    pub(super) fn is_due(&self, due: Due) -> bool {
        match due {
            Due::Boot { client, at_ns } => self.boot_ns(client) >= at_ns,
            Due::True { at_ns } => self.ahead_ns == 0 && self.now_ns >= at_ns,
        }
    }

    /// Whether a client takes steps.
    pub(super) fn runs(&self, client: u8) -> bool {
        let host = &self.clients[usize::from(client)];
        !host.dead && host.stops == 0
    }

    pub(super) fn wake_client(&mut self, client: u8) {
        if let Some(waker) = self.clients[usize::from(client)].waker.take() {
            waker.wake();
        }
    }

    pub(super) fn wake_node(&mut self, node: u8) {
        if let Some(waker) = self.nodes[usize::from(node)].waker.take() {
            waker.wake();
        }
    }

    /// The name of another timer.
    pub(super) fn timer(&mut self) -> u64 {
        self.next_timer += 1;
        self.next_timer
    }

    /// The name of another command.
    pub(super) fn command(&mut self) -> u32 {
        self.commands += 1;
        self.commands - 1
    }

    /// Tells the history what a host's clocks read from now on.
    pub(super) fn record_clocks(&mut self, host: HostIndex) {
        for clock in ClockKind::ALL {
            // A master uses its wall clock alone.
            if host.get() < self.nodes.len() && clock != ClockKind::Wall {
                continue;
            }
            let segment = self.clocks[host.get()].segment(clock);
            let (local_ns, rate_ppb) = (segment.local_at(self.now_ns), segment.rate_ppb);
            self.record(EventKind::Clock { host, clock, local_ns, rate_ppb });
        }
    }

    /// Whether nothing is under way and nobody waits for a time.
    pub(super) fn is_quiet(&self) -> bool {
        let live = |it: &&Connection| !it.cut && !it.reset;
        self.timers.is_empty()
            && self.store_queue.is_empty()
            && self.connections.values().filter(live).all(|it| it.to_answer.is_empty())
    }
}
