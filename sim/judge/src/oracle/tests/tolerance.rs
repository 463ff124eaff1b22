//! Tests of fault-tolerant.

use super::tale::{C1, C1_AGAIN, C2, MS, PROBE, Tale, host, node};
use crate::history::{
    Answer, AttemptId, ClockKind, EventKind, FaultId, OpKind, Settlement, Writer,
};
use crate::oracle::Judgement;
use crate::scenario::Property::FaultTolerant;

/// An attempt of C1 that begins at 1 s, gets the votes of the nodes in `votes`, and fails 10 ms
/// later.
fn refuses(
    votes: &str,
    before: impl FnOnce(&mut Tale) -> &mut Tale,
    during: impl FnOnce(&mut Tale) -> &mut Tale,
) -> Tale {
    let mut tale = Tale::new();
    before(&mut tale);
    tale.at(1_000).begins(C1).at(1_002).sets(C1, votes);
    during(&mut tale);
    tale.at(1_010).settles(C1, Settlement::TooFewNodes);
    tale
}

/// C2 holds the lock on three nodes.
fn theirs(tale: &mut Tale) -> &mut Tale {
    tale.acquires(C2, "CDE")
}

fn nothing(tale: &mut Tale) -> &mut Tale {
    tale
}

#[test]
fn a_run_without_attempts_is_vacuous_and_so_is_one_of_the_probe() {
    assert_eq!(Tale::new().finds(FaultTolerant), Judgement::Vacuous);
    let mut tale = Tale::new();
    tale.begins(PROBE).at(5_000).settles(PROBE, Settlement::TooFewNodes);
    assert_eq!(tale.finds(FaultTolerant), Judgement::Vacuous);
}

#[test]
fn a_grant_holds() {
    assert_eq!(Tale::new().acquires(C1, "ABC").finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn an_attempt_with_a_free_majority_may_not_fail() {
    let mut tale = refuses("ABC", nothing, nothing);
    let found = tale.violation(FaultTolerant);
    assert_eq!((found.from_ns, found.to_ns, found.first), (1_000 * MS, 1_010 * MS, C1));
    assert_eq!(tale.blame(FaultTolerant), ["none"]);
}

#[test]
fn an_attempt_that_lasted_for_the_node_timeout_is_no_failure() {
    // 50 ms pass on a clock that gains 37.5 % in 36 363 636.4 ns.
    let fails_after = |ns: u64| {
        let mut tale = Tale::new();
        tale.runs_at(host(C1), ClockKind::Boot, 375_000_000).at(1_000).begins(C1);
        tale.at_ns(1_000 * MS + ns).settles(C1, Settlement::TooFewNodes);
        tale.finds(FaultTolerant).is_violated()
    };
    assert!(!fails_after(36_363_636));
    assert!(fails_after(36_000_000));
}

#[test]
fn a_majority_of_names_alone_is_blamed_on_membership() {
    let mut tale = Tale::new();
    tale.scenario.cluster.aliases.insert(String::from("B2"), String::from("B"));
    tale.scenario.clients[0].nodes = Some(["A", "B", "B2"].map(String::from).to_vec());
    tale.acquires(C2, "ACDE").at(1_000).begins(C1).at(1_002).sets(C1, "B");
    tale.at(1_010).settles(C1, Settlement::TooFewNodes);
    assert_eq!(tale.blame(FaultTolerant), ["membership"]);
}

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
fn keys_of_other_attempts_are_in_the_way() {
    let mut tale = refuses("AB", theirs, |tale| tale.is_refused(C1, C2, "CDE"));
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn keys_and_commands_during_the_attempt_can_block_it() {
    let mut ended = refuses("AB", theirs, |tale| tale.expires(C2, "CDE"));
    assert_eq!(ended.finds(FaultTolerant), Judgement::Holds);
    let mut touched = refuses("AB", nothing, |tale| {
        for at in ['C', 'D', 'E'] {
            let command = tale.writes(C2, at, OpKind::Release);
            let change = (Writer::Nobody, Writer::Nobody);
            tale.executes((command, C2, at, OpKind::Release), Answer::No, change);
        }
        tale
    });
    assert_eq!(touched.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn late_command_of_the_clients_older_attempt_can_block() {
    let mut tale = Tale::new();
    tale.begins(C1).settles(C1, Settlement::Cancelled).at(1_000).begins(C1_AGAIN);
    tale.sets(C1_AGAIN, "AB").at(1_005);
    for at in ['C', 'D', 'E'] {
        let release = (tale.writes(C1, at, OpKind::Release), C1, at, OpKind::Release);
        tale.executes(release, Answer::No, (Writer::Nobody, Writer::Nobody));
        tale.hears(release, Answer::No);
    }
    tale.at(1_010).settles(C1_AGAIN, Settlement::Taken);
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn what_others_did_before_is_not_in_the_way() {
    let mut tale = Tale::new();
    theirs(&mut tale).releases(C2).unlocks(C2, "CDE");
    tale.at(1_000).begins(C1).sets(C1, "ABC").settles(C1, Settlement::TooFewNodes);
    assert!(tale.finds(FaultTolerant).is_violated());
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

#[test]
fn a_stop_during_the_attempt_and_a_cancellation_excuse_it() {
    let mut stopped = refuses("ABC", nothing, |tale| tale.stops(C1).at(1_005).continues(C1));
    assert_eq!(stopped.finds(FaultTolerant), Judgement::Holds);
    let mut cancelled = Tale::new();
    cancelled.begins(C1).sets(C1, "ABC").settles(C1, Settlement::Cancelled);
    assert_eq!(cancelled.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn a_clients_clock_that_jumped_ahead_beyond_the_drift_is_blamed() {
    let jumps = |by_ms: i64| {
        let mut tale = Tale::new();
        tale.clock = ClockKind::Wall;
        tale.begins(C1).at(1).sets(C1, "ABC").steps(host(C1), ClockKind::Wall, by_ms);
        tale.at(2).settles(C1, Settlement::TooSlow);
        tale.blame(FaultTolerant)
    };
    assert_eq!(jumps(103), ["clock(c1)"]);
    assert_eq!(jumps(102), ["none"]);
}

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
fn a_clock_by_which_round_trips_exceed_the_node_timeout_is_blamed() {
    let fails_at = |rate_ppb| {
        let mut tale = Tale::new();
        // Round trips take up to 40 ms, and the node timeout is 50 ms.
        tale.scenario.cluster.network.delay = "1ms..20ms".parse().unwrap();
        tale.runs_at(host(C1), ClockKind::Boot, rate_ppb).at(1_000).begins(C1).sets(C1, "ABC");
        tale.at(1_010).settles(C1, Settlement::TooFewNodes).blame(FaultTolerant)
    };
    assert_eq!(fails_at(250_000_000), ["clock(c1)"]);
    assert_eq!(fails_at(249_000_000), ["none"]);
}

#[test]
fn an_answer_that_a_restart_behind_a_proxy_took_along_excuses_the_next_ones() {
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

#[test]
fn a_subject_of_one_node_is_judged_by_that_node() {
    let begins = |tale: &mut Tale, id: AttemptId| {
        tale.tell(EventKind::AttemptBegan {
            attempt: id,
            clock: ClockKind::Boot,
            t1_local_ns: 1_000_000 * MS,
            ttl_ns: u64::MAX,
            drift_ns: 0,
            needed: 1,
        });
    };
    let mut tale = Tale::new();
    begins(&mut tale, C2);
    tale.sets(C2, "A");
    begins(&mut tale, C1);
    tale.is_refused(C1, C2, "A").settles(C1, Settlement::Taken);
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
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
fn what_goes_into_a_half_open_connection_is_excused() {
    let nothing = |_: &mut Tale| {};
    assert!(is_refused_behind_a_cut("hold", nothing));
    assert!(!is_refused_behind_a_cut("silent", nothing));
}

#[test]
fn a_half_open_connection_is_no_excuse_once_it_answered_or_patience_is_over() {
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

#[test]
fn nobody_hears_of_the_end_of_a_half_open_connection() {
    let demotes = |tale: &mut Tale| {
        for at in ['A', 'B', 'C'] {
            tale.tell(EventKind::NodeDown { node: node(at), power: false });
            tale.tell(EventKind::NodeUp { node: node(at), incarnation: 1 });
        }
    };
    assert!(!is_refused_behind_a_cut("silent", demotes));
}
