//! Invariants under random events, against nodes that follow the rules.

use proptest::prelude::*;

use super::*;
use crate::command::Op;
use crate::command::Reply;
use crate::lock::Limit;
use crate::quorum::NodeIndex;
use crate::restart::RunId;
use crate::testing::{FakeNode, NODE_TIMEOUT, RESOURCE, TTL, World, lock_config, ms, node};
use crate::token::Token;

const NODES: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Do {
    Acquire,
    Answer(usize),
    /// The connection closes; the commands that it carried are executed, or not.
    Close(usize, bool),
    /// The connection closes; extensions and SETs that it carried are executed later, or never.
    CloseLate(usize),
    /// The caller fetches the oldest grant.
    Deliver,
    Error(usize),
    /// Extends the lease at this index to this many milliseconds from now, whatever is left of it.
    Extend(usize, u64),
    /// The node executes the commands that a lost connection has left in its receive queue.
    Late(usize),
    /// Lets a lease end by itself.
    Leave(usize),
    Open(usize),
    /// Extends the oldest lease to this TTL over a connection that is lost and opened again.
    Overtake(usize, u64),
    Pass(u64),
    /// Acquires, and tries for this long, behind any earlier use.
    Queue(u64),
    Release(usize),
    /// The node pushes a change of the key that there was not.
    Push(usize),
    /// Extends the oldest lease after this time; the nodes marked true answer all commands.
    Round(u64, [bool; NODES]),
    /// The process dies and comes back without its keys.
    Restart(usize),
    /// The client is suspended: time passes, but no timer fires before it continues.
    Stop(u64),
    Writable(usize, bool),
}

fn what() -> impl Strategy<Value = Do> {
    let any = || 0..NODES;
    prop_oneof![
        4 => Just(Do::Acquire),
        16 => any().prop_map(Do::Answer),
        2 => (any(), prop::bool::ANY).prop_map(|(node, lands)| Do::Close(node, lands)),
        4 => Just(Do::Deliver),
        1 => any().prop_map(Do::Error),
        1 => any().prop_map(Do::CloseLate),
        2 => (0..2_usize, 5_000..=10_000_u64).prop_map(|(which, ttl)| Do::Extend(which, ttl)),
        2 => any().prop_map(Do::Late),
        1 => (0..2_usize).prop_map(Do::Leave),
        2 => (any(), 5_000..=10_000_u64).prop_map(|(node, ttl)| Do::Overtake(node, ttl)),
        8 => any().prop_map(Do::Open),
        4 => (0..60_u64).prop_map(Do::Pass),
        1 => (0..4_000_u64).prop_map(Do::Pass),
        2 => (0..500_u64).prop_map(Do::Queue),
        1 => any().prop_map(Do::Push),
        3 => (0..4_usize).prop_map(Do::Release),
        1 => any().prop_map(Do::Restart),
        6 => (0..2_000_u64, prop::array::uniform3(prop::bool::weighted(0.8)))
            .prop_map(|(after, answer)| Do::Round(after, answer)),
        1 => (0..12_000_u64).prop_map(Do::Stop),
        1 => (any(), prop::bool::ANY).prop_map(|(node, writable)| Do::Writable(node, writable)),
    ]
}

/// Configuration of the uses of the lock.
#[derive(Clone, Copy, Debug)]
struct Terms {
    ttl: Duration,
    keep_alive: Option<Duration>,
    /// Nodes have plain owner-checked SETs, and extensions use them.
    plain: bool,
}

fn terms() -> impl Strategy<Value = Terms> {
    let keep_alive = prop::option::of(0..40_000_u64);
    (prop::bool::ANY, keep_alive, prop::bool::ANY).prop_map(|(short, keep_alive, plain)| {
        let ttl = if short { TTL / 2 } else { TTL };
        Terms { ttl, keep_alive: keep_alive.map(ms), plain }
    })
}

/// A world, and what its application knows.
struct Play {
    world: World,
    terms: Terms,
    tokens: u16,
    run: u8,
    opened: Vec<LockId>,
    decided: Vec<LockId>,
    held: Vec<(LockId, BootInstant)>,
    tales: Vec<Tale>,
    /// Keys that nobody will release: of leases left to expire, or prolonged by a late command.
    left: Vec<Token>,
    /// Keys lost by a restart, with their nodes.
    forgot: Vec<(Token, usize)>,
    /// Keys set by a late command that was pushed to nobody, with their nodes.
    unheard: Vec<(Token, usize)>,
    /// Number of each node's written commands that have been judged.
    judged: [usize; NODES],
}

/// Record of a granted attempt.
struct Tale {
    lock: LockId,
    token: Token,
    /// Pairs of the time from which a deadline was in force and the deadline; the first is the
    /// grant.
    deadlines: Vec<(BootInstant, BootInstant)>,
    /// T1 of the last round that the caller began.
    round: BootInstant,
    /// Instant until which the machine may keep the lease alive.
    kept_until: BootInstant,
    /// Nodes counted by the last success.
    counted: NodeMask,
}

impl Play {
    fn new(terms: Terms) -> Self {
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
            tales: Vec::new(),
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

    fn go(&mut self, what: Do) {
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
                let token = self.tale(lock).token;
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
            self.tale(lock).kept_until = self.world.now.after(keep_alive);
        }
        self.world.drain();
    }

    /// Returns the record of the last granted attempt of `lock`.
    fn tale(&mut self, lock: LockId) -> &mut Tale {
        self.tales.iter_mut().rfind(|tale| tale.lock == lock).expect("decided before")
    }

    fn extend(&mut self, which: usize, ttl: Duration) {
        let (lock, deadline) = self.held[which];
        let now = self.world.now;
        if self.world.client.extend(lock, ttl, now).is_ok() {
            assert!(now < deadline, "begun after the end");
            self.tale(lock).round = now;
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

    fn drain_inbox(&mut self, index: usize) {
        while !self.world.nodes[index].inbox.is_empty() {
            self.go(Do::Answer(index));
        }
    }

    fn extended(&mut self, lock: LockId, counted: NodeMask, deadline: BootInstant) {
        let now = self.world.now;
        let place = self.tales.iter().rposition(|tale| tale.lock == lock).expect("decided before");
        self.tales[place].counted = counted;
        let tale = &self.tales[place];
        let renewed = self.world.client.renewed(lock);
        let renewed = renewed.filter(|&(t1, _)| t1 > tale.round);
        let round = renewed.map_or(tale.round, |(t1, _)| t1);
        if let Some((t1, ttl)) = renewed {
            assert!(t1.after(ttl) <= tale.kept_until, "kept alive for too long");
            assert!(self.terms.keep_alive.is_some(), "nobody asked for it");
        }
        let (granted_at, _) = tale.deadlines[0];
        let &(_, before) = tale.deadlines.last().expect("decided before");
        assert!(deadline > before, "shortened");
        assert!(deadline <= round.after(TTL), "longer than its keys");
        for other in self.tales.iter().filter(|other| other.lock != lock) {
            let (other_at, _) = other.deadlines[0];
            assert!(other_at <= granted_at || other_at >= round, "granted in between");
        }
        self.tales[place].deadlines.push((now, deadline));
        if let Some(held) = self.held.iter_mut().find(|(held, _)| *held == lock) {
            held.1 = deadline;
        }
    }

    /// Judges the loss of a lease: keys are gone only if the nodes that lack them leave no majority.
    /// A node that has told that it lacked the key may have set it since, unheard.
    fn lost(&mut self, lock: LockId, reason: LostReason) {
        let (now, token) = (self.world.now, self.tale(lock).token);
        let lacks = |&(index, it): &(usize, &FakeNode)| {
            let is_unheard = self.unheard.contains(&(token, index));
            it.key != Some(token) || it.expires <= now || is_unheard
        };
        let lacking = self.world.nodes.iter().enumerate().filter(lacks).count();
        assert!(reason != LostReason::KeysGone || lacking > NODES / 2, "lost without cause");
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
                        let tale = Tale { lock, token, deadlines, round, kept_until, counted };
                        self.tales.push(tale);
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

    fn judge(&mut self) {
        let now = self.world.now;
        let alive = self.held.iter().filter(|&&(_, deadline)| now < deadline).count();
        assert!(alive <= 1, "two leases at once");
        for &(lock, deadline) in self.held.iter().filter(|&&(_, deadline)| now < deadline) {
            let mut tales = self.tales.iter();
            let tale = tales.rfind(|tale| tale.lock == lock).expect("decided before");
            for counted in tale.counted.iter().map(NodeIndex::get) {
                let it = &self.world.nodes[counted];
                if self.forgot.contains(&(tale.token, counted)) {
                    continue;
                }
                let there = it.key == Some(tale.token) && it.expires >= deadline;
                assert!(there, "a counted key is gone before the deadline");
            }
        }
        for (node, judged) in self.world.nodes.iter().zip(&mut self.judged) {
            for place in *judged..node.written.len() {
                judge_write(&node.written[..=place], node.written_at[place], &self.tales);
            }
            *judged = node.written.len();
        }
    }

    /// Lets every node answer from now on, and releases every held lease.
    fn heal(&mut self) {
        self.world.nodes.iter_mut().for_each(|node| node.limbo.clear());
        for (lock, _) in core::mem::take(&mut self.held) {
            self.world.release(lock);
        }
        self.tend(60);
        assert!(ms(60 * 50) < TTL / 2, "or keys would go by themselves");
    }

    /// Lets every node answer at once, for `rounds` node timeouts.
    fn tend(&mut self, rounds: u32) {
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

/// Judges the last command in `written`, which was written to a node at `at`.
fn judge_write(written: &[Op], at: BootInstant, tales: &[Tale]) {
    let (&last, before) = written.split_last().expect("something was written");
    let (token, again) = match last {
        Op::Set { token, .. } => (token, before.iter().any(|&op| set_token(op) == Some(token))),
        Op::Extend { token, .. } => (token, true),
        Op::Introduce
        | Op::Look { .. }
        | Op::Read { .. }
        | Op::Release { .. }
        | Op::TimeLeft { .. } => return,
    };
    if !again {
        return;
    }
    let tale = tales.iter().find(|tale| tale.token == token).expect("only a lease is extended");
    let mut in_force = tale.deadlines.iter().filter(|&&(since, _)| since <= at);
    let &(_, deadline) = in_force.next_back().expect("it is extended after the grant");
    assert!(at < deadline, "{last:?} was written at the deadline or later");
    if set_token(last).is_some() {
        let of_token = before.iter().rev().find(|&&op| match op {
            Op::Extend { token: it, .. } | Op::Set { token: it, .. } => it == token,
            Op::Release { token: it, .. } => it == token,
            Op::Introduce | Op::Look { .. } | Op::Read { .. } | Op::TimeLeft { .. } => false,
        });
        let extend = matches!(of_token, Some(Op::Extend { .. }));
        assert!(extend, "set again without having been asked");
    }
}

fn set_token(op: Op) -> Option<Token> {
    match op {
        Op::Set { token, .. } => Some(token),
        _ => None,
    }
}

/// State of a client before the random steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    New,
    Granted,
    /// Granted by the nodes 0 and 1. The SET to node 2 may be executed late; meanwhile the lease has
    /// read that node 2 lacks the key.
    GrantedByTwo,
}

/// Applies `steps` to a client.
fn play(steps: Vec<Do>, terms: Terms, start: Start) -> Result<(), TestCaseError> {
    let mut play = Play::new(terms);
    play.world.client.connect(play.world.now);
    play.world.drain();
    if start != Start::New {
        (0..NODES).for_each(|index| play.go(Do::Open(index)));
        play.go(Do::Round(0, [true; NODES]));
        play.go(Do::Acquire);
        if start == Start::GrantedByTwo {
            play.go(Do::CloseLate(2));
        }
        play.go(Do::Round(0, [true; NODES]));
        play.go(Do::Deliver);
        prop_assert_eq!(play.held.len(), 1);
    }
    if start == Start::GrantedByTwo {
        play.go(Do::Pass(500));
        (0..NODES).for_each(|index| play.go(Do::Open(index)));
        (0..NODES).for_each(|index| play.drain_inbox(index));
    }
    steps.into_iter().for_each(|step| play.go(step));
    play.heal();
    for (index, it) in play.world.nodes.iter().enumerate() {
        // A use that waited until a majority counts may be making an attempt at this very moment.
        let mut opened = play.opened.iter();
        let known = it.key.is_none_or(|key| {
            play.left.contains(&key)
                || opened.any(|&lock| play.world.client.token(lock) == Some(key))
        });
        prop_assert!(known || play.world.now > it.expires, "a key on {}", index);
        prop_assert_eq!(play.world.client.owed(node(index)), 0);
    }
    if play.world.client.uses(RESOURCE) {
        // A use waits until a majority counts again.
        play.tend(210);
    }
    prop_assert!(!play.world.client.uses(RESOURCE));
    prop_assert_eq!(play.world.client.poll_timeout(), None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// No panic, no timer that changes nothing (`World::fire`), never two leases. Once all nodes
    /// answer, no release is owed, no key is left behind and no timer is armed.
    #[test]
    fn random_schedules_have_one_holder_and_leave_no_key(
        steps in prop::collection::vec(what(), 1..100),
        terms in terms(),
    ) {
        play(steps, terms, Start::New)?;
    }

    /// The same for a lease that is extended. No other attempt is granted between the lease's grant
    /// and the beginning of a successful round; each key that a success counted is there until the
    /// deadline, unless its node has forgotten it, whatever is executed late; and no lease is kept
    /// alive for longer than allowed.
    #[test]
    fn random_schedules_extend_only_continuous_leases(
        steps in prop::collection::vec(what(), 1..60),
        terms in terms(),
    ) {
        play(steps, terms, Start::Granted)?;
    }

    /// The same for a lease with a SET that may be executed late.
    #[test]
    fn random_schedules_lose_no_lease_without_cause(
        steps in prop::collection::vec(what(), 1..60),
        terms in terms(),
    ) {
        play(steps, terms, Start::GrantedByTwo)?;
    }
}
