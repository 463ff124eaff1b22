//! The machines that a client runs, in ticks.

use core::hash::Hash;
use core::time::Duration;

use redlock_protocol::{
    BootInstant, Command, Drift, Event, Fresh, Introduction, Limit, LinkConfig, LockConfig, LockId,
    NodeCount, NodeIndex, NodeSet, Op, Reply, ResourceId, RestartGuard, RetryDelay, RunId,
    Token as Bytes, Window,
};
use siphasher::sip128::{Hasher128, SipHasher13};

use super::{Action, Answer, Input, NODES, Request, Terms, Token};

/// A node timeout. A client dials again a tick after the loss of a connection, even after two
/// further losses, and no node is silent for so long that its connection is given up.
const TICK: Duration = Duration::from_millis(40);

/// A client of three nodes, connected and idle.
#[derive(Clone, Debug)]
pub struct Production {
    machine: NodeSet,
    terms: Terms,
    client: u8,
    /// Number of the last attempt.
    attempt: u8,
    attempts_max: u8,
    /// The use of the lock that is not released, if there is one.
    lock: Option<LockId>,
    epochs: [u32; NODES],
}

fn instant(tick: u8) -> BootInstant {
    BootInstant::ZERO.after(TICK * u32::from(tick))
}

fn tick(instant: BootInstant) -> u8 {
    (instant.since(BootInstant::ZERO).as_nanos() / TICK.as_nanos()) as u8
}

impl Production {
    /// Returns the client with the number `client`. No node has restarted for long.
    #[must_use]
    pub fn new(client: u8, attempts_max: u8, terms: Terms) -> Self {
        let link = LinkConfig {
            node_timeout: TICK,
            connect_timeout: Duration::MAX,
            restart_guard: RestartGuard::Quarantine,
            fleet_max_ttl: TICK * u32::from(terms.ttl),
            drift: drift(terms),
            // No proxy stands between the client and its nodes.
            introduction_max_age: Duration::MAX,
            window: Window::default(),
        };
        let machine = NodeSet::new(&[link; NODES]);
        let (lock, epochs) = (None, [0; NODES]);
        let mut it = Self { machine, terms, client, attempt: 0, attempts_max, lock, epochs };
        it.machine.connect(instant(0));
        it.drain(0);
        (0..NODES).for_each(|node| it.connected(node, 0, 0));
        it.drain(0);
        it
    }

    pub(super) fn handle(&mut self, input: Input, now: u8) -> Vec<Action> {
        let at = instant(now);
        match input {
            Input::Begin => return self.begin(now),
            Input::Release => {
                let lock = self.lock.take().expect("there is a lease");
                self.machine.release(lock, at);
            }
            Input::Timer => return self.timer(now),
            Input::Connected(node, incarnation) => self.connected(node, incarnation, now),
            Input::Answer(node, request, answer) => {
                let reply = match (request, answer) {
                    (Request::Set(_), Answer::Done) => Reply::Ok,
                    (Request::Set(_), Answer::Refused) => Reply::Nil,
                    (_, Answer::Done) => Reply::Integer(1),
                    (_, Answer::Refused) => Reply::Integer(0),
                };
                self.machine.handle_reply(NodeIndex::new(node), self.epochs[node], reply, at);
            }
            Input::Closed(node) => {
                self.machine.handle_closed(NodeIndex::new(node), self.epochs[node], at);
            }
        }
        self.drain(now)
    }

    pub(super) fn is_due(&self, now: u8) -> bool {
        let is_past = |at: Option<BootInstant>| at.is_some_and(|at| at <= instant(now));
        let nodes = (0..NODES).map(NodeIndex::new);
        let is_late = nodes.map(|node| self.machine.node_timeout(node)).any(is_past);
        is_late || self.has_lease() && is_past(self.machine.lock_timeout())
    }

    pub(super) fn believes(&self, now: u8) -> bool {
        let check = |lock| self.machine.check(lock, Duration::ZERO, instant(now));
        self.lock.is_some_and(|lock| check(lock).is_ok())
    }

    /// Returns the number of releases owed to `node`.
    pub(super) fn debts(&self, node: usize) -> usize {
        self.machine.owed(NodeIndex::new(node))
    }

    /// Returns a 128-bit hash of the canonical state. The probability that two different states
    /// share a hash is negligible for any feasible search.
    pub(super) fn fingerprint(&self, order: [usize; NODES], now: u8) -> u128 {
        let mut hasher = SipHasher13::new();
        self.machine.canonical(&order.map(NodeIndex::new), instant(now)).hash(&mut hasher);
        hasher.finish128().as_u128()
    }

    fn has_lease(&self) -> bool {
        self.lock.is_some_and(|lock| self.machine.votes(lock, BootInstant::ZERO).is_some())
    }

    /// Begins the next attempt: that of the use under way, or the first one of a new use.
    fn begin(&mut self, now: u8) -> Vec<Action> {
        let lock = self.lock.unwrap_or_else(|| {
            let left = self.attempts_max - self.attempt;
            self.machine.open(ResourceId(0), lock_config(self.terms, left), instant(now))
        });
        self.lock = Some(lock);
        self.attempt += 1;
        // The wait before the attempt is over, if there was one.
        self.machine.handle_lock_timeout(instant(now));
        let mut actions = self.drain(now);
        let token = Bytes::from_bytes([8 * self.client + self.attempt; Bytes::LENGTH]);
        self.machine.begin(lock, Fresh { token, jitter: 0 }, instant(now));
        actions.extend(self.drain(now));
        actions
    }

    fn timer(&mut self, now: u8) -> Vec<Action> {
        let mut actions = Vec::new();
        for node in 0..NODES {
            self.machine.handle_node_timeout(NodeIndex::new(node), instant(now));
            actions.extend(self.drain(now));
        }
        if self.has_lease() {
            self.machine.handle_lock_timeout(instant(now));
            actions.extend(self.drain(now));
        }
        actions
    }

    fn connected(&mut self, node: usize, incarnation: u8, now: u8) {
        let (place, epoch) = (NodeIndex::new(node), self.epochs[node]);
        self.machine.handle_connected(place, epoch, instant(now));
        let introduce = self.machine.poll_command();
        assert!(matches!(introduce, Some(Command::Write { op: Op::Introduce, .. })));
        let introduction = Introduction {
            run_id: RunId([incarnation; 20]),
            uptime: Duration::from_secs(1_000_000),
            is_master: true,
            succession: None,
            canary: None,
        };
        self.machine.handle_reply(place, epoch, Reply::Introduction(introduction), instant(now));
    }

    /// Takes the machines' commands and events.
    fn drain(&mut self, now: u8) -> Vec<Action> {
        let mut actions = Vec::new();
        loop {
            if let Some(command) = self.machine.poll_command() {
                match command {
                    Command::Dial { node, epoch } => self.epochs[node.get()] = epoch,
                    Command::Write { node, op, .. } => actions.push(written(node.get(), op)),
                    Command::Reset { .. } => unreachable!("the bounds end before the patience"),
                }
                continue;
            }
            let Some(event) = self.machine.poll_event() else {
                return actions;
            };
            match event {
                Event::Decided { lock, deadline, .. } => {
                    let delivered = self.machine.deliver(lock, instant(now));
                    delivered.expect("the driver hands it over at once");
                    actions.push(Action::Granted { deadline: tick(deadline) });
                }
                Event::AttemptFailed { .. } => actions.push(Action::Failed),
                Event::Lost { .. } => actions.push(Action::Lost),
                _ => {}
            }
        }
    }
}

fn drift(terms: Terms) -> Drift {
    Drift { share_ppm: 0, constant: TICK * u32::from(terms.drift) }
}

fn lock_config(terms: Terms, attempts: u8) -> LockConfig {
    LockConfig {
        nodes: NodeCount::new(NODES).expect("three is between one and nine"),
        ttl: TICK * u32::from(terms.ttl),
        drift: drift(terms),
        min_validity: Duration::ZERO,
        // An attempt may follow another at once.
        retry: RetryDelay { first: Duration::ZERO, longest: Duration::ZERO, silence: TICK },
        limit: Limit::Attempts(u32::from(attempts)),
        extensions_max: 0,
        keep_alive: None,
        plain_extensions: false,
        watched: false,
    }
}

fn written(node: usize, op: Op) -> Action {
    let token = |token: Bytes| {
        let byte = token.as_bytes()[0];
        Token { client: byte / 8, attempt: byte % 8 }
    };
    let request = match op {
        Op::Set { token: of, .. } => Request::Set(token(of)),
        Op::Release { token: of, .. } => Request::Release(token(of)),
        Op::Introduce
        | Op::Extend { .. }
        | Op::Look { .. }
        | Op::Read { .. }
        | Op::TimeLeft { .. } => unreachable!("nothing is extended, watched or waited for here"),
    };
    Action::Write(node, request)
}
