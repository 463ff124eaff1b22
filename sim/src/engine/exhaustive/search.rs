//! Breadth-first search through the states of a model.

use std::collections::BTreeSet;

/// A transition system: states, each with its successors.
pub trait Model {
    /// The complete state at one moment.
    type State: Clone;
    /// A transition from a state to the next.
    type Step: Copy;
    /// Identity of a state: equal for states that behave alike.
    type Key: Ord;

    /// Returns the initial states.
    fn initial(&self) -> Vec<Self::State>;

    /// Calls `visit` with every possible step in `state` and its resulting state, always in the
    /// same order.
    fn successors(&self, state: &Self::State, visit: &mut dyn FnMut(Self::Step, Self::State));

    /// Returns the key that distinguishes `state` from states that behave differently.
    fn key(&self, state: &Self::State) -> Self::Key;

    /// Returns the violation in `state`, if any. The search does not continue beyond such a state.
    fn violation(&self, state: &Self::State) -> Option<&'static str>;
}

/// A shortest path to a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample<Step> {
    /// The violation at the end of the path.
    pub violation: &'static str,
    /// Place of the initial state of the path.
    pub initial: usize,
    /// Steps of the path, in order.
    pub steps: Vec<Step>,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explored<Step> {
    /// Number of different states.
    pub states: usize,
    /// Number of steps between them, including steps into known states.
    pub transitions: usize,
    /// Largest number of steps on a shortest path to a state.
    pub depth: usize,
    /// The first violation; the search ends there.
    pub counterexample: Option<Counterexample<Step>>,
}

/// First path to a state: the place of its predecessor, and the step from there.
#[derive(Clone, Copy)]
enum Origin<Step> {
    Initial(usize),
    After(usize, Step),
}

/// Visits every reachable state, or stops at the first violation.
///
/// # Panics
///
/// If there are more than `states_max` states. A claim to have seen all states must state a bound.
pub fn search<M: Model>(model: &M, states_max: usize) -> Explored<M::Step> {
    let mut origins: Vec<Origin<M::Step>> = Vec::new();
    let mut known = BTreeSet::new();
    let mut frontier: Vec<(usize, M::State)> = Vec::new();
    let mut explored = Explored { states: 0, transitions: 0, depth: 0, counterexample: None };
    for (place, state) in model.initial().into_iter().enumerate() {
        if known.insert(model.key(&state)) {
            frontier.push((origins.len(), state));
            origins.push(Origin::Initial(place));
        }
    }
    while !frontier.is_empty() && explored.counterexample.is_none() {
        let mut next = Vec::new();
        for (place, state) in &frontier {
            model.successors(state, &mut |step, successor| {
                explored.transitions += 1;
                if explored.counterexample.is_some() || !known.insert(model.key(&successor)) {
                    return;
                }
                let origin = origins.len();
                origins.push(Origin::After(*place, step));
                explored.counterexample = model.violation(&successor).map(|violation| {
                    let (initial, steps) = way_to(&origins, origin);
                    Counterexample { violation, initial, steps }
                });
                next.push((origin, successor));
            });
        }
        assert!(origins.len() <= states_max, "more than {states_max} states");
        explored.depth += usize::from(!next.is_empty());
        frontier = next;
    }
    explored.states = origins.len();
    explored
}

fn way_to<Step: Copy>(origins: &[Origin<Step>], mut place: usize) -> (usize, Vec<Step>) {
    let mut steps = Vec::new();
    loop {
        match origins[place] {
            Origin::Initial(initial) => {
                steps.reverse();
                return (initial, steps);
            }
            Origin::After(before, step) => {
                steps.push(step);
                place = before;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two interchangeable counters up to three; a violation occurs if both are at `bad`.
    struct Counters {
        bad: u8,
    }

    impl Model for Counters {
        type State = [u8; 2];
        type Step = usize;
        type Key = [u8; 2];

        fn initial(&self) -> Vec<[u8; 2]> {
            vec![[0, 0]]
        }

        fn successors(&self, state: &[u8; 2], visit: &mut dyn FnMut(usize, [u8; 2])) {
            for which in (0..2).filter(|&which| state[which] < 3) {
                let mut next = *state;
                next[which] += 1;
                visit(which, next);
            }
        }

        fn key(&self, state: &[u8; 2]) -> [u8; 2] {
            let mut key = *state;
            key.sort_unstable();
            key
        }

        fn violation(&self, state: &[u8; 2]) -> Option<&'static str> {
            (*state == [self.bad; 2]).then_some("both")
        }
    }

    #[test]
    fn every_state_is_visited_once_up_to_symmetry() {
        let explored = search(&Counters { bad: 9 }, 100);
        // Ten unordered pairs of values from 0 to 3; the pair of threes is six steps away.
        assert_eq!((explored.states, explored.depth), (10, 6));
        assert_eq!(explored.counterexample, None);
    }

    #[test]
    fn a_counterexample_is_a_shortest_one() {
        let explored = search(&Counters { bad: 2 }, 100);
        let found = explored.counterexample.expect("two and two is reached");
        assert_eq!((found.violation, found.initial, found.steps.len()), ("both", 0, 4));
    }

    #[test]
    #[should_panic(expected = "more than 5 states")]
    fn a_space_beyond_its_bound_is_no_result() {
        search(&Counters { bad: 9 }, 5);
    }
}
