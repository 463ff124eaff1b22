//! Breadth-first search through the states of a model.

use rayon::prelude::*;

use super::keys::Keys;

/// States from which one thread continues at a time.
const SHARE: usize = 512;

/// States from which the search continues before it enters the states found. Their successors are
/// kept until then.
const BATCH: usize = 64 * SHARE;

/// A transition system: states, each with its successors.
pub trait Model: Sync {
    /// The complete state at one moment.
    type State: Send + Sync;
    /// A transition from a state to the next.
    type Step: Copy + Send + Sync;

    /// Returns the initial states.
    fn initial(&self) -> Vec<Self::State>;

    /// Calls `visit` with every possible step in `state` and its resulting state, always in the
    /// same order.
    fn successors(&self, state: &Self::State, visit: &mut dyn FnMut(Self::Step, Self::State));

    /// Returns the key that distinguishes `state` from states that behave differently: a hash, so
    /// that two such states share a key with negligible probability.
    fn key(&self, state: &Self::State) -> u128;

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
    After(u32, Step),
}

/// Visits every reachable state, or stops at the first violation. The result does not depend on the
/// number of threads.
///
/// Of a visited state the search keeps its key alone, and no paths. If there is a violation, it
/// searches again up to there, with paths.
///
/// # Panics
///
/// If there are more than `states_max` states. A claim to have seen all states must state a bound.
pub fn search<M: Model>(model: &M, states_max: usize) -> Explored<M::Step> {
    let mut search = Search::new(model, None);
    search.run(states_max);
    if search.violation.is_some() {
        search = Search::new(model, Some(Vec::new()));
        search.run(states_max);
    }
    search.explored()
}

struct Search<'a, M: Model> {
    model: &'a M,
    known: Keys,
    /// States at the present distance from the initial states, each with its place.
    frontier: Vec<(u32, M::State)>,
    transitions: usize,
    depth: usize,
    violation: Option<&'static str>,
    /// Path to each state, if paths are kept.
    origins: Option<Vec<Origin<M::Step>>>,
}

/// The successors of some states that were unknown.
struct Found<M: Model> {
    transitions: usize,
    /// Key, place of the predecessor, step, and state.
    unknown: Vec<(u128, u32, M::Step, M::State)>,
}

impl<'a, M: Model> Search<'a, M> {
    fn new(model: &'a M, origins: Option<Vec<Origin<M::Step>>>) -> Self {
        let (known, frontier) = (Keys::new(), Vec::new());
        let mut search =
            Self { model, known, frontier, transitions: 0, depth: 0, violation: None, origins };
        for (place, state) in model.initial().into_iter().enumerate() {
            if search.known.insert(model.key(&state)) {
                search.frontier.push(((search.known.len() - 1) as u32, state));
                search.origins.iter_mut().for_each(|it| it.push(Origin::Initial(place)));
            }
        }
        search
    }

    fn run(&mut self, states_max: usize) {
        while !self.frontier.is_empty() && self.violation.is_none() {
            let frontier = core::mem::take(&mut self.frontier);
            for batch in frontier.chunks(BATCH) {
                if self.violation.is_some() {
                    break;
                }
                let shares = batch.par_chunks(SHARE);
                let found: Vec<Found<M>> = shares.map(|share| self.expand(share)).collect();
                // In the order of the shares, whichever thread was first.
                found.into_iter().for_each(|found| self.enter(found));
                assert!(self.known.len() <= states_max, "more than {states_max} states");
            }
            self.depth += usize::from(!self.frontier.is_empty());
        }
    }

    fn expand(&self, share: &[(u32, M::State)]) -> Found<M> {
        let (mut transitions, mut unknown) = (0, Vec::new());
        for (place, state) in share {
            self.model.successors(state, &mut |step, successor| {
                transitions += 1;
                let key = self.model.key(&successor);
                if !self.known.contains(key) {
                    unknown.push((key, *place, step, successor));
                }
            });
        }
        Found { transitions, unknown }
    }

    fn enter(&mut self, found: Found<M>) {
        self.transitions += found.transitions;
        for (key, before, step, state) in found.unknown {
            if self.violation.is_some() || !self.known.insert(key) {
                continue;
            }
            self.origins.iter_mut().for_each(|it| it.push(Origin::After(before, step)));
            self.violation = self.model.violation(&state);
            self.frontier.push(((self.known.len() - 1) as u32, state));
        }
    }

    fn explored(self) -> Explored<M::Step> {
        let (states, transitions, depth) = (self.known.len(), self.transitions, self.depth);
        let path = self.origins.map(|origins| way_to(&origins, states - 1));
        let counterexample = self.violation.zip(path);
        let counterexample = counterexample.map(|(violation, (initial, steps))| Counterexample {
            violation,
            initial,
            steps,
        });
        Explored { states, transitions, depth, counterexample }
    }
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
                place = before as usize;
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

        fn key(&self, state: &[u8; 2]) -> u128 {
            let mut key = *state;
            key.sort_unstable();
            u128::from(u16::from_le_bytes(key))
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
