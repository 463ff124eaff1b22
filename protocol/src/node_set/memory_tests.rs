//! No node that may have forgotten a live lease counts towards a grant: random losses of data,
//! reported to the client or not, between introductions and votes.

use proptest::prelude::*;

use super::*;
use crate::command::Op;
use crate::command::Reply;
use crate::digest::Digest;
use crate::restart::Introduction;
use crate::restart::{Canary, RestartGuard, RunId};
use crate::testing::{TTL, World, introduction, link_config, lock_config, ms, node};
use crate::token::Token;

const NODES: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Do {
    Acquire,
    /// The node executes and answers the next command.
    Answer(usize),
    Close(usize),
    /// The node becomes a replica with another server's keys, then a master again, on the same
    /// connections.
    Demote(usize),
    /// The node executes FLUSHALL.
    Flush(usize),
    /// The client is told that keys are gone, but they are not: another database was emptied, or
    /// the first replica attached.
    FalseAlarm(usize),
    Open(usize),
    Pass(u64),
    /// The process dies and comes back empty.
    Restart(usize),
    /// As `Restart`, but a proxy keeps the connection.
    RestartBehindProxy(usize),
    /// The process dies and comes back with all its keys.
    Upgrade(usize),
}

fn what() -> impl Strategy<Value = Do> {
    let any = || 0..NODES;
    prop_oneof![
        6 => Just(Do::Acquire),
        24 => any().prop_map(Do::Answer),
        1 => any().prop_map(Do::Close),
        1 => any().prop_map(Do::Demote),
        1 => any().prop_map(Do::Flush),
        1 => any().prop_map(Do::FalseAlarm),
        10 => any().prop_map(Do::Open),
        6 => (0..40_u64).prop_map(Do::Pass),
        2 => (0..4_000_u64).prop_map(Do::Pass),
        1 => any().prop_map(Do::Restart),
        1 => any().prop_map(Do::RestartBehindProxy),
        1 => any().prop_map(Do::Upgrade),
    ]
}

/// The true state of a node, whatever the client knows.
#[derive(Clone, Copy)]
struct Memory {
    run: u8,
    name: u32,
    history: u32,
    written: BootInstant,
    /// Time of the last loss of keys.
    lost: Option<BootInstant>,
    /// The canary belongs to another process or history, and is written anew at the next
    /// introduction.
    misfits: bool,
}

struct Trial {
    world: World,
    memories: [Memory; NODES],
    /// True if nodes report that their keys are gone.
    tells: bool,
    /// Token, node and time of every executed SET.
    votes: Vec<(Token, usize, BootInstant)>,
    granted: usize,
    attempts: u8,
}

impl Trial {
    fn new(guard: RestartGuard, tells: bool) -> Self {
        let config = LinkConfig {
            restart_guard: guard,
            // Without reports, only an introduction behind each vote shows the loss of keys.
            introduction_max_age: if tells { ms(1_000) } else { Duration::ZERO },
            ..link_config()
        };
        let mut world = World::cold_with(config, NODES);
        let old = BootInstant::ZERO;
        let memory =
            Memory { run: 1, name: 0, history: 0, written: old, lost: None, misfits: false };
        world.client.connect(world.now);
        world.drain();
        let (memories, votes) = ([memory; NODES], Vec::new());
        let mut trial = Self { world, memories, tells, votes, granted: 0, attempts: 0 };
        if guard == RestartGuard::Durable {
            // Losses before the first contact cannot be observed; there the operator's promise is
            // believed.
            for place in 0..NODES {
                trial.act(Do::Open(place));
                trial.act(Do::Answer(place));
            }
        }
        trial
    }

    /// Removes the node's keys. A connected client is told of it in order with the replies.
    fn lose(&mut self, place: usize, is_told: bool) {
        let now = self.world.now;
        let memory = &mut self.memories[place];
        (memory.name, memory.written, memory.lost) = (memory.name + 1, now, Some(now));
        self.world.nodes[place].key = None;
        // Votes cast before the loss are not judged: the node had forgotten nothing when it cast
        // them.
        self.votes.retain(|&(_, voter, _)| voter != place);
        if is_told && self.tells && self.world.nodes[place].epoch.is_some() {
            self.world.forget(place);
        }
    }

    fn close(&mut self, place: usize) {
        if self.world.nodes[place].epoch.is_some() {
            self.world.close(place);
        }
    }

    fn act(&mut self, what: Do) {
        match what {
            Do::Acquire if self.attempts < 250 => {
                self.attempts += 1;
                self.world.acquire(lock_config(NODES), self.attempts);
            }
            Do::Acquire => {}
            Do::Answer(place) => self.answer(place),
            Do::Close(place) => self.close(place),
            Do::Demote(place) => {
                self.lose(place, true);
                let memory = &mut self.memories[place];
                (memory.history, memory.misfits) = (memory.history + 1, true);
            }
            Do::Flush(place) => self.lose(place, true),
            Do::FalseAlarm(place) if self.world.nodes[place].epoch.is_some() => {
                self.world.forget(place);
            }
            Do::FalseAlarm(_) => {}
            Do::Open(place) if self.world.nodes[place].dialed.is_some() => self.world.open(place),
            Do::Open(_) => {}
            Do::Pass(time) => self.world.pass(ms(time)),
            Do::Restart(place) => {
                self.memories[place].run += 1;
                self.lose(place, false);
                self.close(place);
            }
            // Only where every vote is verified can a proxy not hide the restart.
            Do::RestartBehindProxy(place) if !self.tells => {
                self.memories[place].run += 1;
                self.lose(place, false);
            }
            Do::RestartBehindProxy(_) => {}
            Do::Upgrade(place) => {
                let memory = &mut self.memories[place];
                (memory.run, memory.misfits) = (memory.run + 1, true);
                self.close(place);
            }
        }
        self.judge();
    }

    fn answer(&mut self, place: usize) {
        let Some(&(_, op)) = self.world.nodes[place].inbox.front() else { return };
        let now = self.world.now;
        let memory = &mut self.memories[place];
        if op == Op::Introduce && core::mem::take(&mut memory.misfits) {
            memory.written = now;
        }
        let canary = Canary {
            memory: Digest::of(&memory.name.to_le_bytes()),
            history: Digest::of(&memory.history.to_le_bytes()),
            age: now.since(memory.written),
        };
        self.world.nodes[place].introduction = Introduction {
            run_id: RunId([memory.run; 20]),
            canary: Some(canary),
            ..introduction(1)
        };
        let reply = self.world.nodes[place].execute(op, now);
        if let (Op::Set { token, .. }, Reply::Ok) = (op, reply) {
            self.votes.push((token, place, now));
        }
        self.world.answer_with(place, reply);
    }

    /// Asserts that no counted vote was cast less than a TTL after its node lost keys: a lease
    /// alive at the loss may live that long.
    fn judge(&mut self) {
        for event in self.world.events() {
            let Event::Decided { lock, token, counted, .. } = event else { continue };
            self.granted += 1;
            for place in 0..NODES {
                let voted = self.votes.iter().rfind(|vote| (vote.0, vote.1) == (token, place));
                let lost = self.memories[place].lost;
                if let (true, Some(&(_, _, at)), Some(lost)) =
                    (counted.contains(node(place)), voted, lost)
                {
                    assert!(lost.after(TTL) <= at, "node {place} forgot a lease");
                }
            }
            self.world.release(lock);
        }
    }
}

proptest! {
    #[test]
    fn no_node_decides_that_may_have_forgotten_a_lease(
        steps in prop::collection::vec(what(), 0..300),
        is_durable: bool,
        tells: bool,
    ) {
        let guard = if is_durable { RestartGuard::Durable } else { RestartGuard::Quarantine };
        let mut trial = Trial::new(guard, tells);
        steps.into_iter().for_each(|step| trial.act(step));
    }
}

#[test]
fn a_fleet_that_loses_nothing_grants() {
    let mut trial = Trial::new(RestartGuard::Quarantine, true);
    for _ in 0..20 {
        (0..NODES).for_each(|place| trial.act(Do::Open(place)));
        trial.act(Do::Acquire);
        (0..9).for_each(|step| trial.act(Do::Answer(step % NODES)));
        trial.act(Do::FalseAlarm(0));
        trial.act(Do::Pass(300));
    }
    assert!(trial.granted >= 15, "{}", trial.granted);
}
