//! Tests of exclusive sections and sound grants.

use super::tale::{C1, C2, MS, Tale, node};
use crate::history::{Answer, CommandId, EventKind, KeyEnd, NodeIds, OpKind, Writer};
use crate::oracle::Judgement;
use crate::scenario::Property::{
    ExclusiveSection, MutualExclusion, SectionWithinLease, SoundGrant,
};

/// Kleppmann's pause: C1 is stopped inside its section while C2 has its own.
fn pause_in_section() -> Tale {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABCDE").checks(C1, true).enters(C1).at(100).stops(C1);
    tale.at(10_100).expires(C1, "ABCDE").acquires(C2, "ABCDE").checks(C2, true).enters(C2);
    tale.at(15_000).continues(C1).leaves(C1).at(16_000).leaves(C2);
    tale
}

#[test]
fn sections_that_follow_each_other_are_exclusive() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").enters(C1).at(500).leaves(C1).enters(C2).at(600).leaves(C2);
    assert_eq!(tale.finds(ExclusiveSection), Judgement::Holds);
}

#[test]
fn sections_overlap_until_the_first_is_left() {
    let found = pause_in_section().violation(ExclusiveSection);
    assert_eq!((found.from_ns, found.to_ns), (10_102 * MS, 15_000 * MS));
    assert_eq!((found.first, found.second), (C1, Some(C2)));
}

#[test]
fn a_kill_ends_a_section() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").enters(C1).at(500).kills(C1).enters(C2);
    assert_eq!(tale.finds(ExclusiveSection), Judgement::Holds);
}

#[test]
fn a_stop_after_the_last_look_is_blamed() {
    let mut tale = pause_in_section();
    assert_eq!(tale.blame(ExclusiveSection), ["pause"]);
    assert_eq!(tale.finds(MutualExclusion), Judgement::Holds);
}

#[test]
fn a_stop_between_the_look_and_the_section_is_blamed() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").checks(C1, true).stops(C1);
    tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC").enters(C2);
    tale.at(12_000).continues(C1).enters(C1).at(12_500);
    assert_eq!(tale.blame(ExclusiveSection), ["pause"]);
}

#[test]
fn an_application_that_looked_after_the_stop_is_to_blame_itself() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").stops(C1).at(9_000).continues(C1).checks(C1, true).enters(C1);
    tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC").enters(C2).at(10_500);
    assert_eq!(tale.blame(ExclusiveSection), ["application"]);
}

#[test]
fn a_stop_that_the_lease_outlasts_is_no_excuse() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").checks(C1, true).enters(C1).stops(C1).at(9_000).continues(C1);
    tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC").enters(C2).at(10_500);
    assert_eq!(tale.blame(ExclusiveSection), ["application"]);
}

/// C1 is stopped from 9 800 to 10 150 ms and leaves at `first_ms`. C2 enters at 10 102 ms and leaves
/// at `second_ms` if that is earlier than 10 150 ms, else never.
fn stop_across_the_deadline(first_ms: u64, second_ms: u64) -> Tale {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").checks(C1, true).enters(C1).at(9_800).stops(C1);
    tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC").checks(C2, true).enters(C2);
    if second_ms < 10_150 {
        tale.at(second_ms).leaves(C2);
    }
    tale.at(10_150).continues(C1).at(first_ms).leaves(C1);
    tale
}

#[test]
fn an_overlap_that_outlasts_the_excuse_is_the_applications() {
    assert_eq!(stop_across_the_deadline(10_248, 20_000).blame(ExclusiveSection), ["pause"]);
    assert_eq!(stop_across_the_deadline(10_249, 20_000).blame(ExclusiveSection), ["application"]);
}

#[test]
fn an_overlap_within_the_stop_is_excused_whatever_follows() {
    let mut tale = stop_across_the_deadline(15_000, 10_140);
    assert_eq!(tale.blame(ExclusiveSection), ["pause"]);
    assert_eq!(tale.blame(SectionWithinLease), ["application"]);
}

#[test]
fn an_overlap_at_the_end_of_the_run_is_blamed_as_it_is_then() {
    let until = |end_ms| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").checks(C1, true).enters(C1).at(9_800).stops(C1);
        tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC").enters(C2);
        tale.at(10_150).continues(C1).at(end_ms).blame(ExclusiveSection)
    };
    assert_eq!(until(10_248), ["pause"]);
    assert_eq!(until(10_249), ["application"]);
}

#[test]
fn a_delivery_past_the_deadline_is_no_look() {
    let mut tale = Tale::new();
    tale.begins(C1).at(1).sets(C1, "ABC").at(2).decides(C1, "ABC").stops(C1);
    tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC").enters(C2);
    tale.at(12_000).continues(C1).delivers(C1).enters(C1).at(12_500);
    assert_eq!(tale.blame(ExclusiveSection), ["pause"]);
}

#[test]
fn a_lease_that_was_over_when_decided_is_the_clients_fault() {
    let mut tale = Tale::new();
    tale.begins(C1).at(1).sets(C1, "ABC").stops(C1);
    tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC").enters(C2);
    tale.at(12_000).continues(C1).decides(C1, "ABC").delivers(C1).enters(C1).at(12_500);
    assert_eq!(tale.blame(ExclusiveSection), ["none"]);
    assert_eq!(tale.blame(SoundGrant), ["none"]);
}

#[test]
fn a_grant_by_a_majority_in_time_is_sound() {
    assert_eq!(Tale::new().acquires(C1, "ABC").finds(SoundGrant), Judgement::Holds);
}

#[test]
fn a_grant_by_a_minority_is_unsound() {
    let found = Tale::new().acquires(C1, "AB").violation(SoundGrant);
    assert_eq!((found.from_ns, found.first), (2 * MS, C1));
}

#[test]
fn a_vote_counts_when_it_was_given_and_heard() {
    let give = |heard: bool, given: bool| {
        let mut tale = Tale::new();
        tale.begins(C1).sets(C1, "AB");
        let command = tale.writes(C1, 'C', OpKind::Set);
        if given {
            let change = (Writer::Nobody, Writer::Attempt(C1));
            tale.executes((command, C1, 'C', OpKind::Set), Answer::Yes, change);
        }
        if heard {
            tale.answers(command, C1, 'C', Answer::Yes);
        }
        tale.decides(C1, "ABC").finds(SoundGrant)
    };
    assert_eq!(give(true, true), Judgement::Holds);
    assert!(matches!(give(false, true), Judgement::Violated(_)), "given, not heard");
    assert!(matches!(give(true, false), Judgement::Violated(_)), "a false answer");
}

#[test]
fn t1_is_read_before_the_first_write() {
    let mut tale = Tale::new();
    let command = CommandId(9);
    tale.tell(EventKind::Written { command, attempt: C1, node: node('A'), op: OpKind::Set });
    assert!(matches!(tale.acquires(C1, "ABC").finds(SoundGrant), Judgement::Violated(_)));
}

/// Judges a grant at 2 ms with this T2 and deadline, in ms of the client's clock. The clock reads
/// 1 000 002 ms.
fn granted(t2_ms: u64, deadline_ms: u64) -> Judgement {
    let mut tale = Tale::new();
    tale.begins(C1).at(1).sets(C1, "ABC").at(2).tell(EventKind::GrantDecided {
        attempt: C1,
        counted: NodeIds::from_bits(0b111),
        t2_local_ns: t2_ms * MS,
        deadline_local_ns: deadline_ms * MS,
    });
    tale.finds(SoundGrant)
}

#[test]
fn the_deadline_is_at_most_t1_and_ttl_less_drift() {
    assert_eq!(granted(1_000_002, 1_009_898), Judgement::Holds);
    assert!(matches!(granted(1_000_002, 1_009_899), Judgement::Violated(_)));
}

#[test]
fn something_is_left_at_the_decision_whatever_t2_claims() {
    assert_eq!(granted(1_000_002, 1_000_003), Judgement::Holds);
    assert!(matches!(granted(1_000_002, 1_000_002), Judgement::Violated(_)));
    assert!(matches!(granted(999_000, 1_000_002), Judgement::Violated(_)), "T2 read early");
}

#[test]
fn a_lease_without_ttl_on_one_node_is_sound() {
    let mut tale = Tale::new();
    tale.tell(EventKind::AttemptBegan {
        attempt: C1,
        clock: tale.clock,
        t1_local_ns: 1_000_000 * MS,
        ttl_ns: u64::MAX,
        drift_ns: 0,
        needed: 1,
    });
    tale.sets(C1, "A").tell(EventKind::GrantDecided {
        attempt: C1,
        counted: NodeIds::from_bits(1),
        t2_local_ns: 1_000_000 * MS,
        deadline_local_ns: u64::MAX,
    });
    assert_eq!(tale.finds(SoundGrant), Judgement::Holds);
}

#[test]
fn a_section_past_its_lease_is_the_applications_fault() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").enters(C1).at(500).ends_key(
        C1,
        "ABC",
        KeyEnd::Evicted,
        Writer::Nobody,
    );
    tale.at(510).acquires(C2, "ABC").enters(C2).loses(C1).at(600).leaves(C2);
    assert_eq!(tale.finds(MutualExclusion), Judgement::Holds);
    assert_eq!(tale.blame(ExclusiveSection), ["application"]);
}
