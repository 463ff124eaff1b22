//! Tests of what sound-loss asks of a lease that is kept alive.

use super::tale::{C1, C2, MS, Tale, node};
use crate::history::LostReason::DeadlinePassed;
use crate::history::{Answer, EventKind, KeyEnd, OpKind, Writer};
use crate::oracle::Judgement;
use crate::scenario::Property::SoundLoss;

/// Latest time at which C1 sets the key again that it has lost at 2 s: the time of a notice, then a
/// tenth of the TTL and a node timeout pass.
const BOUND_MS: u64 = 2_000 + 274 + 1_000 + 50 + 10;

/// C1 keeps alive the lease that all five nodes grant it at 2 ms.
fn kept() -> Tale {
    let mut tale = Tale::new();
    let step = toml::from_str("acquire = { keep-alive = '60s' }").expect("a step");
    tale.scenario.clients[0].steps.push(step);
    tale.acquires(C1, "ABCDE");
    tale
}

/// The lease's key on A is gone at 2 s.
fn without_a() -> Tale {
    let mut tale = kept();
    tale.at(2_000).ends_key(C1, "A", KeyEnd::Evicted, Writer::Nobody);
    tale
}

fn set_again_at(ms: u64, mut tale: Tale) -> Judgement {
    tale.at(ms).sets(C1, "A").at(ms + 1).releases(C1).finds(SoundLoss)
}

#[test]
fn a_lost_key_is_set_again_in_time() {
    assert_eq!(set_again_at(BOUND_MS, without_a()), Judgement::Holds);
    assert!(set_again_at(BOUND_MS + 1, without_a()).is_violated());
    assert!(without_a().at(BOUND_MS + 1).releases(C1).finds(SoundLoss).is_violated(), "never");
    assert!(without_a().at(BOUND_MS + 1).extends(C1, "BCDE").finds(SoundLoss).is_violated());
}

#[test]
fn a_lease_that_is_not_kept_alive_need_not_set_its_key_again() {
    let mut tale = without_a();
    tale.scenario.clients[0].steps.pop();
    assert_eq!(set_again_at(6_000, tale), Judgement::Holds);
}

#[test]
fn a_key_cannot_be_set_beside_anothers_or_behind_a_late_set() {
    let mut taken = without_a();
    taken.at(2_001).begins(C2).sets(C2, "A").at(5_000).unlocks(C2, "A");
    assert_eq!(set_again_at(6_000, taken), Judgement::Holds);
    let mut late = without_a();
    late.at(2_500).writes(C1, 'A', OpKind::Set);
    assert_eq!(set_again_at(6_000, late), Judgement::Holds);
}

#[test]
fn a_key_that_a_node_cannot_set_waits_for_the_next_round() {
    let refused = |ms: u64| {
        let mut refused = without_a();
        let set = refused.at(3_000).writes(C1, 'A', OpKind::Set);
        refused.answers(set, C1, 'A', Answer::Error);
        set_again_at(ms, refused)
    };
    let bound_ms = 3_000 + 274 + 3_700 + 50 + 10;
    assert_eq!(refused(bound_ms), Judgement::Holds);
    assert!(refused(bound_ms + 1).is_violated());
}

#[test]
fn a_key_is_not_set_without_a_majority_that_confirms() {
    let mut stalled = without_a();
    for node in ['B', 'C'].map(node) {
        stalled.at(2_001).tell(EventKind::NodeStalled { node });
    }
    assert_eq!(set_again_at(6_000, stalled), Judgement::Holds);
}

#[test]
fn a_lease_that_its_caller_has_prolonged_needs_no_round() {
    let mut prolonged = kept();
    prolonged.at(1_000).begins_extension(C1);
    let until_ns = prolonged.extended_until_ns(C1) + 10_000 * MS;
    prolonged.at(1_002).succeeds(C1, "ABCDE", until_ns).prolongs(C1, until_ns);
    prolonged.at(2_000).ends_key(C1, "A", KeyEnd::Evicted, Writer::Nobody);
    assert_eq!(set_again_at(6_000, prolonged), Judgement::Holds);
}

/// A's key is set again in time, and a round is confirmed by `nodes`. Then B and C lose their keys, which
/// late SETs keep from being set again, and the lease ends at its deadline.
fn ends_after_a_round_by(nodes: &str) -> Judgement {
    let mut tale = without_a();
    tale.at(2_200).sets(C1, "A").at(2_400).begins_extension(C1);
    let until_ns = tale.extended_until_ns(C1);
    tale.retimes(C1, C1, nodes).at(2_402).succeeds(C1, nodes, until_ns).prolongs(C1, until_ns);
    tale.at(2_500).ends_key(C1, "BC", KeyEnd::Evicted, Writer::Nobody);
    for node in ['B', 'C'] {
        tale.writes(C1, node, OpKind::Set);
    }
    tale.at(12_297).loses_by(C1, DeadlinePassed).finds(SoundLoss)
}

#[test]
fn a_key_that_was_set_again_counts_after_a_round_without_it() {
    assert!(ends_after_a_round_by("CDE").is_violated());
    assert_eq!(ends_after_a_round_by("ADE"), Judgement::Holds);
}

#[test]
fn a_key_set_again_counts_after_a_round_that_knew_of_it() {
    let mut tale = without_a();
    let set = tale.at(2_200).writes(C1, 'A', OpKind::Set);
    let change = (Writer::Nobody, Writer::Attempt(C1));
    tale.at(2_201).executes((set, C1, 'A', OpKind::Set), Answer::Yes, change);
    tale.at(2_202).begins_extension(C1);
    tale.answers(set, C1, 'A', Answer::Yes);
    let until_ns = tale.extended_until_ns(C1);
    tale.retimes(C1, C1, "CDE").at(2_204).succeeds(C1, "CDE", until_ns).prolongs(C1, until_ns);
    tale.at(2_500).ends_key(C1, "BC", KeyEnd::Evicted, Writer::Nobody);
    for node in ['B', 'C'] {
        tale.writes(C1, node, OpKind::Set);
    }
    assert_eq!(tale.at(12_099).loses_by(C1, DeadlinePassed).finds(SoundLoss), Judgement::Holds);
}

#[test]
fn a_key_that_soon_counts_does_not_confirm_before() {
    let set_again_at = |ms| {
        let mut tale = without_a();
        tale.at(2_200).sets(C1, "A").at(2_300).tell(EventKind::NodeStalled { node: node('B') });
        tale.at(2_400).ends_key(C1, "C", KeyEnd::Evicted, Writer::Nobody);
        tale.at(7_000).tell(EventKind::NodeUnstalled { node: node('B') });
        tale.at(7_100).begins_extension(C1);
        let until_ns = tale.extended_until_ns(C1);
        tale.retimes(C1, C1, "BDE").at(7_102).succeeds(C1, "BDE", until_ns);
        tale.prolongs(C1, until_ns).at(ms).sets(C1, "C").at(ms + 1).releases(C1).finds(SoundLoss)
    };
    let bound_ms = 7_102 + 274 + 1_000 + 50 + 10;
    assert_eq!(set_again_at(bound_ms), Judgement::Holds);
    assert!(set_again_at(bound_ms + 1).is_violated());
}

#[test]
fn a_key_is_extended_before_it_expires_on_a_node_that_is_back() {
    let judged = |back_ms| {
        let mut tale = kept();
        tale.at(2_000).tell(EventKind::NodeStalled { node: node('A') });
        for ms in [3_000, 6_000, 9_000] {
            if ms < back_ms {
                tale.at(ms).extends(C1, "BCDE");
            }
        }
        tale.at(back_ms).tell(EventKind::NodeUnstalled { node: node('A') });
        tale.at(10_010).expires(C1, "A").at(10_200).releases(C1).finds(SoundLoss)
    };
    assert!(judged(5_000).is_violated());
    assert!(!judged(9_500).is_violated(), "it has not had the time");
}
