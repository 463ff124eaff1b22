//! Nobody else was granted between a lease's grant and T1 of a successful extension of it.
//!
//! Who extends a lease goes on with what it read under it. If another lease was granted in between,
//! that is stale, although the beliefs of the two never overlap (catalogue E3, E7).
//!
//! It is judged as an extension is decided, and vacuous without one that succeeds. Blamed is what
//! let the other lease in, as for an overlap of beliefs: it is found out as the other is granted,
//! since an extension may make the keys again whose end it was.

use super::blame;
use super::facts::Facts;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::AttemptId;

/// Intrusions that are remembered. A run with more is judged by these alone.
const INTRUSIONS_MAX: usize = 256;

/// Another lease was granted before this one was released.
#[derive(Clone, Copy, Debug)]
struct Intrusion {
    at_ns: u64,
    lease: AttemptId,
    other: AttemptId,
    blamed: Blamed,
    /// The lease was extended all the same.
    overlooked: bool,
}

/// What happened to the leases of a run, and what was found so far.
#[derive(Debug)]
pub(super) struct Continuity {
    /// Granted and not released.
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

    /// `other` was granted now.
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

    /// `id` failed, or was released.
    pub(super) fn finished(&mut self, id: AttemptId) {
        self.open.retain(|&it| it != id);
    }

    /// The lease of `id` was extended; T1 of the extension was read at `t1_ns`.
    pub(super) fn extended(&mut self, facts: &Facts, id: AttemptId, t1_ns: u64) {
        self.found.held();
        for it in &mut self.intrusions {
            if it.lease != id || it.at_ns > t1_ns {
                continue;
            }
            it.overlooked = true;
            if !self.found.is_violated() {
                let found = Violation::of_two((id, it.other), it.at_ns, it.blamed);
                self.found = Judgement::Violated(Violation { to_ns: facts.now_ns, ..found });
            }
        }
    }

    /// What let `later` in, if `earlier` was extended although it had been.
    pub(super) fn blamed(&self, earlier: AttemptId, later: AttemptId) -> Option<Blamed> {
        let mut overlooked = self.intrusions.iter().filter(|it| it.overlooked);
        overlooked.find(|it| (it.lease, it.other) == (earlier, later)).map(|it| it.blamed)
    }

    pub(super) fn judge(&self) -> Judgement {
        self.found
    }
}
