//! Clients that sleep on although the lock is free. The node timeout is 50 ms, a round trip 2 ms, and
//! retry delays are 5 to 200 ms.

use super::super::tale::{C1, C1_AGAIN, C2, MS, Tale, node};
use super::SLEEP_MS;
use crate::history::{AttemptId, EventKind, FaultId, Settlement};
use crate::oracle::Judgement;
use crate::scenario::Property::DeadlockFree;
use crate::scenario::Span;

/// A client that hears pushes attempts 100 ms, two delayed looks of 128 ms, two looks of 14 ms, a
/// window of 5 ms, and three twentieths of its wait after the lock is free. This is so long if the
/// lock is free from the beginning, and the attempt takes 50 ms.
const WAKE_MS: u64 = 466;

/// Returns the judgement of a wait that the failure of `id` begins at 50 ms, and that lasts for `ms`.
fn waits(tale: &mut Tale, id: AttemptId, ms: u64) -> Judgement {
    tale.begins(id).at(50).settles(id, Settlement::Taken).at(50 + ms).finds(DeadlockFree)
}

/// How much later a client may attempt if its window is as long as the longest retry delay.
const LONGEST_EXCESS_MS: u64 = 229;

/// Returns by how many milliseconds more than [`WAKE_MS`] the bound of a wait exceeds it that begins
/// after what `tale` tells.
fn excess_ms(mut tale: impl FnMut() -> Tale, id: AttemptId) -> u64 {
    let mut bounds_ms = WAKE_MS..WAKE_MS + 1_000;
    let most_ms = bounds_ms.find(|ms| waits(&mut tale(), id, ms + 1).is_violated());
    most_ms.unwrap_or(u64::MAX) - WAKE_MS
}

#[test]
fn a_client_that_sleeps_on_while_the_lock_is_free_violates_it() {
    for (deaf, bound_ms) in [(true, SLEEP_MS), (false, WAKE_MS)] {
        let mut tale = Tale::new();
        tale.scenario.clients[0].deaf = deaf;
        assert_eq!(waits(&mut tale, C1, bound_ms), Judgement::Vacuous);
        tale.at(51 + bound_ms).begins(C1_AGAIN);
        let found = tale.violation(DeadlockFree);
        assert_eq!((found.from_ns, found.first.client), (50 * MS, C1.client));
        assert_eq!(tale.blame(DeadlockFree), ["none"]);
    }
}

#[test]
fn a_client_hears_nothing_on_a_half_open_connection() {
    let mut tale = Tale::new();
    tale.with_fault("partition = { between = [['c1'], ['A', 'B', 'C']], lost = 'silent' }");
    tale.tell(EventKind::FaultBegan { fault: FaultId(0) });
    tale.tell(EventKind::FaultEnded { fault: FaultId(0) });
    assert_eq!(waits(&mut tale, C1, SLEEP_MS), Judgement::Vacuous);
}

#[test]
fn keys_on_a_majority_excuse_a_sleep_until_they_end() {
    let keys_until = |at_ms: u64| {
        let mut tale = Tale::new();
        tale.begins(C2).sets(C2, "ABC");
        tale.begins(C1).at(50).settles(C1, Settlement::Taken);
        tale.at(at_ms).expires(C2, "C");
        tale
    };
    let wake_ms = WAKE_MS + 697;
    assert_eq!(keys_until(4_000).at(4_000 + wake_ms).finds(DeadlockFree), Judgement::Vacuous);
    assert!(keys_until(4_000).at(4_001 + wake_ms).finds(DeadlockFree).is_violated());
}

#[test]
fn attempts_that_met_others_widen_the_window() {
    let met = |count: u16, outcome: Settlement| {
        move || {
            let mut tale = Tale::new();
            for number in 10..10 + count {
                let id = AttemptId { number, ..C1 };
                tale.begins(id).settles(id, outcome);
            }
            tale
        }
    };
    let (taken, split) = (Settlement::Taken, Settlement::Split);
    assert_eq!(excess_ms(met(0, taken), C1), 0);
    assert_eq!(excess_ms(met(1, taken), C1), 6, "the second attempt met another one");
    assert_eq!(excess_ms(met(1, split), C1), 18, "so did both");
    assert_eq!(excess_ms(met(80, split), C1), LONGEST_EXCESS_MS);
}

#[test]
fn the_tasks_of_a_process_share_a_window() {
    let judged = |task_of: Option<&str>| {
        let met = || {
            let mut tale = Tale::new();
            tale.scenario.clients[1].task_of = task_of.map(String::from);
            tale.begins(C2).settles(C2, Settlement::Split);
            tale.tell(EventKind::GaveUp { client: C2.client });
            tale
        };
        excess_ms(met, C1)
    };
    assert_eq!((judged(None), judged(Some("c1"))), (0, 6));
}

#[test]
fn a_client_that_has_stopped_may_take_any_time_for_a_round_trip() {
    let judged = |acquire: &str| {
        let stopped = || {
            let mut tale = Tale::new();
            tale.scenario.lock.node_timeout = Span::from_ms(150);
            let step = format!("acquire = {acquire}");
            tale.scenario.clients[0].steps.push(toml::from_str(&step).expect("a step"));
            tale.at(1).stops(C1).continues(C1);
            tale
        };
        excess_ms(stopped, C1)
    };
    assert_eq!(judged("{ wait = '30s' }"), LONGEST_EXCESS_MS);
    let by_attempts_ms = LONGEST_EXCESS_MS + 118;
    assert_eq!(judged("{ attempts = 3 }"), by_attempts_ms, "300 ms instead of 200 ms");
    assert_eq!(judged("{ at-once = true }"), by_attempts_ms);
}

#[test]
fn a_node_that_does_not_answer_delays_looks_by_a_node_timeout() {
    let stalled = || {
        let mut tale = Tale::new();
        tale.tell(EventKind::NodeStalled { node: node('E') });
        tale
    };
    assert_eq!(excess_ms(stalled, C1), LONGEST_EXCESS_MS + 113);
}
