//! Clients that no node wakes.

use super::super::tale::{C1, Tale};
use super::{BOUND_MS, keeps_failing};
use crate::oracle::Judgement;
use crate::scenario::Property::DeadlockFree;

#[test]
fn a_client_that_nothing_wakes_waits_longer_between_attempts() {
    let judged = |deaf: bool, until_ms: u64| {
        let mut tale = Tale::new();
        tale.scenario.clients[0].deaf = deaf;
        keeps_failing(&mut tale, C1, (0, until_ms));
        tale.finds(DeadlockFree)
    };
    assert!(judged(false, BOUND_MS + 100).is_violated());
    assert_eq!(judged(true, BOUND_MS + 900), Judgement::Vacuous);
    assert!(judged(true, BOUND_MS + 1_100).is_violated());
}
