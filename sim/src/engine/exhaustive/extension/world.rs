//! The nodes, the messages, the other client, and time.

use core::hash::Hash;
use std::sync::Arc;

use siphasher::sip128::{Hasher128, SipHasher13};

use super::node::{Executed, Key, Message, Node};
use super::{Holder, HolderAction, HolderInput, NODES, Request};
use crate::engine::exhaustive::Model;

/// Violations of a state. Each counterexample names one.
pub mod violations {
    /// A round succeeded, although another client had been granted the lock between the holder's
    /// grant and T1 of the round.
    pub const CONTINUITY: &str =
        "extended although another client was granted the lock before the round began";
    /// Another client was granted the lock before the deadline, and no counted node had forgotten
    /// the key since T1: the keys did not outlive the deadline.
    pub const OUTLIVED: &str = "another client was granted the lock before the deadline, though no counted node forgot the key";
    /// A round succeeded, although another client had been granted the lock after the deadline.
    pub const REVIVED: &str =
        "a lease was revived after another client was granted the lock at its end";
}

/// Bounds of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Time to live, in ticks.
    pub ttl: u8,
    /// Number of rounds that begin.
    pub rounds: u8,
    /// Number of times that a node forgets the holder's key.
    pub forgets: u8,
    /// Number of times that a connection is cut.
    pub cuts: u8,
}

/// An event. The numbers are nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A tick passes.
    Tick,
    /// The holder begins a round.
    Extend,
    /// The holder's timers fire.
    Fire,
    /// The holder receives the next answer.
    Answer(usize),
    /// A node forgets the holder's key.
    Forget(usize),
    /// A connection is cut.
    Cut(usize),
    /// A SET on a cut connection is executed.
    Stray(usize),
}

/// One event, with the commands that nodes execute just before it. The flag `granted` says that the
/// other client is granted the lock just after it.
///
/// The exact time at which a node executes a command affects only later events at that node and the
/// passing of time. So the model executes a command as late as possible: before its answer, before
/// its key is forgotten, before its connection is cut, or before a tick. The other client is
/// granted the lock as early as possible: this removes no later possibility, and no action of the
/// holder depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Commands that the nodes execute before the event.
    pub before: [Executed; NODES],
    /// The event.
    pub act: Act,
    /// True if the other client is granted the lock, and releases it.
    pub granted: bool,
}

/// The complete state at one moment.
#[derive(Clone)]
pub struct World<H> {
    holder: Arc<H>,
    now: u8,
    nodes: [Node; NODES],
    rounds: u8,
    forgets: u8,
    cuts: u8,
    /// True if another client was granted the lock since the holder's grant.
    other: bool,
    /// True if such a grant came before T1 of the round under way.
    other_before_round: bool,
    /// True if another client was granted the lock since T1 of that round.
    other_in_round: bool,
    /// True if another client was granted the lock after the deadline.
    other_after_deadline: bool,
    wrong: Option<&'static str>,
}

/// The model: a holder of the type `H`, within bounds.
pub struct Extension<H> {
    /// Bounds of the search.
    pub bounds: Bounds,
    /// The holder at the grant.
    pub holder: H,
}

impl<H: Holder> World<H> {
    fn new(holder: H, ttl: u8) -> Self {
        let granting = Node { counted: true, ..Node::new(Key::Ours(ttl)) };
        let mut third = Node::new(Key::Free);
        third.receive(Request::Set);
        Self {
            holder: Arc::new(holder),
            now: 0,
            nodes: [granting, granting, third],
            rounds: 0,
            forgets: 0,
            cuts: 0,
            other: false,
            other_before_round: false,
            other_in_round: false,
            other_after_deadline: false,
            wrong: None,
        }
    }

    /// Returns true if `act` can happen next. A node without a key may briefly have another
    /// client's key.
    fn can(&self, act: Act, bounds: Bounds) -> bool {
        let node = |place: usize| &self.nodes[place];
        match act {
            _ if self.is_done(bounds) => false,
            Act::Tick => self.now < self.holder.deadline(),
            Act::Extend => self.rounds < bounds.rounds && !self.holder.is_extending(),
            Act::Fire => self.holder.is_due(self.now),
            Act::Answer(place) => node(place).queue[0].is_some(),
            Act::Forget(place) => {
                self.forgets < bounds.forgets && matches!(node(place).key, Key::Ours(_))
            }
            Act::Cut(place) => self.cuts < bounds.cuts && node(place).queue[0].is_some(),
            Act::Stray(place) => node(place).stray,
        }
    }

    fn take(&mut self, act: Act, ttl: u8) -> bool {
        let mut told = Vec::new();
        match act {
            Act::Tick => self.tick(),
            Act::Extend => {
                let other = self.other;
                if !Arc::make_mut(&mut self.holder).extend(self.now, &mut told) {
                    return false;
                }
                self.rounds += 1;
                (self.other_before_round, self.other_in_round) = (other, false);
                self.nodes.iter_mut().for_each(|node| node.forgot_in_round = false);
            }
            Act::Fire => Arc::make_mut(&mut self.holder).fire(self.now, &mut told),
            Act::Answer(place) => self.answer(place, &mut told),
            Act::Forget(place) => {
                self.forgets += 1;
                let node = &mut self.nodes[place];
                (node.key, node.forgot, node.forgot_in_round) = (Key::Free, true, true);
            }
            Act::Cut(place) => self.cut(place, &mut told),
            Act::Stray(place) => {
                self.nodes[place].stray = false;
                self.nodes[place].set(self.now + ttl);
            }
        }
        told.into_iter().for_each(|told| self.hear(told));
        self.answer_old_rounds();
        true
    }

    /// Delivers the answers to old rounds as soon as possible. These answers have no effect, so
    /// their order need not be explored.
    fn answer_old_rounds(&mut self) {
        let mut told = Vec::new();
        for place in 0..NODES {
            while let Some(Message { request: Request::Extend { round }, answer: Some(_) }) =
                self.nodes[place].queue[0]
                && round < self.rounds
            {
                self.answer(place, &mut told);
            }
        }
        assert_eq!(told, [], "an old round means nothing");
    }

    fn answer(&mut self, place: usize, told: &mut Vec<HolderAction>) {
        let queue = &mut self.nodes[place].queue;
        let message = queue[0].take().expect("it can be answered");
        queue.rotate_left(1);
        let answer = message.answer.expect("it was executed");
        let heard = HolderInput::Answer(message.request, answer);
        Arc::make_mut(&mut self.holder).hear(place, heard, self.now, told);
    }

    fn tick(&mut self) {
        self.now += 1;
        for node in &mut self.nodes {
            if node.key == Key::Ours(self.now) {
                node.key = Key::Free;
            }
        }
    }

    fn cut(&mut self, place: usize, told: &mut Vec<HolderAction>) {
        self.cuts += 1;
        let node = &mut self.nodes[place];
        let lost = core::mem::take(&mut node.queue);
        let mut lost = lost.into_iter().flatten();
        let unexecuted = |it: &Message| it.answer.is_none() && it.request == Request::Set;
        node.stray |= lost.clone().any(|it| unexecuted(&it));
        let latest = Request::Extend { round: self.rounds };
        let round_outstanding = lost.any(|it| it.request == latest);
        let heard = HolderInput::Closed { round_outstanding };
        Arc::make_mut(&mut self.holder).hear(place, heard, self.now, told);
    }

    /// Grants the other client the lock if possible; returns true if the grant adds new facts.
    fn grant(&mut self) -> bool {
        let free = self.nodes.iter().filter(|node| node.key == Key::Free).count();
        if free <= NODES / 2 {
            return false;
        }
        let before = (self.other, self.other_in_round, self.other_after_deadline);
        (self.other, self.other_in_round) = (true, self.holder.is_extending());
        self.other_after_deadline |= self.is_over();
        if !self.is_over() && !self.holder.is_lost() && !self.counted_forgot() {
            self.wrong = Some(violations::OUTLIVED);
            return true;
        }
        let (other, in_round, after_deadline) = before;
        !other || !in_round && self.other_in_round || !after_deadline && self.other_after_deadline
    }

    fn is_over(&self) -> bool {
        self.now >= self.holder.deadline()
    }

    fn counted_forgot(&self) -> bool {
        self.nodes.iter().any(|node| node.counted && node.forgot)
    }

    /// Returns true if no later violation is possible. Either the lease is lost, and the holder no
    /// longer believes in it; or no further round can succeed, and the counted keys outlive the
    /// deadline.
    fn is_done(&self, bounds: Bounds) -> bool {
        let outlives = |node: &Node| match node.key {
            Key::Ours(until) => until >= self.holder.deadline(),
            Key::Free => false,
        };
        let all_outlive = self.nodes.iter().all(|it| !it.counted || it.forgot || outlives(it));
        let no_more = self.rounds == bounds.rounds && all_outlive || self.is_over();
        self.holder.is_lost() || no_more && !self.holder.is_extending()
    }

    fn hear(&mut self, told: HolderAction) {
        match told {
            HolderAction::Write(place, request) => {
                self.nodes[place].receive(request);
            }
            HolderAction::Extended { counted, .. } => {
                for (node, counted) in self.nodes.iter_mut().zip(counted) {
                    (node.counted, node.forgot) = (counted, node.forgot_in_round);
                }
                let forgot = self.counted_forgot();
                if self.other_before_round {
                    self.wrong = Some(violations::CONTINUITY);
                } else if self.other_after_deadline {
                    self.wrong = Some(violations::REVIVED);
                } else if self.other_in_round && !forgot {
                    self.wrong = Some(violations::OUTLIVED);
                }
            }
            HolderAction::Failed | HolderAction::Lost => {}
        }
    }

    fn encode_node(&self, place: usize) -> u64 {
        let node = self.nodes[place].encode(self.now, self.rounds, self.holder.is_extending());
        self.holder.encode_node(place, self.now) | node << 8
    }

    fn encode(&self) -> u64 {
        let extending = self.holder.is_extending();
        let flags = [
            self.other,
            extending && self.other_before_round,
            extending && self.other_in_round,
            self.other_after_deadline,
            self.wrong.is_some(),
        ];
        let flags = flags.iter().fold(0, |flags, &flag| flags << 1 | u64::from(flag));
        let used = u64::from(self.forgets) << 8 | u64::from(self.cuts) << 10;
        self.holder.encode(self.now) | (flags | used) << 48
    }
}

impl<H: Holder> Model for Extension<H> {
    type State = World<H>;
    type Step = Step;

    fn initial(&self) -> Vec<World<H>> {
        vec![World::new(self.holder.clone(), self.bounds.ttl)]
    }

    fn successors(&self, state: &World<H>, visit: &mut dyn FnMut(Step, World<H>)) {
        let mut visit = |before: [Executed; NODES], nodes: [Node; NODES], act: Act| {
            let mut next = World { nodes, ..state.clone() };
            if next.can(act, self.bounds) && next.take(act, self.bounds.ttl) {
                let granted = next.grant();
                visit(Step { before, act, granted }, next);
            }
        };
        let nothing = [Executed::default(); NODES];
        visit(nothing, state.nodes, Act::Extend);
        visit(nothing, state.nodes, Act::Fire);
        let ways = state.nodes.map(|node| node.ways(state.now + self.bounds.ttl));
        for place in 0..NODES {
            for &(executed, node) in &ways[place] {
                let (mut before, mut nodes) = (nothing, state.nodes);
                (before[place], nodes[place]) = (executed, node);
                let answered = |node: &Node| node.queue[0].is_some_and(|it| it.answer.is_some());
                let just = u8::from(!answered(&state.nodes[place]));
                if answered(&node) && executed.count == just {
                    visit(before, nodes, Act::Answer(place));
                }
                visit(before, nodes, Act::Forget(place));
                visit(before, nodes, Act::Cut(place));
                visit(before, nodes, Act::Stray(place));
            }
        }
        for first in &ways[0] {
            for second in &ways[1] {
                for third in &ways[2] {
                    let before = [first.0, second.0, third.0];
                    visit(before, [first.1, second.1, third.1], Act::Tick);
                }
            }
        }
    }

    /// Nodes differ only in their states, so they are sorted by state.
    fn key(&self, state: &World<H>) -> u128 {
        let mut nodes: [(u64, usize); NODES] =
            core::array::from_fn(|place| (state.encode_node(place), place));
        nodes.sort_unstable();
        let [first, second, third] = nodes.map(|(words, _)| words);
        let more = state.holder.fingerprint(nodes.map(|(_, place)| place), state.now);
        let mut hasher = SipHasher13::new();
        ([state.encode(), first, second, third], more).hash(&mut hasher);
        hasher.finish128().as_u128()
    }

    fn violation(&self, state: &World<H>) -> Option<&'static str> {
        state.wrong
    }
}
