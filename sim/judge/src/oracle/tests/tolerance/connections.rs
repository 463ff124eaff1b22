//! Connections that are lost or half open, and nodes that have to be dialled.

use super::*;

#[test]
fn a_node_that_was_away_is_good_once_it_must_have_been_dialled() {
    let back_at = |ms: u64| {
        let mut tale = Tale::new();
        for at in ['C', 'D', 'E'] {
            tale.tell(EventKind::NodeDown { node: node(at), power: false });
        }
        tale.at(ms).tell(EventKind::NodeUp { node: node('C'), incarnation: 1 });
        tale.at(10_000).begins(C1).sets(C1, "AB").at(10_010);
        tale.settles(C1, Settlement::TooFewNodes).finds(FaultTolerant)
    };
    assert!(back_at(10_000 - 2_064).is_violated());
    assert_eq!(back_at(10_001 - 2_064), Judgement::Holds);
}

#[test]
fn client_stopped_while_a_node_returned_dials_when_it_continues() {
    let continues_at = |ms: u64| {
        let mut tale = Tale::new();
        for at in ['C', 'D', 'E'] {
            tale.tell(EventKind::NodeDown { node: node(at), power: false });
        }
        tale.stops(C1).at(1_000).tell(EventKind::NodeUp { node: node('C'), incarnation: 1 });
        tale.at(ms).continues(C1).at(10_000).begins(C1).sets(C1, "AB").at(10_010);
        tale.settles(C1, Settlement::TooFewNodes).finds(FaultTolerant)
    };
    assert!(continues_at(10_000 - 2_064).is_violated());
    assert_eq!(continues_at(10_001 - 2_064), Judgement::Holds);
}

/// The client waits for answers from T1 on, and closes the connections when it continues.
#[test]
fn a_stop_before_the_write_uses_up_the_patience() {
    let stopped_for = |ms: u64| {
        let mut tale = Tale::new();
        tale.begins(C1).stops(C1).at(ms).continues(C1);
        for id in [C1, C1_AGAIN] {
            if id == C1_AGAIN {
                tale.begins(id);
            }
            for at in ['A', 'B', 'C'] {
                tale.writes(id, at, OpKind::Set);
            }
            let is_first = id == C1;
            let outcome = if is_first { Settlement::Cancelled } else { Settlement::TooFewNodes };
            tale.settles(id, outcome);
        }
        tale.finds(FaultTolerant)
    };
    assert!(stopped_for(499).is_violated());
    assert!(!stopped_for(500).is_violated());
    assert!(!stopped_for(60_000).is_violated());
}

/// So does a stop between the release and its writing.
#[test]
fn a_stop_before_a_release_is_written_uses_up_the_patience() {
    let stopped_for = |ms: u64| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").tell(EventKind::ReleaseCalled { attempt: C1 });
        tale.stops(C1).ends_key(C1, "ABC", KeyEnd::Evicted, Writer::Nobody);
        tale.at(2 + ms).continues(C1);
        for at in ['A', 'B', 'C'] {
            tale.writes(C1, at, OpKind::Release);
        }
        tale.begins(C1_AGAIN);
        for at in ['A', 'B', 'C'] {
            tale.writes(C1_AGAIN, at, OpKind::Set);
        }
        tale.settles(C1_AGAIN, Settlement::TooFewNodes).finds(FaultTolerant)
    };
    assert!(stopped_for(499).is_violated());
    assert!(!stopped_for(500).is_violated());
}

#[test]
fn an_answer_lost_behind_a_proxy_excuses_the_next_ones() {
    let fails_at = |ms, hidden| {
        let mut tale = Tale::new();
        tale.with_fault(&format!(
            "kill = {{ host = ['A', 'B', 'C'], restart-after = '20ms', behind-a-proxy = {hidden} }}"
        ));
        tale.begins(C1);
        for at in ['A', 'B', 'C'] {
            tale.writes(C1, at, OpKind::Set);
        }
        tale.settles(C1, Settlement::Cancelled).at(100);
        for at in ['A', 'B', 'C'] {
            tale.tell(EventKind::NodeDown { node: node(at), power: false });
            tale.tell(EventKind::NodeUp { node: node(at), incarnation: 1 });
        }
        tale.at(ms).begins(C1_AGAIN).sets(C1_AGAIN, "ABC");
        tale.settles(C1_AGAIN, Settlement::TooFewNodes).finds(FaultTolerant)
    };
    assert_eq!(fails_at(200, true), Judgement::Holds);
    assert!(fails_at(200, false).is_violated());
    assert!(fails_at(5_000, true).is_violated(), "the client has had time to connect again");
}

#[test]
fn a_vote_behind_which_an_introduction_is_cut_off_is_not_good() {
    let is_violated = |is_cut: bool| {
        let mut tale = Tale::new();
        tale.with_fault("partition = { between = [['A', 'B', 'C'], ['c1']] }");
        tale.at(1_000).begins(C1).at(1_002).sets(C1, "ABC");
        for at in ['A', 'B', 'C'] {
            tale.writes(C1, at, OpKind::Introduce);
        }
        if is_cut {
            tale.at(1_005).tell(EventKind::FaultBegan { fault: FaultId(0) });
        }
        tale.at(1_010).settles(C1, Settlement::TooFewNodes);
        tale.finds(FaultTolerant).is_violated()
    };
    assert!(is_violated(false));
    assert!(!is_violated(true));
}

/// C1 is cut off from A, B and C until 100 ms; its second attempt, at 10 s, asks these three and
/// ends before they could answer. Returns true if that is a violation.
fn is_refused_behind_a_cut(lost: &str, before: impl FnOnce(&mut Tale)) -> bool {
    let mut tale = Tale::new();
    let between = "between = [['A', 'B', 'C'], ['c1']]";
    tale.with_fault(&format!("partition = {{ {between}, lost = '{lost}' }}"));
    tale.at(0).tell(EventKind::FaultBegan { fault: FaultId(0) });
    tale.at(100).tell(EventKind::FaultEnded { fault: FaultId(0) }).at(4_000).begins(C1);
    before(&mut tale);
    tale.settles(C1, Settlement::Cancelled).at(10_000).begins(C1_AGAIN);
    for at in ['A', 'B', 'C'] {
        tale.writes(C1_AGAIN, at, OpKind::Set);
    }
    tale.at(10_010).settles(C1_AGAIN, Settlement::TooFewNodes);
    tale.finds(FaultTolerant).is_violated()
}

#[test]
fn requests_on_a_half_open_connection_are_excused() {
    let nothing = |_: &mut Tale| {};
    assert!(is_refused_behind_a_cut("hold", nothing));
    assert!(!is_refused_behind_a_cut("silent", nothing));
}

#[test]
fn a_half_open_connection_excuses_for_a_limited_time() {
    let answers = |tale: &mut Tale| {
        for at in ['A', 'B', 'C'] {
            let asked = tale.writes(C1, at, OpKind::Introduce);
            tale.hears((asked, C1, at, OpKind::Introduce), Answer::Yes);
        }
    };
    assert!(is_refused_behind_a_cut("silent", answers));
    let asks = |tale: &mut Tale| {
        for at in ['A', 'B', 'C'] {
            tale.writes(C1, at, OpKind::Set);
        }
    };
    assert!(is_refused_behind_a_cut("silent", asks));
}

#[test]
fn the_end_of_a_half_open_connection_is_not_noticed() {
    let demotes = |tale: &mut Tale| {
        for at in ['A', 'B', 'C'] {
            tale.tell(EventKind::NodeDown { node: node(at), power: false });
            tale.tell(EventKind::NodeUp { node: node(at), incarnation: 1 });
        }
    };
    assert!(!is_refused_behind_a_cut("silent", demotes));
}

/// The client dialled again after the restart. The silent partition left that connection half open.
#[test]
fn an_earlier_loss_replaces_no_half_open_connection() {
    let mut tale = Tale::new();
    tale.with_fault("partition = { between = [['A', 'B', 'C'], ['c1']], lost = 'silent' }");
    for at in ['A', 'B', 'C'] {
        tale.tell(EventKind::NodeDown { node: node(at), power: false });
        tale.tell(EventKind::NodeUp { node: node(at), incarnation: 1 });
    }
    tale.at(5_000).tell(EventKind::FaultBegan { fault: FaultId(0) });
    tale.at(6_000).tell(EventKind::FaultEnded { fault: FaultId(0) }).at(20_000).begins(C1);
    for at in ['A', 'B', 'C'] {
        tale.writes(C1, at, OpKind::Set);
    }
    tale.at(20_010).settles(C1, Settlement::TooFewNodes);
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn a_failover_at_the_very_beginning_has_to_be_dialled_too() {
    let mut tale = Tale::new();
    let replica = toml::from_str("id = 'A2'\nof = 'A'").expect("a replica");
    tale.scenario.cluster.replicas.push(replica);
    tale.scenario.cluster.nodes.truncate(1);
    let new = tale.scenario.replica_host(0);
    tale.at(0).begins(C1).tell(EventKind::FailedOver { node: node('A'), host: new });
    tale.writes(C1, 'A', OpKind::Set);
    assert!(!tale.settles(C1, Settlement::TooFewNodes).finds(FaultTolerant).is_violated());
}
