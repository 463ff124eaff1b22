//! Writes to the protected resource, and the blame for writes in the wrong order.

use super::blame;
use super::continuity::Continuity;
use super::exclusive_section::ExclusiveSection;
use super::facts::Facts;
use super::verdict::{Blame, Blamed};
use crate::history::AttemptId;

/// One write that an application sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    by: AttemptId,
    /// Blame for sending the write without a belief; `None` if the lease was believed at that time.
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
        let late = (!in_time).then(|| blame::of_use_without_belief(facts, &[by]));
        self.0.push(Sent { by, late });
    }

    /// Returns the blame for writes of two leases in the wrong order: the first of these causes
    /// that exists.
    ///
    /// - the cause of the overlap of the two leases;
    /// - the cause of the overlap of their sections;
    /// - the cause that let the later lease in, if the earlier lease was extended in spite of it;
    /// - the cause that made the earlier lease's last write leave after the end of that lease.
    ///
    /// If none exists, that write was sent in time, and delayed.
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
