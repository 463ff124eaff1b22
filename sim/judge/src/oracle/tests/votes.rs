//! Tests of sound-votes.

use super::tale::{C1, MS, Tale, node};
use crate::history::{Answer, EventKind, FaultId, KeyEnd, OpKind, Writer};
use crate::oracle::Judgement;
use crate::scenario::Property::SoundVotes;

/// C1 is granted the lock at 2 ms by all five nodes, and confirms all keys at 510 ms.
fn watched() -> Tale {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABCDE").at(510).knows(C1, "ABCDE", "ABCDE");
    tale
}

/// Of the lease that is watched, the key on A is evicted at 2 s.
fn evicted() -> Tale {
    let mut tale = watched();
    tale.at(2_000).ends_key(C1, "A", KeyEnd::Evicted, Writer::Nobody);
    tale
}

#[test]
fn a_lease_without_a_report_tests_nothing() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABCDE").at(3_000).releases(C1);
    assert_eq!(tale.finds(SoundVotes), Judgement::Vacuous);
    assert_eq!(watched().at(3_000).releases(C1).finds(SoundVotes), Judgement::Holds);
}

#[test]
fn a_key_that_is_gone_is_not_confirmed_for_long() {
    let judged = |ms| evicted().at(ms).knows(C1, "BCDE", "BCDE").finds(SoundVotes);
    assert_eq!(judged(2_016), Judgement::Holds);
    assert!(judged(2_017).is_violated());
    let late = evicted().at(2_017).releases(C1).violation(SoundVotes);
    assert_eq!((late.from_ns, late.to_ns), (2_000 * MS, 2_017 * MS));
    assert!(late.blamed.is_none());
    assert!(evicted().at(2_017).loses(C1).finds(SoundVotes).is_violated());
    assert!(evicted().at(2_017).kills(C1).finds(SoundVotes).is_violated());
    assert!(evicted().at(2_017).finds(SoundVotes).is_violated(), "at the end of the run");
}

#[test]
fn a_node_that_kept_the_key_is_possible() {
    assert!(watched().at(600).knows(C1, "ABCD", "ABCD").finds(SoundVotes).is_violated());
    assert_eq!(watched().at(600).knows(C1, "ABCD", "ABCDE").finds(SoundVotes), Judgement::Holds);
}

#[test]
fn a_key_that_is_there_is_confirmed_again() {
    let doubted =
        |ms| watched().at(600).knows(C1, "ABCD", "ABCDE").at(ms).releases(C1).finds(SoundVotes);
    assert_eq!(doubted(1_874), Judgement::Holds);
    assert!(doubted(1_875).is_violated());
}

#[test]
fn each_push_of_a_node_puts_its_key_in_doubt_again() {
    let doubted = |pushing, ms| {
        let mut tale = Tale::new();
        tale.with_fault(&format!("flush = {{ host = '{pushing}', database = 3 }}"));
        tale.acquires(C1, "ABCDE").at(510).knows(C1, "ABCDE", "ABCDE");
        tale.at(600).knows(C1, "ABCD", "ABCDE");
        tale.at(700).tell(EventKind::FaultBegan { fault: FaultId(0) });
        tale.at(ms).releases(C1).finds(SoundVotes)
    };
    assert_eq!(doubted('E', 1_974), Judgement::Holds);
    assert!(doubted('E', 1_975).is_violated());
    assert!(doubted('D', 1_875).is_violated());
}

#[test]
fn a_client_without_answers_confirms_no_vote() {
    let mut tale = Tale::new();
    tale.scenario.clients[0].deaf = true;
    tale.acquires(C1, "ABCDE").at(510).knows(C1, "", "ABCDE");
    assert_eq!(tale.at(5_000).releases(C1).finds(SoundVotes), Judgement::Holds);
    let mut tale = evicted();
    tale.scenario.clients[0].deaf = true;
    assert!(tale.at(5_000).releases(C1).finds(SoundVotes).is_violated());
}

#[test]
fn a_process_that_is_stopped_reports_nothing() {
    let mut tale = evicted();
    tale.at(2_001).stops(C1).at(4_000).continues(C1).at(4_050).knows(C1, "BCDE", "BCDE");
    assert_eq!(tale.finds(SoundVotes), Judgement::Holds);
}

#[test]
fn a_node_out_of_reach_stays_confirmed() {
    let mut tale = Tale::new();
    tale.with_fault("partition = { between = [['c1'], ['A']] }");
    tale.acquires(C1, "ABCDE").at(510).knows(C1, "ABCDE", "ABCDE");
    tale.at(1_000).tell(EventKind::FaultBegan { fault: FaultId(0) });
    tale.at(2_000).ends_key(C1, "A", KeyEnd::Evicted, Writer::Nobody);
    assert_eq!(tale.at(5_000).releases(C1).finds(SoundVotes), Judgement::Holds);
}

#[test]
fn a_lease_that_is_over_is_judged_no_more() {
    assert_eq!(evicted().at(9_898).loses(C1).finds(SoundVotes), Judgement::Holds);
}

#[test]
fn a_node_that_may_restart_behind_a_proxy_need_not_be_confirmed() {
    let mut tale = Tale::new();
    tale.with_fault("kill = { host = 'E', restart-after = '1ms', behind-a-proxy = true }");
    tale.acquires(C1, "ABCDE").at(510).knows(C1, "ABCD", "ABCDE").at(5_000).releases(C1);
    assert_eq!(tale.finds(SoundVotes), Judgement::Holds);
}

#[test]
fn a_wrong_clock_makes_a_node_seem_not_to_push() {
    let mut tale = Tale::new();
    tale.with_fault("clock-jump = { host = 'E', by = '-20s' }");
    tale.acquires(C1, "ABCDE").at(510).knows(C1, "ABCD", "ABCDE").at(5_000).releases(C1);
    assert_eq!(tale.finds(SoundVotes), Judgement::Holds);
}

#[test]
fn a_key_that_returned_is_missing_since_its_last_end() {
    let mut tale = evicted();
    let writer = Writer::Attempt(C1);
    tale.at(2_010).knows(C1, "BCDE", "BCDE").at(2_200);
    tale.tell(EventKind::KeyReturned { node: node('A'), writer, expires_wall_ms: u64::MAX });
    tale.at(2_300).knows(C1, "ABCDE", "ABCDE").at(5_000);
    tale.ends_key(C1, "A", KeyEnd::Evicted, Writer::Nobody).at(5_010).knows(C1, "BCDE", "BCDE");
    assert_eq!(tale.finds(SoundVotes), Judgement::Holds);
}

#[test]
fn reports_on_other_nodes_do_not_prolong_a_doubt() {
    let mut tale = watched();
    tale.at(600).knows(C1, "ABCD", "ABCDE").at(1_500).knows(C1, "ABC", "ABCDE");
    assert!(tale.at(1_875).releases(C1).finds(SoundVotes).is_violated());
}

/// The key that was evicted at 2 s is set again at 3 s; the client reports `possible` then.
fn set_again(possible: &str) -> Tale {
    let mut tale = evicted();
    tale.at(2_010).knows(C1, "BCDE", "BCDE").at(3_000).sets(C1, "A").knows(C1, "BCDE", possible);
    tale
}

#[test]
fn a_key_that_was_set_again_is_possible_once_the_client_knows() {
    assert_eq!(set_again("ABCDE").at(3_001).releases(C1).finds(SoundVotes), Judgement::Holds);
    assert!(set_again("BCDE").at(3_001).releases(C1).finds(SoundVotes).is_violated());
    let mut gone = set_again("ABCDE");
    gone.at(3_100).ends_key(C1, "A", KeyEnd::Evicted, Writer::Nobody);
    assert_eq!(gone.knows(C1, "BCDE", "BCDE").at(3_200).finds(SoundVotes), Judgement::Holds);
}

#[test]
fn a_key_that_was_set_again_is_confirmed_soon() {
    let left = |ms| set_again("ABCDE").at(ms).releases(C1).finds(SoundVotes);
    assert_eq!(left(4_274), Judgement::Holds);
    assert!(left(4_275).is_violated());
}

/// A SET that is written at 2.5 s, after the key on A was evicted, is executed at 3 s and not answered.
fn set_late() -> Tale {
    let mut tale = evicted();
    let set = tale.at(2_010).knows(C1, "BCDE", "BCDE").at(2_500).writes(C1, 'A', OpKind::Set);
    let change = (Writer::Nobody, Writer::Attempt(C1));
    tale.at(3_000).executes((set, C1, 'A', OpKind::Set), Answer::Yes, change);
    tale
}

#[test]
fn a_key_that_was_set_late_is_possible_once_it_is_pushed() {
    assert_eq!(set_late().at(3_016).releases(C1).finds(SoundVotes), Judgement::Holds);
    assert!(set_late().at(3_017).releases(C1).finds(SoundVotes).is_violated());
    let known =
        set_late().at(3_002).knows(C1, "BCDE", "ABCDE").at(3_017).releases(C1).finds(SoundVotes);
    assert_eq!(known, Judgement::Holds);
}

#[test]
fn a_node_that_pushes_nothing_may_have_a_key_unknown() {
    let mut tale = set_late();
    tale.scenario.clients[0].deaf = true;
    assert_eq!(tale.at(3_017).releases(C1).finds(SoundVotes), Judgement::Holds);
}
