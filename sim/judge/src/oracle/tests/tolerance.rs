//! Tests of fault-tolerant.

mod bound;
mod connections;
mod keys;
mod nodes;

use super::tale::{C1, C1_AGAIN, C2, MS, PROBE, Tale, host, node};
use crate::history::{
    Answer, AttemptId, ClockKind, EventKind, FaultId, KeyEnd, OpKind, Settlement, Writer,
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
fn a_grant_does_not_wait_for_more_votes_than_a_majority() {
    let mut tale = Tale::new();
    assert_eq!(tale.acquires(C1, "ABCD").blame(FaultTolerant), ["none"]);
    tale = Tale::new();
    tale.scenario.clients[0].subject = String::from("redlock-literal");
    assert_eq!(tale.acquires(C1, "ABCD").finds(FaultTolerant), Judgement::Holds);
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
fn the_node_timeout_passes_by_a_clock_that_gained() {
    let fails_at = |ms: u64| {
        let mut tale = Tale::new();
        let boot = ClockKind::Boot;
        tale.at(1_000).begins(C1).runs_at(host(C1), boot, 500_000_000);
        tale.at(1_020).runs_at(host(C1), boot, 0);
        tale.at(ms).settles(C1, Settlement::TooFewNodes).finds(FaultTolerant).is_violated()
    };
    assert!(!fails_at(1_040));
    assert!(fails_at(1_039));
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
fn two_connections_to_a_node_cannot_be_told_apart() {
    let mut tale = Tale::new();
    tale.scenario.cluster.aliases.insert(String::from("B2"), String::from("B"));
    tale.scenario.clients[0].nodes = Some(["A", "B", "B2"].map(String::from).to_vec());
    // The other SET to B may be answered, and this one not.
    tale.at(1_000).begins(C1).at(1_002).sets(C1, "AB");
    tale.at(1_010).settles(C1, Settlement::TooFewNodes);
    assert_eq!(tale.blame(FaultTolerant), ["membership"]);
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

#[test]
fn a_clock_that_stretches_round_trips_too_far_is_blamed() {
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
fn a_clock_that_stretched_round_trips_is_blamed_afterwards() {
    let fails = |is_fast_until_ms| {
        let mut tale = Tale::new();
        tale.scenario.cluster.network.delay = "1ms..20ms".parse().unwrap();
        tale.runs_at(host(C1), ClockKind::Boot, 250_000_000);
        for ms in [1_000, 1_005, 1_010] {
            tale.at(ms);
            if ms == is_fast_until_ms {
                tale.runs_at(host(C1), ClockKind::Boot, 0);
            }
            if ms == 1_000 {
                tale.begins(C1).sets(C1, "ABC");
            }
        }
        tale.settles(C1, Settlement::TooFewNodes).blame(FaultTolerant)
    };
    assert_eq!(fails(1_005), ["clock(c1)"]);
    assert_eq!(fails(1_000), ["none"]);
}
