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

use super::digest::Digest;
use super::holder::Holder;
use super::restart::RunId;
use super::time::BootInstant;
use super::token::Token;

/// The state of a [`NodeSet`](super::NodeSet) that has been drained, as
/// [`NodeSet::canonical`](super::NodeSet::canonical) takes it.
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
    /// An encoder of a state at `now` of about so many words.
    pub(super) fn at(now: BootInstant, words: usize) -> Self {
        let (words, tokens) = (Vec::with_capacity(words), Vec::new());
        let (runs, holders, digests) = (Vec::new(), Vec::new(), Vec::new());
        Self { now, words, tokens, runs, holders, digests }
    }

    /// What was told so far.
    pub(super) fn finish(self) -> Canonical {
        Canonical(self.words)
    }

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
