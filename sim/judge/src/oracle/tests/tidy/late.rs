//! Commands that a node executes late.

use super::super::tale::{C1, Tale, node};
use crate::history::EventKind;
use crate::scenario::Property::Tidy;

/// A release that is owed expires one TTL after the extension was written, at 11 500 ms.
#[test]
fn an_extension_executed_late_outlives_the_owed_release() {
    let left = |executed_ms: u64| {
        let (mut tale, node) = (Tale::new(), node('C'));
        tale.with_extensions(1).acquires(C1, "ABC").at(1_000);
        tale.tell(EventKind::NodeStalled { node }).at(1_500).begins_extension(C1);
        tale.at(3_000).releases(C1).unlocks(C1, "AB").at(executed_ms);
        tale.tell(EventKind::NodeUnstalled { node }).retimes(C1, C1, "C").at(16_000).finds(Tidy)
    };
    assert!(left(9_000).is_violated());
    assert!(!left(9_900).is_violated());
}
