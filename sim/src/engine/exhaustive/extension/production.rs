//! The machines that a client runs, in ticks.

use core::hash::Hash;
use core::time::Duration;

use redlock_protocol::{
    BootInstant, Command, Drift, Event, Fresh, Introduction, Limit, LinkConfig, LockConfig, LockId,
    NodeCount, NodeIndex, NodeSet, Op, Reply, ResourceId, RestartGuard, RetryDelay, RunId, Token,
    Window,
};

use siphasher::sip128::{Hasher128, SipHasher13};

use super::{Answer, HolderAction, HolderInput, NODES, Request};

const TICK: Duration = Duration::from_secs(100);
const NO_DRIFT: Drift = Drift { share_ppm: 0, constant: Duration::ZERO };

/// A client of three warm nodes that holds the lock.
#[derive(Clone, Debug)]
pub struct Production {
    machine: NodeSet,
    lock: LockId,
    ttl: Duration,
    epochs: [u32; NODES],
    rounds: u8,
}

fn instant(tick: u8) -> BootInstant {
    BootInstant::ZERO.after(TICK * u32::from(tick))
}

impl Production {
    /// Returns a holder granted at tick 0 by nodes 0 and 1; the SET to node 2 is on its way.
    #[must_use]
    pub fn new(ttl: u8, rounds_max: u8) -> Self {
        let ttl = TICK * u32::from(ttl);
        let link = LinkConfig {
            // Unbounded: an answer may take any time.
            node_timeout: Duration::MAX,
            connect_timeout: Duration::MAX,
            restart_guard: RestartGuard::Durable,
            fleet_max_ttl: ttl,
            drift: NO_DRIFT,
            // No proxy stands between the client and its nodes.
            introduction_max_age: Duration::MAX,
            window: Window::default(),
        };
        let lock_config = LockConfig {
            nodes: NodeCount::new(NODES).expect("three is between one and nine"),
            ttl,
            drift: NO_DRIFT,
            min_validity: Duration::ZERO,
            retry: RetryDelay::default(),
            limit: Limit::Attempts(1),
            extensions_max: u32::from(rounds_max),
            keep_alive: None,
            plain_extensions: false,
            watched: false,
        };
        let mut machine = NodeSet::new(&[link; NODES]);
        machine.connect(instant(0));
        let lock = machine.open(ResourceId(0), lock_config, instant(0));
        let mut it = Self { machine, lock, ttl, epochs: [0; NODES], rounds: 0 };
        let mut told = Vec::new();
        it.drain(0, &mut told);
        let token = Token::from_bytes([1; Token::LENGTH]);
        it.machine.begin(lock, Fresh { token, jitter: 0 }, instant(0));
        it.drain(0, &mut told);
        for place in 0..2 {
            let node = NodeIndex::new(place);
            it.machine.handle_reply(node, it.epochs[place], Reply::Ok, instant(0));
        }
        it.drain(0, &mut told);
        it.machine.deliver(lock, instant(0)).expect("two of three have granted it");
        it.drain(0, &mut told);
        it
    }

    pub(super) fn extend(&mut self, now: u8, told: &mut Vec<HolderAction>) -> bool {
        let begun = self.machine.extend(self.lock, self.ttl, instant(now)).is_ok();
        self.rounds += u8::from(begun);
        self.drain(now, told);
        begun
    }

    pub(super) fn hear(
        &mut self,
        place: usize,
        heard: HolderInput,
        now: u8,
        told: &mut Vec<HolderAction>,
    ) {
        let (node, epoch, now_tick) = (NodeIndex::new(place), self.epochs[place], now);
        let now = instant(now);
        match heard {
            HolderInput::Closed { .. } => self.machine.handle_closed(node, epoch, now),
            HolderInput::Answer(request, answer) => {
                let reply = match (request, answer) {
                    (Request::Extend { .. }, Answer::Done) => Reply::Integer(1),
                    (Request::Extend { .. }, Answer::Refused) => Reply::Integer(0),
                    (Request::Set, Answer::Done) => Reply::Ok,
                    (Request::Set, Answer::Refused) => Reply::Nil,
                };
                self.machine.handle_reply(node, epoch, reply, now);
            }
        }
        self.drain(now_tick, told);
    }

    pub(super) fn fire(&mut self, now: u8, told: &mut Vec<HolderAction>) {
        self.machine.handle_timeout(instant(now));
        self.drain(now, told);
    }

    pub(super) fn is_due(&self, now: u8) -> bool {
        self.machine.poll_timeout().is_some_and(|at| at <= instant(now))
    }

    pub(super) fn is_alive(&self, now: u8) -> bool {
        self.machine.check(self.lock, Duration::ZERO, instant(now)).is_ok()
    }

    /// Returns a 128-bit hash of the canonical state. The probability that two different states
    /// share a hash is negligible for any feasible search.
    pub(super) fn fingerprint(&self, order: [usize; NODES], now: u8) -> u128 {
        let mut hasher = SipHasher13::new();
        self.machine.canonical(&order.map(NodeIndex::new), instant(now)).hash(&mut hasher);
        hasher.finish128().as_u128()
    }

    /// Passes the commands to the nodes; connections open and introductions are answered at once.
    fn drain(&mut self, now: u8, told: &mut Vec<HolderAction>) {
        while let Some(command) = self.machine.poll_command() {
            match command {
                Command::Dial { node, epoch } => {
                    self.epochs[node.get()] = epoch;
                    self.machine.handle_connected(node, epoch, instant(now));
                }
                Command::Write { node, epoch, op: Op::Introduce, .. } => {
                    let introduction = Introduction {
                        run_id: RunId([0; 20]),
                        uptime: Duration::from_secs(1_000_000),
                        is_master: true,
                        succession: None,
                        canary: None,
                    };
                    let reply = Reply::Introduction(introduction);
                    self.machine.handle_reply(node, epoch, reply, instant(now));
                }
                Command::Write { node, op, .. } => self.written(node, op, now, told),
                Command::Reset { .. } => unreachable!("nothing makes this client impatient"),
            }
        }
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Extended { counted, deadline, .. } => {
                    let mask = core::array::from_fn(|at| counted.contains(NodeIndex::new(at)));
                    let deadline = deadline.since(BootInstant::ZERO).as_secs() / TICK.as_secs();
                    told.push(HolderAction::Extended { counted: mask, deadline: deadline as u8 });
                }
                Event::ExtensionFailed { .. } => told.push(HolderAction::Failed),
                Event::Lost { .. } => told.push(HolderAction::Lost),
                _ => {}
            }
        }
    }

    fn written(&self, node: NodeIndex, op: Op, now: u8, told: &mut Vec<HolderAction>) {
        let request = match op {
            Op::Extend { .. } => Request::Extend { round: self.rounds },
            Op::Set { .. } => Request::Set,
            Op::Introduce
            | Op::Look { .. }
            | Op::Read { .. }
            | Op::Release { .. }
            | Op::TimeLeft { .. } => {
                unreachable!("nothing is released or watched here, and no attempt fails")
            }
        };
        let over = now > 0 && !self.is_alive(now);
        assert!(!over, "{request:?} is written although the lease is over");
        told.push(HolderAction::Write(node.get(), request));
    }
}
