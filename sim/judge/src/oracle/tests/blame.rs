//! Tests that blame follows the key.

mod lost_keys;

use super::tale::{C1, C1_AGAIN, C2, C3, MS, TTL_MS, Tale, host, node};
use crate::history::{Answer, ClockKind, EventKind, HostId, KeyEnd, OpKind, Writer};
use crate::oracle::Judgement;
use crate::scenario::Property::{ExclusiveSection, MutualExclusion, OwnerOnly, SoundGrant};

const C: HostId = HostId(2);

#[test]
fn a_clock_that_regains_time_shortens_an_unchanged_deadline() {
    let blame = |by_ms: i64| {
        let mut tale = Tale::new();
        tale.with_extensions(1).steps(C, ClockKind::Wall, 20_000).acquires(C1, "ABC");
        // The SET was executed 1 ms ago.
        let expires_wall_ms = tale.reads_ns(C, ClockKind::Wall) / MS - 1 + TTL_MS;
        tale.at(4_000).steps(C, ClockKind::Wall, -by_ms).begins_extension(C1);
        tale.at(4_001).retimes(C1, C1, "AB");
        let command = tale.writes(C1, 'C', OpKind::Extend);
        let (extends, kept) = ((command, C1, 'C', OpKind::Extend), Writer::Attempt(C1));
        tale.executes(extends, Answer::Yes, (kept, kept)).hears(extends, Answer::Yes);
        let until_ns = tale.extended_until_ns(C1);
        tale.at(4_002).succeeds(C1, "ABC", until_ns).prolongs(C1, until_ns);
        tale.at(5_000).steps(C, ClockKind::Wall, by_ms).at(10_001);
        let (node, writer, by) = (node('C'), kept, Writer::Nobody);
        let cause = KeyEnd::Expired;
        tale.tell(EventKind::KeyEnded { node, writer, cause, by, expires_wall_ms });
        tale.at(10_010).acquires(C2, "CDE").at(30_000).blame(MutualExclusion)
    };
    assert_eq!(blame(12_000), ["clock(C)"]);
    assert_eq!(blame(0), ["none"]);
}

#[test]
fn of_two_keys_set_at_once_the_first_is_the_one_that_ended() {
    for [first, second] in [[C1, C2], [C2, C1]] {
        let mut tale = Tale::new();
        tale.begins(C1).begins(C2).at(1).sets(C1, "AB").sets(C2, "DE").sets(first, "C");
        tale.ends_key(first, "C", KeyEnd::Command, Writer::Operator).sets(second, "C");
        tale.at(2).decides(C1, "ABC").delivers(C1).decides(C2, "CDE").delivers(C2);
        assert_eq!(tale.at(20_000).blame(MutualExclusion), ["operator"], "{first:?}");
    }
}

#[test]
fn a_counted_key_that_was_never_set_is_amnesia_behind_a_proxy() {
    let blame = |hidden: bool| {
        let mut tale = Tale::new();
        tale.with_fault(&format!(
            "kill = {{ host = 'C', restart-after = '20ms', behind-a-proxy = {hidden} }}"
        ));
        tale.begins(C3).writes(C3, 'C', OpKind::Set);
        tale.begins(C1).writes(C1, 'C', OpKind::Set);
        tale.at(1).sets(C1, "AB").tell(EventKind::NodeDown { node: node('C'), power: false });
        tale.at(21).tell(EventKind::NodeUp { node: node('C'), incarnation: 1 });
        tale.at(22).decides(C1, "ABC").delivers(C1).at(100).acquires(C2, "CDE");
        tale.at(20_000).blame(MutualExclusion)
    };
    assert_eq!(blame(true), ["amnesia(C)"]);
    assert_eq!(blame(false), ["none"]);
}

#[test]
fn a_key_that_lived_for_its_ttl_was_not_ended_by_a_clock() {
    let blame = |late_ms: u64| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").runs_at(host(C1), ClockKind::Boot, -500_000_000);
        // The node is down when the key expires, and its clock gains a second until it is up.
        tale.at(10_000 + late_ms).steps(C, ClockKind::Wall, 1_000).expires(C1, "C");
        tale.at(12_000).acquires(C2, "CDE").at(30_000).blame(MutualExclusion)
    };
    assert_eq!(blame(500), ["clock(c1)"]);
    assert_eq!(blame(0), ["clock(C)", "clock(c1)"]);
}

/// Returns the blame for two leases whose clients lock on the nodes `lists`.
fn blame_with_lists(lists: [&str; 2], tell: impl FnOnce(&mut Tale)) -> Vec<String> {
    let mut tale = Tale::new();
    for (client, list) in tale.scenario.clients.iter_mut().zip(lists) {
        client.nodes = Some(list.chars().map(String::from).collect());
    }
    tell(&mut tale);
    tale.at(20_000).blame(MutualExclusion)
}

#[test]
fn disjoint_majorities_of_two_lists_blame_membership() {
    let apart = |tale: &mut Tale| {
        tale.acquires(C1, "AB").at(1_000).acquires(C2, "DE");
    };
    assert_eq!(blame_with_lists(["ABC", "CDE"], apart), ["membership"]);
    assert_eq!(blame_with_lists(["AB", "DE"], apart), ["membership"]);
    // Four nodes need three votes: two are the client's own mistake.
    assert_eq!(blame_with_lists(["ABC", "BCDE"], apart), ["none"]);
    assert_eq!(blame_with_lists(["ABCD", "CDE"], apart), ["none"]);
}

#[test]
fn a_node_that_both_lists_have_is_blamed_if_the_vote_was_needed() {
    let blame = |lists, second: &str| {
        blame_with_lists(lists, |tale| {
            tale.acquires(C1, "BC").at(1_000);
            tale.ends_key(C1, "C", KeyEnd::Flushed, Writer::Nobody).at(1_100).acquires(C2, second);
        })
    };
    assert_eq!(blame(["ABC", "CDE"], "CD"), ["amnesia(C)"]);
    assert_eq!(blame(["ABC", "CDE"], "CDE"), ["amnesia(C)", "membership"]);
}

#[test]
fn a_loss_at_a_former_majority_is_not_blamed_with_the_lists() {
    let blame = blame_with_lists(["ABC", "C"], |tale| {
        tale.with_extensions(3).acquires(C1, "AC").at(1_000);
        tale.ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody).sets(C1, "B");
        tale.at(2_000).extends(C1, "AB").at(3_000).extends(C1, "AB").at(4_000).acquires(C2, "C");
    });
    assert_eq!(blame, ["membership"]);
}

#[test]
fn a_node_counted_since_an_extension_let_no_lease_in() {
    let blame = blame_with_lists(["C", "ABC"], |tale| {
        tale.with_extensions(1).begins(C1).at(10).sets(C1, "C");
        tale.at(20).ends_key(C1, "C", KeyEnd::Flushed, Writer::Nobody);
        let (client, node) = (C2.client, node('C'));
        tale.tell(EventKind::Eligible { client, node, from_local_ns: u64::MAX });
        tale.at(30).begins(C2).sets(C2, "ABC").decides(C2, "AB").delivers(C2);
        tale.at(40).extends(C2, "AC").at(50).decides(C1, "C").delivers(C1);
    });
    assert_eq!(blame, ["membership"]);
}

#[test]
fn a_node_under_two_names_has_two_votes() {
    let mut tale = Tale::new();
    tale.scenario.cluster.aliases.insert(String::from("B2"), String::from("B"));
    for (client, list) in tale.scenario.clients.iter_mut().zip([["A", "B", "B2"], ["A", "B", "C"]])
    {
        client.nodes = Some(list.map(String::from).to_vec());
    }
    tale.acquires(C1, "B").at(1_000).acquires(C2, "AC").at(20_000);
    assert_eq!(tale.blame(MutualExclusion), ["membership"]);
    assert_eq!(tale.finds(SoundGrant), Judgement::Holds);
}

/// C2 deletes the keys of C1 as its own; then C3 gets the lock.
fn deletes_and_lets_in(are_copies: bool) -> Tale {
    let mut tale = Tale::new();
    tale.scenario.clients[1].copy_of = are_copies.then(|| String::from("c1"));
    tale.acquires(C1, "ABC").at(1_000).begins(C2);
    for at in ['A', 'B', 'C'] {
        let command = tale.writes(C2, at, OpKind::Release);
        let change = (Writer::Attempt(C1), Writer::Nobody);
        tale.executes((command, C2, at, OpKind::Release), Answer::Yes, change);
    }
    tale.ends_key(C1, "ABC", KeyEnd::Command, Writer::Attempt(C2));
    tale.at(1_100).acquires(C3, "CDE").at(20_000);
    tale
}

#[test]
fn copies_with_one_token_are_blamed_on_randomness() {
    for property in [MutualExclusion, OwnerOnly] {
        assert_eq!(deletes_and_lets_in(true).blame(property), ["randomness"]);
        assert_eq!(deletes_and_lets_in(false).blame(property), ["none"]);
    }
}

#[test]
fn a_copy_that_has_not_begun_is_not_blamed() {
    let mut tale = Tale::new();
    tale.scenario.clients[2].copy_of = Some(String::from("c1"));
    tale.acquires(C1, "ABC").at(1_000).acquires(C2, "DE").at(20_000);
    assert_eq!(tale.blame(MutualExclusion), ["none"]);
}

#[test]
fn every_node_that_forgot_is_named() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABCD").at(1_000);
    tale.ends_key(C1, "D", KeyEnd::Flushed, Writer::Nobody);
    tale.ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
    tale.at(1_100).acquires(C2, "CDE").at(20_000);
    assert_eq!(tale.blame(MutualExclusion), ["amnesia(C)", "amnesia(D)"]);
}

#[test]
fn attempts_command_blames_the_client_and_an_operators_does_not() {
    let blame = |by| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").at(1_000).ends_key(C1, "C", KeyEnd::Command, by);
        tale.at(1_100).acquires(C2, "CDE").at(20_000).blame(MutualExclusion)
    };
    assert_eq!(blame(Writer::Attempt(C1_AGAIN)), ["none"]);
    assert_eq!(blame(Writer::Operator), ["operator"]);
}

#[test]
fn a_violation_that_is_explained_hides_no_wrong_client() {
    let blame = |third_also_wrong: bool| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").at(1_000).ends_key(C1, "C", KeyEnd::Command, Writer::Operator);
        tale.at(1_100).acquires(C2, "CDE").at(1_200);
        if third_also_wrong {
            tale.ends_key(C2, "D", KeyEnd::Command, Writer::Attempt(C1));
            tale.at(1_300).acquires(C3, "D").at(20_000);
        }
        tale.blame(MutualExclusion)
    };
    assert_eq!(blame(false), ["operator"]);
    assert_eq!(blame(true), ["none"]);
}

#[test]
fn a_masters_clock_that_jumped_is_blamed() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(1_000).steps(C, ClockKind::Wall, 10_000);
    tale.at(1_101).expires(C1, "C").at(1_200).acquires(C2, "CDE").at(20_000);
    assert_eq!(tale.blame(MutualExclusion), ["clock(C)"]);
}

#[test]
fn no_clock_is_blamed_for_a_belief_that_is_too_long_by_itself() {
    let blame = |too_long_ms: u64| {
        let mut tale = Tale::new();
        tale.runs_at(C, ClockKind::Wall, 100_000_000).begins(C1).sets(C1, "ABC");
        let deadline_ns = tale.deadline_ns(C1) + too_long_ms * MS;
        tale.decides(C1, "ABC").delivers_until(C1, deadline_ns, 0);
        tale.at(9_092).expires(C1, "C").at(9_100).acquires(C2, "CDE").at(20_000);
        tale.blame(MutualExclusion)
    };
    assert_eq!(blame(0), ["clock(C)"]);
    assert_eq!(blame(200), ["none"]);
}

#[test]
fn a_masters_clock_that_runs_fast_is_blamed() {
    let mut tale = Tale::new();
    tale.runs_at(C, ClockKind::Wall, 100_000_000).acquires(C1, "ABC");
    tale.at(9_092).expires(C1, "C").at(9_100).acquires(C2, "CDE").at(20_000);
    assert_eq!(tale.blame(MutualExclusion), ["clock(C)"]);
}

#[test]
fn a_masters_clock_is_not_blamed_for_jumps_before_the_set() {
    let mut tale = Tale::new();
    tale.begins(C1).at(1).steps(C, ClockKind::Wall, 10_000).sets(C1, "ABC");
    tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC");
    // C1 skips step 3 of Redlock: it delivers a lease of which no key is left, with a new deadline.
    let deadline_ns = tale.deadline_ns(C2);
    tale.at(12_000).decides(C1, "ABC").delivers_until(C1, deadline_ns, 0).at(30_000);
    assert_eq!(tale.blame(MutualExclusion), ["none"]);
}

#[test]
fn a_clients_clock_set_back_is_blamed() {
    let mut tale = Tale::new();
    tale.clock = ClockKind::Wall;
    tale.acquires(C1, "ABC").at(1_000).steps(host(C1), ClockKind::Wall, -5_000);
    tale.at(10_002).expires(C1, "ABC").at(10_100).acquires(C2, "ABC").at(30_000);
    assert_eq!(tale.blame(MutualExclusion), ["clock(c1)"]);
}

#[test]
fn a_clients_clock_that_slept_uncounted_is_blamed() {
    let mut tale = Tale::new();
    tale.clock = ClockKind::Monotonic;
    tale.begins(C1).at(1).sets(C1, "ABC").stops(C1);
    tale.runs_at(host(C1), ClockKind::Monotonic, -1_000_000_000);
    tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC");
    tale.at(12_000).runs_at(host(C1), ClockKind::Monotonic, 0).continues(C1);
    tale.decides(C1, "ABC").delivers(C1).at(30_000);
    assert_eq!(tale.blame(MutualExclusion), ["clock(c1)"]);
}

#[test]
fn two_clocks_that_exceed_it_only_together_are_both_blamed() {
    let mut tale = Tale::new();
    tale.runs_at(C, ClockKind::Wall, 6_000_000).runs_at(host(C1), ClockKind::Boot, -6_000_000);
    tale.acquires(C1, "ABC").at(9_942).expires(C1, "C").at(9_945).acquires(C2, "CDE").at(20_000);
    assert_eq!(tale.blame(MutualExclusion), ["clock(C)", "clock(c1)"]);
}

#[test]
fn the_nodes_rounding_is_part_of_the_allowance() {
    let blame = |rate_ppb| {
        let mut tale = Tale::new();
        tale.runs_at(host(C1), ClockKind::Boot, rate_ppb).at_ns(1_800_000).begins(C1);
        let deadline_ns = tale.deadline_ns(C1);
        tale.at_ns(1_900_000).sets(C1, "ABC").decides(C1, "ABC");
        tale.delivers_until(C1, deadline_ns + 5 * MS, 0);
        tale.at(10_001).expires(C1, "ABC").acquires(C2, "ABC").at(30_000).blame(MutualExclusion)
    };
    assert_eq!(blame(-10_150_000), ["clock(c1)"]);
    assert_eq!(blame(-10_050_000), ["none"]);
}

#[test]
fn clocks_within_the_allowance_do_not_excuse_the_client() {
    let mut tale = Tale::new();
    tale.runs_at(C, ClockKind::Wall, 4_000_000).begins(C1).at(1).sets(C1, "ABC");
    tale.at(10_100).expires(C1, "ABC").acquires(C2, "ABC");
    let deadline_ns = tale.deadline_ns(C2);
    tale.at(12_000).decides(C1, "ABC").delivers_until(C1, deadline_ns, 0).at(30_000);
    assert_eq!(tale.blame(MutualExclusion), ["none"]);
}

#[test]
fn leases_without_a_common_node_are_the_clients_fault() {
    let mut tale = Tale::new();
    tale.acquires(C1, "AB").at(100).acquires(C2, "CD").at(20_000);
    assert_eq!(tale.blame(MutualExclusion), ["none"]);
}

#[test]
fn a_key_that_was_never_there_is_the_clients_fault() {
    let mut tale = Tale::new();
    tale.begins(C1).at(1).sets(C1, "AB").at(2).decides(C1, "ABC").delivers(C1);
    tale.at(100).acquires(C2, "CDE").at(20_000);
    assert_eq!(tale.blame(MutualExclusion), ["none"]);
}

#[test]
fn counting_a_vote_never_given_is_the_clients_fault() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(1_000).ends_key(C1, "C", KeyEnd::Flushed, Writer::Nobody);
    tale.at(1_100).begins(C2).sets(C2, "DE").at(1_102).decides(C2, "CDE").delivers(C2);
    assert_eq!(tale.at(20_000).blame(MutualExclusion), ["none"]);
}

#[test]
fn key_still_there_when_the_later_was_set_did_not_make_way() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(1_100).acquires(C2, "CDE");
    tale.at(1_200).ends_key(C1, "C", KeyEnd::Flushed, Writer::Nobody);
    assert_eq!(tale.at(20_000).blame(MutualExclusion), ["none"]);
}

#[test]
fn faults_are_blamed_only_if_they_suffice_alone() {
    let blame = |later: &str| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABCD").at(1_000);
        tale.ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
        tale.ends_key(C1, "D", KeyEnd::Command, Writer::Attempt(C1_AGAIN));
        tale.ends_key(C1, "B", KeyEnd::Restarted, Writer::Nobody);
        tale.at(1_100).acquires(C2, later).at(20_000).blame(MutualExclusion)
    };
    assert_eq!(blame("CDE"), ["none"]);
    assert_eq!(blame("BCDE"), ["amnesia(B)", "amnesia(C)"]);
}

#[test]
fn sections_take_the_blame_of_their_leases() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").enters(C1).stops(C1);
    tale.at(1_000).ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
    tale.at(1_100).acquires(C2, "CDE").enters(C2).at(1_500);
    assert_eq!(tale.blame(ExclusiveSection), ["amnesia(C)"]);
}
