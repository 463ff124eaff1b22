//! The writes to the protected resource: which were sent, and what they are blamed on if they turn
//! out to be wrong.

use super::blame;
use super::continuity::Continuity;
use super::exclusive_section::ExclusiveSection;
use super::facts::Facts;
use super::verdict::{Blame, Blamed};
use crate::history::AttemptId;

/// One write that left an application.
#[derive(Clone, Copy, Debug)]
struct Sent {
    by: AttemptId,
    /// `None` if the lease was believed when it was sent.
    late: Option<Blamed>,
}

/// All writes that were sent.
#[derive(Debug)]
pub(super) struct Writes(Vec<Sent>);

impl Writes {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(16))
    }

    pub(super) fn reset(&mut self) {
        self.0.clear();
    }

    pub(super) fn sent(&mut self, facts: &Facts, by: AttemptId) {
        let in_time = facts.beliefs.is_believed(by, facts.now_ns);
        let late = (!in_time).then(|| blame::of_staying(facts, &[by]));
        self.0.push(Sent { by, late });
    }

    /// Why the writes of two leases came in the wrong order: what made the leases, or their
    /// sections, overlap; else what let the later one in before the earlier one was extended; else
    /// what made the earlier one send its last write when it was over; else that write was sent in
    /// time, and delayed.
    pub(super) fn blamed(
        &self,
        facts: &Facts,
        (sections, continuity): (&ExclusiveSection, &Continuity),
        (earlier, later): (AttemptId, AttemptId),
    ) -> Blamed {
        if let Some(leases) = facts.beliefs.overlaps().of(earlier, later) {
            return leases.blamed;
        }
        let last = self.0.iter().rev().find(|sent| sent.by == earlier);
        let late = || last.and_then(|sent| sent.late);
        let sections = sections.blamed(facts, earlier, later);
        let interrupted = || continuity.blamed(earlier, later);
        sections.or_else(interrupted).or_else(late).unwrap_or(Blamed::just(Blame::DelayedWrite))
    }
}
