use super::*;
use crate::engine::exhaustive::{Explored, search};

fn explore(wording: Wording, bounds: Bounds) -> Explored<Step> {
    let holder = Policy::new(wording, bounds.ttl);
    search(&Extension { bounds, holder }, 20_000_000)
}

#[test]
#[ignore]
fn measure() {
    for (ttl, rounds, forgets, cuts) in [
        (2, 1, 1, 0),
        (2, 2, 1, 0),
        (2, 2, 1, 1),
        (2, 3, 1, 0),
        (3, 2, 1, 0),
        (3, 2, 2, 0),
        (3, 3, 1, 0),
        (3, 3, 2, 0),
        (2, 4, 2, 0),
        (3, 4, 2, 0),
    ] {
        let bounds = Bounds { ttl, rounds, forgets, cuts };
        let begun = std::time::UNIX_EPOCH.elapsed().unwrap();
        let found = explore(Wording::AS_BUILT, bounds);
        let took = std::time::UNIX_EPOCH.elapsed().unwrap() - begun;
        eprintln!(
            "{bounds:?} {} states {} transitions depth {} in {took:?} {:?}",
            found.states,
            found.transitions,
            found.depth,
            found.counterexample.as_ref().map(|it| it.violation)
        );
        if let Some(it) = found.counterexample {
            eprintln!("{}", story(&it.steps));
        }
    }
}

fn explore_both(bounds: Bounds) -> Explored<Step> {
    let holder = Both::new(
        Policy::new(Wording::AS_BUILT, bounds.ttl),
        Production::new(bounds.ttl, bounds.rounds),
    );
    search(&Extension { bounds, holder }, 20_000_000)
}

#[test]
#[ignore]
fn measure_both() {
    for (ttl, rounds, forgets, cuts) in
        [(2, 1, 1, 0), (2, 2, 1, 0), (2, 2, 1, 1), (2, 3, 1, 0), (3, 3, 2, 0)]
    {
        let bounds = Bounds { ttl, rounds, forgets, cuts };
        let begun = std::time::UNIX_EPOCH.elapsed().unwrap();
        let found = explore_both(bounds);
        let took = std::time::UNIX_EPOCH.elapsed().unwrap() - begun;
        eprintln!(
            "{bounds:?} {} states {} transitions depth {} in {took:?} {:?}",
            found.states,
            found.transitions,
            found.depth,
            found.counterexample.as_ref().map(|it| it.violation)
        );
    }
}
