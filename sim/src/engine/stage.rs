//! The world of one run: everything except the clients' own state. The engine that drives the
//! clients takes the next event from the world's queue.

mod demotion;
mod failover;
mod faults;
mod hidden;
pub(crate) mod nodes;
pub(crate) mod plan;
pub(in crate::engine) mod recorder;
mod servers;
pub(in crate::engine) mod wire;

use std::collections::VecDeque;

use self::demotion::Demoted;
use self::nodes::{DiskTurn, NodeHost};
use self::plan::{FaultEffect, Hosts, Plan};
use self::recorder::Recorder;
use self::wire::Wire;
use crate::history::{AttemptId, ClockKind, EventKind, HostIndex, OpKind};
use crate::master::{Master, SeededCanary, run_id};
use crate::oracle::Oracle;
use crate::resource::{Store, StoreRequest};
use crate::scenario::Message;
use crate::subject::{Now, Request, Response};
use crate::world::{Arrival, Choice, Choices, Direction, HostClocks, Label, Network, Queue};

/// Content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Packet {
    Request(Request),
    Response(Response),
    /// A replica has applied its master's stream up to the position `to`.
    Acknowledged {
        to: u32,
    },
    /// Notice that the lock's key has changed.
    Changed,
    /// Notice that the server's keys are gone.
    Forgot,
    /// A part of a master's stream, for a replica.
    Effects {
        from: u32,
        to: u32,
    },
    StoreRequest(StoreRequest),
    /// A write was handled, applied or not.
    StoreServed,
    /// Version that a read returned.
    StoreVersion(u32),
}

/// An entry of the event queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum QueueEntry {
    Arrive {
        connection: u16,
        direction: Direction,
    },
    /// Make the backup for a fault that puts it back later.
    BackUp(u16),
    Disk {
        server: u8,
        turn: DiskTurn,
        /// Serial number of the server process for which the turn was scheduled.
        serial: u32,
    },
    ExpireKeys {
        node: u8,
    },
    FaultBegins(u16),
    FaultEnds(u16),
    /// A `WAIT` times out and is answered with the present count.
    WaitEnds {
        server: u8,
        serial: u32,
    },
    /// A client's timer fires; ignored if a newer timer has been set.
    Timer {
        client: u8,
        serial: u32,
    },
}

/// An input that a client's kernel passes to its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Input {
    /// The server's notice that the lock's key has changed.
    Changed(u16),
    Closed(u16),
    Connected(u16),
    /// The server's notice that its keys are gone.
    Forgot(u16),
    Reset(u16),
    Response(u16, Response),
    StoreServed,
    StoreVersion(u32),
}

/// A client process, as the world sees it.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct ClientHost {
    pub(in crate::engine) dead: bool,
    /// Number of faults that keep the process from running.
    pub(in crate::engine) stops: u8,
    pub(in crate::engine) inbox: VecDeque<Input>,
}

/// A restart whose delay is measured on a clock of its host.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct MeasuredRestart {
    /// Place of the planned fault.
    pub(in crate::engine) fault: u16,
    pub(in crate::engine) host: HostIndex,
    pub(in crate::engine) clock: ClockKind,
    pub(in crate::engine) due_local_ns: u64,
}

/// The world of one run.
#[derive(Debug)]
pub(in crate::engine) struct Stage {
    pub(in crate::engine) now_ns: u64,
    pub(in crate::engine) choices: Choices,
    pub(in crate::engine) queue: Queue<QueueEntry>,
    pub(in crate::engine) network: Network<Packet>,
    pub(in crate::engine) clocks: Vec<HostClocks>,
    /// The servers of the nodes, followed by the replicas.
    pub(in crate::engine) nodes: Vec<NodeHost>,
    /// Canary of each node's master at the beginning of a run.
    canaries: Vec<SeededCanary>,
    /// Server that is each node's master.
    pub(in crate::engine) masters: [u8; 9],
    demoted: Vec<Demoted>,
    /// Connections that listen for lost keys, but that their server has forgotten.
    deaf: Vec<u16>,
    /// Servers, each with a connection that it tells of the next change of the lock's key. Empty if
    /// clients speak bytes: the servers themselves keep this table then.
    readers: Vec<(u8, u16)>,
    /// Number of starts of each node.
    pub(in crate::engine) starts: [u32; 9],
    /// Server that each client dials for each node.
    pub(in crate::engine) known: Vec<u8>,
    /// Position in its server's stream up to which each connection has written.
    pub(in crate::engine) wrote: Vec<u32>,
    pub(in crate::engine) waits: u32,
    pub(in crate::engine) attachments: u32,
    pub(in crate::engine) clients: Vec<ClientHost>,
    pub(in crate::engine) store: Store,
    pub(in crate::engine) recorder: Recorder,
    pub(in crate::engine) fencing_tokens: u64,
    pub(in crate::engine) commands: u32,
    pub(in crate::engine) writes: u32,
    pub(in crate::engine) arrivals_due: u32,
    /// Clients that have something to do now, as a bit mask.
    pub(in crate::engine) to_run: u16,
    pub(in crate::engine) active_delays: Vec<FaultEffect>,
    /// True for each fault at a point that has begun.
    pub(in crate::engine) set_off: Vec<bool>,
    /// Pending restarts that depend on clocks.
    pub(in crate::engine) restarts: Vec<MeasuredRestart>,
    /// The event for the return of the lock's key, which is not yet recorded.
    pub(in crate::engine) returned: Option<EventKind>,
    /// Number of faults with an end that have not ended.
    pub(in crate::engine) faults_open: u32,
    /// The bytes on the connections; `None` if clients do not speak bytes.
    pub(in crate::engine) wire: Option<Box<Wire>>,
}

impl Stage {
    /// Returns the world of `plan`, before any run.
    pub(in crate::engine) fn new(plan: &Plan) -> Self {
        let profile = plan.scenario.cluster.server.into();
        let nodes = plan.nodes.iter();
        let nodes = nodes.map(|node| NodeHost::new(Master::new(node.storage, [0; 20], 0), profile));
        Self {
            canaries: Vec::new(),
            now_ns: 0,
            choices: Choices::new(0),
            queue: Queue::default(),
            network: Network::default(),
            clocks: Vec::with_capacity(plan.clocks.len()),
            nodes: nodes.collect(),
            masters: [0; 9],
            demoted: Vec::new(),
            deaf: Vec::new(),
            readers: Vec::new(),
            starts: [0; 9],
            known: Vec::new(),
            wrote: Vec::new(),
            waits: 0,
            attachments: 0,
            clients: vec![ClientHost::default(); plan.scenario.clients.len() + 1],
            store: Store::new(plan.scenario.store.checks),
            recorder: Recorder::new(Oracle::new(&plan.scenario, &[])),
            fencing_tokens: 0,
            commands: 0,
            writes: 0,
            arrivals_due: 0,
            to_run: 0,
            active_delays: Vec::new(),
            set_off: Vec::new(),
            restarts: Vec::new(),
            returned: None,
            faults_open: 0,
            wire: None,
        }
    }

    /// Begins a run with the seed `seed`.
    pub(in crate::engine) fn begin(&mut self, plan: &Plan, seed: u64, keep: bool) {
        self.now_ns = 0;
        self.choices = Choices::new(seed);
        self.queue.clear();
        self.network.clear();
        self.store = Store::new(plan.scenario.store.checks);
        self.recorder.reset(keep);
        (self.fencing_tokens, self.commands, self.writes) = (0, 0, 0);
        self.arrivals_due = 0;
        self.to_run = 0;
        self.active_delays.clear();
        self.deaf.clear();
        self.readers.clear();
        self.clocks.clear();
        for (host, &(offset_ns, rate_ppb)) in plan.clocks.iter().enumerate() {
            // The scenario does not choose the phase of a wall clock within its millisecond; the
            // seed draws it.
            let phase = self.choices.below(Choice::of(Label::Phase, host as u8), 1_000_000);
            self.clocks.push(HostClocks::new(offset_ns + phase as i64, rate_ppb));
        }
        for host in 0..plan.node_count + plan.scenario.clients.len() {
            self.record_clocks(plan, HostIndex(host as u8));
        }
        for replica in &plan.nodes[plan.node_count..] {
            self.record_clocks(plan, replica.host);
        }
        for server in 0..plan.nodes.len() {
            self.begin_server(plan, server as u8);
        }
        self.seed_canaries(plan);
        self.begin_replication(plan);
        for client in &mut self.clients {
            client.dead = false;
            client.stops = 0;
            client.inbox.clear();
        }
        self.schedule_faults(plan);
    }

    fn begin_server(&mut self, plan: &Plan, server: u8) {
        let uptime_ms = plan.scenario.cluster.uptime.0 / 1_000_000;
        let started_wall_ms = self.node_wall_ms(plan, server).saturating_sub(uptime_ms);
        let host = &mut self.nodes[usize::from(server)];
        let storage = plan.nodes[usize::from(server)].storage;
        host.master.reset_to(storage, run_id(server, 0), started_wall_ms);
        host.reset();
        if usize::from(server) < plan.node_count {
            self.record(EventKind::NodeUp { node: server, incarnation: 0 });
        }
    }

    /// Sets the canaries of a fleet that has been running. Each node has had its canary since its
    /// process started; a replica has its master's canary.
    fn seed_canaries(&mut self, plan: &Plan) {
        let uptime_ms = plan.scenario.cluster.uptime.0 / 1_000_000;
        for server in 0..plan.nodes.len() {
            let node = plan.nodes[server].node;
            if plan.nodes[server].is_new {
                continue;
            }
            let started_wall_ms = self.node_wall_ms(plan, node).saturating_sub(uptime_ms);
            let known = self.canaries.get(usize::from(node));
            let is_known = known.is_some_and(|it| it.is_of(run_id(node, 0), started_wall_ms));
            if !is_known {
                let canary = SeededCanary::new(run_id(node, 0), started_wall_ms);
                if usize::from(node) == self.canaries.len() {
                    self.canaries.push(canary);
                } else {
                    self.canaries[usize::from(node)] = canary;
                }
            }
            let master = &mut self.nodes[server].master;
            master.seed_canary(&self.canaries[usize::from(node)]);
        }
    }

    /// Executes a due entry of the queue. Timers are handled by the engine that drives the clients.
    pub(in crate::engine) fn happen(&mut self, plan: &Plan, what: QueueEntry) {
        match what {
            QueueEntry::Arrive { connection, direction } => {
                self.arrive(plan, connection, direction);
            }
            QueueEntry::BackUp(place) => self.back_up(plan, place),
            QueueEntry::Disk { server, turn, serial } => self.disk_turn(plan, server, turn, serial),
            QueueEntry::ExpireKeys { node } => self.expire_keys(plan, node),
            QueueEntry::WaitEnds { server, serial } => self.end_wait(plan, server, serial),
            QueueEntry::FaultBegins(place) => self.begin_fault(plan, place),
            QueueEntry::FaultEnds(place) => self.end_fault(plan, place),
            QueueEntry::Timer { .. } => {}
        }
    }

    pub(in crate::engine) fn record(&mut self, kind: EventKind) {
        self.recorder.record(self.now_ns, kind);
    }

    /// Returns the present readings of a client's clocks.
    pub(in crate::engine) fn read_clocks(&self, host: HostIndex, lease: ClockKind) -> Now {
        let clocks = &self.clocks[host.get()];
        let boot_ns = clocks.read(ClockKind::Boot, self.now_ns);
        let lease_ns = match lease {
            ClockKind::Boot => boot_ns,
            other => clocks.read(other, self.now_ns),
        };
        Now { boot_ns, lease_ns }
    }

    /// Sends an item along a connection.
    pub(in crate::engine) fn send(
        &mut self,
        plan: &Plan,
        connection: u16,
        direction: Direction,
        what: Arrival<Packet>,
    ) {
        let it = self.network.connection(connection);
        let (client, server) = (it.client, it.server);
        let (repeat, (from, to)) = (
            u32::from(it.lane) << 16 | it.epoch,
            match direction {
                Direction::Down => (server, client),
                Direction::Up => (client, server),
            },
        );
        let (shortest, longest) = plan.delays[usize::from(from)][usize::from(to)];
        let (attempt, operation) = meaning(&what);
        let choice = Choice {
            label: Label::Delay,
            host: client,
            attempt: attempt.number,
            operation,
            node: server,
            direction: direction as u8,
            repeat,
        };
        let mut delay_ns = self.choices.between(choice, shortest, longest);
        for doing in &self.active_delays {
            delay_ns += added_delay(doing, from, to, &what);
        }
        let arrival = self.network.send(connection, direction, what, self.now_ns, delay_ns);
        if let Some(at_ns) = arrival {
            self.schedule_arrival(connection, direction, at_ns);
        }
    }

    pub(in crate::engine) fn schedule_arrival(
        &mut self,
        connection: u16,
        direction: Direction,
        at_ns: u64,
    ) {
        self.arrivals_due += 1;
        self.queue.schedule(at_ns, QueueEntry::Arrive { connection, direction });
    }

    /// Queues an input for a client process and wakes it; the process runs as soon as it can.
    pub(in crate::engine) fn give(&mut self, client: u8, input: Input) {
        let host = &mut self.clients[usize::from(client)];
        if host.dead {
            return;
        }
        host.inbox.push_back(input);
        self.wake(client);
    }

    pub(in crate::engine) fn wake(&mut self, client: u8) {
        self.to_run |= 1 << client;
    }

    /// Retransmits everything that was held on directions that are not cut now.
    pub(in crate::engine) fn retransmit(&mut self) {
        let Self { network, queue, arrivals_due, choices, now_ns, .. } = self;
        network.retransmit(*now_ns, choices, |connection, direction, at_ns| {
            *arrivals_due += 1;
            queue.schedule(at_ns, QueueEntry::Arrive { connection, direction });
        });
    }
}

/// Returns the attempt and the kind of command that a message is about.
fn meaning(what: &Arrival<Packet>) -> (AttemptId, u8) {
    match what {
        Arrival::Message(Packet::Request(request)) => (request.attempt, request.ask.op() as u8),
        Arrival::Message(Packet::Response(response)) => (response.attempt, response.op as u8),
        Arrival::Message(Packet::StoreRequest(StoreRequest::Read { attempt, .. })) => {
            (*attempt, 32)
        }
        Arrival::Message(Packet::StoreRequest(StoreRequest::Write { attempt, .. })) => {
            (*attempt, 33)
        }
        Arrival::Message(Packet::StoreServed | Packet::StoreVersion(_)) => {
            (AttemptId::default(), 34)
        }
        Arrival::Message(Packet::Effects { to, .. } | Packet::Acknowledged { to }) => {
            (AttemptId { client: 0, number: *to as u16 }, 37)
        }
        Arrival::Message(Packet::Forgot) => (AttemptId::default(), 38),
        Arrival::Message(Packet::Changed) => (AttemptId::default(), 39),
        Arrival::Handshake => (AttemptId::default(), 35),
        Arrival::Closed | Arrival::Reset => (AttemptId::default(), 36),
    }
}

fn added_delay(doing: &FaultEffect, from: u8, to: u8, what: &Arrival<Packet>) -> u64 {
    let FaultEffect::Delay { from: senders, to: receivers, by_ns, only } = *doing else { return 0 };
    let within = |hosts: Hosts, host: u8| hosts & (1 << host) != 0;
    if !within(senders, from) || !within(receivers, to) {
        return 0;
    }
    let concerned = match (only, what) {
        (None, _) => true,
        (Some(Message::Answer), Arrival::Message(Packet::Response(_))) => true,
        (Some(Message::Extend), Arrival::Message(Packet::Request(request))) => {
            request.ask.op() == OpKind::Extend
        }
        (Some(Message::Release), Arrival::Message(Packet::Request(request))) => {
            matches!(request.ask.op(), OpKind::Release | OpKind::Delete)
        }
        (Some(Message::Set), Arrival::Message(Packet::Request(request))) => {
            request.ask.op() == OpKind::Set
        }
        (Some(Message::Write), Arrival::Message(Packet::StoreRequest(request))) => {
            matches!(request, StoreRequest::Write { .. })
        }
        _ => false,
    };
    if concerned { by_ns } else { 0 }
}
