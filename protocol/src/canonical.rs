//! A canonical form of the machines' state: states that behave alike have equal forms.
//!
//! A search that visits every state must recognise a state that it has already visited. Behaviour
//! does not depend on the absolute clock reading, on the bytes of tokens, or on stored values that
//! are never read again. Therefore instants become distances from now, and all past instants become
//! equal; tokens, runs and holders are numbered in order of first appearance; commands are named by
//! the meaning of their answer.
//!
//! The data of one node is contiguous, so that the nodes can be encoded in any order. Two clients
//! that differ only by the names of their nodes have equal canonical states for some pair of
//! orders, and no other clients do.

use super::digest::Digest;
use super::holder::Holder;
use super::restart::RunId;
use super::time::BootInstant;
use super::token::Token;

/// Canonical state of a drained [`NodeSet`](super::NodeSet), as returned by
/// [`NodeSet::canonical`](super::NodeSet::canonical).
///
/// Round trips are left out, although they decide how long a client waits after a failed attempt; and
/// so is the time for which a connection has lasted, which decides how long it waits with a dial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Canonical(Vec<u64>);

impl Canonical {
    /// Returns the state as words, for a caller that combines it with the state of a world.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.0
    }
}

/// Collects the words of one canonical state.
pub(super) struct Encoder {
    now: BootInstant,
    words: Vec<u64>,
    tokens: Vec<Token>,
    runs: Vec<RunId>,
    holders: Vec<Holder>,
    digests: Vec<Digest>,
}

impl Encoder {
    /// Creates an encoder for a state at `now`, with room for `words` words.
    pub(super) fn at(now: BootInstant, words: usize) -> Self {
        let (words, tokens) = (Vec::with_capacity(words), Vec::new());
        let (runs, holders, digests) = (Vec::new(), Vec::new(), Vec::new());
        Self { now, words, tokens, runs, holders, digests }
    }

    /// Returns the state encoded so far.
    pub(super) fn finish(self) -> Canonical {
        Canonical(self.words)
    }

    pub(super) fn word(&mut self, word: u64) {
        self.words.push(word);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.word(u64::from(flag));
    }

    /// Encodes the distance from now to `instant`: zero if `instant` is past, `u64::MAX` if it is
    /// the last representable instant, which never comes.
    pub(super) fn ahead(&mut self, instant: BootInstant) {
        let never = instant == BootInstant::NEVER;
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

/// Effect that the answer to a command would have.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// No effect on any lock.
    Nothing,
    Set,
    Extension,
    Release,
    TimeLeft,
    Look,
    Read,
    /// An extension or a read that a later one has superseded.
    Superseded,
}
