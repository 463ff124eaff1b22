//! Pairs of intervals that overlap.

use super::verdict::{Blamed, Violation};
use crate::history::AttemptId;

/// Maximum number of overlaps kept.
const MOST: usize = 64;

const OPEN: u64 = u64::MAX;

/// Two intervals that overlap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlap {
    /// Attempt whose interval began first.
    pub first: AttemptId,
    /// Attempt whose interval began second.
    pub second: AttemptId,
    pub from_ns: u64,
    /// End of the overlap; [`OPEN`] while both intervals last.
    pub to_ns: u64,
    pub blamed: Blamed,
}

impl Overlap {
    /// Returns true while both intervals last.
    pub(super) fn is_open(&self) -> bool {
        self.to_ns == OPEN
    }

    /// Converts the overlap to a violation. `pair` holds both attempts in the order of T1.
    pub(super) fn violation(&self, pair: (AttemptId, AttemptId), blamed: Blamed) -> Violation {
        Violation {
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            first: pair.0,
            second: Some(pair.1),
            node: None,
            blamed,
        }
    }
}

/// Overlaps of a run, in the order of their beginnings. An overlap that ends at the instant at
/// which it begins does not count.
#[derive(Clone, Debug)]
pub(super) struct Overlaps(Vec<Overlap>);

impl Overlaps {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(MOST))
    }

    pub(super) fn reset(&mut self) {
        self.0.clear();
    }

    /// Begins an overlap of the two intervals at `at_ns`.
    pub(super) fn begin(
        &mut self,
        first: AttemptId,
        second: AttemptId,
        at_ns: u64,
        blamed: Blamed,
    ) {
        if self.0.len() < MOST {
            self.0.push(Overlap { first, second, from_ns: at_ns, to_ns: OPEN, blamed });
        }
    }

    /// Returns the attempts whose intervals form the overlap at index `place`.
    pub(super) fn pair(&self, place: usize) -> Option<(AttemptId, AttemptId)> {
        self.0.get(place).map(|it| (it.first, it.second))
    }

    /// Sets the blame of the overlap at index `place`.
    pub(super) fn blame(&mut self, place: usize, blamed: Blamed) {
        self.0[place].blamed = blamed;
    }

    /// Returns the overlaps of the interval of `id` that still last.
    pub(super) fn open_of(&mut self, id: AttemptId) -> impl Iterator<Item = &mut Overlap> {
        let is_of = move |it: &&mut Overlap| it.first == id || it.second == id;
        self.0.iter_mut().filter(is_of).filter(|it| it.is_open())
    }

    /// Ends the interval of `id`, and thereby its overlaps.
    pub(super) fn end(&mut self, id: AttemptId, at_ns: u64) {
        // Ends are not reported in order of time: the earlier one counts.
        for overlap in self.0.iter_mut().filter(|it| it.first == id || it.second == id) {
            overlap.to_ns = overlap.to_ns.min(at_ns);
        }
    }

    /// Ends all overlaps at `at_ns` at the latest.
    pub(super) fn finish(&mut self, at_ns: u64) {
        self.0.iter_mut().for_each(|it| it.to_ns = it.to_ns.min(at_ns));
    }

    /// Iterates over the overlaps that last longer than an instant.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Overlap> {
        self.0.iter().filter(|it| it.to_ns > it.from_ns)
    }

    /// Returns the first overlap of these two attempts that lasts longer than an instant.
    pub(super) fn of(&self, one: AttemptId, other: AttemptId) -> Option<&Overlap> {
        let same = |it: &&Overlap| {
            (it.first, it.second) == (one, other) || (it.first, it.second) == (other, one)
        };
        self.iter().find(same)
    }
}
