//! Tests of no-lost-update and fenced-order.

use super::tale::{C1, C2, MS, Tale};
use crate::history::{AttemptId, KeyEnd, Writer};
use crate::oracle::Judgement;
use crate::scenario::Property::{FencedOrder, NoLostUpdate};

/// No version, as histories store it.
const BLIND: u32 = u32::MAX;

/// C1 acts as in `sent`; then its keys expire, and C2 is granted the lock and writes first.
fn overtaken(sent: impl FnOnce(&mut Tale) -> &mut Tale) -> Tale {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").checks(C1, true);
    sent(&mut tale);
    tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC").checks(C2, true);
    tale.sends_write(C2, 0, 0).at(10_500).write_lands(C2, (0, 1), 0);
    tale
}

#[test]
fn without_writes_both_are_vacuous() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC");
    assert_eq!(tale.finds(NoLostUpdate), Judgement::Vacuous);
    assert_eq!(tale.finds(FencedOrder), Judgement::Vacuous);
}

#[test]
fn writes_in_the_order_of_the_leases_are_right() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").sends_write(C1, 0, 0).write_lands(C1, (0, 1), 0).releases(C1);
    tale.at(100).unlocks(C1, "ABC").acquires(C2, "ABC");
    tale.sends_write(C2, 1, 0).write_lands(C2, (1, 2), 0);
    assert_eq!(tale.finds(NoLostUpdate), Judgement::Holds);
    assert_eq!(tale.finds(FencedOrder), Judgement::Holds);
}

#[test]
fn a_holder_may_write_twice_on_what_it_read() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").write_lands(C1, (0, 1), 0).write_lands(C1, (0, 2), 0);
    assert_eq!(tale.finds(NoLostUpdate), Judgement::Holds);
}

#[test]
fn a_write_that_was_delayed_is_blamed_on_the_delay() {
    let mut tale = overtaken(|tale| tale.at(9_800).sends_write(C1, 0, 0));
    tale.at(11_800).write_lands(C1, (0, 2), 0);
    for property in [NoLostUpdate, FencedOrder] {
        let found = tale.violation(property);
        assert_eq!((found.from_ns, found.first, found.second), (11_800 * MS, C1, Some(C2)));
        assert_eq!(tale.blame(property), ["delayed-write"], "{property:?}");
    }
}

#[test]
fn a_blind_write_loses_no_update_and_yet_comes_out_of_order() {
    let mut tale = overtaken(|tale| tale.at(9_800).sends_write(C1, BLIND, 0));
    tale.at(11_800).write_lands(C1, (BLIND, 2), 0);
    assert_eq!(tale.finds(NoLostUpdate), Judgement::Holds);
    assert!(tale.finds(FencedOrder).is_violated());
}

#[test]
fn an_update_by_the_later_holder_can_be_the_one_that_loses() {
    let mut tale = overtaken(|tale| tale.at(9_800).sends_write(C1, 0, 0));
    tale.at(10_600).write_lands(C1, (BLIND, 2), 0).write_lands(C2, (1, 3), 0);
    assert_eq!(tale.violation(NoLostUpdate).first, C1);
    assert_eq!(tale.blame(NoLostUpdate), ["delayed-write"]);
}

#[test]
fn a_stop_before_the_write_left_is_blamed() {
    let mut tale = overtaken(|tale| tale.at(100).stops(C1));
    tale.at(15_000).continues(C1).sends_write(C1, 0, 0).write_lands(C1, (0, 2), 0);
    assert_eq!(tale.blame(NoLostUpdate), ["pause"]);
    assert_eq!(tale.blame(FencedOrder), ["pause"]);
}

#[test]
fn a_stop_excuses_a_write_that_would_have_been_in_time() {
    let stopped = |from_ms: u64, to_ms: u64, sent_ms: u64| {
        let mut tale = overtaken(|tale| tale.at(from_ms).stops(C1).at(to_ms).continues(C1));
        tale.at(sent_ms).sends_write(C1, 0, 0).write_lands(C1, (0, 2), 0).blame(NoLostUpdate)
    };
    assert_eq!(stopped(100, 9_000, 15_000), ["application"], "the stop was over before the lease");
    assert_eq!(stopped(5_000, 9_900, 12_000), ["pause"]);
    assert_eq!(stopped(5_000, 9_900, 15_000), ["application"], "too late without the stop, too");
}

#[test]
fn a_look_after_the_stop_ends_its_excuse() {
    let mut tale = overtaken(|tale| tale.at(100).stops(C1));
    tale.at(15_000).continues(C1).checks(C1, false);
    tale.at(15_001).sends_write(C1, 0, 0).write_lands(C1, (0, 2), 0);
    assert_eq!(tale.blame(NoLostUpdate), ["application"]);
}

#[test]
fn a_write_during_an_overlap_of_sections_has_its_blame() {
    let written = |at_ms| {
        let mut tale = overtaken(|tale| tale.enters(C1).at(9_800).stops(C1));
        tale.enters(C2).continues(C1).at(at_ms).sends_write(C1, 0, 0);
        tale.write_lands(C1, (0, 2), 0).blame(NoLostUpdate)
    };
    assert_eq!(written(10_598), ["pause"]);
    assert_eq!(written(10_599), ["application"]);
}

#[test]
fn an_application_that_wrote_late_unasked_is_blamed() {
    let mut tale = overtaken(|tale| tale);
    tale.at(15_000).sends_write(C1, 0, 0).write_lands(C1, (0, 2), 0);
    assert_eq!(tale.blame(NoLostUpdate), ["application"]);
}

#[test]
fn leases_that_overlapped_lend_their_blame() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").sends_write(C1, 0, 0);
    tale.at(1_000).ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
    tale.at(1_100).acquires(C2, "CDE").sends_write(C2, 0, 0).write_lands(C2, (0, 1), 0);
    tale.at(1_200).write_lands(C1, (0, 2), 0);
    assert_eq!(tale.blame(NoLostUpdate), ["amnesia(C)"]);
}

#[test]
fn sections_that_overlapped_lend_their_blame() {
    let mut tale = overtaken(|tale| tale.enters(C1).sends_write(C1, 0, 0).stops(C1));
    tale.enters(C2).at(11_800).write_lands(C1, (0, 2), 0);
    assert_eq!(tale.blame(NoLostUpdate), ["pause"]);
}

#[test]
fn cause_of_an_overlap_precedes_cause_of_a_late_write() {
    let mut tale = overtaken(|tale| tale.enters(C1));
    tale.enters(C2).stops(C1).at(11_000).continues(C1);
    tale.sends_write(C1, 0, 0).write_lands(C1, (0, 2), 0);
    assert_eq!(tale.blame(NoLostUpdate), ["application"]);
}

/// C1 and then C2 get a lease with the fencing tokens `first` and `second`.
fn fenced(first: u64, second: u64) -> Tale {
    let mut tale = Tale::new();
    let delivers = |tale: &mut Tale, id: AttemptId, token| {
        let now_ms = if id == C1 { 0 } else { 10_100 };
        tale.at(now_ms).begins(id).sets(id, "ABC").at(now_ms + 2).decides(id, "ABC");
        let deadline_ns = tale.deadline_ns(id);
        tale.delivers_until(id, deadline_ns, token);
    };
    delivers(&mut tale, C1, first);
    tale.at(10_100).expires(C1, "ABC");
    delivers(&mut tale, C2, second);
    tale
}

#[test]
fn tokens_grow_with_the_leases_and_are_never_shared() {
    assert_eq!(fenced(33, 34).finds(FencedOrder), Judgement::Holds);
    assert_eq!(fenced(33, 33).blame(FencedOrder), ["none"]);
    assert_eq!(fenced(34, 33).blame(FencedOrder), ["none"]);
}

#[test]
fn concurrent_leases_may_have_tokens_in_any_order() {
    let mut tale = Tale::new();
    tale.begins(C1).begins(C2).at(1).sets(C1, "ABC").sets(C2, "DE").decides(C1, "ABC");
    let deadline_ns = tale.deadline_ns(C1);
    tale.delivers_until(C1, deadline_ns, 2).decides(C2, "DE").delivers_until(C2, deadline_ns, 1);
    assert_eq!(tale.finds(FencedOrder), Judgement::Holds);
}

#[test]
fn a_token_reported_late_is_compared_with_later_leases() {
    let late_token = |token| {
        let mut tale = Tale::new();
        tale.begins(C1).at(1).sets(C1, "ABC").at(2).decides(C1, "ABC");
        tale.at(10_100).expires(C1, "ABC").begins(C2).sets(C2, "ABC").at(10_102);
        let (first_ns, second_ns) = (tale.deadline_ns(C1), tale.deadline_ns(C2));
        tale.decides(C2, "ABC").delivers_until(C2, second_ns, 33);
        tale.delivers_until(C1, first_ns, token).finds(FencedOrder)
    };
    assert_eq!(late_token(32), Judgement::Holds);
    assert!(late_token(34).is_violated());
}

#[test]
fn the_tokens_of_applied_writes_never_decrease() {
    let mut tale = fenced(33, 34);
    tale.write_lands(C1, (BLIND, 1), 33).write_lands(C1, (BLIND, 2), 33);
    tale.write_lands(C2, (BLIND, 3), 34);
    assert_eq!(tale.finds(FencedOrder), Judgement::Holds);
    tale.sends_write(C1, BLIND, 33).write_lands(C1, (BLIND, 4), 33);
    assert_eq!(tale.blame(FencedOrder), ["application"]);
}
