//! A small world of many clients that want one lock, with an event queue: connections are in order,
//! messages take between 50 and 150 µs each way, and servers push unless a test says otherwise.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use super::super::{Event, NodeSet};
use crate::command::{LockId, Op, Reply};
use crate::holder::Holder;
use crate::link::Command;
use crate::lock::{Fresh, Limit, LockConfig};
use crate::quorum::NodeIndex;
use crate::retry::{draw, share};
use crate::testing::{RESOURCE, at_ms, introduction, link_config, lock_config, ms};
use crate::time::BootInstant;
use crate::token::Token;

/// The application that sits at a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// One client that uses the lock again and again.
    Resident,
    /// A new client for each use of the lock.
    Newcomer,
    /// As a resident, but servers push nothing to it.
    Deaf,
}

#[derive(Clone, Copy, Debug)]
enum QueueEntry {
    Arrives { client: usize, node: usize, epoch: u32, op: Op },
    Replies { client: usize, node: usize, epoch: u32, reply: Reply },
    Pushes { client: usize, node: usize, epoch: u32 },
    Wakes { client: usize },
    Acquires { seat: usize },
    Releases { client: usize },
}

#[derive(Default)]
struct Server {
    key: Option<(Token, BootInstant)>,
    /// Connections that want to hear of the next change.
    readers: BTreeSet<(usize, u32)>,
}

struct Client {
    machine: NodeSet,
    seat: usize,
    lock: Option<LockId>,
    /// Instant of the wake-up that is scheduled.
    armed: Option<BootInstant>,
}

struct Sitting {
    kind: Seat,
    client: usize,
    /// Instant since which the seat wants the lock.
    wants_since: Option<BootInstant>,
    grants: usize,
}

pub(super) struct Contest {
    pub(super) now: BootInstant,
    queue: BTreeMap<(BootInstant, u64), QueueEntry>,
    serial: u64,
    draws: u32,
    seed: u64,
    servers: Vec<Server>,
    clients: Vec<Client>,
    seats: Vec<Sitting>,
    /// Shortest pause of a seat between a release and its next acquisition, and the span over which
    /// pauses are drawn.
    pub(super) pause: (Duration, Duration),
    /// Time for which a seat holds the lock.
    pub(super) hold: Duration,
    /// Number of times that each seat takes the lock.
    pub(super) uses: usize,
    /// Latest arrival on each connection, there and back.
    last: BTreeMap<(usize, usize, bool), BootInstant>,
    /// Commands that all clients have written.
    pub(super) commands: usize,
    /// Seats in the order of their grants, each with its instant.
    pub(super) granted: Vec<(usize, BootInstant)>,
    /// Instant since which nobody holds the lock.
    free_since: BootInstant,
    held: Duration,
    /// Seats that wanted the lock before it became free, summed over the grants, and the grants
    /// among them; the same of those that came afterwards.
    sleepers: Chances,
    comers: Chances,
}

/// Number of times at which some seats could have the lock, and at which one of them had it.
#[derive(Clone, Copy, Debug, Default)]
struct Chances {
    seats: usize,
    grants: usize,
}

impl Chances {
    fn share(self) -> f64 {
        self.grants as f64 / self.seats.max(1) as f64
    }
}

/// Results of a contest.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) grants: usize,
    pub(super) grants_of: Vec<usize>,
    /// Jain's index of the seats' grants.
    pub(super) jain: f64,
    /// Most grants in a row to one seat.
    pub(super) longest_run: usize,
    /// Commands a lock.
    pub(super) commands: f64,
    /// Share of the time in which the lock was held.
    pub(super) share: f64,
    /// Share of the grants that went to seats that came while the lock was free.
    pub(super) comers: f64,
    /// Chance of a seat that came while the lock was free, relative to that of a seat that had
    /// waited for its release.
    pub(super) chance_of_comers: f64,
}

impl Contest {
    /// Returns a contest whose clients are connected to `servers` servers.
    pub(super) fn of(seats: &[Seat], servers: usize, seed: u64) -> Self {
        let now = at_ms(86_400_000);
        let mut contest = Self {
            now,
            queue: BTreeMap::new(),
            serial: 0,
            draws: 0,
            seed,
            servers: (0..servers).map(|_| Server::default()).collect(),
            clients: Vec::new(),
            seats: Vec::new(),
            pause: (Duration::from_micros(500), ms(5)),
            hold: ms(5),
            uses: usize::MAX,
            last: BTreeMap::new(),
            commands: 0,
            granted: Vec::new(),
            free_since: now,
            held: Duration::ZERO,
            sleepers: Chances::default(),
            comers: Chances::default(),
        };
        for (number, &kind) in seats.iter().enumerate() {
            contest.seats.push(Sitting { kind, client: 0, wants_since: None, grants: 0 });
            contest.seats[number].client = contest.connect(number);
        }
        contest.run_until(now.after(ms(100)));
        contest.commands = 0;
        contest
    }

    /// Returns a new client for `seat`, which connects.
    fn connect(&mut self, seat: usize) -> usize {
        let mut machine = NodeSet::new(&vec![link_config(); self.servers.len()]);
        machine.connect(self.now);
        self.clients.push(Client { machine, seat, lock: None, armed: None });
        let client = self.clients.len() - 1;
        self.pump(client);
        client
    }

    pub(super) fn random(&mut self, below: Duration) -> Duration {
        self.draws += 1;
        share(below, draw(self.seed, self.draws))
    }

    /// Makes a seat want the lock at `at`.
    pub(super) fn acquires(&mut self, seat: usize, at: BootInstant) {
        self.schedule(at, QueueEntry::Acquires { seat });
    }

    /// Ends the process at a seat; what it has written arrives.
    pub(super) fn kill(&mut self, seat: usize) {
        let client = self.seats[seat].client;
        self.queue.retain(|_, it| match *it {
            QueueEntry::Arrives { .. } => true,
            QueueEntry::Acquires { seat: it } => it != seat,
            QueueEntry::Replies { client: it, .. }
            | QueueEntry::Pushes { client: it, .. }
            | QueueEntry::Wakes { client: it }
            | QueueEntry::Releases { client: it } => it != client,
        });
        self.servers.iter_mut().for_each(|it| it.readers.retain(|&(reader, _)| reader != client));
    }

    fn schedule(&mut self, at: BootInstant, what: QueueEntry) {
        self.serial += 1;
        self.queue.insert((at, self.serial), what);
    }

    fn send(&mut self, client: usize, node: usize, up: bool, what: QueueEntry) {
        let delay = Duration::from_micros(50) + self.random(Duration::from_micros(100));
        let last = self.last.entry((client, node, up)).or_default();
        let at = self.now.after(delay).max(last.after(Duration::from_nanos(1)));
        *last = at;
        self.schedule(at, what);
    }

    pub(super) fn run_until(&mut self, end: BootInstant) {
        while let Some((&(at, serial), _)) = self.queue.first_key_value()
            && at <= end
        {
            let what = self.queue.remove(&(at, serial)).expect("it is the first");
            self.now = at;
            self.happen(what);
        }
        self.now = end;
    }

    fn happen(&mut self, what: QueueEntry) {
        let now = self.now;
        let client = match what {
            QueueEntry::Arrives { client, node, epoch, op } => {
                return self.execute(client, node, epoch, op);
            }
            QueueEntry::Replies { client, node, epoch, reply } => {
                let node = NodeIndex::new(node);
                self.clients[client].machine.handle_reply(node, epoch, reply, now);
                client
            }
            QueueEntry::Pushes { client, node, epoch } => {
                let (node, machine) = (NodeIndex::new(node), &mut self.clients[client].machine);
                machine.handle_key_changed(node, epoch, RESOURCE, now);
                client
            }
            QueueEntry::Wakes { client } => {
                self.clients[client].armed = None;
                self.clients[client].machine.handle_timeout(now);
                client
            }
            QueueEntry::Acquires { seat } => self.acquire(seat),
            QueueEntry::Releases { client } => self.release(client),
        };
        self.pump(client);
    }

    fn acquire(&mut self, seat: usize) -> usize {
        let now = self.now;
        let limit = Limit::Until(now.after(ms(600_000)));
        let config = LockConfig { limit, ..lock_config(self.servers.len()) };
        self.seats[seat].wants_since = Some(now);
        let client = self.seats[seat].client;
        let it = &mut self.clients[client];
        it.lock = Some(it.machine.open(RESOURCE, config, now));
        client
    }

    fn release(&mut self, client: usize) -> usize {
        let now = self.now;
        let it = &mut self.clients[client];
        it.machine.release(it.lock.take().expect("it holds the lock"), now);
        let seat = it.seat;
        self.free_since = now;
        let pause = self.pause.0 + self.random(self.pause.1);
        if self.seats[seat].grants < self.uses {
            self.acquires(seat, now.after(pause));
        }
        self.pump(client);
        if self.seats[seat].kind == Seat::Newcomer {
            self.seats[seat].client = self.connect(seat);
        }
        client
    }

    fn execute(&mut self, client: usize, node: usize, epoch: u32, op: Op) {
        let hears = self.seats[self.clients[client].seat].kind != Seat::Deaf;
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
            Op::Release { .. } | Op::Extend { .. } | Op::Read { .. } => Reply::Integer(0),
            Op::Look { .. } | Op::TimeLeft { .. } => {
                let left = server.key.map(|(_, until)| until.since(now).as_millis() as i64);
                let left = left.unwrap_or(-2);
                if hears {
                    server.readers.insert((client, epoch));
                    Reply::Registered(left)
                } else {
                    Reply::Integer(left)
                }
            }
        };
        if server.key != before {
            for (reader, epoch) in core::mem::take(&mut server.readers) {
                if reader != client {
                    let push = QueueEntry::Pushes { client: reader, node, epoch };
                    self.send(reader, node, false, push);
                }
            }
        }
        self.send(client, node, false, QueueEntry::Replies { client, node, epoch, reply });
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
                        let arrives = QueueEntry::Arrives { client, node, epoch, op };
                        self.send(client, node, true, arrives);
                    }
                    Command::Reset { .. } => unreachable!("no connection fails"),
                }
            }
            match self.clients[client].machine.poll_event() {
                None => break,
                Some(Event::AttemptDue(lock)) => self.begin(client, lock),
                Some(Event::Decided { lock, .. }) => self.grant(client, lock),
                Some(_) => {}
            }
        }
        if let Some(at) = self.clients[client].machine.poll_timeout() {
            let armed = &mut self.clients[client].armed;
            if armed.is_none_or(|armed| at < armed) {
                *armed = Some(at);
                self.schedule(at.max(now), QueueEntry::Wakes { client });
            }
        }
    }

    fn begin(&mut self, client: usize, lock: LockId) {
        self.draws += 2;
        let (one, jitter) = (draw(self.seed, self.draws - 1), draw(!self.seed, self.draws));
        let mut token = [0; Token::LENGTH];
        token[..8].copy_from_slice(&one.to_le_bytes());
        let fresh = Fresh { token: Token::from_bytes(token), jitter };
        self.clients[client].machine.begin(lock, fresh, self.now);
    }

    fn grant(&mut self, client: usize, lock: LockId) {
        let now = self.now;
        let it = &mut self.clients[client];
        it.machine.deliver(lock, now).expect("it was just granted");
        let winner = it.seat;
        for (number, seat) in self.seats.iter_mut().enumerate() {
            let Some(since) = seat.wants_since else { continue };
            let kind = if since < self.free_since { &mut self.sleepers } else { &mut self.comers };
            kind.seats += 1;
            kind.grants += usize::from(number == winner);
        }
        self.seats[winner].wants_since = None;
        self.seats[winner].grants += 1;
        self.granted.push((winner, now));
        self.held += self.hold;
        self.schedule(now.after(self.hold), QueueEntry::Releases { client });
    }

    /// Lets all seats take the lock again and again, and returns the figures.
    pub(super) fn compete(mut self, time: Duration) -> Figures {
        for seat in 0..self.seats.len() {
            let at = self.now.after(self.random(ms(5)));
            self.acquires(seat, at);
        }
        self.run_until(self.now.after(time));
        let grants_of: Vec<usize> = self.seats.iter().map(|it| it.grants).collect();
        let grants = grants_of.iter().sum::<usize>();
        let squares = grants_of.iter().map(|it| it * it).sum::<usize>();
        Figures {
            grants,
            jain: (grants * grants) as f64 / (squares * grants_of.len()) as f64,
            grants_of,
            longest_run: longest_run(&self.granted),
            commands: self.commands as f64 / grants as f64,
            share: self.held.as_secs_f64() / time.as_secs_f64(),
            comers: self.comers.grants as f64 / grants as f64,
            chance_of_comers: self.comers.share() / self.sleepers.share(),
        }
    }
}

/// Returns the most grants in a row to one seat.
fn longest_run(granted: &[(usize, BootInstant)]) -> usize {
    granted.chunk_by(|one, next| one.0 == next.0).map(<[_]>::len).max().unwrap_or(0)
}
