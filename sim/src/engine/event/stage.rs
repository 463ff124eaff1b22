//! The world of one run: everything that is not a client's own.

use std::collections::VecDeque;

use super::disk::DiskTurn;
use super::nodes::NodeHost;
use super::plan::{Doing, Hosts, Plan};
use super::recorder::Recorder;
use crate::history::{AttemptId, ClockKind, EventKind, HostIndex, OpKind};
use crate::resource::{Store, StoreRequest};
use crate::scenario::Message;
use crate::subject::{Now, Request, Response};
use crate::world::{Arrival, Choice, Choices, Direction, HostClocks, Label, Network, Queue};

/// What travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    Request(Request),
    Response(Response),
    /// A replica has done what it was told up to a place in its master's stream.
    Acknowledged {
        to: u32,
    },
    /// A part of a master's stream, for a replica.
    Effects {
        from: u32,
        to: u32,
    },
    StoreRequest(StoreRequest),
    /// A write was served, applied or not.
    StoreServed,
    /// What a read saw.
    StoreVersion(u32),
}

/// What the queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    Arrive {
        connection: u16,
        direction: Direction,
    },
    /// A backup is made for a fault that puts it back.
    BackUp(u16),
    Disk {
        server: u8,
        turn: DiskTurn,
        /// Which process of the server it was for.
        serial: u32,
    },
    ExpireKeys {
        node: u8,
    },
    FaultBegins(u16),
    FaultEnds(u16),
    /// A `WAIT` is answered as it is.
    WaitEnds {
        server: u8,
        serial: u32,
    },
    /// A client's timer, unless a newer one has been set.
    Timer {
        client: u8,
        serial: u32,
    },
}

/// What a client's kernel has for its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Closed(u16),
    Connected(u16),
    Response(u16, Response),
    StoreServed,
    StoreVersion(u32),
}

/// A client process, as the world sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientHost {
    pub(super) dead: bool,
    /// How many faults keep it from running.
    pub(super) stops: u8,
    pub(super) inbox: VecDeque<Input>,
}

/// A restart that is measured on a clock of its host.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredRestart {
    /// The place of the planned fault.
    pub(super) fault: u16,
    pub(super) host: HostIndex,
    pub(super) clock: ClockKind,
    pub(super) due_local_ns: u64,
}

/// The world of one run.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) now_ns: u64,
    pub(super) choices: Choices,
    pub(super) queue: Queue<Happening>,
    pub(super) network: Network<Packet>,
    pub(super) clocks: Vec<HostClocks>,
    /// The servers: those of the nodes, and the replicas after them.
    pub(super) nodes: Vec<NodeHost>,
    /// Which server is each node's master.
    pub(super) masters: [u8; 9],
    /// How often each node has come up.
    pub(super) starts: [u32; 9],
    /// Whom each client dials for each node.
    pub(super) known: Vec<u8>,
    /// How far in the stream of its server each connection has written.
    pub(super) wrote: Vec<u32>,
    pub(super) waits: u32,
    pub(super) attachments: u32,
    pub(super) clients: Vec<ClientHost>,
    pub(super) store: Store,
    pub(super) recorder: Recorder,
    pub(super) fencing_tokens: u64,
    pub(super) commands: u32,
    pub(super) writes: u32,
    pub(super) arrivals_due: u32,
    /// Clients that have something to do now, bit by bit.
    pub(super) to_run: u16,
    pub(super) active_delays: Vec<Doing>,
    /// Which faults with a point have been set off.
    pub(super) set_off: Vec<bool>,
    /// Restarts to come that depend on clocks.
    pub(super) restarts: Vec<MeasuredRestart>,
    /// The lock's key is there again, which is still to be told.
    pub(super) returned: Option<EventKind>,
    /// Faults with an end that have not ended.
    pub(super) faults_open: u32,
}

impl Stage {
    pub(super) fn record(&mut self, kind: EventKind) {
        self.recorder.record(self.now_ns, kind);
    }

    /// The clocks of a client, read now.
    pub(super) fn read_clocks(&self, host: HostIndex, lease: ClockKind) -> Now {
        let clocks = &self.clocks[host.get()];
        let boot_ns = clocks.read(ClockKind::Boot, self.now_ns);
        let lease_ns = match lease {
            ClockKind::Boot => boot_ns,
            other => clocks.read(other, self.now_ns),
        };
        Now { boot_ns, lease_ns }
    }

    /// Puts something on its way along a connection.
    pub(super) fn send(
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

    pub(super) fn schedule_arrival(&mut self, connection: u16, direction: Direction, at_ns: u64) {
        self.arrivals_due += 1;
        self.queue.schedule(at_ns, Happening::Arrive { connection, direction });
    }

    /// Something for a client process; it runs as soon as it can.
    pub(super) fn give(&mut self, client: u8, input: Input) {
        let host = &mut self.clients[usize::from(client)];
        if host.dead {
            return;
        }
        host.inbox.push_back(input);
        self.wake(client);
    }

    pub(super) fn wake(&mut self, client: u8) {
        self.to_run |= 1 << client;
    }

    /// Sends everything again that was held on ways that are free now.
    pub(super) fn retransmit(&mut self) {
        let Self { network, queue, arrivals_due, choices, now_ns, .. } = self;
        network.retransmit(*now_ns, choices, |connection, direction, at_ns| {
            *arrivals_due += 1;
            queue.schedule(at_ns, Happening::Arrive { connection, direction });
        });
    }
}

/// Which attempt and which kind of command a message is about.
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
        Arrival::Handshake => (AttemptId::default(), 35),
        Arrival::Closed => (AttemptId::default(), 36),
    }
}

fn added_delay(doing: &Doing, from: u8, to: u8, what: &Arrival<Packet>) -> u64 {
    let Doing::Delay { from: senders, to: receivers, by_ns, only } = *doing else { return 0 };
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
