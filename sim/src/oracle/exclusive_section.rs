//! Critical sections never overlap, whatever any clock says.
//!
//! A section ends when it is left or its process is killed. Blamed is what made the two leases
//! overlap, if they do; else a stop between the last look at the clock and the overlap, or the
//! application.

use super::blame;
use super::facts::Facts;
use super::overlaps::Overlaps;
use super::verdict::{Blamed, Judgement};
use crate::history::AttemptId;

/// The sections of a run.
#[derive(Debug)]
pub(super) struct ExclusiveSection {
    inside: Vec<AttemptId>,
    overlaps: Overlaps,
    seen: bool,
}

impl ExclusiveSection {
    pub(super) fn new() -> Self {
        Self { inside: Vec::with_capacity(16), overlaps: Overlaps::new(), seen: false }
    }

    pub(super) fn reset(&mut self) {
        self.inside.clear();
        self.overlaps.reset();
        self.seen = false;
    }

    pub(super) fn entered(&mut self, facts: &Facts, id: AttemptId) {
        self.seen = true;
        if self.inside.contains(&id) {
            return;
        }
        for &other in &self.inside {
            let blamed = blame::of_staying(facts, &[other, id]);
            self.overlaps.begin(other, id, facts.now_ns, blamed);
        }
        self.inside.push(id);
    }

    pub(super) fn left(&mut self, facts: &Facts, id: AttemptId) {
        self.inside.retain(|&it| it != id);
        self.overlaps.end(id, facts.now_ns);
    }

    pub(super) fn killed(&mut self, facts: &Facts, client: u8) {
        while let Some(&id) = self.inside.iter().find(|it| it.client == client) {
            self.left(facts, id);
        }
    }

    /// What the overlap of the sections of two leases is blamed on; `None` if there is none.
    pub(super) fn blamed(&self, facts: &Facts, one: AttemptId, other: AttemptId) -> Option<Blamed> {
        let overlap = self.overlaps.of(one, other)?;
        let leases = facts.beliefs.overlaps().of(one, other);
        Some(leases.map_or(overlap.blamed, |leases| leases.blamed))
    }

    /// What was found, once the run is over.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        self.overlaps.finish(facts.now_ns);
        match self.overlaps.first() {
            Some(overlap) => {
                let (one, other) = (overlap.first, overlap.second);
                let blamed = self.blamed(facts, one, other).unwrap_or_default();
                Judgement::Violated(overlap.violation(facts.leases.in_order(one, other), blamed))
            }
            None if self.seen => Judgement::Holds,
            None => Judgement::Vacuous,
        }
    }
}
