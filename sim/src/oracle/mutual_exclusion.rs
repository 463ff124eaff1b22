//! The beliefs of two different leases are disjoint.
//!
//! [`Beliefs`](super::beliefs::Beliefs) says what a belief is and finds the overlaps.

use super::facts::Facts;
use super::verdict::Judgement;

/// What was found, once the run is over.
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
