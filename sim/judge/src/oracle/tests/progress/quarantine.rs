//! Waits for the end of a quarantine.

use super::*;

#[test]
fn quarantine_is_waited_for_but_not_for_longer_than_a_lease() {
    let eligible = |seconds: u64| {
        let mut tale = Tale::new();
        tale.at(1_000).heals();
        for at in ['A', 'B', 'C'] {
            let from_local_ns = (1_000 + seconds) * 1_000 * MS;
            let (client, node) = (PROBE.client, node(at));
            tale.tell(EventKind::Eligible { client, node, from_local_ns });
        }
        tale
    };
    assert_eq!(eligible(8).at(8_000 + BOUND_MS).finds(DeadlockFree), Judgement::Vacuous);
    assert!(eligible(8).at(8_001 + BOUND_MS).finds(DeadlockFree).is_violated());
    assert!(eligible(900).at(1_001 + 2 * BOUND_MS).finds(DeadlockFree).is_violated());
}

#[test]
fn the_end_of_a_quarantine_need_not_be_pushed_to_a_sleeper() {
    let counts_from = |tale: &mut Tale, from_ms: u64| {
        for at in ['A', 'B', 'C'] {
            let (client, node, from_local_ns) = (C1.client, node(at), from_ms * MS);
            tale.tell(EventKind::Eligible { client, node, from_local_ns });
        }
    };
    let asks_again_at = |ms: u64| {
        let mut tale = Tale::new();
        counts_from(&mut tale, 1_009_000);
        tale.at(10).begins(C1).at(20).settles(C1, Settlement::Quarantined);
        counts_from(tale.at(100), 0);
        let again = AttemptId { number: 2, ..C1 };
        tale.at(ms).begins(again).at(ms + 5).settles(again, Settlement::Taken);
        tale.finds(DeadlockFree)
    };
    assert_eq!(asks_again_at(9_010), Judgement::Vacuous);
    assert!(asks_again_at(9_010 + BOUND_MS).is_violated());
}

/// C1's clock is a tenth slow. It attempts after the bound of a quarantine that is `seconds` long by this
/// clock, fails for it, and sleeps for 900 ms.
fn blamed_for_a_quarantine_of(seconds: u64) -> Vec<String> {
    let mut tale = Tale::new();
    tale.runs_at(host(C1), ClockKind::Boot, -100_000_000);
    let from_local_ns = tale.reads_ns(host(C1), ClockKind::Boot) + seconds * 1_000 * MS;
    for at in ['A', 'B', 'C'] {
        tale.tell(EventKind::Eligible { client: C1.client, node: node(at), from_local_ns });
    }
    tale.at(10_700).begins(C1).at(10_705).settles(C1, Settlement::Quarantined);
    let again = AttemptId { number: 2, ..C1 };
    tale.at(11_605).begins(again).at(11_610).settles(again, Settlement::Quarantined);
    tale.blame(DeadlockFree)
}

#[test]
fn a_clock_is_blamed_for_a_quarantine_that_it_prolongs() {
    assert_eq!(blamed_for_a_quarantine_of(10), ["clock(c1)"]);
    assert_eq!(blamed_for_a_quarantine_of(9), ["none"], "it has ended before the attempt");
    assert_eq!(blamed_for_a_quarantine_of(20), ["none"], "it is too long by any clock");
}
