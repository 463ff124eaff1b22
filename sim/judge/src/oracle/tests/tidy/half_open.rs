//! Connections that may be half open: requests on them may be lost.

use super::super::tale::{C1, Tale, node};
use super::grants_without_answer;
use crate::history::{EventKind, FaultId};
use crate::scenario::Property::Tidy;

#[test]
fn a_request_across_a_silent_partition_is_lost() {
    let judged = |between: &str| {
        let mut tale = Tale::new();
        tale.with_fault("partition = { between = [['C'], ['c1']], one-way = true }");
        tale.with_fault(&format!(
            "partition = {{ between = [['C'], [{between}]], lost = 'silent' }}"
        ));
        tale.tell(EventKind::FaultBegan { fault: FaultId(0) });
        grants_without_answer(&mut tale);
        tale.tell(EventKind::FaultBegan { fault: FaultId(1) }).releases(C1).unlocks(C1, "ABD");
        tale.at(4).tell(EventKind::FaultEnded { fault: FaultId(1) });
        tale.at(4_000).finds(Tidy)
    };
    assert!(!judged("'c1'").is_violated());
    assert!(judged("'c2'").is_violated(), "its requests pass");
}

#[test]
fn a_request_on_a_half_open_connection_to_a_new_process_is_lost() {
    let story = |restarts: bool, fault: &str, until_ms: u64| {
        let mut tale = Tale::new();
        tale.with_fault(fault).tell(EventKind::FaultBegan { fault: FaultId(0) });
        grants_without_answer(&mut tale);
        if restarts {
            tale.at(50).tell(EventKind::NodeDown { node: node('C'), power: false });
            tale.at(51).tell(EventKind::NodeUp { node: node('C'), incarnation: 1 });
        }
        // The client still waits for the answer to its SET, and cannot dial again afterwards.
        tale.at(100).releases(C1).unlocks(C1, "ABD");
        tale.at(until_ms).finds(Tidy)
    };
    let deaf = "partition = { between = [['C'], ['c1']], one-way = true, lost = 'silent' }";
    assert!(story(false, deaf, 9_000).is_violated(), "the release is executed");
    assert!(!story(true, deaf, 9_000).is_violated());
    let another = "partition = { between = [['C'], ['c2']], one-way = true, lost = 'silent' }";
    assert!(story(true, another, 9_000).is_violated(), "the client hears of the end");
}
