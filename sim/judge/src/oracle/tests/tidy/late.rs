//! Commands that a node executes late.

use super::super::tale::{C1, Tale, node};
use crate::history::{Answer, EventKind, OpKind, Settlement, Writer};
use crate::oracle::Judgement;
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

/// No release is sent after the second one, which is executed at 300 ms.
#[test]
fn a_set_behind_a_second_release_was_overtaken() {
    let left = |first_ms: u64, executed_ms: u64| {
        let (mut tale, nobody, its) = (Tale::new(), Writer::Nobody, Writer::Attempt(C1));
        let set = tale.begins(C1).writes(C1, 'C', OpKind::Set);
        tale.at(50).settles(C1, Settlement::TooFewNodes);
        for at_ms in [first_ms, 300] {
            let release = tale.at(at_ms).writes(C1, 'C', OpKind::Release);
            tale.executes((release, C1, 'C', OpKind::Release), Answer::No, (nobody, nobody));
        }
        tale.at(executed_ms).executes((set, C1, 'C', OpKind::Set), Answer::Yes, (nobody, its));
        tale.at(7_000).finds(Tidy)
    };
    assert!(left(299, 301).is_violated(), "both releases overtook it at once");
    assert_eq!(left(250, 301), Judgement::Holds);
}
