//! Many clients that want one lock, on servers that push: how often they ask, and who gets it.
//!
//! A small world with an event queue: connections are in order, messages take between 50 and 150 µs
//! each way, and nothing fails.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use super::{Command, Event, NodeSet};
use crate::protocol::command::{LockId, Op, Reply};
use crate::protocol::holder::Holder;
use crate::protocol::lock::{Fresh, Limit, LockConfig};
use crate::protocol::quorum::NodeIndex;
use crate::protocol::retry::{draw, share};
use crate::protocol::testing::{RESOURCE, at_ms, introduction, link_config, lock_config, ms};
use crate::protocol::time::BootInstant;
use crate::protocol::token::Token;

const HOLD: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug)]
enum Happening {
    Arrives { client: usize, node: usize, epoch: u32, op: Op },
    Replies { client: usize, node: usize, epoch: u32, reply: Reply },
    Pushes { client: usize, node: usize, epoch: u32 },
    Wakes { client: usize },
    Acquires { client: usize },
    Releases { client: usize },
}

#[derive(Default)]
struct Server {
    key: Option<(Token, BootInstant)>,
    /// Clients that want to hear of the next change, each with its connection.
    readers: BTreeSet<(usize, u32)>,
}

struct Client {
    machine: NodeSet,
    lock: Option<LockId>,
    grants: usize,
    asked_at: BootInstant,
    /// Instant of the wake-up that is scheduled.
    armed: Option<BootInstant>,
}

struct Crowd {
    now: BootInstant,
    queue: BTreeMap<(BootInstant, u64), Happening>,
    serial: u64,
    draws: u32,
    seed: u64,
    servers: Vec<Server>,
    clients: Vec<Client>,
    /// Latest arrival on each connection, there and back.
    last: BTreeMap<(usize, usize, bool), BootInstant>,
    commands: usize,
    free_since: BootInstant,
    held: Duration,
    /// Grants of clients that asked after the lock had become free.
    newcomers: usize,
}

impl Crowd {
    fn of(clients: usize, servers: usize, seed: u64) -> Self {
        let now = at_ms(86_400_000);
        let client = |_| Client {
            machine: NodeSet::new(&vec![link_config(); servers]),
            lock: None,
            grants: 0,
            asked_at: now,
            armed: None,
        };
        let mut crowd = Self {
            now,
            queue: BTreeMap::new(),
            serial: 0,
            draws: 0,
            seed,
            servers: (0..servers).map(|_| Server::default()).collect(),
            clients: (0..clients).map(client).collect(),
            last: BTreeMap::new(),
            commands: 0,
            free_since: now,
            held: Duration::ZERO,
            newcomers: 0,
        };
        for client in 0..clients {
            crowd.clients[client].machine.connect(now);
            crowd.pump(client);
        }
        crowd.run_until(now.after(ms(100)));
        crowd.commands = 0;
        crowd
    }

    fn random(&mut self, below: Duration) -> Duration {
        self.draws += 1;
        share(below, draw(self.seed, self.draws))
    }

    fn schedule(&mut self, at: BootInstant, what: Happening) {
        self.serial += 1;
        self.queue.insert((at, self.serial), what);
    }

    fn send(&mut self, client: usize, node: usize, up: bool, what: Happening) {
        let delay = Duration::from_micros(50) + self.random(Duration::from_micros(100));
        let last = self.last.entry((client, node, up)).or_default();
        let at = self.now.after(delay).max(last.after(Duration::from_nanos(1)));
        *last = at;
        self.schedule(at, what);
    }

    fn run_until(&mut self, end: BootInstant) {
        while let Some((&(at, serial), _)) = self.queue.first_key_value()
            && at <= end
        {
            let what = self.queue.remove(&(at, serial)).expect("it is the first");
            self.now = at;
            self.happen(what);
        }
        self.now = end;
    }

    fn happen(&mut self, what: Happening) {
        let now = self.now;
        let client = match what {
            Happening::Arrives { client, node, epoch, op } => {
                return self.execute(client, node, epoch, op);
            }
            Happening::Replies { client, node, epoch, reply } => {
                let node = NodeIndex::new(node);
                self.clients[client].machine.handle_reply(node, epoch, reply, now);
                client
            }
            Happening::Pushes { client, node, epoch } => {
                let (node, machine) = (NodeIndex::new(node), &mut self.clients[client].machine);
                machine.handle_key_changed(node, epoch, RESOURCE, now);
                client
            }
            Happening::Wakes { client } => {
                self.clients[client].armed = None;
                self.clients[client].machine.handle_timeout(now);
                client
            }
            Happening::Acquires { client } => {
                let limit = Limit::Until(now.after(ms(600_000)));
                let config = LockConfig { limit, ..lock_config(self.servers.len()) };
                let it = &mut self.clients[client];
                (it.lock, it.asked_at) = (Some(it.machine.open(RESOURCE, config, now)), now);
                client
            }
            Happening::Releases { client } => {
                let it = &mut self.clients[client];
                it.machine.release(it.lock.take().expect("it holds the lock"), now);
                self.free_since = now;
                let pause = Duration::from_micros(500) + self.random(ms(5));
                self.schedule(now.after(pause), Happening::Acquires { client });
                client
            }
        };
        self.pump(client);
    }

    fn execute(&mut self, client: usize, node: usize, epoch: u32, op: Op) {
        let (now, server) = (self.now, &mut self.servers[node]);
        server.key = server.key.filter(|&(_, until)| until > now);
        let before = server.key;
        let reply = match op {
            Op::Introduce => Reply::Introduction(introduction(1)),
            Op::Set { token, ttl, .. } => match server.key {
                Some((holder, _)) => Reply::Held(Holder::of(holder.as_bytes())),
                None => {
                    server.key = Some((token, now.after(ttl)));
                    Reply::Ok
                }
            },
            Op::Release { token, .. } if server.key.is_some_and(|(it, _)| it == token) => {
                server.key = None;
                Reply::Integer(1)
            }
            Op::Release { .. } | Op::Extend { .. } => Reply::Integer(0),
            Op::Look { .. } | Op::TimeLeft { .. } => {
                server.readers.insert((client, epoch));
                let left = server.key.map(|(_, until)| until.since(now).as_millis() as i64);
                Reply::Registered(left.unwrap_or(-2))
            }
        };
        if server.key != before {
            for (reader, epoch) in core::mem::take(&mut server.readers) {
                if reader != client {
                    let push = Happening::Pushes { client: reader, node, epoch };
                    self.send(reader, node, false, push);
                }
            }
        }
        self.send(client, node, false, Happening::Replies { client, node, epoch, reply });
    }

    fn pump(&mut self, client: usize) {
        let now = self.now;
        loop {
            while let Some(command) = self.clients[client].machine.poll_command() {
                match command {
                    Command::Dial { node, epoch } => {
                        self.clients[client].machine.handle_connected(node, epoch, now);
                    }
                    Command::Write { node, epoch, op, .. } => {
                        self.commands += if matches!(op, Op::Look { .. }) { 2 } else { 1 };
                        let node = node.get();
                        let arrives = Happening::Arrives { client, node, epoch, op };
                        self.send(client, node, true, arrives);
                    }
                    Command::Reset { .. } => unreachable!("nothing fails"),
                }
            }
            match self.clients[client].machine.poll_event() {
                None => break,
                Some(Event::AttemptDue(lock)) => {
                    self.draws += 2;
                    let (one, jitter) =
                        (draw(self.seed, self.draws - 1), draw(!self.seed, self.draws));
                    let mut token = [0; Token::LENGTH];
                    token[..8].copy_from_slice(&one.to_le_bytes());
                    let fresh = Fresh { token: Token::from_bytes(token), jitter };
                    self.clients[client].machine.begin(lock, fresh, now);
                }
                Some(Event::Decided { lock, .. }) => {
                    let it = &mut self.clients[client];
                    it.machine.deliver(lock, now).expect("it was just granted");
                    it.grants += 1;
                    self.newcomers += usize::from(it.asked_at >= self.free_since);
                    self.held += HOLD;
                    self.schedule(now.after(HOLD), Happening::Releases { client });
                }
                Some(_) => {}
            }
        }
        if let Some(at) = self.clients[client].machine.poll_timeout() {
            let armed = &mut self.clients[client].armed;
            if armed.is_none_or(|armed| at < armed) {
                *armed = Some(at);
                self.schedule(at.max(now), Happening::Wakes { client });
            }
        }
    }

    /// Lets all clients take the lock again and again, and returns the figures.
    fn compete(mut self, time: Duration) -> Figures {
        for client in 0..self.clients.len() {
            let at = self.now.after(self.random(ms(5)));
            self.schedule(at, Happening::Acquires { client });
        }
        self.run_until(self.now.after(time));
        let grants: Vec<f64> = self.clients.iter().map(|it| it.grants as f64).collect();
        let sum: f64 = grants.iter().sum();
        let squares: f64 = grants.iter().map(|it| it * it).sum();
        Figures {
            grants: sum as usize,
            jain: sum * sum / (squares * grants.len() as f64),
            commands: self.commands as f64 / sum,
            share: self.held.as_secs_f64() / time.as_secs_f64(),
            newcomers: self.newcomers as f64 / sum,
        }
    }
}

#[derive(Debug)]
struct Figures {
    grants: usize,
    jain: f64,
    /// Commands a lock.
    commands: f64,
    /// Share of the time in which the lock was held.
    share: f64,
    /// Share of the grants that went to clients that asked when the lock was free.
    newcomers: f64,
}

#[test]
fn eight_clients_share_a_lock_fairly_and_ask_little() {
    for seed in 1..4 {
        let figures = Crowd::of(8, 3, seed).compete(ms(7_000));
        assert!(figures.grants >= 1_000 && figures.jain >= 0.95, "{figures:?}");
        assert!(figures.share >= 0.85 && figures.commands <= 60.0, "{figures:?}");
        // A sleeper's share of the grants is about a seventh.
        assert!(figures.newcomers <= 1.2 / 7.0, "{figures:?}");
    }
}

#[test]
fn fifty_clients_hand_a_lock_over_for_few_commands_each() {
    for seed in 1..4 {
        let mut crowd = Crowd::of(51, 5, seed);
        crowd.schedule(crowd.now, Happening::Acquires { client: 0 });
        crowd.run_until(crowd.now.after(ms(2)));
        for client in 1..51 {
            crowd.schedule(crowd.now, Happening::Acquires { client });
        }
        crowd.run_until(crowd.now.after(ms(500)));
        let grants = crowd.clients.iter().map(|it| it.grants).sum::<usize>();
        assert!(grants > 50, "{grants}");
        assert!(crowd.commands / grants < 500, "{} a lock", crowd.commands / grants);
    }
}
