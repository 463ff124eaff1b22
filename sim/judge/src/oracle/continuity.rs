//! No other lease is granted between a lease's grant and T1 of a successful extension of it.
//!
//! An application that extends a lease continues with data that it read under the lease. If another
//! lease was granted in between, that data is stale, although the beliefs of the two leases never
//! overlap (counterexamples E3, E7).
//!
//! The property is judged when an extension is decided; without a successful extension it is
//! vacuous. Blame: the cause that let the other lease in, as for an overlap of beliefs. It is
//! determined when the other lease is granted, because an extension may later set the ended keys
//! again.

use super::blame;
use super::facts::Facts;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::AttemptId;

/// Maximum number of intrusions kept. A run with more is judged by these alone.
const INTRUSIONS_MAX: usize = 256;

/// Grant of another lease before this lease was released.
#[derive(Clone, Copy, Debug)]
struct Intrusion {
    at_ns: u64,
    lease: AttemptId,
    other: AttemptId,
    blamed: Blamed,
    /// True if the lease was extended in spite of the intrusion.
    overlooked: bool,
}

/// Open leases and intrusions of a run, and the judgement so far.
#[derive(Debug)]
pub(super) struct Continuity {
    /// Leases that are granted and not released.
    open: Vec<AttemptId>,
    intrusions: Vec<Intrusion>,
    found: Judgement,
}

impl Continuity {
    pub(super) fn new() -> Self {
        let open = Vec::with_capacity(16);
        Self { open, intrusions: Vec::with_capacity(INTRUSIONS_MAX), found: Judgement::Vacuous }
    }

    pub(super) fn reset(&mut self) {
        self.open.clear();
        self.intrusions.clear();
        self.found = Judgement::Vacuous;
    }

    /// Records that `other` was granted now.
    pub(super) fn decided(&mut self, facts: &Facts, other: AttemptId) {
        if !facts.setting.extends || self.open.contains(&other) {
            return;
        }
        for &lease in &self.open {
            if self.intrusions.len() < INTRUSIONS_MAX {
                let blamed = blame::of_leases(facts, lease, other);
                let (at_ns, overlooked) = (facts.now_ns, false);
                self.intrusions.push(Intrusion { at_ns, lease, other, blamed, overlooked });
            }
        }
        self.open.push(other);
    }

    /// Records that `id` failed or was released.
    pub(super) fn finished(&mut self, id: AttemptId) {
        self.open.retain(|&it| it != id);
    }

    /// Judges a successful extension of the lease of `id`; T1 of the extension was read at `t1_ns`.
    pub(super) fn extended(&mut self, facts: &Facts, id: AttemptId, t1_ns: u64) {
        self.found.held();
        for it in &mut self.intrusions {
            if it.lease != id || it.at_ns > t1_ns {
                continue;
            }
            it.overlooked = true;
            let found = Violation::of_two((id, it.other), it.at_ns, it.blamed);
            self.found.violated(Violation { to_ns: facts.now_ns, ..found });
        }
    }

    /// Returns the blame for the grant of `later` if `earlier` was extended in spite of it.
    pub(super) fn blamed(&self, earlier: AttemptId, later: AttemptId) -> Option<Blamed> {
        let mut overlooked = self.intrusions.iter().filter(|it| it.overlooked);
        overlooked.find(|it| (it.lease, it.other) == (earlier, later)).map(|it| it.blamed)
    }

    pub(super) fn judge(&self) -> Judgement {
        self.found
    }
}
