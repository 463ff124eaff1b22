//! Commands of an extension that a node executes late.

use super::super::tale::{C1, DRIFT_MS, MS, TTL_MS, node};
use super::{HostId, SoundGrant, Tale};
use crate::history::{Answer, ClockKind, EventKind, OpKind, Writer};

#[test]
fn a_late_command_leaves_a_counted_key_until_the_deadline() {
    let judged = |at: char, lives_ms: u64, is_released: bool| {
        let mut tale = Tale::new();
        tale.with_extensions(3).acquires(C1, "ABCD").at(5_000).extends(C1, "ABC");
        if is_released {
            tale.at(5_500).releases(C1);
        }
        let command = tale.at(6_000).writes(C1, at, OpKind::Extend);
        let wall_ms = tale.reads_ns(HostId(0), ClockKind::Wall) / MS;
        let own = Writer::Attempt(C1);
        tale.tell(EventKind::Executed {
            command,
            attempt: C1,
            node: node(at),
            op: OpKind::Extend,
            answer: Answer::Yes,
            changed: true,
            before: own,
            after: own,
            expires_wall_ms: wall_ms + lives_ms,
        });
        tale.finds(SoundGrant).is_violated()
    };
    let left_ms = TTL_MS - DRIFT_MS - 1_000;
    assert!(judged('A', left_ms - DRIFT_MS - 3, false));
    assert!(!judged('A', left_ms - DRIFT_MS, false), "shorter by the drift");
    assert!(!judged('D', left_ms - DRIFT_MS - 3, false), "not counted");
    assert!(!judged('A', left_ms - DRIFT_MS - 3, true), "released");
}
