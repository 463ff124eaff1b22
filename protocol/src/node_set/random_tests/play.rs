//! A world under random steps, driven as a driver does it.

use core::time::Duration;

use super::super::{Event, Fresh, LockConfig};
use super::NODES;
use super::steps::{Do, Terms};
use crate::command::{LockId, Reply};
use crate::lock::Limit;
use crate::quorum::NodeMask;
use crate::restart::RunId;
use crate::testing::{NODE_TIMEOUT, RESOURCE, TTL, World, lock_config, ms, node};
use crate::time::BootInstant;
use crate::token::Token;

/// A world, and what its application knows.
pub(super) struct Play {
    pub(super) world: World,
    pub(super) terms: Terms,
    tokens: u16,
    run: u8,
    pub(super) opened: Vec<LockId>,
    decided: Vec<LockId>,
    pub(super) held: Vec<(LockId, BootInstant)>,
    pub(super) records: Vec<LeaseRecord>,
    /// Keys that nobody will release: of leases left to expire, or prolonged by a late command.
    pub(super) left: Vec<Token>,
    /// Keys lost by a restart, with their nodes.
    pub(super) forgot: Vec<(Token, usize)>,
    /// Keys set by a late command that was pushed to nobody, with their nodes.
    pub(super) unheard: Vec<(Token, usize)>,
    /// Number of each node's written commands that have been judged.
    pub(super) judged: [usize; NODES],
}

/// Record of a granted attempt.
pub(super) struct LeaseRecord {
    pub(super) lock: LockId,
    pub(super) token: Token,
    /// Pairs of the time from which a deadline was in force and the deadline; the first is the
    /// grant.
    pub(super) deadlines: Vec<(BootInstant, BootInstant)>,
    /// T1 of the last round.
    pub(super) round: BootInstant,
    /// Instant until which the machine may keep the lease alive.
    pub(super) kept_until: BootInstant,
    /// Nodes counted by the last success.
    pub(super) counted: NodeMask,
}

impl Play {
    pub(super) fn new(terms: Terms) -> Self {
        let mut world = World::cold(NODES);
        world.nodes.iter_mut().for_each(|node| node.has_plain = terms.plain);
        Self {
            world,
            terms,
            tokens: 0,
            run: 1,
            opened: Vec::new(),
            decided: Vec::new(),
            held: Vec::new(),
            records: Vec::new(),
            left: Vec::new(),
            forgot: Vec::new(),
            unheard: Vec::new(),
            judged: [0; NODES],
        }
    }

    fn open(&mut self, limit: Limit) {
        let Terms { ttl, keep_alive, plain } = self.terms;
        let config = lock_config(NODES);
        let config = LockConfig { limit, ttl, keep_alive, plain_extensions: plain, ..config };
        let config = LockConfig { watched: true, ..config };
        self.opened.push(self.world.client.open(RESOURCE, config, self.world.now));
        self.world.drain();
    }

    pub(super) fn go(&mut self, what: Do) {
        let now = self.world.now;
        let world = &mut self.world;
        let connected = |world: &World, index: usize| {
            world.nodes[index].epoch.is_some() || world.nodes[index].dialed.is_some()
        };
        match what {
            Do::Acquire => self.open(Limit::Attempts(2)),
            Do::Queue(wait) => self.open(Limit::Until(now.after(ms(wait)))),
            Do::Answer(index) if !world.nodes[index].inbox.is_empty() => world.answer(index),
            Do::Error(index) if !world.nodes[index].inbox.is_empty() => {
                world.answer_with(index, Reply::Error);
            }
            Do::Push(index) => world.push(index),
            Do::CloseLate(index) if connected(world, index) => world.close_late(index),
            Do::Late(index) if !world.nodes[index].limbo.is_empty() => {
                let unheard = !world.nodes[index].registered;
                world.execute_late(index);
                let key = world.nodes[index].key.filter(|_| unheard);
                self.unheard.extend(key.map(|token| (token, index)));
                // A release owed is dropped when its key has expired, which assumes that no command
                // comes late.
                self.left.extend(world.nodes[index].key);
            }
            Do::Leave(which) if which < self.held.len() => {
                let (lock, _) = self.held.remove(which);
                world.client.leave(lock, now);
                world.drain();
                let token = self.record(lock).token;
                self.left.push(token);
            }
            Do::Overtake(index, ttl) => self.overtake(index, ttl),
            Do::Close(index, lands) if connected(world, index) => {
                self.close(index, lands);
            }
            Do::Restart(index) if connected(world, index) => {
                self.run += 1;
                self.forgot.extend(world.nodes[index].key.take().map(|token| (token, index)));
                world.nodes[index].limbo.clear();
                world.nodes[index].introduction.run_id = RunId([self.run; 20]);
                self.close(index, false);
            }
            Do::Open(index) if world.nodes[index].dialed.is_some() => world.open(index),
            Do::Pass(time) => world.pass(ms(time)),
            Do::Stop(time) => {
                world.now = world.now.after(ms(time));
                world.fire();
            }
            Do::Deliver => self.deliver(),
            Do::Extend(which, ttl) if which < self.held.len() => self.extend(which, ms(ttl)),
            Do::Round(after, answers) => self.round(after, answers),
            Do::Release(which) if which < self.held.len() => {
                let (lock, _) = self.held.remove(which);
                world.release(lock);
            }
            Do::Writable(index, writable) => {
                if let Some(epoch) = world.nodes[index].epoch {
                    world.client.handle_writable(node(index), epoch, writable, world.now);
                    world.drain();
                }
            }
            _ => {}
        }
        self.listen();
        self.judge();
    }

    fn close(&mut self, index: usize, lands: bool) {
        let (now, world) = (self.world.now, &mut self.world);
        let carried = world.nodes[index].inbox.clone();
        for (_, op) in carried.into_iter().filter(|_| lands) {
            world.nodes[index].execute(op, now);
        }
        world.close(index);
    }

    fn deliver(&mut self) {
        if self.decided.is_empty() {
            return;
        }
        let lock = self.decided.remove(0);
        if let Ok(grant) = self.world.client.deliver(lock, self.world.now) {
            assert!(grant.deadline > self.world.now, "nothing is left of it");
            self.held.push((lock, grant.deadline));
            let keep_alive = self.terms.keep_alive.unwrap_or_default();
            self.record(lock).kept_until = self.world.now.after(keep_alive);
        }
        self.world.drain();
    }

    fn extend(&mut self, which: usize, ttl: Duration) {
        let (lock, deadline) = self.held[which];
        let now = self.world.now;
        if self.world.client.extend(lock, ttl, now).is_ok() {
            assert!(now < deadline, "begun after the end");
            self.record(lock).round = now;
        }
        self.world.drain();
    }

    fn overtake(&mut self, index: usize, ttl: u64) {
        self.go(Do::Extend(0, ttl));
        self.go(Do::CloseLate(index));
        self.go(Do::Pass(10));
        self.go(Do::Open(index));
        self.go(Do::Answer(index));
    }

    fn round(&mut self, after: u64, answers: [bool; NODES]) {
        self.go(Do::Pass(after));
        for index in (0..NODES).filter(|&index| answers[index]) {
            self.go(Do::Open(index));
            self.go(Do::Answer(index));
        }
        self.go(Do::Extend(0, TTL.as_millis() as u64));
        for index in (0..NODES).filter(|&index| answers[index]) {
            self.drain_inbox(index);
        }
    }

    pub(super) fn drain_inbox(&mut self, index: usize) {
        while !self.world.nodes[index].inbox.is_empty() {
            self.go(Do::Answer(index));
        }
    }

    /// Handles events as a driver does.
    fn listen(&mut self) {
        loop {
            let events = self.world.events();
            if events.is_empty() {
                return;
            }
            for event in events {
                match event {
                    Event::AttemptDue(lock) => {
                        self.tokens += 1;
                        let mut token = [0; Token::LENGTH];
                        token[..2].copy_from_slice(&self.tokens.to_le_bytes());
                        let fresh = Fresh { token: Token::from_bytes(token), jitter: u64::MAX };
                        self.world.client.begin(lock, fresh, self.world.now);
                        self.world.drain();
                    }
                    Event::Decided { lock, token, counted, deadline } => {
                        self.decided.push(lock);
                        let (now, zero) = (self.world.now, BootInstant::ZERO);
                        let deadlines = vec![(now, deadline)];
                        let (round, kept_until) = (zero, zero);
                        let record =
                            LeaseRecord { lock, token, deadlines, round, kept_until, counted };
                        self.records.push(record);
                    }
                    Event::ExtensionBegan { lock, t1, ttl, .. } => {
                        let keeps_alive = self.terms.keep_alive.is_some();
                        assert!(keeps_alive, "nobody asked for it");
                        let record = self.record(lock);
                        assert!(t1.after(ttl) <= record.kept_until, "kept alive for too long");
                        record.round = t1;
                    }
                    Event::Extended { lock, counted, deadline, .. } => {
                        self.extended(lock, counted, deadline);
                    }
                    Event::Lost { lock, reason } => {
                        self.lost(lock, reason);
                        self.held.retain(|&(held, _)| held != lock);
                        self.world.release(lock);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Lets every node answer from now on, and releases every held lease.
    pub(super) fn heal(&mut self) {
        self.world.nodes.iter_mut().for_each(|node| node.limbo.clear());
        for (lock, _) in core::mem::take(&mut self.held) {
            self.world.release(lock);
        }
        self.tend(60);
        assert!(ms(60 * 50) < TTL / 2, "or keys would go by themselves");
    }

    /// Lets every node answer at once, for `rounds` node timeouts.
    pub(super) fn tend(&mut self, rounds: u32) {
        for _ in 0..rounds {
            self.serve();
            self.go(Do::Pass(NODE_TIMEOUT.as_millis() as u64));
        }
        self.serve();
    }

    /// Answers commands and releases leases until nothing is left to answer.
    fn serve(&mut self) {
        let mut busy = true;
        while busy {
            while !self.decided.is_empty() {
                self.deliver();
            }
            for (lock, _) in core::mem::take(&mut self.held) {
                self.world.release(lock);
            }
            busy = false;
            for index in 0..NODES {
                self.go(Do::Writable(index, true));
                self.go(Do::Open(index));
                while !self.world.nodes[index].inbox.is_empty() {
                    busy = true;
                    self.go(Do::Answer(index));
                }
            }
        }
    }
}
