//! Small searches; `tests/exhaustive.rs` has the searches by which the rule is judged.

use super::*;
use crate::engine::exhaustive::{Explored, search};

const SMALL: Bounds = Bounds { ttl: 2, rounds: 2, forgets: 1, cuts: 1 };

fn explore(holder: impl Holder, bounds: Bounds) -> Explored<Step> {
    search(&Extension { bounds, holder }, 100_000)
}

fn as_built(bounds: Bounds) -> Both {
    let policy = Policy::new(Wording::AS_BUILT, bounds.ttl);
    Both::new(policy, Production::new(bounds.ttl, bounds.rounds))
}

#[test]
fn more_may_happen_within_wider_bounds() {
    let states = |bounds| explore(as_built(bounds), bounds).states;
    let base = Bounds { cuts: 0, ..SMALL };
    let wider = [
        SMALL,
        Bounds { ttl: 3, ..base },
        Bounds { rounds: 3, ..base },
        Bounds { forgets: 2, ..base },
    ];
    for bounds in wider {
        assert!(states(bounds) > states(base), "{bounds:?}");
    }
}

#[test]
#[should_panic(expected = "the machines say")]
fn a_wording_that_is_not_the_one_built_is_noticed() {
    let bounds = Bounds { ttl: 3, ..SMALL };
    let policy = Policy::new(Wording::SET_AGAIN_AT_ONCE, bounds.ttl);
    explore(Both::new(policy, Production::new(bounds.ttl, bounds.rounds)), bounds);
}

#[test]
fn a_counterexample_is_told_in_words() {
    let wording = Wording { from_return: true, ..Wording::AS_BUILT };
    let bounds = Bounds { forgets: 0, cuts: 0, ..SMALL };
    let found = explore(Policy::new(wording, bounds.ttl), bounds);
    let found = found.counterexample.expect("the keys do not live as long");
    assert_eq!(found.violation, violations::OUTLIVED);
    insta::assert_snapshot!(story(&found.steps));
}
