//! Several resources: each is a lock of its own, judged by itself.

use super::tale::{C1, C2, C3, PROBE, Tale};
use crate::history::{AttemptId, ClientId, EventKind, Settlement};
use crate::oracle::Judgement;
use crate::scenario::Property::{
    DeadlockFree, FaultTolerant, MutualExclusion, NoLostUpdate, SoundRefusal,
};
use crate::scenario::Quantity;

/// First attempt of the probe of the second resource.
const SECOND_PROBE: AttemptId = AttemptId { client: ClientId(4), number: 1 };

/// Returns a tale with a second resource, which `others` lock.
fn tale(others: &[AttemptId]) -> Tale {
    let mut tale = Tale::new();
    tale.scenario.lock.further_resources.push(String::from("second"));
    for other in others {
        let client = &mut tale.scenario.clients[usize::from(other.client.0)];
        client.resource = Some(String::from("second"));
    }
    tale
}

#[test]
fn leases_of_two_resources_may_overlap() {
    let overlaps = |others: &[AttemptId]| {
        let mut tale = tale(others);
        tale.acquires(C1, "ABC").at(1_000).acquires(C2, "CDE").at(2_000);
        tale.finds(MutualExclusion)
    };
    assert_eq!(overlaps(&[C2]), Judgement::Holds);
    assert!(overlaps(&[]).is_violated());
}

#[test]
fn each_resource_is_judged() {
    let mut tale = tale(&[C2, C3]);
    tale.acquires(C1, "ABC").at(1_000).acquires(C2, "ABC").at(2_000).acquires(C3, "CDE").at(3_000);
    let found = tale.violation(MutualExclusion);
    assert_eq!((found.first, found.second), (C2, Some(C3)));
}

#[test]
fn a_lock_is_not_taken_by_the_key_of_another() {
    let refused = |others: &[AttemptId]| {
        let mut tale = tale(others);
        tale.acquires(C1, "ABC").at(1_000).begins(C2).is_refused(C2, C1, "ABC");
        tale.settles(C2, Settlement::Taken).finds(SoundRefusal)
    };
    assert!(refused(&[C2]).is_violated());
    assert_eq!(refused(&[]), Judgement::Holds);
}

#[test]
fn writes_to_two_resources_have_versions_of_their_own() {
    let lost = |others: &[AttemptId]| {
        let mut tale = tale(others);
        tale.acquires(C1, "ABC").acquires(C2, "ABC").sends_write(C1, 0, 0).sends_write(C2, 0, 0);
        let version_of_c2s = if others.is_empty() { 2 } else { 1 };
        tale.write_lands(C1, (0, 1), 0).write_lands(C2, (0, version_of_c2s), 0);
        tale.finds(NoLostUpdate)
    };
    assert_eq!(lost(&[C2]), Judgement::Holds);
    assert!(lost(&[]).is_violated());
}

/// Both locks of a process use one connection to each node: a node that owes an answer about one is of
/// no use to the other.
#[test]
fn a_node_that_owes_an_answer_is_busy_for_other_locks_too() {
    let refused = |is_one_process: bool| {
        let mut tale = tale(&[C2]);
        if is_one_process {
            tale.with_c2_in_c1s_process();
        }
        tale.c2_asks_nodes_that_owe_c1_answers().finds(FaultTolerant)
    };
    assert_eq!(refused(true), Judgement::Holds);
    assert!(refused(false).is_violated());
}

#[test]
fn every_resource_is_probed() {
    let probed = |probes: &[AttemptId]| {
        let mut tale = tale(&[C2]);
        tale.at(1_000).tell(EventKind::Healed { probe: PROBE.client });
        for &probe in probes {
            tale.acquires(probe, "ABC");
        }
        tale.at(60_000).finds(DeadlockFree)
    };
    assert_eq!(probed(&[PROBE, SECOND_PROBE]), Judgement::Holds);
    assert!(probed(&[PROBE]).is_violated());
    assert!(probed(&[SECOND_PROBE]).is_violated());
}

#[test]
fn quantities_are_of_all_locks() {
    let mut tale = tale(&[C2]);
    tale.acquires(C1, "ABC").at(5_000).acquires(C2, "ABC").at(6_000).releases(C1).releases(C2);
    let measured = tale.measured();
    assert_eq!(measured.of(Quantity::Commands), Some(6));
    assert_eq!(measured.of(Quantity::BeliefOverlap), Some(0));
    assert_eq!(measured.of(Quantity::GrantedAt), Some(5_002_000_000));
}
