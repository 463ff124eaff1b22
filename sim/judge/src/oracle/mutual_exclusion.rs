//! The beliefs of two different leases are disjoint.
//!
//! [`Beliefs`](super::beliefs::Beliefs) defines beliefs and finds their overlaps.

use super::facts::Facts;
use super::verdict::Judgement;

/// Returns the judgement of a finished run.
pub(super) fn judge(facts: &Facts) -> Judgement {
    let mut found = if facts.beliefs.seen() { Judgement::Holds } else { Judgement::Vacuous };
    for overlap in facts.beliefs.overlaps().iter() {
        let pair = facts.leases.in_order(overlap.first, overlap.second);
        found.violated(overlap.violation(pair, overlap.blamed));
    }
    found
}
