//! Nodes that are good, and nodes that are not.

use core::num::NonZeroU16;

use super::*;

#[test]
fn nodes_it_did_not_wait_for_count_as_good_within_their_time() {
    assert!(refuses("A", nothing, nothing).finds(FaultTolerant).is_violated());
}

#[test]
fn nodes_that_are_down_or_stalled_are_not_good() {
    let down = |at| EventKind::NodeDown { node: node(at), power: false };
    let stalled = |at| EventKind::NodeStalled { node: node(at) };
    let mut tale =
        refuses("AB", |tale| tale.tell(down('C')).tell(down('D')), |tale| tale.tell(stalled('E')));
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn nodes_that_answered_late_or_not_at_all_are_not_good() {
    let mut tale = Tale::new();
    tale.begins(C1).sets(C1, "AB");
    let late = tale.writes(C1, 'C', OpKind::Set);
    tale.at(50).answers(late, C1, 'C', Answer::Yes);
    assert_eq!(tale.settles(C1, Settlement::TooSlow).finds(FaultTolerant), Judgement::Holds);
    let mut silent = Tale::new();
    silent.begins(C1).sets(C1, "AB").at(50).settles(C1, Settlement::TooFewNodes);
    assert_eq!(silent.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn a_node_that_leaves_an_older_command_unanswered_is_not_good() {
    let mut tale = Tale::new();
    tale.begins(C1).settles(C1, Settlement::Cancelled);
    let older = ['C', 'D', 'E'].map(|at| (tale.writes(C1, at, OpKind::Set), at));
    tale.at(1_000).begins(C1_AGAIN).sets(C1_AGAIN, "AB");
    tale.settles(C1_AGAIN, Settlement::TooFewNodes);
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
    // Answers during the attempt come too late: it does not ask again.
    let mut tale = Tale::new();
    tale.begins(C1).settles(C1, Settlement::Cancelled);
    let older = older.map(|(_, at)| (tale.writes(C1, at, OpKind::Set), at));
    tale.at(1_000).begins(C1_AGAIN).sets(C1_AGAIN, "AB").at(1_001);
    older.into_iter().for_each(|(command, at)| tale.answers(command, C1, at, Answer::No));
    tale.settles(C1_AGAIN, Settlement::TooFewNodes);
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
    // If the nodes had answered the older commands, C1 could have asked them.
    let mut tale = Tale::new();
    tale.begins(C1).settles(C1, Settlement::Cancelled);
    let older = older.map(|(_, at)| (tale.writes(C1, at, OpKind::Set), at));
    tale.at(1);
    older.into_iter().for_each(|(command, at)| tale.answers(command, C1, at, Answer::No));
    tale.at(1_000).begins(C1_AGAIN).sets(C1_AGAIN, "AB");
    tale.settles(C1_AGAIN, Settlement::TooFewNodes);
    assert!(tale.finds(FaultTolerant).is_violated());
}

#[test]
fn a_node_that_is_not_asked_for_lack_of_room_is_not_good() {
    let judged = |window: Option<u16>| {
        let mut tale = Tale::new();
        tale.scenario.lock.window = window.and_then(NonZeroU16::new);
        tale.begins(C1).settles(C1, Settlement::Overloaded).finds(FaultTolerant)
    };
    assert_eq!(judged(Some(3)), Judgement::Holds);
    assert!(judged(None).is_violated());
}

#[test]
fn an_answer_to_an_older_command_is_none_to_the_last() {
    for after_ms in [0, 1] {
        let mut tale = Tale::new();
        tale.begins(C1).settles(C1, Settlement::Cancelled);
        let older = ['C', 'D', 'E'].map(|at| {
            let older = tale.writes(C1, at, OpKind::Set);
            tale.writes(C1, at, OpKind::Release);
            (older, at)
        });
        tale.at(after_ms);
        older.into_iter().for_each(|(older, at)| tale.answers(older, C1, at, Answer::No));
        tale.at(1_000).begins(C1_AGAIN).sets(C1_AGAIN, "AB");
        tale.settles(C1_AGAIN, Settlement::TooFewNodes);
        assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
    }
}

#[test]
fn a_node_on_a_link_slower_than_the_node_timeout_is_not_good() {
    let with_link = |ms: u64| {
        let link = format!("between = [['c1'], ['C', 'D', 'E']]\ndelay = '{ms}ms'");
        let mut tale = refuses("AB", nothing, nothing);
        tale.scenario.cluster.links.push(toml::from_str(&link).expect("a link"));
        tale.finds(FaultTolerant)
    };
    assert!(with_link(24).is_violated());
    assert_eq!(with_link(25), Judgement::Holds);
}

#[test]
fn a_node_that_answered_with_an_error_is_not_good() {
    let mut tale = refuses("AB", nothing, |tale| {
        for at in ['C', 'D', 'E'] {
            let command = tale.writes(C1, at, OpKind::Set);
            tale.answers(command, C1, at, Answer::Error);
        }
        tale
    });
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn nodes_in_quarantine_are_not_good() {
    let eligible_from = |ms: u64| {
        let mut tale = refuses(
            "ABC",
            |tale| {
                for at in ['C', 'D', 'E'] {
                    let (client, from_local_ns) = (C1.client, (1_000_000 + ms) * MS);
                    tale.tell(EventKind::Eligible { client, node: node(at), from_local_ns });
                }
                tale
            },
            nothing,
        );
        tale.finds(FaultTolerant)
    };
    assert!(eligible_from(1_000).is_violated());
    assert_eq!(eligible_from(1_001), Judgement::Holds);
}
