//! Stops of clients whose keys keep others waiting.

use super::super::tale::{C1, C2, Tale};
use super::{BOUND_MS, keeps_failing};
use crate::history::AttemptId;
use crate::oracle::Judgement;
use crate::scenario::Property::DeadlockFree;

/// C1 waits while keys of C2's attempt are on C, D and E until `end_ms`. C2 is stopped from 1 s on, until
/// `continued_ms` if that is given.
fn waits(continued_ms: Option<u64>, end_ms: u64, until_ms: u64) -> Judgement {
    let mut tale = Tale::new();
    let again = |number| AttemptId { number, ..C1 };
    tale.begins(C2).sets(C2, "CDE");
    keeps_failing(&mut tale, C1, (100, 1_000));
    tale.at(1_000).stops(C2);
    let stopped_ms = continued_ms.unwrap_or(end_ms);
    keeps_failing(&mut tale, again(50), (1_000, stopped_ms));
    if continued_ms.is_some() {
        tale.at(stopped_ms).continues(C2);
    }
    keeps_failing(&mut tale, again(200), (stopped_ms, end_ms));
    tale.at(end_ms).expires(C2, "CDE");
    keeps_failing(&mut tale, again(300), (end_ms, until_ms));
    tale.finds(DeadlockFree)
}

#[test]
fn keys_of_a_stopped_client_excuse_until_they_end() {
    assert_eq!(waits(None, 9_000, 8_900 + BOUND_MS), Judgement::Vacuous);
    assert!(waits(None, 9_000, 9_100 + BOUND_MS).is_violated());
}

#[test]
fn a_client_that_continues_has_the_time_to_release_its_keys() {
    assert_eq!(waits(Some(9_000), 9_500, 9_400 + BOUND_MS), Judgement::Vacuous);
    assert!(waits(Some(9_000), 10_000, 9_000 + BOUND_MS).is_violated());
}
