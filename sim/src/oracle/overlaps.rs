//! Pairs of intervals that overlapped.

use super::verdict::{Blamed, Violation};
use crate::history::AttemptId;

/// More are not kept: the first is reported, the others only lend their blame.
const MOST: usize = 64;

const OPEN: u64 = u64::MAX;

/// Two intervals that overlap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlap {
    /// The one that began first.
    pub first: AttemptId,
    /// The other.
    pub second: AttemptId,
    pub from_ns: u64,
    /// [`OPEN`] while both last.
    pub to_ns: u64,
    pub blamed: Blamed,
}

impl Overlap {
    /// As a report tells it. `first` and `second` are in the order of T1.
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

/// The overlaps of a run, in the order of their beginnings. Those that end as they begin are none.
#[derive(Clone, Debug)]
pub(super) struct Overlaps(Vec<Overlap>);

impl Overlaps {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(MOST))
    }

    pub(super) fn reset(&mut self) {
        self.0.clear();
    }

    /// From `at_ns` on the intervals of both overlap.
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

    /// The intervals that the overlap at `place` is of.
    pub(super) fn pair(&self, place: usize) -> Option<(AttemptId, AttemptId)> {
        self.0.get(place).map(|it| (it.first, it.second))
    }

    /// Says what the overlap at `place` is blamed on.
    pub(super) fn blame(&mut self, place: usize, blamed: Blamed) {
        self.0[place].blamed = blamed;
    }

    /// The interval of `id` is over.
    pub(super) fn end(&mut self, id: AttemptId, at_ns: u64) {
        // Ends are not told in their order: the earlier one counts.
        for overlap in self.0.iter_mut().filter(|it| it.first == id || it.second == id) {
            overlap.to_ns = overlap.to_ns.min(at_ns);
        }
    }

    /// Nothing goes on beyond `at_ns`.
    pub(super) fn finish(&mut self, at_ns: u64) {
        self.0.iter_mut().for_each(|it| it.to_ns = it.to_ns.min(at_ns));
    }

    /// The first overlap.
    pub(super) fn first(&self) -> Option<&Overlap> {
        self.0.iter().find(|it| it.to_ns > it.from_ns)
    }

    /// The first overlap of these two.
    pub(super) fn of(&self, one: AttemptId, other: AttemptId) -> Option<&Overlap> {
        let same = |it: &&Overlap| {
            (it.first, it.second) == (one, other) || (it.first, it.second) == (other, one)
        };
        self.0.iter().filter(same).find(|it| it.to_ns > it.from_ns)
    }
}
