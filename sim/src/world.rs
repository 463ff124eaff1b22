//! The simulated world of a run: everything except the clients' own state.
//!
//! At the bottom, the clocks of a host, the connections and the queue know nothing about locks.
//! Above them are the components, each the owner of its state: the agenda, the clocks of all hosts,
//! the client processes, the cluster, the protected resource, the faults, the recorder. A `World`
//! contains all components of one run, and has the operations that involve several: a message, an
//! execution, a death. The engine that drives the clients takes the next entry of the agenda.

mod agenda;
mod bytes;
mod clients;
mod clock;
mod clocks;
mod cluster;
mod deaths;
mod delays;
mod disk;
mod execution;
mod expiry;
mod failover;
mod fault_schedule;
mod faults;
mod key_events;
mod messages;
mod network;
mod packet;
mod protected;
mod pushes;
mod queue;
mod recorder;
mod replication;
mod wire;

use std::sync::Arc;

use lock_judge::history::{ClockKind, EventKind, HostId, Id};
use lock_judge::ids::{ConnectionId, ServerId};
use lock_judge::oracle::Oracle;
use lock_judge::scenario::Property;
use redis_sim::run_id;

use self::agenda::Agenda;
pub(crate) use self::agenda::Due;
use self::clients::Clients;
pub(crate) use self::clients::Input;
pub use self::clock::{BOOT_AT_START_NS, HostClocks, WALL_AT_START_MS};
use self::clocks::Clocks;
use self::cluster::Cluster;
use self::delays::AddedDelays;
use self::fault_schedule::FaultSchedule;
pub(crate) use self::key_events::key_ended;
pub use self::network::{Arrival, Connection, ConnectionState, Direction, Network, Pipe, Unsent};
pub(crate) use self::packet::Packet;
use self::protected::ProtectedResource;
pub use self::queue::Queue;
use self::recorder::Recorder;
pub(crate) use self::wire::Wire;
use crate::choice::Choices;
use crate::plan::Plan;
use crate::subject::Now;

/// The world of one run.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Arc<Plan>,
    pub(crate) agenda: Agenda,
    pub(crate) choices: Choices,
    pub(crate) network: Network<Packet>,
    delays: AddedDelays,
    pub(crate) clocks: Clocks,
    pub(crate) cluster: Cluster,
    pub(crate) clients: Clients,
    pub(crate) resource: ProtectedResource,
    pub(crate) faults: FaultSchedule,
    pub(crate) recorder: Recorder,
    /// The bytes on the connections; `None` if clients do not speak bytes.
    pub(crate) wire: Option<Box<Wire>>,
}

impl World {
    /// Returns the world of `plan`, before any run. The engine cannot record enough for `unjudged`.
    pub(crate) fn new(plan: Arc<Plan>, unjudged: &[Property]) -> Self {
        Self {
            agenda: Agenda::default(),
            choices: Choices::new(0),
            network: Network::default(),
            delays: AddedDelays::default(),
            clocks: Clocks::default(),
            cluster: Cluster::new(&plan),
            clients: Clients::new(plan.scenario.clients.len() + 1),
            resource: ProtectedResource::new(
                plan.scenario.store.checks,
                plan.scenario.resource_ids().len(),
            ),
            faults: FaultSchedule::default(),
            recorder: Recorder::new(Oracle::new(&plan.scenario, unjudged)),
            wire: None,
            plan,
        }
    }

    /// Begins a run with the seed `seed`; keeps its events if `keeps`.
    pub(crate) fn begin(&mut self, seed: u64, keeps: bool) {
        self.choices = Choices::new(seed);
        self.agenda.reset();
        self.network.clear();
        self.delays.reset();
        self.clients.reset();
        self.resource.reset();
        self.recorder.reset(keeps);
        self.clocks.reset(&self.plan, &self.choices);
        for host in HostId::first(self.plan.node_count + self.plan.scenario.clients.len()) {
            if self.plan.has_process(host) {
                self.record_clocks(host);
            }
        }
        for server in self.plan.servers.ids().skip(self.plan.node_count) {
            self.record_clocks(self.plan.servers[server].host);
        }
        self.plan.servers.ids().for_each(|server| self.begin_server(server));
        self.plan.servers.ids().for_each(|server| self.seed_canary(server));
        self.begin_replication();
        self.faults.begin(&self.plan, &mut self.agenda);
    }

    fn begin_server(&mut self, server: ServerId) {
        let started_wall_ms = self.started_wall_ms(server);
        let host = &mut self.cluster[server];
        let storage = self.plan.servers[server].storage;
        host.redis.reset_to(storage, run_id(server.0, 0), started_wall_ms);
        host.reset();
        if let Some(node) = self.plan.first_node_of(server) {
            self.record(EventKind::NodeUp { node, incarnation: 0 });
        }
    }

    /// Returns the reading of the server's wall clock when its process started.
    fn started_wall_ms(&self, server: ServerId) -> u64 {
        let uptime_ms = self.plan.scenario.cluster.uptime.0 / 1_000_000;
        self.wall_ms(server).saturating_sub(uptime_ms)
    }

    /// Sets the canary of a fleet that has been running. Each node has had its canary since its
    /// process started; a replica has its master's canary.
    fn seed_canary(&mut self, server: ServerId) {
        let planned = self.plan.servers[server];
        if !planned.is_new {
            let started_wall_ms = self.started_wall_ms(planned.node.first_server());
            self.cluster.seed_canary(server, planned.node, started_wall_ms);
        }
    }

    /// Executes a due entry of the agenda. Timers are handled by the engine that drives the
    /// clients.
    pub(crate) fn happen(&mut self, what: Due) {
        match what {
            Due::Arrival { connection, direction } => self.arrive(connection, direction),
            Due::BackUp(strike) => self.back_up(strike),
            Due::Disk { server, turn, serial } => self.disk_turn(server, turn, serial),
            Due::Expiry { server } => self.expire_keys(server),
            Due::WaitEnds { server, serial } => self.end_wait(server, serial),
            Due::FaultBegins(strike) => self.begin_fault(strike),
            Due::FaultEnds(strike) => self.end_fault(strike),
            Due::Timer { .. } => {}
        }
    }

    /// Returns the present true time.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.agenda.now_ns()
    }

    #[inline]
    pub(crate) fn record(&mut self, kind: EventKind) {
        self.recorder.record(self.agenda.now_ns(), kind);
    }

    /// Returns the present readings of a client's clocks.
    #[inline]
    pub(crate) fn read_clocks(&self, host: HostId, lease: ClockKind) -> Now {
        self.clocks.now(host, lease, self.now_ns())
    }

    /// Returns the server's wall clock, in nanoseconds.
    fn wall_ns(&self, server: ServerId) -> u64 {
        self.clocks.wall_ns(&self.plan.servers[server], self.now_ns())
    }

    /// Returns the server's wall clock, in whole milliseconds.
    fn wall_ms(&self, server: ServerId) -> u64 {
        self.wall_ns(server) / 1_000_000
    }

    /// Opens a connection at once, without a handshake.
    pub(crate) fn open(&mut self, from: HostId, to: HostId, lane: u16) -> ConnectionId {
        let number = self.network.dial(from, to, lane, 1);
        let connection = self.network.connection_mut(number);
        connection.state = ConnectionState::Open;
        connection.served = true;
        number
    }

    /// Ends the history. If the clients are `done`, time passes before until the oracle can judge what
    /// is left, at most by the grace period.
    pub(crate) fn end(&mut self, done: bool) {
        let until_ns = self.recorder.oracle().must_last_until_ns().filter(|_| done);
        if let Some(until_ns) = until_ns {
            self.agenda.advance_to(until_ns.min(self.now_ns() + self.plan.grace_ns));
        }
        self.record(EventKind::Ended);
    }
}
