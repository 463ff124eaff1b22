//! Tests of extensions: beliefs, soundness, continuity and blame.

mod late;
mod stops;

use super::tale::{C1, C2, C3, DRIFT_MS, MS, TTL_MS, Tale, host, node};
use crate::history::{Answer, ClockKind, EventKind, HostId, KeyEnd, OpKind, Settlement, Writer};
use crate::oracle::{Judgement, Oracle};
use crate::scenario::Property::{
    Continuity, DeadlockFree, ExclusiveSection, MutualExclusion, SoundGrant,
};

const C: HostId = HostId(2);

/// C1 believes from 2 ms to 9 898 ms.
pub(super) fn c1_holds() -> Tale {
    let mut tale = Tale::new();
    tale.with_extensions(3).acquires(C1, "ABC");
    tale
}

#[test]
fn an_extension_moves_the_end_of_the_belief() {
    let mut tale = c1_holds();
    tale.at(5_000).extends(C1, "ABC").at(10_100).acquires(C2, "CDE").at(30_000);
    let found = tale.violation(MutualExclusion);
    assert_eq!((found.from_ns, found.to_ns), (10_102 * MS, (5_000 + TTL_MS - DRIFT_MS) * MS));
}

#[test]
fn an_extension_never_ends_a_belief_early() {
    let mut tale = c1_holds();
    tale.at(100).prolongs(C1, 0).at(9_000).acquires(C2, "CDE").at(30_000);
    let found = tale.violation(MutualExclusion);
    assert_eq!((found.from_ns, found.to_ns), (9_002 * MS, 9_898 * MS));
}

#[test]
fn an_extension_delivered_late_revives_the_belief() {
    let mut tale = c1_holds();
    tale.at(5_000).begins_extension(C1).at(5_001).retimes(C1, C1, "ABC");
    let until_ns = tale.extended_until_ns(C1);
    tale.at(9_950).succeeds(C1, "ABC", until_ns).at(9_960).prolongs(C1, until_ns);
    tale.at(10_000).acquires(C2, "CDE").at(30_000);
    assert_eq!(tale.violation(MutualExclusion).from_ns, 10_002 * MS);
}

#[test]
fn a_released_or_lost_lease_is_not_revived() {
    let mut released = c1_holds();
    released.at(500).releases(C1).prolongs(C1, u64::MAX).acquires(C2, "CDE");
    assert_eq!(released.finds(MutualExclusion), Judgement::Holds);
    let mut lost = c1_holds();
    lost.at(500).loses(C1);
    lost.prolongs(C1, u64::MAX).acquires(C2, "CDE");
    assert_eq!(lost.finds(MutualExclusion), Judgement::Holds);
}

#[test]
fn a_sound_extension_holds() {
    let mut tale = c1_holds();
    tale.at(9_000).extends(C1, "ABC").at(18_000).extends(C1, "ABC");
    assert_eq!(tale.finds(SoundGrant), Judgement::Holds);
    assert_eq!(tale.finds(Continuity), Judgement::Holds);
}

#[test]
fn each_extended_lease_of_three_must_have_been_alone() {
    for (extended, intruder) in [(C1, C2), (C2, C3)] {
        let mut tale = c1_holds();
        tale.at(1_000).acquires(C2, "BCD").at(2_000).acquires(C3, "CDE");
        let found = tale.at(5_000).extends(extended, "ABC").violation(Continuity);
        assert_eq!((found.first, found.second), (extended, Some(intruder)));
    }
}

#[test]
fn an_extension_on_a_minority_is_unsound() {
    let mut tale = c1_holds();
    let found = tale.at(9_000).extends(C1, "AB").violation(SoundGrant);
    assert_eq!((found.from_ns, found.first, found.second), (9_002 * MS, C1, None));
    assert_eq!(tale.blame(SoundGrant), ["none"]);
}

#[test]
fn an_extension_timed_from_its_answers_is_unsound() {
    let mut tale = c1_holds();
    tale.at(9_000).begins_extension(C1).at(9_001).retimes(C1, C1, "ABC").at(9_002);
    let until_ns = tale.extended_until_ns(C1);
    tale.succeeds(C1, "ABC", until_ns + MS);
    assert!(tale.finds(SoundGrant).is_violated());
}

#[test]
fn answers_at_the_old_deadline_are_too_late() {
    for (answered_ms, sound) in [(9_897, true), (9_898, false)] {
        let mut tale = c1_holds();
        tale.at(9_000).begins_extension(C1).at(answered_ms).retimes(C1, C1, "ABC");
        let until_ns = tale.extended_until_ns(C1);
        tale.succeeds(C1, "ABC", until_ns);
        assert_eq!(tale.finds(SoundGrant) == Judgement::Holds, sound, "{answered_ms}");
    }
}

#[test]
fn an_extension_decided_at_the_old_deadline_is_too_late() {
    let mut tale = c1_holds();
    tale.at(9_000).begins_extension(C1).at(9_001).retimes(C1, C1, "ABC");
    let until_ns = tale.extended_until_ns(C1);
    tale.at(9_898).succeeds(C1, "ABC", until_ns);
    assert!(tale.finds(SoundGrant).is_violated());
}

#[test]
fn an_extension_without_validity_is_unsound() {
    let mut tale = Tale::new();
    tale.with_extensions(1).clock = ClockKind::Wall;
    tale.acquires(C1, "ABC").at(5_000).begins_extension(C1).at(5_001).retimes(C1, C1, "ABC");
    let now_ns = tale.reads_ns(host(C1), ClockKind::Wall);
    tale.succeeds(C1, "ABC", now_ns);
    assert!(tale.finds(SoundGrant).is_violated());
}

#[test]
fn answers_of_an_earlier_round_do_not_count() {
    let mut tale = c1_holds();
    tale.at(4_000).begins_extension(C1);
    let late = tale.writes(C1, 'C', OpKind::Extend);
    tale.at(5_000).begins_extension(C1).retimes(C1, C1, "AB");
    let own = (Writer::Attempt(C1), Writer::Attempt(C1));
    tale.executes((late, C1, 'C', OpKind::Extend), Answer::Yes, own).counts_as_change();
    tale.hears((late, C1, 'C', OpKind::Extend), Answer::Yes);
    let until_ns = tale.extended_until_ns(C1);
    assert!(tale.succeeds(C1, "ABC", until_ns).finds(SoundGrant).is_violated());
}

#[test]
fn a_repaired_key_does_not_count_at_once() {
    let mut tale = c1_holds();
    tale.at(1_000).ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
    tale.at(2_000).sets(C1, "C").at(3_000).extends(C1, "ABC");
    assert!(tale.finds(SoundGrant).is_violated());
}

#[test]
fn a_set_for_the_second_name_of_a_node_is_no_repair() {
    let extended = |name: &str, list: [&str; 3]| {
        let mut tale = Tale::new();
        tale.scenario.cluster.aliases.insert(String::from(name), String::from("B"));
        tale.scenario.clients[0].nodes = Some(list.map(String::from).to_vec());
        tale.with_extensions(3).acquires(C1, "AB").at(1_000).begins_extension(C1);
        let command = tale.writes(C1, 'B', OpKind::Set);
        let same = Writer::Attempt(C1);
        tale.executes((command, C1, 'B', OpKind::Set), Answer::Yes, (same, same));
        let until_ns = tale.extended_until_ns(C1);
        tale.retimes(C1, C1, "AB").succeeds(C1, "AB", until_ns).finds(SoundGrant)
    };
    assert_eq!(extended("B2", ["A", "B", "B2"]), Judgement::Holds);
    assert!(extended("B2", ["A", "B", "C"]).is_violated());
}

#[test]
fn a_repaired_key_counts_after_a_round_without_it() {
    let mut tale = Tale::new();
    tale.with_extensions(3).acquires(C1, "ABCD");
    tale.at(1_000).ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
    tale.at(2_000).extends(C1, "ABD").at(2_500).sets(C1, "C").at(3_000).extends(C1, "ABD");
    tale.at(4_000).extends(C1, "ABC");
    assert_eq!(tale.finds(SoundGrant), Judgement::Holds);
}

#[test]
fn key_set_again_in_a_round_counts_neither_in_it_nor_the_next() {
    let mut tale = Tale::new();
    tale.with_extensions(3).acquires(C1, "ABCD");
    tale.at(1_000).ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
    tale.at(2_000).begins_extension(C1).sets(C1, "C").retimes(C1, C1, "ABD");
    let until_ns = tale.extended_until_ns(C1);
    tale.succeeds(C1, "ABD", until_ns).at(4_000).extends(C1, "ABC");
    assert!(tale.finds(SoundGrant).is_violated());
}

#[test]
fn without_an_extension_continuity_is_vacuous() {
    let mut tale = c1_holds();
    tale.at(1_100).acquires(C2, "CDE").at(5_000).begins_extension(C1).fails_to_extend(C1);
    assert_eq!(tale.at(30_000).finds(Continuity), Judgement::Vacuous);
}

/// Counterexample E3: C1 overslept, C2 was granted and released, and C1 sets its keys again.
fn recreated(decided_ms: u64) -> Tale {
    let mut tale = c1_holds();
    tale.at(5_000).stops(C1).at(10_002).expires(C1, "ABC");
    tale.at(decided_ms - 2).acquires(C2, "ABC").at(decided_ms + 100).releases(C2);
    tale.unlocks(C2, "ABC");
    tale
}

#[test]
fn grant_before_an_extension_breaks_continuity_without_overlap() {
    let mut tale = recreated(10_102);
    tale.at(11_000).continues(C1).begins_extension(C1).at(11_001).sets(C1, "ABC").at(11_002);
    let until_ns = tale.extended_until_ns(C1);
    tale.succeeds(C1, "ABC", until_ns).prolongs(C1, until_ns).at(30_000);
    let found = tale.violation(Continuity);
    assert_eq!((found.first, found.second), (C1, Some(C2)));
    assert_eq!((found.from_ns, found.to_ns), (10_102 * MS, 11_002 * MS));
    assert_eq!(tale.blame(Continuity), ["none"]);
    assert!(tale.finds(SoundGrant).is_violated());
    assert_eq!(tale.finds(MutualExclusion), Judgement::Holds);
}

#[test]
fn a_grant_after_t1_of_the_extension_is_not_in_between() {
    for (t1_ms, holds) in [(10_101, true), (10_102, false)] {
        let mut tale = c1_holds();
        tale.at(5_000).stops(C1).at(10_002).expires(C1, "ABC").at(10_100).begins(C2);
        if t1_ms == 10_101 {
            tale.at(10_101).begins_extension(C1).at(10_102).decides(C2, "ABC");
        } else {
            tale.at(10_102).decides(C2, "ABC").begins_extension(C1);
        }
        let until_ns = tale.extended_until_ns(C1);
        tale.at(10_110).succeeds(C1, "ABC", until_ns);
        assert_eq!(tale.finds(Continuity) == Judgement::Holds, holds, "{t1_ms}");
    }
}

#[test]
fn earlier_or_released_leases_do_not_matter() {
    let mut tale = Tale::new();
    tale.with_extensions(1).acquires(C1, "ABC").at(100).releases(C1).unlocks(C1, "ABC");
    tale.at(200).acquires(C2, "ABC").at(5_000).extends(C2, "ABC");
    assert_eq!(tale.finds(Continuity), Judgement::Holds);
}

#[test]
fn continuity_blames_the_first_loss_even_if_the_key_is_back() {
    let mut tale = Tale::new();
    tale.with_extensions(1).acquires(C1, "ABC");
    tale.at(1_000).ends_key(C1, "C", KeyEnd::Flushed, Writer::Nobody);
    tale.at(1_100).acquires(C2, "CDE").at(1_200).releases(C2).unlocks(C2, "CDE");
    tale.at(1_300).sets(C1, "C").at(2_000).extends(C1, "ABC").at(30_000);
    assert_eq!(tale.blame(Continuity), ["amnesia(C)"]);
    assert_eq!(tale.blame(MutualExclusion), ["amnesia(C)"]);
}

#[test]
fn the_node_is_timed_from_the_last_retiming_of_the_key() {
    let mut tale = c1_holds();
    // Time that the clock gained before the extension does not shorten the expiry set by the
    // extension.
    tale.at(4_000).steps(C, ClockKind::Wall, 500).at(5_000).extends(C1, "ABC");
    tale.at(15_002).expires(C1, "C").at(15_100).acquires(C2, "CDE").at(15_200);
    let until_ns = tale.extended_until_ns(C1);
    tale.prolongs(C1, until_ns + 1_000 * MS).at(30_000);
    assert_eq!(tale.blame(MutualExclusion), ["none"]);

    let mut since = c1_holds();
    since.at(5_000).extends(C1, "ABC").at(6_000).steps(C, ClockKind::Wall, 10_000);
    since.at(6_001).expires(C1, "C").at(6_100).acquires(C2, "CDE").at(30_000);
    assert_eq!(since.blame(MutualExclusion), ["clock(C)"]);
}

#[test]
fn client_is_timed_from_t1_of_its_last_extension() {
    let set_back_at = |ms: u64| {
        let mut tale = Tale::new();
        tale.with_extensions(1).clock = ClockKind::Wall;
        tale.acquires(C1, "ABC");
        let steps = |tale: &mut Tale| {
            tale.steps(host(C1), ClockKind::Wall, -500);
        };
        if ms < 5_000 {
            steps(tale.at(ms));
            tale.at(5_000).extends(C1, "ABC");
            let until_ns = tale.extended_until_ns(C1);
            tale.prolongs(C1, until_ns + 1_000 * MS);
        } else {
            tale.at(5_000).extends(C1, "ABC").at(ms);
            steps(&mut tale);
        }
        tale.at(15_002).expires(C1, "ABC").at(15_100).acquires(C2, "ABC");
        tale.at(30_000).blame(MutualExclusion)
    };
    assert_eq!(set_back_at(4_000), ["none"]);
    assert_eq!(set_back_at(6_000), ["clock(c1)"]);
}

#[test]
fn a_failed_extension_leaves_what_the_lease_rests_on() {
    let mut tale = Tale::new();
    tale.with_extensions(1).clock = ClockKind::Wall;
    tale.acquires(C1, "ABC").at(4_000).steps(host(C1), ClockKind::Wall, -5_000);
    tale.at(5_000).begins_extension(C1);
    tale.at(10_002).expires(C1, "ABC").at(10_100).acquires(C2, "ABC").at(30_000);
    assert_eq!(tale.blame(MutualExclusion), ["clock(c1)"]);
}

#[test]
fn section_under_an_expired_extension_is_the_clients_fault() {
    let mut tale = c1_holds();
    tale.at(8_000).begins_extension(C1).at(8_001).retimes(C1, C1, "ABC").stops(C1);
    tale.at(18_002).expires(C1, "ABC").acquires(C2, "ABC").enters(C2);
    let until_ns = tale.extended_until_ns(C1);
    tale.at(19_000).continues(C1).succeeds(C1, "ABC", until_ns).prolongs(C1, until_ns).enters(C1);
    assert_eq!(tale.at(19_100).blame(ExclusiveSection), ["none"]);
}

/// C1 extends every 5 s until `until_ms`, and C2 keeps trying and fails.
fn keeps_extending(until_ms: u64) -> Tale {
    let mut tale = c1_holds();
    for (number, ms) in (1..).zip((100..until_ms).step_by(100)) {
        tale.at(ms);
        if ms % 5_000 == 0 {
            tale.extends(C1, "ABC");
        }
        let id = crate::history::AttemptId { number, ..C2 };
        tale.at(ms + 10).begins(id).at(ms + 60).settles(id, Settlement::Taken);
    }
    tale
}

#[test]
fn extending_within_the_bound_is_no_deadlock_beyond_it_is_one() {
    // The bound starts 40 s after the grant (the grant and three extensions) and lasts 10 567 ms.
    assert_eq!(keeps_extending(50_000).finds(DeadlockFree), Judgement::Vacuous);
    let mut beyond = keeps_extending(51_000);
    let found = beyond.violation(DeadlockFree);
    assert_eq!((found.from_ns, found.first.client), (40_002 * MS, C2.client));
    assert_eq!(beyond.blame(DeadlockFree), ["none"]);
}

#[test]
fn extensions_are_counted() {
    let mut tale = c1_holds();
    tale.at(5_000).extends(C1, "ABC").at(6_000).begins_extension(C1);
    let mut oracle = Oracle::new(&tale.scenario, &[]);
    tale.events.iter().for_each(|event| oracle.observe(event));
    assert_eq!((oracle.counters().extensions, oracle.counters().extended), (2, 1));
}

#[test]
fn failed_over_node_expires_keys_by_its_new_masters_clock() {
    let mut tale = Tale::new();
    let replica = toml::from_str("id = 'C2'\nof = 'C'").expect("a replica");
    tale.scenario.cluster.replicas.push(replica);
    let new = tale.scenario.replica_host(0);
    tale.sets_clock(new, ClockKind::Wall, 1_009_000, 0).acquires(C1, "ABC");
    tale.at(500).tell(EventKind::FailedOver { node: node('C'), host: new });
    tale.at(1_002).expires(C1, "C").at(1_100).acquires(C2, "CDE").at(30_000);
    assert_eq!(tale.blame(MutualExclusion), ["clock(C2)"]);
}

#[test]
fn the_clock_of_the_master_that_expired_the_key_is_blamed() {
    let mut tale = Tale::new();
    let replica = toml::from_str("id = 'C2'\nof = 'C'").expect("a replica");
    tale.scenario.cluster.replicas.push(replica);
    let new = tale.scenario.replica_host(0);
    tale.sets_clock(new, ClockKind::Wall, 1_000_000, 0).acquires(C1, "ABC");
    tale.at(500).steps(node('C').first_host(), ClockKind::Wall, 9_600).expires(C1, "C");
    tale.at(600).begins(C2).sets(C2, "CDE");
    tale.at(601).tell(EventKind::FailedOver { node: node('C'), host: new });
    tale.at(602).decides(C2, "CDE").delivers(C2).at(30_000);
    assert_eq!(tale.blame(MutualExclusion), ["clock(C)"]);
}

#[test]
fn a_key_left_behind_by_a_failover_is_amnesia() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(1_000).ends_key(C1, "C", KeyEnd::FailedOver, Writer::Nobody);
    tale.at(1_100).acquires(C3, "CDE").at(20_000);
    assert_eq!(tale.blame(MutualExclusion), ["amnesia(C)"]);
}

#[test]
fn a_lease_that_is_kept_alive_may_be_held_for_that_long() {
    let mut kept = keeps_extending(51_000);
    let acquire = crate::scenario::Acquire {
        keep_alive: Some(crate::scenario::Span::from_ms(60_000)),
        ..crate::scenario::Acquire::default()
    };
    let step = crate::scenario::Step { acquire: Some(acquire), ..Default::default() };
    kept.scenario.clients[0].steps.push(step);
    assert_eq!(kept.finds(DeadlockFree), Judgement::Vacuous);
}
