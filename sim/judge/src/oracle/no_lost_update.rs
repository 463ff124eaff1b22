//! No write is applied if it is based on a value that was read before another holder's applied
//! write.

use super::facts::Facts;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::{AttemptId, BasedOn};

/// Versions of the resource, and the judgement so far.
#[derive(Debug)]
pub(super) struct NoLostUpdate {
    /// Each version with its writer, in order.
    versions: Vec<(u32, AttemptId)>,
    found: Judgement,
}

impl NoLostUpdate {
    pub(super) fn new() -> Self {
        Self { versions: Vec::with_capacity(16), found: Judgement::Vacuous }
    }

    pub(super) fn reset(&mut self) {
        self.versions.clear();
        self.found = Judgement::Vacuous;
    }

    /// Judges a write that was applied. `blame` returns the blame for two leases whose writes came
    /// in the wrong order.
    pub(super) fn applied(
        &mut self,
        facts: &Facts,
        by: AttemptId,
        (based_on, version): (BasedOn, u32),
        blame: impl FnOnce((AttemptId, AttemptId)) -> Blamed,
    ) {
        // A blind write is computed from no value, so it loses no update.
        if let Some(read) = based_on.version() {
            self.found.held();
            let since = self.versions.iter().rev().take_while(|it| it.0 > read);
            let lost = since.map(|it| it.1).find(|&writer| writer != by);
            if let Some(writer) = lost.filter(|_| !self.found.is_final()) {
                let pair = facts.leases.in_order(writer, by);
                self.found.violated(Violation::of_two(pair, facts.now_ns, blame(pair)));
            }
        }
        self.versions.push((version, by));
    }

    pub(super) fn judge(&self) -> Judgement {
        self.found
    }
}
