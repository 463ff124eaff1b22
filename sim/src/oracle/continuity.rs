//! Nobody else was granted between a lease's grant and T1 of a successful extension of it.
//!
//! Who extends a lease goes on with what it read under it. If another lease was granted in between,
//! that is stale, although the beliefs of the two never overlap (catalogue E3, E7).

use super::blame;
use super::facts::Facts;
use super::verdict::{Judgement, Violation};
use crate::history::AttemptId;

/// Grants that are remembered. A run with more is judged by these alone.
const GRANTS_MAX: usize = 256;

/// The grants of a run, and what was found so far.
#[derive(Debug)]
pub(super) struct Continuity {
    judgement: Judgement,
    grants: Vec<(u64, AttemptId)>,
}

impl Continuity {
    pub(super) fn new() -> Self {
        Self { judgement: Judgement::Vacuous, grants: Vec::with_capacity(GRANTS_MAX) }
    }

    pub(super) fn reset(&mut self) {
        self.judgement = Judgement::Vacuous;
        self.grants.clear();
    }

    /// `id` was granted now.
    pub(super) fn decided(&mut self, facts: &Facts, id: AttemptId) {
        if self.grants.len() < GRANTS_MAX {
            self.grants.push((facts.now_ns, id));
        }
    }

    /// The lease of `id` was extended; T1 of the extension was read at `t1_ns`.
    pub(super) fn extended(&mut self, facts: &Facts, id: AttemptId, t1_ns: u64) {
        if self.judgement.is_violated() {
            return;
        }
        let Some(granted_ns) = facts.leases.get(id).map(|lease| lease.decided_ns) else { return };
        let between = |&&(at_ns, other): &&(u64, AttemptId)| {
            other != id && at_ns > granted_ns && at_ns <= t1_ns
        };
        self.judgement = match self.grants.iter().find(between) {
            None => Judgement::Holds,
            Some(&(at_ns, other)) => {
                let blamed = blame::of_leases(facts, id, other);
                let found = Violation::of_two((id, other), at_ns, blamed);
                Judgement::Violated(Violation { to_ns: facts.now_ns, ..found })
            }
        };
    }

    pub(super) fn judge(&self) -> Judgement {
        self.judgement
    }
}
