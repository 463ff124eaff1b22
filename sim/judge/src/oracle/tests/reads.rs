//! Tests of `reads-in-a-second`.

use super::tale::{C1, C2, PROBE, Tale, host, node};
use crate::history::{AttemptId, ClockKind, EventKind, OpKind};
use crate::scenario::Quantity;

/// Lets the client of `id` write `op` to A every 100 ms from `from_ms` to before `to_ms`.
fn reads(tale: &mut Tale, id: AttemptId, op: OpKind, (from_ms, to_ms): (u64, u64)) {
    for at_ms in (from_ms..to_ms).step_by(100) {
        tale.at(at_ms).writes(id, 'A', op);
    }
}

fn most(tale: &mut Tale) -> Option<u64> {
    tale.measured().of(Quantity::ReadsInASecond)
}

#[test]
fn looks_and_reads_count_within_a_second() {
    for op in [OpKind::Look, OpKind::Read] {
        let mut tale = Tale::new();
        tale.begins(C1);
        reads(&mut tale, C1, op, (100, 900));
        assert_eq!(most(&mut tale), Some(8), "{op:?}");
        reads(&mut tale, C1, op, (900, 5_000));
        assert_eq!(most(&mut tale), Some(10), "{op:?}");
    }
}

#[test]
fn other_commands_and_those_of_the_probe_are_no_reads() {
    let mut tale = Tale::new();
    tale.begins(C1).begins(PROBE);
    reads(&mut tale, C1, OpKind::Introduce, (100, 1_000));
    reads(&mut tale, PROBE, OpKind::Look, (1_000, 2_000));
    assert_eq!(most(&mut tale), Some(0));
}

#[test]
fn where_a_clock_is_set_no_read_counts() {
    let mut tale = Tale::new();
    tale.with_fault("clock-jump = { host = 'A', by = '8s' }").begins(C1);
    reads(&mut tale, C1, OpKind::Look, (100, 900));
    assert_eq!(most(&mut tale), Some(0));
}

#[test]
fn each_node_and_each_client_has_its_own_second() {
    let mut tale = Tale::new();
    tale.begins(C1).begins(C2);
    for at in ['A', 'B', 'C'] {
        tale.at(100).writes(C1, at, OpKind::Read);
        tale.writes(C2, at, OpKind::Look);
    }
    assert_eq!(most(&mut tale), Some(1));
}

/// Lets C1 read until `change` happens, and after it; returns the most reads in a second.
fn around(change: impl FnOnce(&mut Tale)) -> Option<u64> {
    let mut tale = Tale::new();
    tale.begins(C1).begins(C2).sets(C1, "A");
    reads(&mut tale, C1, OpKind::Read, (100, 400));
    change(tale.at(450));
    reads(&mut tale, C1, OpKind::Read, (500, 700));
    most(&mut tale)
}

#[test]
fn a_change_begins_another_second() {
    assert_eq!(around(|_| ()), Some(5));
    assert_eq!(around(|tale| _ = tale.sets(C2, "B")), Some(3), "the key of another client");
    assert_eq!(around(|tale| _ = tale.unlocks(C1, "A")), Some(3), "the own key");
    assert_eq!(around(|tale| _ = tale.begins(AttemptId { number: 2, ..C1 })), Some(3));
    let stalled = EventKind::NodeStalled { node: node('E') };
    assert_eq!(around(|tale| _ = tale.tell(stalled)), Some(3));
    let (host, clock) = (host(C1), ClockKind::Boot);
    let set = |tale: &mut Tale| {
        let local_ns = tale.reads_ns(host, clock);
        tale.tell(EventKind::Clock { host, clock, local_ns, rate_ppb: 0 });
    };
    assert_eq!(around(set), Some(3));
}

#[test]
fn a_push_alone_is_no_change() {
    let push = EventKind::FaultBegan { fault: crate::history::FaultId(0) };
    assert_eq!(around(|tale| _ = tale.tell(push)), Some(5));
    let others = AttemptId { number: 2, ..C2 };
    assert_eq!(around(|tale| _ = tale.begins(others)), Some(5), "an attempt that changes no key");
}
