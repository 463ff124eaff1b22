//! Critical sections never overlap in true time, whatever any clock reads.
//!
//! A section ends when the application leaves it or its process is killed. Blame: the cause of the
//! overlap of the two leases, if they overlap; otherwise a stop of the process during which its
//! lease ended, if the overlap would have ended in time without the stop; otherwise the
//! application.

use super::blame;
use super::facts::Facts;
use super::overlaps::{Overlap, Overlaps};
use super::verdict::{Blamed, Judgement};
use crate::history::{AttemptId, ClientId};

/// Sections of a run.
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
            let blamed = blame::of_use_without_belief(facts, &[other, id]);
            self.overlaps.begin(other, id, facts.now_ns, blamed);
        }
        self.inside.push(id);
    }

    pub(super) fn left(&mut self, facts: &Facts, id: AttemptId) {
        self.inside.retain(|&it| it != id);
        for overlap in self.overlaps.open_of(id) {
            overlap.blamed = so_far(facts, overlap);
        }
        self.overlaps.end(id, facts.now_ns);
    }

    pub(super) fn killed(&mut self, facts: &Facts, client: ClientId) {
        while let Some(&id) = self.inside.iter().find(|it| it.client == client) {
            self.left(facts, id);
        }
    }

    /// Returns the blame for the overlap of the sections of two leases; `None` if they do not
    /// overlap.
    pub(super) fn blamed(&self, facts: &Facts, one: AttemptId, other: AttemptId) -> Option<Blamed> {
        self.overlaps.of(one, other).map(|overlap| blamed(facts, overlap))
    }

    /// Returns the judgement of a finished run.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        while let Some(&id) = self.inside.first() {
            self.left(facts, id);
        }
        let mut found = if self.seen { Judgement::Holds } else { Judgement::Vacuous };
        for overlap in self.overlaps.iter() {
            let pair = facts.leases.in_order(overlap.first, overlap.second);
            found.violated(overlap.violation(pair, blamed(facts, overlap)));
        }
        found
    }
}

/// Returns the blame for an overlap of sections: that of the two leases, if they overlap as well.
fn blamed(facts: &Facts, overlap: &Overlap) -> Blamed {
    let leases = facts.beliefs.overlaps().of(overlap.first, overlap.second);
    leases.map_or_else(|| so_far(facts, overlap), |leases| leases.blamed)
}

/// Returns the blame for an overlap of sections, at its end or now.
fn so_far(facts: &Facts, overlap: &Overlap) -> Blamed {
    if !overlap.is_open() {
        return overlap.blamed;
    }
    let sections = [overlap.first, overlap.second];
    // The first lease may have been believed until the instant at which the second section began.
    let blamed = match overlap.blamed.is_none() {
        true => blame::of_use_without_belief(facts, &sections),
        false => overlap.blamed,
    };
    blame::of_lasting_use(facts, blamed, &sections, facts.now_ns)
}
