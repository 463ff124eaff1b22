//! Tests of deadlock-free. With a TTL of 10 s the bound is 10 567 ms: the TTL, 102 ms of drift,
//! 1 ms, a retry delay of 200 ms and an attempt bound of 264 ms.

mod late_keys;
mod paced;
mod quarantine;
mod stops;
mod wakes;

use super::tale::{C1, C1_AGAIN, C2, MS, PROBE, Tale, host, node};
use crate::history::{
    Answer, AttemptId, ClockKind, EventKind, FaultId, KeyEnd, OpKind, Settlement, Writer,
};
use crate::oracle::Judgement;
use crate::scenario::Property::{DeadlockFree, FaultTolerant};

const BOUND_MS: u64 = 10_567;

impl Tale {
    fn heals(&mut self) -> &mut Self {
        self.tell(EventKind::Healed { probe: PROBE.client })
    }
}

/// Adds attempts of `client` that fail, one every 100 ms, from `from_ms` until `until_ms`.
fn keeps_failing(tale: &mut Tale, client: AttemptId, (from_ms, until_ms): (u64, u64)) {
    for (count, ms) in (from_ms..until_ms).step_by(100).enumerate() {
        let id = AttemptId { number: client.number + count as u16, ..client };
        tale.at(ms).begins(id).at(ms + 50).settles(id, Settlement::Taken);
    }
}

#[test]
fn without_a_probe_or_a_long_wait_it_is_vacuous() {
    assert_eq!(Tale::new().acquires(C1, "ABC").finds(DeadlockFree), Judgement::Vacuous);
}

#[test]
fn a_probe_that_is_granted_in_time_holds() {
    let mut tale = Tale::new();
    tale.at(1_000).heals().at(1_000 + BOUND_MS - 2).acquires(PROBE, "ABC").at(90_000);
    assert_eq!(tale.finds(DeadlockFree), Judgement::Holds);
}

#[test]
fn a_probe_that_is_not_granted_in_time_violates_it() {
    let mut tale = Tale::new();
    tale.at(1_000).heals().at(1_000 + BOUND_MS);
    assert_eq!(tale.finds(DeadlockFree), Judgement::Vacuous, "nobody can say yet");
    let found = tale.at_ns((1_000 + BOUND_MS) * MS + 1).violation(DeadlockFree);
    assert_eq!((found.from_ns, found.first.client), (1_000 * MS, PROBE.client));
    assert_eq!(tale.blame(DeadlockFree), ["none"]);
}

#[test]
fn a_probe_that_is_granted_too_late_violates_it() {
    let mut tale = Tale::new();
    tale.at(1_000).heals();
    keeps_failing(&mut tale, PROBE, (1_000, 12_000));
    assert!(tale.at(12_000).acquires(PROBE, "ABC").finds(DeadlockFree).is_violated());
}

#[test]
fn a_write_before_the_heal_restarts_the_bound() {
    let mut tale = Tale::new();
    tale.begins(C1);
    let command = tale.writes(C1, 'A', OpKind::Set);
    tale.at(1_000).heals().at(5_000);
    let change = (Writer::Nobody, Writer::Attempt(C1));
    tale.executes((command, C1, 'A', OpKind::Set), Answer::Yes, change);
    assert_eq!(tale.at(5_000 + BOUND_MS).finds(DeadlockFree), Judgement::Vacuous);
    assert!(tale.at(5_001 + BOUND_MS).finds(DeadlockFree).is_violated());
}

#[test]
fn a_write_after_the_heal_does_not_restart_the_bound() {
    let mut tale = Tale::new();
    tale.at(1_000).heals().begins(C1).at(5_000).sets(C1, "A").at(5_000 + BOUND_MS);
    assert!(tale.finds(DeadlockFree).is_violated());
}

#[test]
fn another_grant_and_the_end_of_its_belief_restart_the_bound() {
    let mut tale = Tale::new();
    tale.at(1_000).heals().at(2_998).acquires(C1, "ABC");
    // The belief lasts until 9 898 ms after T1.
    assert_eq!(tale.at(2_998 + 9_898 + BOUND_MS).finds(DeadlockFree), Judgement::Vacuous);
    assert!(tale.at(2_999 + 9_898 + BOUND_MS).finds(DeadlockFree).is_violated());
}

#[test]
fn the_death_of_another_client_restarts_the_bound() {
    let story = |until_ms| {
        let mut tale = Tale::new();
        tale.at(1_000);
        keeps_failing(&mut tale, C1, (1_000, 5_000));
        tale.kills(C2);
        keeps_failing(&mut tale, AttemptId { number: 100, ..C1 }, (5_000, until_ms));
        tale.finds(DeadlockFree)
    };
    assert_eq!(story(15_400), Judgement::Vacuous);
    assert!(story(15_600).is_violated(), "the bound since the death, at 4 950 ms, is over");
}

#[test]
fn a_command_of_a_dead_client_restarts_the_bound() {
    let story = |until_ms| {
        let mut tale = Tale::new();
        tale.at(1_000);
        let late = tale.writes(C2, 'A', OpKind::Set);
        keeps_failing(&mut tale, C1, (1_000, 5_000));
        tale.kills(C2);
        keeps_failing(&mut tale, AttemptId { number: 100, ..C1 }, (5_000, 9_000));
        let keys = (Writer::Nobody, Writer::Attempt(C2));
        tale.executes((late, C2, 'A', OpKind::Set), Answer::Yes, keys);
        keeps_failing(&mut tale, AttemptId { number: 200, ..C1 }, (9_000, until_ms));
        tale.finds(DeadlockFree)
    };
    assert_eq!(story(19_400), Judgement::Vacuous);
    assert!(story(19_600).is_violated(), "the bound since the execution, at 8 950 ms, is over");
}

#[test]
fn without_a_majority_nothing_is_judged_until_it_is_back() {
    let mut tale = Tale::new();
    for at in ['A', 'B', 'C'] {
        tale.tell(EventKind::NodeDown { node: node(at), power: true });
    }
    tale.at(1_000).heals();
    assert_eq!(tale.at(60_000).finds(DeadlockFree), Judgement::Vacuous);
    tale.tell(EventKind::NodeUp { node: node('A'), incarnation: 1 });
    // The client dials the node again within 2 064 ms.
    assert_eq!(tale.at(60_000 + 2_064 + BOUND_MS).finds(DeadlockFree), Judgement::Vacuous);
    assert!(tale.at(60_001 + 2_064 + BOUND_MS).finds(DeadlockFree).is_violated());
}

#[test]
fn keys_of_clients_that_cannot_win_excuse_until_they_end() {
    let story = |cut: [&str; 2], until_ms: u64| {
        let mut tale = Tale::new();
        for nodes in cut {
            tale.with_fault(&format!("partition = {{ between = {nodes} }}"));
        }
        tale.begins(C2).sets(C2, "CDE");
        for fault in [FaultId(0), FaultId(1)] {
            tale.tell(EventKind::FaultBegan { fault });
        }
        keeps_failing(&mut tale, C1, (100, 12_000));
        tale.at(12_000).expires(C2, "CDE");
        keeps_failing(&mut tale, AttemptId { number: 200, ..C1 }, (12_050, until_ms));
        tale.finds(DeadlockFree)
    };
    let without_majority = ["[['c2'], ['A', 'B', 'D']]", "[['c1'], ['E']]"];
    let without_release = ["[['c2'], ['C']]", "[['c1'], ['D', 'E']]"];
    for excused in [without_majority, without_release] {
        assert_eq!(story(excused, 11_900 + BOUND_MS), Judgement::Vacuous, "{excused:?}");
        assert!(story(excused, 12_000 + BOUND_MS).is_violated(), "{excused:?}");
    }
    let neither = ["[['c2'], ['A', 'B']]", "[['c1'], ['E']]"];
    assert!(story(neither, 11_900 + BOUND_MS).is_violated());
}

#[test]
fn clients_that_try_in_vain_for_too_long_violate_it() {
    let mut tale = Tale::new();
    keeps_failing(&mut tale, C1, (0, BOUND_MS));
    assert_eq!(tale.finds(DeadlockFree), Judgement::Vacuous);
    let mut tale = Tale::new();
    keeps_failing(&mut tale, C1, (0, BOUND_MS + 100));
    let found = tale.violation(DeadlockFree);
    assert_eq!((found.from_ns, found.first.client), (0, C1.client));
    assert_eq!(tale.blame(DeadlockFree), ["none"]);
}

#[test]
fn a_client_that_did_not_want_the_lock_for_a_while_begins_anew() {
    let mut tale = Tale::new();
    keeps_failing(&mut tale, C1, (0, 6_000));
    tale.tell(EventKind::GaveUp { client: C1.client });
    let later = AttemptId { number: 100, ..C1 };
    keeps_failing(&mut tale, later, (7_000, 13_000));
    assert_eq!(tale.finds(DeadlockFree), Judgement::Vacuous);
}

#[test]
fn a_grant_to_anybody_begins_the_bound_anew() {
    let mut tale = Tale::new();
    keeps_failing(&mut tale, C1, (0, 6_000));
    tale.at(6_000).acquires(PROBE, "ABC");
    keeps_failing(&mut tale, AttemptId { number: 100, ..C1 }, (6_050, 16_000));
    assert_eq!(tale.finds(DeadlockFree), Judgement::Vacuous);
}

#[test]
fn a_stop_begins_the_bound_anew() {
    let mut tale = Tale::new();
    keeps_failing(&mut tale, C1, (0, 5_900));
    tale.at(5_900).stops(C1).at(6_100).continues(C1);
    keeps_failing(&mut tale, AttemptId { number: 100, ..C1 }, (6_100, 16_000));
    assert_eq!(tale.finds(DeadlockFree), Judgement::Vacuous);
}

#[test]
fn masters_with_clocks_set_back_beyond_the_drift_are_blamed() {
    let steps = |by_ms: i64| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABCDE").at(500).kills(C1).at(1_000);
        for at in ['A', 'B', 'C'] {
            tale.steps(node(at).first_host(), ClockKind::Wall, by_ms);
        }
        tale.heals().at(10_002).expires(C1, "DE").at(20_000).blame(DeadlockFree)
    };
    assert_eq!(steps(-30_000), ["clock(A)", "clock(B)", "clock(C)"]);
    assert_eq!(steps(-103), ["clock(A)", "clock(B)", "clock(C)"]);
    assert_eq!(steps(-102), ["none"]);
}

#[test]
fn a_client_whose_own_clock_is_slow_is_not_blamed_itself() {
    let waits = |rate_ppb: i32| {
        let mut tale = Tale::new();
        tale.runs_at(host(C1), ClockKind::Boot, rate_ppb);
        keeps_failing(&mut tale, C1, (100, 12_000));
        tale.blame(DeadlockFree)
    };
    assert_eq!(waits(-250_000_000), ["clock(c1)"]);
    assert_eq!(waits(-5_000_000), ["none"]);
}

#[test]
fn an_own_key_on_a_slow_node_is_blamed_on_the_nodes_clock() {
    let waits = |rate_ppb: i32| {
        let mut tale = Tale::new();
        for at in ['A', 'B', 'C'] {
            tale.runs_at(node(at).first_host(), ClockKind::Wall, rate_ppb);
        }
        tale.acquires(C1, "ABC").releases(C1);
        keeps_failing(&mut tale, C1_AGAIN, (100, 14_000));
        tale.blame(DeadlockFree)
    };
    assert_eq!(waits(-500_000_000), ["clock(A)", "clock(B)", "clock(C)"]);
    assert_eq!(waits(0), ["none"]);
}

#[test]
fn two_names_of_a_node_are_blamed_on_membership() {
    let mut tale = Tale::new();
    tale.scenario.cluster.aliases.insert(String::from("A2"), String::from("A"));
    tale.scenario.clients[1].nodes = Some(["A", "A2"].map(String::from).to_vec());
    keeps_failing(&mut tale, C1, (100, 12_000));
    assert_eq!(tale.blame(DeadlockFree), ["membership"]);
}

#[test]
fn a_quarantine_on_a_slow_clock_is_blamed_on_that_clock() {
    let waits = |rate_ppb: i32, ends_after_ms: u64| {
        let mut tale = Tale::new();
        tale.runs_at(host(C1), ClockKind::Boot, rate_ppb).at(100).begins(C1);
        let from_local_ns = tale.reads_ns(host(C1), ClockKind::Boot) + ends_after_ms * MS;
        for at in ['A', 'B', 'C', 'D', 'E'] {
            let (client, node) = (C1.client, node(at));
            tale.tell(EventKind::Eligible { client, node, from_local_ns });
        }
        tale.settles(C1, Settlement::Quarantined).at(24_100).begins(C1_AGAIN);
        tale.blame(DeadlockFree)
    };
    assert_eq!(waits(-500_000_000, 12_000), ["clock(c1)"]);
    assert_eq!(waits(0, 24_000), ["none"]);
}

#[test]
fn a_quarantine_ends_by_the_current_rate_of_the_clock() {
    let waits = |until_ms: u64| {
        let mut tale = Tale::new();
        tale.runs_at(host(PROBE), ClockKind::Boot, 1_000_000_000).at(1_000).heals();
        let from_local_ns = tale.reads_ns(host(PROBE), ClockKind::Boot) + 8_000 * MS;
        for at in ['A', 'B', 'C'] {
            let (client, node) = (PROBE.client, node(at));
            tale.tell(EventKind::Eligible { client, node, from_local_ns });
        }
        tale.at(2_000).runs_at(host(PROBE), ClockKind::Boot, 0);
        tale.at(until_ms + BOUND_MS).finds(DeadlockFree)
    };
    assert_eq!(waits(8_000), Judgement::Vacuous);
    assert!(waits(8_001).is_violated());
}

#[test]
fn a_clock_that_kept_a_key_too_long_after_its_return_is_blamed() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(500).kills(C1);
    tale.at(1_000).ends_key(C1, "ABC", KeyEnd::Flushed, Writer::Nobody);
    for at in ['A', 'B', 'C'] {
        let (node, writer, expires_wall_ms) = (node(at), Writer::Attempt(C1), 10_000);
        tale.steps(node.first_host(), ClockKind::Wall, -30_000);
        tale.tell(EventKind::KeyReturned { node, writer, expires_wall_ms });
    }
    tale.heals().at(39_990).expires(C1, "ABC");
    tale.at(39_995).begins(PROBE).at(40_000).settles(PROBE, Settlement::TooFewNodes);
    assert_eq!(tale.blame(DeadlockFree), ["clock(A)", "clock(B)", "clock(C)"]);
}

#[test]
fn clocks_that_kept_keys_too_long_are_blamed_after_their_end() {
    let steps = |by_ms: i64| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABCDE").at(500).kills(C1).at(1_000);
        for at in ['A', 'B', 'C'] {
            tale.steps(node(at).first_host(), ClockKind::Wall, by_ms);
        }
        tale.heals().at(10_002).expires(C1, "DE").at(39_990).expires(C1, "ABC");
        tale.at(39_995).begins(PROBE).at(40_000).settles(PROBE, Settlement::TooFewNodes);
        tale.blame(DeadlockFree)
    };
    assert_eq!(steps(-30_000), ["clock(A)", "clock(B)", "clock(C)"]);
    assert_eq!(steps(-102), ["none"]);
}

#[test]
fn a_clock_that_would_not_have_helped_is_not_blamed() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABCDE").at(500).kills(C1);
    tale.steps(node('A').first_host(), ClockKind::Wall, -30_000);
    assert_eq!(tale.heals().at(30_000).blame(DeadlockFree), ["none"]);
}

#[test]
fn full_memory_and_hanging_disks_excuse_waiting() {
    for (fault, is_excused) in [
        ("memory-full = { host = ['A', 'B', 'C'] }", true),
        ("disk-stall = { host = ['A', 'B', 'C'] }", true),
        ("snapshot = { host = ['A', 'B', 'C'] }", false),
    ] {
        let mut tale = Tale::new();
        tale.with_fault(fault).tell(EventKind::FaultBegan { fault: FaultId(0) });
        keeps_failing(&mut tale, C1, (100, 25_000));
        assert_eq!(!tale.finds(DeadlockFree).is_violated(), is_excused, "{fault}");
    }
}

/// With the retry delay of 200 ms and two attempt bounds of 264 ms, a client that sleeps through a
/// silence of 5 s, on a clock that is 52 ms late, attempts within this time.
const SLEEP_MS: u64 = 5_780;

#[test]
fn a_client_that_sleeps_while_the_lock_is_held_is_not_stuck() {
    let mut tale = Tale::new();
    tale.acquires(C2, "ABCDE").begins(C1).settles(C1, Settlement::Taken);
    // The belief lasts until 9 898 ms after T1.
    tale.at(9_000).begins(C1_AGAIN).at(9_050).settles(C1_AGAIN, Settlement::Taken);
    assert_eq!(tale.at(9_898 + SLEEP_MS).finds(DeadlockFree), Judgement::Vacuous);
}

#[test]
fn a_sleep_is_judged_when_the_client_gives_up_and_at_the_end() {
    let mut tale = Tale::new();
    tale.begins(C1).at(50).settles(C1, Settlement::Taken).at(51 + SLEEP_MS);
    assert!(tale.finds(DeadlockFree).is_violated(), "the history ends");
    tale.tell(EventKind::GaveUp { client: C1.client });
    assert!(tale.at(60_000).finds(DeadlockFree).is_violated());
    let mut tale = Tale::new();
    tale.begins(C1).at(50).settles(C1, Settlement::Taken);
    tale.tell(EventKind::GaveUp { client: C1.client });
    assert_eq!(tale.at(60_000).finds(DeadlockFree), Judgement::Vacuous);
}

#[test]
fn an_attempt_is_timed_by_the_clock_as_it_ran() {
    let judged = |slow_until_ms| {
        let mut tale = Tale::new();
        tale.runs_at(host(C1), ClockKind::Boot, -500_000_000).begins(C1);
        tale.at(slow_until_ms).runs_at(host(C1), ClockKind::Boot, 0);
        tale.at(400).settles(C1, Settlement::TooFewNodes).finds(FaultTolerant)
    };
    assert!(judged(100).is_violated());
    assert_eq!(judged(300), Judgement::Holds);
}

#[test]
fn a_clock_that_stretched_round_trips_during_the_wait_is_blamed() {
    let waits = |is_fast: bool| {
        let mut tale = Tale::new();
        tale.scenario.cluster.network.delay = "1ms..20ms".parse().unwrap();
        let rate_ppb = if is_fast { 250_000_000 } else { 0 };
        tale.runs_at(host(C1), ClockKind::Boot, rate_ppb);
        keeps_failing(&mut tale, C1, (0, BOUND_MS - 100));
        tale.runs_at(host(C1), ClockKind::Boot, 0);
        keeps_failing(&mut tale, AttemptId { number: 200, ..C1 }, (BOUND_MS - 100, BOUND_MS + 200));
        tale.blame(DeadlockFree)
    };
    assert_eq!(waits(true), ["clock(c1)"]);
    assert_eq!(waits(false), ["none"]);
}
