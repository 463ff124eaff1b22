//! Extension of leases, by the specification and by weaker rules.

use lock_judge::history::Refusal;

use super::{Bench, EXTEND, MS, SET, TTL_MS, releases};
use crate::subject::ReplyValue;

#[test]
fn a_strict_extension_takes_a_majority_and_counts_from_its_t1() {
    let mut bench = Bench::granted("redlock-literal");
    bench.now_ms = 5_000;
    assert_eq!(bench.extend(), [0, 1, 2, 3, 4].map(|node| (node, EXTEND)));
    bench.now_ms = 5_040;
    bench.answer_each(0..2, EXTEND, ReplyValue::Integer(1));
    assert_eq!(bench.extended(), None);
    bench.answer(2, EXTEND, ReplyValue::Integer(1));
    let (counted, deadline_ns) = bench.extended().unwrap().unwrap();
    assert_eq!((counted.bits(), deadline_ns), (0b00111, (5_000 + TTL_MS - 102) * MS));
}

#[test]
fn an_extension_gives_up_the_drift_of_its_own_ttl() {
    let mut bench = Bench::granted("redlock-literal");
    bench.now_ms = 5_000;
    assert_eq!(bench.client.extend(2 * TTL_MS * MS, bench.now()), Ok(()));
    bench.answer_each(0..3, EXTEND, ReplyValue::Integer(1));
    let (_, deadline_ns) = bench.extended().unwrap().unwrap();
    assert_eq!(deadline_ns, (5_000 + 2 * TTL_MS - 202) * MS);
}

#[test]
fn a_failed_extension_leaves_the_lease_as_it_was() {
    let mut bench = Bench::granted("redlock-literal");
    bench.now_ms = 5_000;
    bench.extend();
    bench.answer_each(0..3, EXTEND, ReplyValue::Integer(0));
    assert_eq!(bench.actions().len(), 1, "nothing is released");
    bench.now_ms = TTL_MS - 103;
    assert!(bench.client.is_alive(bench.now()));
    bench.now_ms = TTL_MS - 102;
    assert!(!bench.client.is_alive(bench.now()));
}

#[test]
fn a_node_that_does_not_answer_an_extension_is_given_up() {
    let mut bench = Bench::granted("redlock-literal");
    bench.now_ms = 5_000;
    bench.extend();
    bench.answer_each(0..2, EXTEND, ReplyValue::Integer(1));
    bench.at(5_050);
    assert_eq!(bench.extended(), Some(None));
}

#[test]
fn answer_to_an_earlier_extension_does_not_count_for_the_next() {
    let mut bench = Bench::granted("redlock-literal");
    bench.now_ms = 5_000;
    bench.extend();
    bench.at(5_050);
    assert_eq!(bench.extended(), Some(None));
    bench.extend();
    bench.answer_each(0..3, EXTEND, ReplyValue::Integer(1));
    assert_eq!(bench.extended(), None, "these were the first round's");
    bench.answer_each(0..3, EXTEND, ReplyValue::Integer(1));
    assert!(bench.extended().unwrap().is_some());
}

#[test]
fn strict_extensions_end_with_the_old_deadline() {
    let mut bench = Bench::granted("redlock-literal");
    bench.now_ms = TTL_MS - 120;
    bench.extend();
    bench.answer_each(0..2, EXTEND, ReplyValue::Integer(1));
    bench.now_ms = TTL_MS - 102;
    bench.answer(2, EXTEND, ReplyValue::Integer(1));
    assert_eq!(bench.extended(), Some(None));
    assert_eq!(bench.client.extend(TTL_MS * MS, bench.now()), Err(Refusal::Lost), "none is sent");
}

#[test]
fn extensions_are_bounded_unless_they_are_not() {
    let used_up = Err(Refusal::TooMany);
    for (name, third) in [("redlock-literal", used_up), ("redlock-extend-unlimited", Ok(()))] {
        let mut bench = Bench::granted(name);
        for _ in 0..2 {
            bench.extend();
            bench.answer_each(0..5, EXTEND, ReplyValue::Integer(1));
            assert!(bench.extended().unwrap().is_some());
        }
        assert_eq!(bench.client.extend(TTL_MS * MS, bench.now()), third, "{name}");
    }
}

#[test]
fn one_node_is_enough_for_a_minority_extension() {
    let mut bench = Bench::granted("redlock-extend-minority");
    bench.extend();
    bench.answer(4, EXTEND, ReplyValue::Integer(1));
    assert_eq!(bench.extended().unwrap().unwrap().0.bits(), 0b10000);
}

#[test]
fn recreating_extension_sets_missing_keys_after_the_deadline() {
    let mut bench = Bench::granted("redlock-extend-recreates");
    bench.now_ms = 11_000;
    bench.extend();
    // The late reply to the acquisition.
    bench.answer(4, SET, ReplyValue::Ok);
    bench.answer_each(0..3, EXTEND, ReplyValue::Integer(0));
    assert_eq!(bench.asked(), [(0, SET), (1, SET), (2, SET)]);
    bench.answer_each(0..2, SET, ReplyValue::Ok);
    assert_eq!(bench.extended(), None);
    bench.answer(2, SET, ReplyValue::Ok);
    assert_eq!(bench.extended().unwrap().unwrap().0.bits(), 0b00111);
    assert!(bench.client.is_alive(bench.now()));
}

#[test]
fn a_deadline_from_the_reply_is_later_than_the_keys_allow() {
    let mut bench = Bench::granted("redlock-extend-from-reply");
    bench.now_ms = 5_000;
    bench.extend();
    bench.now_ms = 5_045;
    bench.answer_each(0..3, EXTEND, ReplyValue::Integer(1));
    assert_eq!(bench.extended().unwrap().unwrap().1, (5_045 + TTL_MS - 102) * MS);
}

#[test]
fn an_unchecked_extension_succeeds_after_everything_is_over() {
    let mut bench = Bench::granted("redlock-extend-unchecked");
    bench.now_ms = 9_000;
    bench.extend();
    bench.now_ms = 20_000;
    bench.answer_each(0..3, EXTEND, ReplyValue::Integer(1));
    assert!(bench.extended().unwrap().is_some());
}

#[test]
fn failed_extension_that_unlocks_leaves_the_belief() {
    let mut bench = Bench::granted("redlock-extend-unlocks");
    bench.extend();
    bench.answer_each(0..3, EXTEND, ReplyValue::Integer(0));
    assert_eq!(releases(&bench.actions()), 5);
    assert!(bench.client.is_alive(bench.now()));
}
