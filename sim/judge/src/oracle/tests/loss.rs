//! Tests of sound-loss.

use super::tale::{C1, MS, Tale, host, node};
use crate::history::LostReason::{self, DeadlinePassed, KeepAliveFailed};
use crate::history::{ClockKind, EventKind, FaultId, KeyEnd, Writer};
use crate::oracle::Judgement;
use crate::scenario::Property::SoundLoss;
use crate::scenario::Span;

/// C1 is granted the lock at 2 ms by all five nodes.
fn granted() -> Tale {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABCDE");
    tale
}

/// Of the lease granted at 2 ms, the keys on `nodes` are evicted at 2 s.
fn evicted(nodes: &str) -> Tale {
    let mut tale = granted();
    tale.at(2_000).ends_key(C1, nodes, KeyEnd::Evicted, Writer::Nobody);
    tale
}

#[test]
fn a_lease_that_ends_with_its_keys_tests_nothing() {
    assert_eq!(granted().at(3_000).releases(C1).finds(SoundLoss), Judgement::Vacuous);
    let at_its_deadline = granted().at(9_897).loses_by(C1, DeadlinePassed).finds(SoundLoss);
    assert_eq!(at_its_deadline, Judgement::Vacuous);
}

/// C1 is to keep the lease that it has in `tale` alive for `limit`, and reports it as lost at its
/// deadline.
fn lost_at_its_deadline(limit: &str, mut tale: Tale) -> Judgement {
    let step = toml::from_str(&format!("acquire = {{ keep-alive = '{limit}' }}")).expect("a step");
    tale.scenario.clients[0].steps.push(step);
    tale.at(9_897).loses_by(C1, DeadlinePassed).finds(SoundLoss)
}

#[test]
fn a_lease_is_kept_alive_until_its_limit() {
    for tale in [granted, || evicted("AB")] {
        assert!(lost_at_its_deadline("60s", tale()).is_violated());
        assert_eq!(lost_at_its_deadline("29s", tale()), Judgement::Vacuous);
    }
}

#[test]
fn a_lease_that_could_not_be_extended_is_not_kept_alive() {
    let mut stopped = granted();
    stopped.at(3_000).stops(C1).at(9_000).continues(C1);
    assert_eq!(lost_at_its_deadline("60s", stopped), Judgement::Vacuous);
    let mut stalled = granted();
    for node in ['A', 'B', 'C'].map(node) {
        stalled.at(3_000).tell(EventKind::NodeStalled { node });
    }
    assert_eq!(lost_at_its_deadline("60s", stalled), Judgement::Vacuous);
}

#[test]
fn a_loss_without_a_cause_is_reported() {
    assert!(granted().at(2_000).loses(C1).finds(SoundLoss).is_violated());
    assert!(evicted("AB").loses(C1).finds(SoundLoss).is_violated());
    let violation = evicted("AB").loses(C1).violation(SoundLoss);
    assert_eq!((violation.from_ns, violation.to_ns), (2_000 * MS, 2_000 * MS));
    assert!(violation.blamed.is_none());
}

#[test]
fn a_lease_does_not_run_out_before_its_deadline() {
    let after = |ms, reason| granted().at(ms).loses_by(C1, reason).finds(SoundLoss);
    assert!(after(9_895, DeadlinePassed).is_violated(), "more than 2 ms before it");
    assert_eq!(after(9_896, DeadlinePassed), Judgement::Vacuous);
    assert_eq!(after(2_000, LostReason::Closed), Judgement::Vacuous);
    assert!(after(9_897, LostReason::KeysGone).is_violated(), "no key is gone");
}

#[test]
fn a_lease_that_runs_out_says_whether_its_last_extension_failed() {
    let ends = |extended: &[(u64, bool)], reason| {
        let mut tale = granted();
        let step = toml::from_str("acquire = { keep-alive = '20s' }").expect("a step");
        tale.scenario.clients[0].steps.push(step);
        let mut deadline_ms = 9_898;
        for (ms, extended) in extended.iter().copied() {
            if extended {
                tale.at(ms).begins_extension(C1);
                let until_ns = tale.extended_until_ns(C1);
                tale.succeeds(C1, "ABCDE", until_ns).prolongs(C1, until_ns);
                deadline_ms = ms + 9_898;
            } else {
                tale.at(ms).fails_to_extend(C1);
            }
        }
        tale.at(deadline_ms).loses_by(C1, reason).finds(SoundLoss)
    };
    assert!(ends(&[(3_000, false)], DeadlinePassed).is_violated());
    assert!(ends(&[(3_000, false), (4_000, true)], KeepAliveFailed).is_violated());
    assert!(ends(&[], KeepAliveFailed).is_violated());
    assert!(ends(&[(9_898, false)], KeepAliveFailed).is_violated(), "too late for a cause");
    assert_eq!(ends(&[(4_000, true), (5_000, false)], KeepAliveFailed), Judgement::Vacuous);
    assert_eq!(ends(&[(9_898, false)], DeadlinePassed), Judgement::Vacuous);
    assert_eq!(ends(&[(3_000, false), (9_898, false)], KeepAliveFailed), Judgement::Vacuous);
    assert_eq!(ends(&[(3_000, false), (4_000, true)], DeadlinePassed), Judgement::Vacuous);
    assert_eq!(ends(&[(3_000, false)], LostReason::KeepAliveEnded), Judgement::Vacuous);
}

#[test]
fn a_majority_of_keys_is_a_cause() {
    assert_eq!(evicted("ABC").at(2_004).loses(C1).finds(SoundLoss), Judgement::Holds);
}

#[test]
fn a_loss_is_noticed_soon() {
    assert_eq!(evicted("ABC").at(2_274).releases(C1).finds(SoundLoss), Judgement::Holds);
    let late = evicted("ABC").at(2_275).loses(C1).violation(SoundLoss);
    assert_eq!((late.from_ns, late.to_ns), (2_000 * MS, 2_275 * MS));
    assert!(evicted("ABC").at(2_275).releases(C1).finds(SoundLoss).is_violated());
    assert!(evicted("ABC").at(2_275).finds(SoundLoss).is_violated(), "at the end of the run");
    assert!(evicted("ABC").at(2_275).kills(C1).finds(SoundLoss).is_violated());
}

#[test]
fn a_push_and_a_read_and_its_reply_may_wait_for_syncs() {
    let noticed_at = |ms| {
        let mut tale = evicted("ABC");
        tale.scenario.cluster.disk.sync_takes = Span::from_ms(400);
        tale.at(ms).releases(C1).finds(SoundLoss)
    };
    assert_eq!(noticed_at(2_274 + 1_200), Judgement::Holds);
    assert!(noticed_at(2_275 + 1_200).is_violated());
}

#[test]
fn a_short_lease_is_not_watched() {
    let mut tale = granted();
    tale.at(10).ends_key(C1, "ABC", KeyEnd::Evicted, Writer::Nobody);
    assert_eq!(tale.at(400).releases(C1).finds(SoundLoss), Judgement::Holds);
}

#[test]
fn a_client_without_answers_need_not_notice_a_loss() {
    let mut tale = evicted("ABC");
    tale.scenario.clients[0].deaf = true;
    assert_eq!(tale.at(5_000).releases(C1).finds(SoundLoss), Judgement::Vacuous);
    let mut tale = evicted("ABC");
    tale.scenario.clients[0].subject = String::from("redlock-literal");
    assert_eq!(tale.at(5_000).releases(C1).finds(SoundLoss), Judgement::Vacuous);
}

#[test]
fn a_process_that_is_stopped_notices_nothing() {
    let mut tale = evicted("ABC");
    tale.at(2_001).stops(C1).at(4_000).continues(C1);
    assert_eq!(tale.at(4_050).loses(C1).finds(SoundLoss), Judgement::Holds);
}

#[test]
fn nodes_out_of_reach_show_nothing() {
    let mut tale = Tale::new();
    tale.with_fault("partition = { between = [['c1'], ['A']] }");
    tale.acquires(C1, "ABCDE").at(1_000).tell(EventKind::FaultBegan { fault: FaultId(0) });
    tale.at(2_000).ends_key(C1, "ABC", KeyEnd::Evicted, Writer::Nobody);
    assert_eq!(tale.at(5_000).releases(C1).finds(SoundLoss), Judgement::Vacuous);
}

#[test]
fn a_half_open_connection_brings_no_push() {
    let noticed = |lost: &str| {
        let mut tale = Tale::new();
        tale.with_fault(&format!(
            "partition = {{ between = [['c1'], ['A', 'B', 'C']], lost = '{lost}' }}"
        ));
        tale.acquires(C1, "ABCDE").at(100).tell(EventKind::FaultBegan { fault: FaultId(0) });
        tale.at(110).tell(EventKind::FaultEnded { fault: FaultId(0) });
        tale.at(4_000).ends_key(C1, "ABC", KeyEnd::Evicted, Writer::Nobody);
        tale.at(5_000).releases(C1).finds(SoundLoss)
    };
    assert_eq!(noticed("silent"), Judgement::Vacuous);
    assert!(noticed("hold").is_violated());
}

#[test]
fn a_slow_clock_measures_the_bound() {
    let mut tale = granted();
    tale.runs_at(host(C1), ClockKind::Boot, -900_000_000).at(2_000);
    tale.ends_key(C1, "ABC", KeyEnd::Evicted, Writer::Nobody);
    assert_eq!(tale.at(4_000).loses(C1).finds(SoundLoss), Judgement::Holds);
}

#[test]
fn a_lease_is_reported_as_lost_by_its_deadline() {
    let late = granted().at(9_899).loses_by(C1, DeadlinePassed).violation(SoundLoss);
    assert_eq!((late.from_ns, late.to_ns), (9_898 * MS, 9_899 * MS));
    assert!(granted().at(9_899).releases(C1).finds(SoundLoss).is_violated());
    assert_eq!(
        granted().at(9_898).loses_by(C1, DeadlinePassed).finds(SoundLoss),
        Judgement::Vacuous
    );
    let mut stopped = granted();
    stopped.at(9_000).stops(C1).at(11_000).continues(C1);
    assert_eq!(stopped.loses_by(C1, DeadlinePassed).finds(SoundLoss), Judgement::Vacuous);
}

#[test]
fn a_check_after_the_deadline_says_that_the_lease_is_over() {
    let checked = |ms, alive| {
        let mut tale = granted();
        tale.at(9_000).stops(C1).at(ms).continues(C1);
        tale.tell(EventKind::Checked { attempt: C1, alive })
            .loses_by(C1, DeadlinePassed)
            .finds(SoundLoss)
    };
    assert!(checked(9_898, true).is_violated());
    assert_eq!(checked(9_898, false), Judgement::Vacuous);
    assert_eq!(checked(9_897, true), Judgement::Vacuous);
}

#[test]
fn a_lost_lease_stays_lost() {
    let after_its_loss = |kind: EventKind| {
        let mut tale = evicted("ABC");
        tale.at(2_004).loses(C1).at(2_005).tell(kind);
        tale.finds(SoundLoss)
    };
    assert!(after_its_loss(EventKind::Checked { attempt: C1, alive: true }).is_violated());
    let (clock, deadline_local_ns) = (ClockKind::Boot, 12_000 * MS);
    let extended = EventKind::ExtensionDelivered { attempt: C1, clock, deadline_local_ns };
    assert!(after_its_loss(extended).is_violated());
    let dead = EventKind::Checked { attempt: C1, alive: false };
    assert_eq!(after_its_loss(dead), Judgement::Holds);
}

#[test]
fn a_lease_is_watched_from_its_delivery_on() {
    let judged = |delivered_ms| {
        let mut tale = Tale::new();
        tale.begins(C1).at(1).sets(C1, "ABC").at(2).decides(C1, "ABC");
        tale.at(delivered_ms).delivers(C1);
        tale.at(3_000).ends_key(C1, "ABC", KeyEnd::Evicted, Writer::Nobody);
        tale.at(3_400).loses(C1).finds(SoundLoss)
    };
    assert!(judged(2).is_violated());
    assert_eq!(judged(2_900), Judgement::Holds);
}
