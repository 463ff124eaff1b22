//! The bound within which every attempt settles.

use super::*;

/// Judges an attempt that cannot be granted and settles after `ms`.
fn settles_after(ms: u64) -> Judgement {
    let mut tale = Tale::new();
    tale.begins(C1).at(ms).settles(C1, Settlement::TooFewNodes).finds(FaultTolerant)
}

#[test]
fn every_attempt_settles_within_its_bound() {
    // Five node timeouts of 50 ms, two round trips of 2 ms, and 10 ms.
    assert_eq!(settles_after(264), Judgement::Holds);
    assert!(settles_after(265).is_violated());
}

#[test]
fn attempt_that_never_settles_violates_it_unless_it_died() {
    assert!(Tale::new().begins(C1).at(265).finds(FaultTolerant).is_violated());
    let mut early = Tale::new();
    assert_eq!(early.begins(C1).at(264).finds(FaultTolerant), Judgement::Vacuous);
    let mut dead = Tale::new();
    assert_eq!(dead.begins(C1).at(10).kills(C1).at(900).finds(FaultTolerant), Judgement::Vacuous);
}

#[test]
fn the_bound_is_on_the_clients_clock_and_does_not_count_stops() {
    let mut slow = Tale::new();
    slow.runs_at(host(C1), ClockKind::Boot, -500_000_000).begins(C1).at(500);
    assert_eq!(slow.settles(C1, Settlement::TooFewNodes).finds(FaultTolerant), Judgement::Holds);
    let mut stopped = Tale::new();
    stopped.at(100).stops(C1).at(200).continues(C1).at(1_000).begins(C1);
    stopped.at(1_010).stops(C1).at(9_000).continues(C1).at(9_254);
    stopped.settles(C1, Settlement::TooFewNodes);
    assert_eq!(stopped.finds(FaultTolerant), Judgement::Holds);
}
