//! Tests of owner-only.

use super::tale::{C1, C1_AGAIN, C2, PROBE, Tale, node};
use crate::history::{Answer, OpKind, Writer};
use crate::oracle::Judgement;
use crate::scenario::Property::OwnerOnly;

#[test]
fn setting_a_free_key_and_deleting_it_again_is_the_owners_right() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").releases(C1).unlocks(C1, "ABC").acquires(C2, "ABC");
    assert_eq!(tale.finds(OwnerOnly), Judgement::Holds);
}

#[test]
fn nothing_executed_is_vacuous() {
    assert_eq!(Tale::new().begins(C1).finds(OwnerOnly), Judgement::Vacuous);
}

#[test]
fn deleting_another_attempts_key_violates_it() {
    let mut tale = Tale::new();
    tale.acquires(C1, "AB").at(10_100).expires(C1, "AB").acquires(C2, "AB");
    let found = tale.at(10_500).deletes(C1, C2, "B").violation(OwnerOnly);
    assert_eq!((found.first, found.second), (C1, Some(C2)));
    assert_eq!((found.from_ns, found.node), (10_500_000_000, Some(node('B'))));
    assert_eq!(tale.blame(OwnerOnly), ["none"]);
}

#[test]
fn an_older_attempt_of_the_same_client_is_another() {
    let mut tale = Tale::new();
    tale.begins(C1).at(10).acquires(C1_AGAIN, "ABC").deletes(C1, C1_AGAIN, "A");
    assert!(tale.finds(OwnerOnly).is_violated());
}

#[test]
fn overwriting_and_retiming_anothers_key_violates_it() {
    let (own, theirs) = (Writer::Attempt(C2), Writer::Attempt(C1));
    for (op, after) in [
        (OpKind::Set, own),
        (OpKind::GetSet, own),
        (OpKind::Extend, theirs),
        (OpKind::Expire, theirs),
    ] {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").begins(C2);
        let command = tale.writes(C2, 'A', op);
        tale.executes((command, C2, 'A', op), Answer::Yes, (Writer::Attempt(C1), after));
        tale.counts_as_change();
        assert!(tale.finds(OwnerOnly).is_violated(), "{op:?}");
    }
}

#[test]
fn retiming_ones_own_key_is_the_owners_right() {
    for op in [OpKind::Extend, OpKind::Expire] {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC");
        let command = tale.writes(C1, 'A', op);
        let own = (Writer::Attempt(C1), Writer::Attempt(C1));
        tale.executes((command, C1, 'A', op), Answer::Yes, own).counts_as_change();
        assert_eq!(tale.finds(OwnerOnly), Judgement::Holds, "{op:?}");
    }
}

#[test]
fn asking_and_waiting_touch_nothing() {
    for op in [OpKind::Get, OpKind::Wait, OpKind::Extend] {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").begins(C2);
        let command = tale.writes(C2, 'A', op);
        let theirs = (Writer::Attempt(C1), Writer::Attempt(C1));
        tale.executes((command, C2, 'A', op), Answer::No, theirs);
        assert_eq!(tale.finds(OwnerOnly), Judgement::Holds, "{op:?}");
    }
}

#[test]
fn a_command_without_effect_touches_no_key() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").begins(C2).is_refused(C2, C1, "A");
    assert_eq!(tale.finds(OwnerOnly), Judgement::Holds);
}

#[test]
fn keys_of_an_operator_and_of_the_probe_are_ignored() {
    for owner in [Writer::Operator, Writer::Attempt(PROBE)] {
        let mut tale = Tale::new();
        tale.begins(PROBE).begins(C1);
        let command = tale.writes(C1, 'A', OpKind::Delete);
        let change = (owner, Writer::Nobody);
        tale.executes((command, C1, 'A', OpKind::Delete), Answer::Yes, change);
        assert_eq!(tale.finds(OwnerOnly), Judgement::Holds, "{owner:?}");
    }
}
