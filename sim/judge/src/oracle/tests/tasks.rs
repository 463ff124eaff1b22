//! Tasks of one client: they share its process and its connections, and have leases of their own.

use super::tale::{C1, C1_AGAIN, C2, Tale, host};
use crate::history::{EventKind, FaultId, Settlement};
use crate::oracle::Judgement;
use crate::scenario::Property::{
    FaultTolerant, MutualExclusion, SectionWithinLease, SoundRefusal, Tidy,
};

/// Returns a tale in which c2 is a further task of c1's process, or a process of its own.
fn tale(is_one_process: bool) -> Tale {
    let mut tale = Tale::new();
    if is_one_process {
        tale.with_c2_in_c1s_process();
    }
    tale
}

#[test]
fn two_tasks_of_one_client_may_not_have_the_lock_at_once() {
    let mut tale = tale(true);
    tale.acquires(C1, "ABC").at(1_000).acquires(C2, "CDE").at(2_000);
    assert!(tale.finds(MutualExclusion).is_violated());
}

#[test]
fn a_death_ends_the_sections_of_all_tasks() {
    let dies = |is_one_process: bool| {
        let mut tale = tale(is_one_process);
        tale.acquires(C2, "ABC").enters(C2).at(1_000).kills(C1).at(30_000);
        tale.finds(SectionWithinLease)
    };
    assert_eq!(dies(true), Judgement::Holds);
    assert!(dies(false).is_violated());
}

#[test]
fn a_death_excuses_the_keys_of_all_tasks() {
    let dies = |is_one_process: bool| {
        let mut tale = tale(is_one_process);
        tale.begins(C2).sets(C2, "AB").settles(C2, Settlement::TooFewNodes).kills(C1).at(9_000);
        tale.finds(Tidy)
    };
    assert!(!dies(true).is_violated());
    assert!(dies(false).is_violated());
}

/// No client asks a node that owes an answer: the node may be of no use to any task.
#[test]
fn a_node_that_owes_an_answer_to_one_task_owes_it_to_all() {
    let refused = |is_one_process: bool| {
        let mut tale = tale(is_one_process);
        tale.c2_asks_nodes_that_owe_c1_answers().finds(FaultTolerant)
    };
    assert_eq!(refused(true), Judgement::Holds);
    assert!(refused(false).is_violated());
}

#[test]
fn a_client_may_report_its_own_lease_as_a_taken_lock() {
    let refused = |is_one_process: bool, at_ms: u64| {
        let mut tale = tale(is_one_process);
        tale.acquires(C1, "ABC").at(at_ms).begins(C2).settles(C2, Settlement::Taken);
        tale.finds(SoundRefusal)
    };
    assert_eq!(refused(true, 1_000), Judgement::Holds);
    assert!(refused(true, 9_898).is_violated());
    assert!(refused(false, 1_000).is_violated());
}

#[test]
fn a_released_lease_of_another_task_is_no_taken_lock() {
    let mut tale = tale(true);
    tale.acquires(C1, "ABC").at(1_000).releases(C1).begins(C2).settles(C2, Settlement::Taken);
    assert_eq!(tale.violation(SoundRefusal).first, C2);
}

#[test]
fn a_partition_of_the_process_cuts_off_all_tasks() {
    let mut tale = tale(true);
    tale.with_fault("partition = { between = [['c1'], ['A', 'B', 'C', 'D', 'E']] }");
    assert_eq!(tale.scenario.client_host(C2.client), host(C1));
    tale.tell(EventKind::FaultBegan { fault: FaultId(0) }).begins(C2).at(50);
    tale.settles(C2, Settlement::TooFewNodes).begins(C1_AGAIN).at(100);
    tale.settles(C1_AGAIN, Settlement::TooFewNodes);
    assert!(!tale.finds(FaultTolerant).is_violated());
}
