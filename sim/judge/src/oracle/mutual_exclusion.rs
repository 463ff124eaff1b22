//! The beliefs of two different leases are disjoint.
//!
//! [`Beliefs`](super::beliefs::Beliefs) defines beliefs and finds their overlaps.

use super::facts::Facts;
use super::verdict::Judgement;

/// Returns the judgement of a finished run.
pub(super) fn judge(facts: &Facts) -> Judgement {
    match facts.beliefs.overlaps().first() {
        Some(overlap) => {
            let pair = facts.leases.in_order(overlap.first, overlap.second);
            Judgement::Violated(overlap.violation(pair, overlap.blamed))
        }
        None if facts.beliefs.seen() => Judgement::Holds,
        None => Judgement::Vacuous,
    }
}
