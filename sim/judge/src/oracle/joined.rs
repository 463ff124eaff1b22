//! Joins what the oracles of several locks have found in one run.

use super::{Judgement, Measured, Verdicts, Violation};
use crate::scenario::{Property, Quantity};

/// Joins the verdicts of two groups of locks: a property is violated if one violates it, and holds if
/// one has put it to the test.
pub(super) fn joined_verdicts(ones: Verdicts, others: Verdicts) -> Verdicts {
    let mut all = Verdicts::default();
    for property in Property::ALL {
        all.set(property, joined(ones.of(property), others.of(property)));
    }
    all
}

fn joined(one: Judgement, other: Judgement) -> Judgement {
    match (one, other) {
        (Judgement::Violated(one), Judgement::Violated(other)) => {
            Judgement::Violated(if goes_first(&other, &one) { other } else { one })
        }
        (violated @ Judgement::Violated(_), _) | (_, violated @ Judgement::Violated(_)) => violated,
        (Judgement::Holds, _) | (_, Judgement::Holds) => Judgement::Holds,
        (one, _) => one,
    }
}

/// Returns true if `one` is reported rather than `other`: a broken assumption that explains the
/// violation of one lock must not hide a wrong client at another. Otherwise the earlier goes first.
fn goes_first(one: &Violation, other: &Violation) -> bool {
    let key = |it: &Violation| (!it.blamed.is_none(), it.from_ns);
    key(one) < key(other)
}

/// Joins the quantities of two groups of locks.
pub(super) fn joined_measured(ones: Measured, others: Measured) -> Measured {
    let mut all = Measured::default();
    for quantity in Quantity::ALL {
        let (one, other) = (ones.of(quantity), others.of(quantity));
        let either = |join: fn(u64, u64) -> u64| match (one, other) {
            (Some(one), Some(other)) => Some(join(one, other)),
            (one, other) => one.or(other),
        };
        let value = match quantity {
            // Of a lock that was asked for and has no value, an acquisition had no lease.
            Quantity::GrantedAt if has_ungranted(&ones) || has_ungranted(&others) => None,
            Quantity::AttemptsPerLock
            | Quantity::Bypasses
            | Quantity::CommandsPerLock
            | Quantity::GrantedAt
            | Quantity::LeaseKept
            | Quantity::PollsInASecond
            | Quantity::AttemptsInVain
            | Quantity::ReadsInASecond => either(u64::max),
            Quantity::BeliefOverlap
            | Quantity::BeliefWithoutMajority
            | Quantity::Commands
            | Quantity::LeasesLost
            | Quantity::SectionOverlap
            | Quantity::SectionWithoutLease
            | Quantity::SectionWithoutMajority
            | Quantity::VotesMisjudged
            | Quantity::WaitWithoutHolder => either(u64::saturating_add),
        };
        all.set(quantity, value);
    }
    all
}

fn has_ungranted(locks: &Measured) -> bool {
    locks.of(Quantity::WaitWithoutHolder).is_some() && locks.of(Quantity::GrantedAt).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{AttemptId, HostId};
    use crate::oracle::{Blame, Blamed};

    fn violated(at_ns: u64, blamed: Blamed) -> Judgement {
        Judgement::Violated(Violation::of_one(AttemptId::default(), at_ns, blamed))
    }

    #[test]
    fn one_violation_is_enough_and_one_test_too() {
        let found = violated(7, Blamed::NONE);
        assert_eq!(joined(Judgement::Holds, found), found);
        assert_eq!(joined(found, Judgement::Vacuous), found);
        assert_eq!(joined(Judgement::Vacuous, Judgement::Holds), Judgement::Holds);
        assert_eq!(joined(Judgement::Vacuous, Judgement::Vacuous), Judgement::Vacuous);
    }

    #[test]
    fn the_earlier_violation_is_told_unless_it_hides_the_client() {
        let clock = Blamed::just(Blame::Clock(HostId(0)));
        assert_eq!(joined(violated(2, clock), violated(1, clock)), violated(1, clock));
        let (late, early) = (violated(2, Blamed::NONE), violated(1, clock));
        assert_eq!((joined(late, early), joined(early, late)), (late, late));
    }

    fn measured(values: &[(Quantity, u64)]) -> Measured {
        let mut measured = Measured::default();
        values.iter().for_each(|&(quantity, value)| measured.set(quantity, Some(value)));
        measured
    }

    #[test]
    fn times_add_up_and_extremes_remain() {
        let one = measured(&[(Quantity::BeliefOverlap, 2), (Quantity::LeaseKept, 5)]);
        let other = measured(&[(Quantity::BeliefOverlap, 3), (Quantity::LeaseKept, 4)]);
        let both = measured(&[(Quantity::BeliefOverlap, 5), (Quantity::LeaseKept, 5)]);
        assert_eq!(joined_measured(one, other), both);
    }

    #[test]
    fn one_lock_without_a_lease_leaves_no_last_grant() {
        let granted = measured(&[(Quantity::GrantedAt, 9), (Quantity::WaitWithoutHolder, 1)]);
        let unasked = measured(&[]);
        let refused = measured(&[(Quantity::WaitWithoutHolder, 1)]);
        assert_eq!(joined_measured(granted, unasked).of(Quantity::GrantedAt), Some(9));
        assert_eq!(joined_measured(granted, refused).of(Quantity::GrantedAt), None);
    }
}
