//! Small searches; `tests/acquisition.rs` has the searches by which the rule is judged.

use super::wording::SMALL;
use super::*;
use crate::engine::exhaustive::{Explored, search};

fn explore(bounds: Bounds, wording: Wording) -> Explored<Step> {
    let clients = [0, 1].map(|client| {
        let attempts_max = bounds.attempts[usize::from(client)];
        let policy = Policy::new(client, attempts_max, wording, bounds.terms);
        Both::new(policy, Production::new(client, attempts_max, bounds.terms))
    });
    search(&Acquisition { bounds, clients, sought: None }, 100_000)
}

#[test]
fn more_may_happen_within_wider_bounds() {
    let states = |bounds| explore(bounds, Wording::AS_BUILT).states;
    let small = states(SMALL);
    let wider = [
        Bounds { ticks: 2, ..SMALL },
        Bounds { losses: 1, ..SMALL },
        Bounds { restarts: 1, ..SMALL },
    ];
    for bounds in wider {
        assert!(states(bounds) > small, "{bounds:?}");
    }
}

#[test]
#[should_panic(expected = "the machines right")]
fn a_wording_that_is_not_the_one_built_is_noticed() {
    explore(SMALL, Wording { quorum: 1, ..Wording::AS_BUILT });
}
