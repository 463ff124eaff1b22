//! Nodes that were no masters for a while: clients close their connections to them.

use super::super::tale::{C1, Tale};
use crate::history::{Answer, EventKind, FaultId, OpKind, Writer};
use crate::oracle::Judgement;
use crate::scenario::Property::Tidy;

/// C1's read of its key on C is answered with an error while `host` is a replica. Later C's answers
/// come two seconds late for good, and c1 cannot dial again.
fn left_behind_after(host: char) -> Judgement {
    let mut tale = Tale::new();
    tale.with_fault(&format!("demote = {{ host = '{host}' }}"));
    tale.with_fault("delay = { from = ['C'], to = ['c1'], by = '2s' }");
    tale.acquires(C1, "ABC").at(100).tell(EventKind::FaultBegan { fault: FaultId(0) });
    let command = tale.at(500).writes(C1, 'C', OpKind::Read);
    let change = (Writer::Attempt(C1), Writer::Attempt(C1));
    tale.at(501).executes((command, C1, 'C', OpKind::Read), Answer::Error, change);
    tale.at(502).answers(command, C1, 'C', Answer::Error);
    tale.at(900).tell(EventKind::FaultBegan { fault: FaultId(1) });
    tale.at(1_000).tell(EventKind::FaultEnded { fault: FaultId(0) });
    tale.at(1_100).releases(C1).unlocks(C1, "AB").at(8_000).finds(Tidy)
}

#[test]
fn a_client_closes_the_connection_that_showed_it_a_replica() {
    assert!(!left_behind_after('C').is_violated());
    assert!(left_behind_after('D').is_violated());
}
