//! Tests of what sound-grant asks of the clients of this project alone.

use super::extension::c1_holds;
use super::tale::{C1, C1_AGAIN, C2, MS, Tale, host, node};
use crate::history::{Answer, AttemptId, ClockKind, EventKind, FaultId, KeyEnd, OpKind, Writer};
use crate::oracle::{Judgement, Oracle};
use crate::scenario::Property::SoundGrant;
use crate::scenario::{RestartGuard, Rights, Span};

#[test]
fn an_extension_that_shortens_its_lease_is_unsound() {
    let judged = |less_ns: u64| {
        let mut tale = c1_holds();
        tale.at(5_000).begins_extension(C1).at(5_001).retimes(C1, C1, "ABC");
        let until_ns = tale.deadline_ns(C1) - less_ns;
        tale.at(5_002).succeeds(C1, "ABC", until_ns).finds(SoundGrant)
    };
    assert!(judged(1).is_violated());
    assert_eq!(judged(0), Judgement::Holds);
}

#[test]
fn a_lease_that_is_kept_for_too_long_is_unsound() {
    let extended = |times: u64| {
        let mut tale = c1_holds();
        for time in 1..=times {
            tale.at(time * 9_000).extends(C1, "ABC");
        }
        tale.finds(SoundGrant)
    };
    assert_eq!(extended(3), Judgement::Holds);
    assert!(extended(4).is_violated());
}

#[test]
fn nothing_is_written_for_a_lease_that_is_over() {
    let written = |ms, op| {
        let mut tale = c1_holds();
        tale.at(ms).writes(C1, 'E', op);
        tale.finds(SoundGrant)
    };
    assert!(written(9_898, OpKind::Extend).is_violated());
    assert!(written(9_898, OpKind::Set).is_violated());
    assert_eq!(written(9_897, OpKind::Set), Judgement::Holds);
    assert_eq!(written(9_898, OpKind::Release), Judgement::Holds);
}

#[test]
fn the_first_set_may_wait_for_a_connection() {
    let mut tale = c1_holds();
    tale.scenario.lock.node_timeout = Span::from_ms(9_900);
    tale.at(9_899).writes(C1, 'E', OpKind::Set);
    assert_eq!(tale.finds(SoundGrant), Judgement::Holds);
}

#[test]
fn a_process_may_stop_in_front_of_a_set() {
    let mut tale = c1_holds();
    tale.at(9_000).stops(C1).at(9_950).continues(C1).writes(C1, 'E', OpKind::Set);
    assert_eq!(tale.finds(SoundGrant), Judgement::Holds);
}

#[test]
fn a_lease_is_delivered_with_what_it_needs() {
    let delivered = |min_validity| {
        let mut tale = Tale::new();
        tale.scenario.lock.min_validity = min_validity;
        tale.acquires(C1, "ABC").finds(SoundGrant)
    };
    assert_eq!(delivered(Span::from_ms(9_896)), Judgement::Holds);
    assert!(delivered(Span::from_ms(9_897)).is_violated());
}

#[test]
fn less_is_asked_of_others() {
    let mut tale = c1_holds();
    tale.scenario.clients[0].subject = String::from("redlock-literal");
    tale.scenario.lock.min_validity = Span::from_ms(9_897);
    tale.at(9_898).writes(C1, 'A', OpKind::Extend);
    assert_eq!(tale.finds(SoundGrant), Judgement::Holds);
}

#[test]
fn a_lease_that_is_kept_alive_may_be_extended_besides() {
    let extended = |times: u64| {
        let mut tale = c1_holds();
        let step = toml::from_str("acquire = { keep-alive = '20s' }").expect("a step");
        tale.scenario.clients[0].steps.push(step);
        for time in 1..=times {
            tale.at(time * 9_000).extends(C1, "ABC");
        }
        tale.finds(SoundGrant)
    };
    assert_eq!(extended(5), Judgement::Holds);
    assert!(extended(6).is_violated());
}

#[test]
fn a_node_that_was_in_quarantine_at_t1_does_not_vote() {
    let counts_from = |tale: &mut Tale, from_local_ns: u64| {
        let (client, node) = (C1.client, node('A'));
        tale.tell(EventKind::Eligible { client, node, from_local_ns });
    };
    let judged = |at_the_answer_ms: u64, later_ms: &[u64]| {
        let mut tale = Tale::new();
        tale.at(1_000).begins(C1).at(1_001);
        counts_from(&mut tale, (1_000_000 + at_the_answer_ms) * MS);
        tale.sets(C1, "ABC").at(1_002);
        later_ms.iter().for_each(|ms| counts_from(&mut tale, (1_000_000 + ms) * MS));
        tale.decides(C1, "ABC").delivers(C1).finds(SoundGrant)
    };
    assert!(judged(1_001, &[]).is_violated());
    assert!(judged(9_000, &[1_001]).is_violated());
    assert_eq!(judged(1_000, &[]), Judgement::Holds);
    assert_eq!(judged(9_000, &[1_000]), Judgement::Holds, "its vote waited for an introduction");
    assert_eq!(judged(1_000, &[9_000]), Judgement::Holds, "it has lost its keys since its vote");
    assert_eq!(judged(9_000, &[1_000, 9_000]), Judgement::Holds, "both");
}

#[test]
fn a_quarantine_of_one_name_of_a_node_says_nothing_of_the_other() {
    let mut tale = Tale::new();
    tale.scenario.cluster.aliases.insert(String::from("A2"), String::from("A"));
    tale.scenario.clients[0].nodes = Some(["A", "B", "A2"].map(String::from).to_vec());
    let (client, node, from_local_ns) = (C1.client, node('A'), 1_009_000 * MS);
    tale.at(1_000).tell(EventKind::Eligible { client, node, from_local_ns });
    tale.begins(C1).at(1_001).sets(C1, "AB").at(1_002).decides(C1, "AB").delivers(C1);
    assert_eq!(tale.finds(SoundGrant), Judgement::Holds);
}

#[test]
fn a_node_that_may_have_forgotten_a_lease_does_not_vote() {
    let judged = |change: fn(&mut Tale), restarts_ms: u64| {
        let mut tale = Tale::new();
        change(&mut tale);
        tale.at(restarts_ms).tell(EventKind::NodeUp { node: node('A'), incarnation: 1 });
        tale.at(10_100).begins(C1).at(10_101).sets(C1, "ABC").at(10_102);
        tale.decides(C1, "ABC").delivers(C1).finds(SoundGrant)
    };
    assert!(judged(|_| {}, 101).is_violated());
    assert_eq!(judged(|_| {}, 100), Judgement::Holds, "every lease of that time is over");
    let promised = |it: &mut Tale| it.scenario.lock.restart_guard = RestartGuard::Durable;
    assert_eq!(judged(promised, 101), Judgement::Holds);
    let unsteady = |it: &mut Tale| {
        it.with_fault("clock-jump = { host = 'A', by = '1s' }");
    };
    assert_eq!(judged(unsteady, 101), Judgement::Holds, "its uptime may be wrong");
}

#[test]
fn a_restart_during_an_attempt_matters_if_the_vote_came_later() {
    let judged = |guard, votes_ms: u64| {
        let mut tale = Tale::new();
        tale.scenario.lock.restart_guard = guard;
        tale.at(100).begins(C1);
        let restarts = EventKind::NodeUp { node: node('A'), incarnation: 1 };
        match votes_ms {
            ..102 => tale.at(votes_ms).sets(C1, "ABC").at(102).tell(restarts),
            _ => tale.at(102).tell(restarts).at(votes_ms).sets(C1, "ABC"),
        };
        tale.at(104).decides(C1, "ABC").delivers(C1).finds(SoundGrant)
    };
    assert_eq!(judged(RestartGuard::Quarantine, 101), Judgement::Holds);
    assert!(judged(RestartGuard::Quarantine, 103).is_violated());
    assert_eq!(judged(RestartGuard::DelayedRestart, 103), Judgement::Holds);
}

/// A introduces itself to C1, and `happens` before C1 hears of it.
fn introduces_itself(tale: &mut Tale, happens: fn(&mut Tale)) {
    let connection = AttemptId { number: 0, ..C1 };
    let command = tale.writes(connection, 'A', OpKind::Introduce);
    let asked = (command, connection, 'A', OpKind::Introduce);
    tale.executes(asked, Answer::Yes, (Writer::Nobody, Writer::Nobody));
    happens(tale);
    tale.hears(asked, Answer::Yes);
}

/// A, which has introduced itself to C1 or not, is emptied at `flushed_ms` while C2 has its key there, and
/// votes for C1 at 10 101 ms.
fn votes_after_a_flush(knows: bool, flushed_ms: u64, change: fn(&mut Tale)) -> Judgement {
    let mut tale = Tale::new();
    tale.scenario.lock.restart_guard = RestartGuard::Durable;
    change(&mut tale);
    if knows {
        introduces_itself(&mut tale, |_| {});
    }
    tale.at(10).acquires(C2, "ABC").at(flushed_ms);
    tale.ends_key(C2, "A", KeyEnd::Flushed, Writer::Operator);
    tale.at(10_100).begins(C1).at(10_101).sets(C1, "ADE").at(10_102).decides(C1, "ADE");
    tale.finds(SoundGrant)
}

#[test]
fn a_client_must_notice_a_flush_of_a_node_that_it_knew() {
    assert!(votes_after_a_flush(true, 101, |_| {}).is_violated());
    assert_eq!(votes_after_a_flush(true, 100, |_| {}), Judgement::Holds, "every lease is over");
    assert_eq!(votes_after_a_flush(false, 101, |_| {}), Judgement::Holds, "a promise is believed");
    let full = |it: &mut Tale| {
        it.with_fault("memory-full = { host = 'A' }");
    };
    assert!(votes_after_a_flush(true, 101, full).is_violated(), "it cannot set its canary");
    let unread = |it: &mut Tale| it.scenario.cluster.rights = Rights::NoCanary;
    assert_eq!(
        votes_after_a_flush(true, 101, unread),
        Judgement::Holds,
        "it may be away meanwhile"
    );
    let deaf = |it: &mut Tale| it.scenario.clients[0].deaf = true;
    assert_eq!(votes_after_a_flush(true, 101, deaf), Judgement::Holds, "nothing is pushed");
}

#[test]
fn an_introduction_of_the_process_before_shows_no_flush() {
    let judged = |happens: fn(&mut Tale)| {
        let mut tale = Tale::new();
        tale.scenario.lock.restart_guard = RestartGuard::Durable;
        introduces_itself(&mut tale, happens);
        tale.at(101).ends_key(C2, "A", KeyEnd::Flushed, Writer::Operator);
        tale.at(200).begins(C1).at(201).sets(C1, "ADE").at(202).decides(C1, "ADE");
        tale.finds(SoundGrant)
    };
    assert!(judged(|_| {}).is_violated());
    let restarts = |tale: &mut Tale| {
        tale.at(100).tell(EventKind::NodeUp { node: node('A'), incarnation: 1 });
    };
    assert_eq!(judged(restarts), Judgement::Holds);
}

#[test]
fn a_missing_key_is_set_again_only_after_an_extension() {
    let judged = |confirmed_by: &str, settles: bool| {
        let mut tale = Tale::new();
        tale.begins(C1).writes(C1, 'A', OpKind::Set);
        tale.at(1).sets(C1, "ABC").at(2).decides(C1, "ABC").delivers(C1);
        tale.at(100).begins_extension(C1).at(101).retimes(C1, C1, confirmed_by);
        if settles {
            let until_ns = tale.extended_until_ns(C1);
            tale.succeeds(C1, confirmed_by, until_ns);
        }
        tale.at(200).writes(C1, 'A', OpKind::Set);
        tale.finds(SoundGrant)
    };
    assert!(judged("AB", false).is_violated());
    assert_eq!(judged("ABC", false), Judgement::Holds, "its success is reported next");
    assert_eq!(judged("ABC", true), Judgement::Holds);
}

#[test]
fn an_extension_begins_when_the_last_one_is_decided() {
    let judged = |decides: bool, again_ms: u64| {
        let mut tale = c1_holds();
        tale.at(100).begins_extension(C1);
        if decides {
            tale.fails_to_extend(C1);
        }
        tale.at(again_ms).begins_extension(C1).finds(SoundGrant)
    };
    assert!(judged(false, 149).is_violated());
    assert_eq!(judged(true, 149), Judgement::Holds);
    assert_eq!(judged(false, 150), Judgement::Holds, "the node timeout is over");
}

#[test]
fn no_set_is_written_to_a_node_that_owes_an_answer() {
    let judged = |set_ms: u64, op, stopped: bool| {
        let mut tale = Tale::new();
        let look = (tale.begins(C1).writes(C1, 'A', OpKind::Look), C1, 'A', OpKind::Look);
        if stopped {
            tale.at(10).stops(C1).continues(C1);
        }
        tale.at(set_ms).begins(C1_AGAIN).writes(C1_AGAIN, 'A', op);
        tale.at(200).hears(look, Answer::Yes).finds(SoundGrant)
    };
    assert!(judged(52, OpKind::Set, false).is_violated());
    assert_eq!(judged(51, OpKind::Set, false), Judgement::Vacuous, "the node timeout and 1 ms");
    assert_eq!(judged(52, OpKind::Release, false), Judgement::Vacuous);
    assert_eq!(judged(52, OpKind::Set, true), Judgement::Vacuous, "the answer may have waited");
}

#[test]
fn a_clock_that_became_fast_prolongs_no_owed_answer() {
    let judged = |fast_from_ms| {
        let mut tale = Tale::new();
        tale.begins(C1);
        let mut look = None;
        for ms in [1, 5, 40] {
            tale.at(ms);
            if ms == fast_from_ms {
                tale.runs_at(host(C1), ClockKind::Boot, 400_000_000);
            }
            if ms == 5 {
                look = Some((tale.writes(C1, 'A', OpKind::Look), C1, 'A', OpKind::Look));
            }
        }
        tale.at(50).begins(C1_AGAIN).writes(C1_AGAIN, 'A', OpKind::Set);
        tale.at(200).hears(look.expect("at 5 ms"), Answer::Yes).finds(SoundGrant)
    };
    assert!(judged(1).is_violated(), "45 ms are 63 ms of its clock");
    assert_eq!(judged(40), Judgement::Vacuous);
}

#[test]
fn other_clients_may_write_a_set_to_a_node_that_owes_an_answer() {
    let mut tale = Tale::new();
    tale.scenario.clients[0].subject = String::from("redlock-no-step-3");
    let look = (tale.begins(C1).writes(C1, 'A', OpKind::Set), C1, 'A', OpKind::Set);
    tale.at(90).begins(C1_AGAIN).writes(C1_AGAIN, 'A', OpKind::Set);
    assert_eq!(tale.at(200).hears(look, Answer::No).finds(SoundGrant), Judgement::Vacuous);
}

#[test]
fn a_vote_of_a_master_that_a_failover_replaced_is_amnesia() {
    let judged = |told: &str| {
        let mut tale = Tale::new();
        tale.with_fault(&format!("failover = {{ node = 'C', to = 'C', told = ['{told}'] }}"));
        tale.tell(EventKind::FaultBegan { fault: FaultId(0) });
        tale.at(100).begins(C1).sets(C1, "AB").at(200).decides(C1, "ABC");
        tale.blame(SoundGrant)
    };
    assert_eq!(judged("c2"), ["amnesia(C)"]);
    assert_eq!(judged("c1"), ["none"]);
}

/// A worker may enter again by the attempt whose keys it still has.
#[test]
fn an_attempt_that_is_delivered_twice_is_granted_once() {
    let mut tale = c1_holds();
    tale.at(500).releases(C1).at(600).decides(C1, "ABC").delivers(C1);
    let mut oracle = Oracle::new(&tale.scenario, &[]);
    tale.events.iter().for_each(|event| oracle.observe(event));
    assert_eq!((oracle.counters().attempts, oracle.counters().granted), (1, 1));
}

#[test]
fn a_late_command_may_prolong_a_keys_life_but_not_shorten_it() {
    let a = node('A');
    let judged = |later_expiry_by_ms: i64| {
        let mut tale = Tale::new();
        tale.runs_at(host(C1), ClockKind::Boot, -500_000_000).acquires(C1, "ABC");
        tale.at(9_000).retimes(C1, C1, "A");
        let expiries = tale.events.iter_mut().filter_map(|event| match &mut event.kind {
            EventKind::Executed { node, expires_wall_ms, .. } if *node == a => {
                Some(expires_wall_ms)
            }
            _ => None,
        });
        let [first_ms, later_ms] =
            expiries.collect::<Vec<_>>().try_into().expect("a SET and one more");
        *later_ms = first_ms.saturating_add_signed(later_expiry_by_ms);
        tale.finds(SoundGrant)
    };
    // By the clock of c1 the lease lives for another 5 s, and by that of the node for one.
    assert_eq!(judged(500), Judgement::Holds);
    assert!(judged(-500).is_violated());
}
