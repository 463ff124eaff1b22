//! The state of the machines in a form in which states that behave alike are equal.
//!
//! A search that visits every state must know when it has been in one before. Two states behave
//! alike whatever the clock read when they were reached, whatever bytes their tokens are made of,
//! and whatever is still stored that nobody will look at again. So instants become distances from
//! now, those that are past become one; tokens, runs and holders are numbered in the order of their
//! appearance; commands are named by what their answer would mean.
//!
//! Everything about a node stands together, so that the nodes can be taken in any order: the
//! canonical states of two clients are equal for some pair of orders iff the clients differ by the
//! names of their nodes alone.

use super::command::CommandId;
use super::digest::Digest;
use super::holder::Holder;
use super::link::Link;
use super::lock::Lock;
use super::node_set::NodeSet;
use super::quorum::NodeIndex;
use super::restart::RunId;
use super::time::BootInstant;
use super::token::Token;

/// The state of a [`NodeSet`] that has been drained, as [`NodeSet::canonical`] takes it.
///
/// Round trips are left out: they decide how long a client waits after a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Canonical(Vec<u64>);

impl Canonical {
    /// The state as words, to be put together with the state of a world.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.0
    }
}

/// Collects the words of a state.
pub(super) struct Encoder {
    now: BootInstant,
    words: Vec<u64>,
    tokens: Vec<Token>,
    runs: Vec<RunId>,
    holders: Vec<Holder>,
    digests: Vec<Digest>,
}

impl Encoder {
    pub(super) fn word(&mut self, word: u64) {
        self.words.push(word);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.word(u64::from(flag));
    }

    /// How far ahead `instant` is. What is past is past; what can never come stays away as far.
    pub(super) fn ahead(&mut self, instant: BootInstant) {
        let never = instant == BootInstant::from_nanos(u64::MAX);
        self.word(if never { u64::MAX } else { instant.since(self.now).as_nanos() as u64 });
    }

    pub(super) fn maybe_ahead(&mut self, instant: Option<BootInstant>) {
        self.flag(instant.is_some());
        self.ahead(instant.unwrap_or(BootInstant::ZERO));
    }

    pub(super) fn age(&mut self, instant: BootInstant) {
        self.word(self.now.since(instant).as_nanos() as u64);
    }

    pub(super) fn token(&mut self, token: Token) {
        let number = number(&mut self.tokens, token);
        self.word(number);
    }

    pub(super) fn holder(&mut self, holder: Option<Holder>) {
        let number = holder.map_or(0, |holder| 1 + number(&mut self.holders, holder));
        self.word(number);
    }

    pub(super) fn memory(&mut self, memory: Option<(Digest, Digest)>) {
        self.flag(memory.is_some());
        for digest in memory.into_iter().flat_map(|(memory, history)| [memory, history]) {
            let number = number(&mut self.digests, digest);
            self.word(number);
        }
    }

    pub(super) fn run(&mut self, run: Option<RunId>) {
        let number = run.map_or(0, |run| 1 + number(&mut self.runs, run));
        self.word(number);
    }
}

fn number<T: PartialEq>(known: &mut Vec<T>, it: T) -> u64 {
    let place = known.iter().position(|known| *known == it);
    place.unwrap_or_else(|| {
        known.push(it);
        known.len() - 1
    }) as u64
}

/// What the answer to a command would mean.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// Nothing to any lock.
    Nothing,
    Set,
    Extension,
    Release,
    TimeLeft,
}

impl NodeSet {
    /// The state at `now`, with the nodes taken in `order`.
    ///
    /// # Panics
    ///
    /// If commands or events have not been drained, or `order` does not name every node once.
    #[must_use]
    pub fn canonical(&self, order: &[NodeIndex], now: BootInstant) -> Canonical {
        assert!(self.is_drained(), "a state between two steps is none");
        assert_eq!(order.len(), self.nodes().get(), "every node once");
        let words = Vec::with_capacity(32 + 32 * order.len());
        let (tokens, runs, holders) = (Vec::new(), Vec::new(), Vec::new());
        let mut out = Encoder { now, words, tokens, runs, holders, digests: Vec::new() };
        let locks: Vec<Option<&Lock>> = self.locks().collect();
        for lock in &locks {
            out.flag(lock.is_some());
            if let Some(lock) = lock {
                lock.encode(&mut out);
                out.word(self.place_in_line(lock).map_or(0, |place| 1 + place as u64));
            }
        }
        for &node in order {
            for lock in locks.iter().flatten() {
                lock.encode_node(node, &mut out);
            }
            let meaning = |id: CommandId| {
                let asked = locks.iter().enumerate().find_map(|(slot, lock)| {
                    lock.filter(|it| Some(it.id()) == id.lock).map(|lock| (slot, lock))
                });
                match asked {
                    Some((slot, lock)) => (slot as u64, lock.meaning(node, id)),
                    None => (0, Meaning::Nothing),
                }
            };
            self.link(node).encode(meaning, &mut out);
        }
        Canonical(out.words)
    }
}

/// What [`NodeSet::canonical`] needs of a link: who asked, and what the answer would mean to them.
impl Link {
    fn encode(&self, meaning: impl Fn(CommandId) -> (u64, Meaning), out: &mut Encoder) {
        self.encode_connection(out);
        for waiting in self.encode_pipeline(out) {
            let (slot, meaning) = meaning(waiting);
            out.word(slot);
            out.word(meaning as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::command::Reply;
    use crate::protocol::testing::{NODE_TIMEOUT, World, lock_config, ms, node};

    fn canonical(world: &World, order: [usize; 3]) -> Canonical {
        world.client.canonical(&order.map(node), world.now)
    }

    /// A client of three nodes that is trying under the token `byte`, `late` after a day.
    fn trying(late: u64, byte: u8) -> World {
        let mut world = World::warm(3);
        world.pass(ms(late));
        world.acquire(lock_config(3), byte);
        world
    }

    #[test]
    fn when_it_happened_and_under_which_token_makes_no_difference() {
        let (one, other) = (trying(0, 1), trying(77, 2));
        assert_eq!(canonical(&one, [0, 1, 2]), canonical(&other, [0, 1, 2]));
    }

    #[test]
    fn what_has_passed_since_makes_a_difference() {
        let (one, mut other) = (trying(0, 1), trying(0, 1));
        other.pass(NODE_TIMEOUT / 2);
        assert_ne!(canonical(&one, [0, 1, 2]), canonical(&other, [0, 1, 2]));
    }

    #[test]
    fn an_answer_makes_a_difference_and_so_does_which() {
        let world = trying(0, 1);
        let after = |reply| {
            let mut world = world.clone();
            world.answer_with(0, reply);
            canonical(&world, [0, 1, 2])
        };
        let all = [canonical(&world, [0, 1, 2]), after(Reply::Ok), after(Reply::Nil)];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }

    #[test]
    fn nodes_that_changed_places_make_no_difference_in_another_order() {
        let (mut one, mut other) = (trying(0, 1), trying(0, 1));
        one.answer(0);
        other.answer(2);
        assert_ne!(canonical(&one, [0, 1, 2]), canonical(&other, [0, 1, 2]));
        assert_eq!(canonical(&one, [0, 1, 2]), canonical(&other, [2, 1, 0]));
    }
}
