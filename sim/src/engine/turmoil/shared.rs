//! State that all hosts of a run share: the world, and the state of the clients on tokio.

mod line;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use lock_judge::history::{AttemptId, ClientId, ClockKind, EventKind, FencingToken, NodeIds};
use lock_judge::ids::{ConnectionId, IdVec, PerNode, ServerId};
use lock_judge::scenario::Property;
use redlock_client::OwnerToken;
use redlock_client::environment::BoxFuture;

pub(super) use self::line::{Ending, Line, Readable};
use crate::plan::Plan;
use crate::world::{ConnectionState, Input, Wire, World};

/// State that all hosts share. Its mutex is held only briefly, and never during a call into a
/// client.
pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    state: Mutex<State>,
}

/// The mutable part of the shared state.
pub(super) struct State {
    /// Masters, network, clocks, faults and the history.
    pub(super) world: World,
    pub(super) clients: IdVec<ClientId, ClientHost>,
    /// Waker of the carrier of each server's bytes.
    pub(super) carriers: IdVec<ServerId, Option<Waker>>,
    /// The clients' ends of all connections to servers, by number.
    pub(super) lines: BTreeMap<ConnectionId, Line>,
    /// Number of the connection with this client address.
    pub(super) numbers: BTreeMap<SocketAddr, ConnectionId>,
    pub(super) timers: BTreeMap<u64, Timer>,
    next_timer: u64,
    /// True if a host has done something since the last step.
    pub(super) active: bool,
    /// True once no more events are recorded.
    pub(super) ended: bool,
}

/// Progress of a client process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not started.
    #[default]
    Idle,
    /// Opens its connections, while time stands still for it.
    Warming,
    /// Part of the world.
    Started,
}

/// A client process.
#[derive(Default)]
pub(super) struct ClientHost {
    pub(super) phase: Phase,
    /// True once the history records the nodes whose votes the client counts at its beginning.
    pub(super) is_known: bool,
    /// True once its host was taken down after its death.
    pub(super) crashed: bool,
    /// True once the scenario's steps are done.
    pub(super) done: bool,
    pub(super) got_lease: bool,
    /// Waker of the process; if `called` is set, every task of the process is polled.
    pub(super) waker: Option<Waker>,
    pub(super) called: bool,
    pub(super) spawned: Vec<BoxFuture<'static, ()>>,
    pub(super) attempts: BTreeMap<[u8; OwnerToken::LENGTH], AttemptId>,
    /// Number of the current attempt, and the number of yes votes for it.
    pub(super) attempt: u16,
    pub(super) votes: usize,
    /// Set while a lease is granted and not yet delivered.
    pub(super) to_deliver: Option<AttemptId>,
    /// Fencing token of the latest grant.
    pub(super) fencing_token: FencingToken,
    /// The lease that the application holds, and the number of its extensions that have begun.
    pub(super) holds: Option<AttemptId>,
    pub(super) rounds: u16,
    /// Time from which each node's votes count.
    pub(super) eligible_from_ns: PerNode<u64>,
    /// Current connection to each node, and the number of connections so far.
    pub(super) connected: PerNode<Option<ConnectionId>>,
    pub(super) epochs: PerNode<u32>,
    /// Nodes that introduced themselves or cannot do so, during the warm-up.
    pub(super) introduced: NodeIds,
    /// Connection to the protected resource, and its latest reply.
    pub(super) store: ConnectionId,
    pub(super) served: Option<Input>,
    pub(super) draws: u32,
}

/// Properties about knowledge that the client does not report by itself: which nodes have a lease's
/// key.
const UNJUDGED: [Property; 1] = [Property::SoundVotes];

/// Due time of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A reading of the client's boot clock.
    Boot { client: ClientId, at_ns: u64 },
    /// A true time, for a client.
    True { client: ClientId, at_ns: u64 },
}

/// A pending timer, with the waker of the sleeper.
pub(super) struct Timer {
    pub(super) due: Due,
    pub(super) waker: Waker,
}

impl Shared {
    pub(super) fn new(plan: Plan, seed: u64, keeps: bool) -> Self {
        let plan = Arc::new(plan);
        let mut world = World::new(Arc::clone(&plan), &UNJUDGED);
        world.begin(seed, keeps);
        world.wire = Some(Box::new(Wire::default()));
        let clients = world.clients.ids().map(|_| ClientHost::default()).collect();
        let state = State {
            world,
            clients,
            carriers: plan.servers.values().map(|_| None).collect(),
            lines: BTreeMap::new(),
            numbers: BTreeMap::new(),
            timers: BTreeMap::new(),
            next_timer: 0,
            active: false,
            ended: false,
        };
        Self { plan, state: Mutex::new(state) }
    }

    /// Locks the state. A panic of a host ends the run; its destructors may still read the state.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Records an event, unless the run has ended.
    pub(super) fn record(&mut self, kind: EventKind) {
        if !self.ended {
            self.world.record(kind);
        }
    }

    /// Returns the reading of a client's boot clock.
    pub(super) fn boot_ns(&self, client: ClientId) -> u64 {
        let host = self.world.plan.client_host(client);
        self.world.clocks[host].read(ClockKind::Boot, self.world.now_ns())
    }

    pub(super) fn is_due(&self, due: Due) -> bool {
        match due {
            Due::Boot { client, at_ns } => self.boot_ns(client) >= at_ns,
            Due::True { at_ns, .. } => self.world.now_ns() >= at_ns,
        }
    }

    /// Returns the true time at which a timer is due if no clock changes before; `None` if the
    /// client does not run.
    pub(super) fn due_ns(&self, due: Due) -> Option<u64> {
        let (Due::Boot { client, .. } | Due::True { client, .. }) = due;
        match due {
            _ if !self.runs(client) => None,
            Due::Boot { client, at_ns } => {
                let host = self.world.plan.client_host(client);
                self.world.clocks[host].true_at(ClockKind::Boot, at_ns)
            }
            Due::True { at_ns, .. } => Some(at_ns).filter(|&at_ns| at_ns != u64::MAX),
        }
    }

    /// Returns true if the client can take steps.
    pub(super) fn runs(&self, client: ClientId) -> bool {
        self.world.clients.can_run(client)
    }

    pub(super) fn is_warming(&self, client: ClientId) -> bool {
        self.clients[client].phase == Phase::Warming
    }

    pub(super) fn wake_client(&mut self, client: ClientId) {
        let host = &mut self.clients[client];
        host.called = true;
        if let Some(waker) = host.waker.take() {
            waker.wake();
        }
    }

    /// Wakes the carrier of the server's bytes.
    pub(super) fn wake_carrier(&mut self, server: ServerId) {
        if let Some(waker) = self.carriers[server].take() {
            waker.wake();
        }
    }

    /// Returns the number of a new timer.
    pub(super) fn timer(&mut self) -> u64 {
        self.next_timer += 1;
        self.next_timer
    }

    /// Moves the world's inputs into the clients' kernels, and wakes the clients that have
    /// something to do.
    pub(super) fn hand_over(&mut self) {
        for client in self.clients.ids() {
            while let Some(input) = self.world.clients.take_input(client) {
                self.take_in(client, input);
            }
        }
        while let Some(client) = self.world.clients.next_to_run() {
            self.wake_client(client);
        }
        let wire = self.world.wire.as_mut().expect("clients speak bytes");
        for connection in wire.take_spoken() {
            if let Some(line) = self.lines.get(&connection) {
                self.wake_carrier(line.server);
            }
        }
    }

    fn end_line(&mut self, number: ConnectionId, ending: Ending) {
        if let Some(line) = self.lines.get_mut(&number) {
            line.ending.get_or_insert(ending);
        }
    }

    fn take_in(&mut self, client: ClientId, input: Input) {
        match input {
            Input::Closed(number) => self.end_line(number, Ending::Closed),
            Input::Reset(number) => self.end_line(number, Ending::Reset),
            Input::Changed(..) | Input::Forgot(_) => {
                unreachable!("where clients speak bytes, servers do")
            }
            Input::Connected(number) => {
                let connection = self.world.network.connection_mut(number);
                if connection.state == ConnectionState::Dialing {
                    connection.state = ConnectionState::Open;
                    if let Some(line) = self.lines.get_mut(&number) {
                        line.opened = true;
                    }
                }
            }
            Input::Reply(number, reply) => {
                let wire = self.world.wire.as_mut().expect("clients speak bytes");
                let length = wire.end(number).lengths.pop_front();
                let length = length.expect("what arrives was sent");
                if let Some(line) = self.lines.get_mut(&number) {
                    line.readable.push_back((length, reply));
                }
            }
            Input::StoreServed(_) | Input::StoreVersion(..) => {
                self.clients[client].served = Some(input);
            }
        }
    }
}
