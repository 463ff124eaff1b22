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
    search(&Acquisition::new(bounds, clients, None), 100_000)
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

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let (_, sought, bounds, wording) = Wording::WEAKER[2];
    let explore = |threads| {
        let clients = [0, 1].map(|client| {
            Policy::new(client, bounds.attempts[usize::from(client)], wording, bounds.terms)
        });
        let model = Acquisition::new(bounds, clients, Some(sought));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads can be started").install(|| search(&model, 1_000_000))
    };
    let alone = explore(1);
    assert!(alone.counterexample.is_some(), "paths are compared, too");
    assert_eq!(alone, explore(3));
}
