//! Tests of sound-refusal.

use super::tale::{C1, C1_AGAIN, C2, C3, Tale, host, node};
use crate::history::{Answer, AttemptId, ClockKind, EventKind, FaultId, OpKind, Settlement};
use crate::oracle::Judgement;
use crate::scenario::Property::SoundRefusal;
use crate::scenario::Start;

/// C1 tries at 1 s while C2 and C3 have keys on the nodes of `theirs`, and settles with `outcome`.
fn turned_away(theirs: [&str; 2], outcome: Settlement) -> Tale {
    let mut tale = Tale::new();
    tale.begins(C2).sets(C2, theirs[0]).begins(C3).sets(C3, theirs[1]).at(1_000).begins(C1);
    tale.is_refused(C1, C2, theirs[0]).is_refused(C1, C3, theirs[1]).settles(C1, outcome);
    tale
}

#[test]
fn one_owner_on_a_majority_justifies_taken() {
    let mut tale = turned_away(["ABC", "DE"], Settlement::Taken);
    tale.decides(C2, "ABC").delivers(C2);
    assert_eq!(tale.finds(SoundRefusal), Judgement::Holds);
}

#[test]
fn keys_of_two_owners_are_no_taken_lock() {
    for theirs in [["AB", "CD"], ["AB", "CDE"]] {
        let mut tale = turned_away(theirs, Settlement::Taken);
        tale.decides(C3, "CDE").delivers(C3);
        let is_violated = tale.finds(SoundRefusal).is_violated();
        assert_eq!(is_violated, theirs[1].len() < 3, "{theirs:?}");
    }
}

#[test]
fn too_few_nodes_claim_nothing() {
    let mut tale = turned_away(["AB", "CD"], Settlement::TooFewNodes);
    assert_eq!(tale.finds(SoundRefusal), Judgement::Vacuous);
}

#[test]
fn a_split_vote_needs_answers_of_a_majority() {
    for (theirs, is_right) in [(["AB", "C"], true), (["A", "B"], false)] {
        let mut tale = turned_away(theirs, Settlement::Split);
        assert_eq!(tale.finds(SoundRefusal).is_violated(), !is_right, "{theirs:?}");
    }
}

#[test]
fn a_refusal_by_quarantine_needs_votes_of_a_majority() {
    for (own, is_right) in [("ABC", true), ("AB", false)] {
        let mut tale = Tale::new();
        tale.begins(C2).sets(C2, "DE").begins(C1).sets(C1, own).is_refused(C1, C2, "DE");
        tale.settles(C1, Settlement::Quarantined);
        assert_eq!(tale.finds(SoundRefusal).is_violated(), !is_right, "{own}");
    }
}

#[test]
fn an_overloaded_client_has_not_asked_all_nodes() {
    for (written, is_right) in [("C", true), ("CDE", false)] {
        let mut tale = Tale::new();
        tale.begins(C2).sets(C2, "AB").begins(C1).is_refused(C1, C2, "AB");
        for node in written.chars() {
            tale.writes(C1, node, OpKind::Set);
        }
        tale.settles(C1, Settlement::Overloaded);
        assert_eq!(tale.finds(SoundRefusal).is_violated(), !is_right, "{written}");
    }
}

#[test]
fn a_taken_lock_that_nobody_gets_needs_a_fault() {
    let tale = || turned_away(["ABC", "DE"], Settlement::Taken);
    assert_eq!(tale().violation(SoundRefusal).first, C1);
    let excused = tale().tell(EventKind::FaultBegan { fault: FaultId(0) }).finds(SoundRefusal);
    assert_eq!(excused, Judgement::Holds);
    for outcome in [Settlement::TooSlow, Settlement::Quarantined, Settlement::Cancelled] {
        let excused = tale().settles(C2, outcome).finds(SoundRefusal);
        assert_eq!(excused, Judgement::Holds, "{outcome:?}");
    }
}

#[test]
fn two_names_of_a_node_excuse_that_nobody_gets_the_lock() {
    let mut tale = Tale::new();
    tale.scenario.cluster.aliases.insert(String::from("A2"), String::from("A"));
    for client in &mut tale.scenario.clients {
        client.nodes = Some(["A", "A2"].map(String::from).to_vec());
    }
    tale.begins(C2).sets(C2, "A").at(1_000).begins(C1).is_refused(C1, C2, "A");
    assert_eq!(tale.settles(C1, Settlement::Taken).finds(SoundRefusal), Judgement::Holds);
}

#[test]
fn a_server_with_two_names_may_refuse_them_for_two_owners() {
    let mut tale = Tale::new();
    tale.scenario.cluster.aliases.insert(String::from("A2"), String::from("A"));
    tale.scenario.clients[0].nodes = Some(["A", "B", "C", "A2"].map(String::from).to_vec());
    tale.begins(C2).sets(C2, "ABC").begins(C3).at(1_000).begins(C1);
    tale.is_refused(C1, C2, "ABC").unlocks(C2, "A").sets(C3, "A").is_refused(C1, C3, "A");
    assert_eq!(tale.settles(C1, Settlement::Taken).finds(SoundRefusal), Judgement::Holds);
}

#[test]
fn an_answer_too_late_on_a_cold_connection_excuses_no_grant() {
    let judged = |start| {
        let mut tale = turned_away(["ABC", "DE"], Settlement::Taken);
        tale.scenario.cluster.connections = start;
        tale.settles(C2, Settlement::TooFewNodes).finds(SoundRefusal)
    };
    assert!(judged(Start::Warm).is_violated());
    assert_eq!(judged(Start::Cold), Judgement::Holds);
}

#[test]
fn an_answer_taken_for_another_behind_a_proxy_is_amnesia() {
    let mut tale = Tale::new();
    tale.with_fault("kill = { host = 'C', restart-after = '20ms', behind-a-proxy = true }");
    tale.begins(C2).writes(C2, 'C', OpKind::Set);
    tale.begins(C1).writes(C1, 'C', OpKind::Set);
    tale.at(1).tell(EventKind::NodeDown { node: node('C'), power: false });
    tale.at(21).tell(EventKind::NodeUp { node: node('C'), incarnation: 1 });
    tale.at(22).settles(C1, Settlement::Taken);
    assert_eq!(tale.blame(SoundRefusal), ["amnesia(C)"]);
}

#[test]
fn a_majority_of_votes_is_no_split_vote() {
    let judged = |own: &str, others: &str, (outcome, c_counts_from): (Settlement, u64)| {
        let mut tale = Tale::new();
        let (client, from_local_ns) = (C1.client, c_counts_from);
        tale.tell(EventKind::Eligible { client, node: node('C'), from_local_ns });
        tale.begins(C2).sets(C2, others).begins(C1).is_refused(C1, C2, others).sets(C1, own);
        tale.settles(C1, outcome).finds(SoundRefusal)
    };
    let in_quarantine = 90_000_000_000;
    assert!(judged("ABC", "D", (Settlement::Split, in_quarantine)).is_violated());
    let quarantined = (Settlement::Quarantined, in_quarantine);
    assert_eq!(judged("ABC", "D", quarantined), Judgement::Vacuous);
    assert_eq!(judged("AB", "CD", (Settlement::Split, in_quarantine)), Judgement::Vacuous);
    let unknown = judged("ABC", "D", (Settlement::Split, u64::MAX));
    assert_eq!(unknown, Judgement::Vacuous, "C has not introduced itself");
}

#[test]
fn votes_that_wait_for_an_introduction_may_be_too_late() {
    let judged = |is_answered: bool| {
        let mut tale = Tale::new();
        tale.begins(C2).sets(C2, "DE").begins(C1).is_refused(C1, C2, "DE");
        let introduction = tale.sets(C1, "ABC").writes(C1, 'C', OpKind::Introduce);
        if is_answered {
            tale.hears((introduction, C1, 'C', OpKind::Introduce), Answer::Yes);
        }
        tale.settles(C1, Settlement::Split).finds(SoundRefusal)
    };
    assert_eq!(judged(false), Judgement::Vacuous);
    assert!(judged(true).is_violated());
}

#[test]
fn try_acquire_does_not_stop_at_a_split_vote() {
    let mut tale = turned_away(["AB", "CD"], Settlement::Split);
    assert_eq!(tale.with_c1_at_once().violation(SoundRefusal).first, C1);
    tale = turned_away(["AB", "CD"], Settlement::Split);
    tale.with_c1_at_once().stops(C1);
    assert_eq!(tale.finds(SoundRefusal), Judgement::Vacuous, "it has not given up");
    tale = turned_away(["AB", "CD"], Settlement::Split);
    tale.with_c1_at_once().begins(C1_AGAIN).settles(C1_AGAIN, Settlement::TooFewNodes);
    assert_eq!(tale.finds(SoundRefusal), Judgement::Vacuous);
    tale = turned_away(["AB", "CD"], Settlement::Split);
    for number in 2..=5 {
        let id = AttemptId { number, ..C1 };
        tale.begins(id).is_refused(id, C2, "AB").is_refused(id, C3, "CD");
        tale.settles(id, Settlement::Split);
    }
    assert_eq!(tale.with_c1_at_once().finds(SoundRefusal), Judgement::Vacuous);
}

#[test]
fn a_clock_that_makes_all_answers_late_excuses_no_grant() {
    let judged = |rate_ppb| {
        let mut tale = turned_away(["ABC", "DE"], Settlement::Taken);
        tale.scenario.cluster.network.delay = "20ms".parse().expect("a delay");
        tale.runs_at(host(C2), ClockKind::Boot, rate_ppb).settles(C2, Settlement::TooFewNodes);
        tale.finds(SoundRefusal)
    };
    assert!(judged(0).is_violated());
    assert_eq!(judged(500_000_000), Judgement::Holds);
}
