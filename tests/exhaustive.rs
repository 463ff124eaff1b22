//! The extension rule, explored through every schedule within bounds.
//!
//! `docs/extension.md` contains the counterexamples found here; a test compares them.

use redlock_sim::engine::exhaustive::extension::{
    Both, Bounds, Extension, Holder, Policy, Production, Step, Wording, story, violations,
};
use redlock_sim::engine::exhaustive::{Counterexample, Explored, search};

/// More states than any search here visits.
const STATES_MAX: usize = 2_000_000;

const BOUNDS: Bounds = Bounds { ttl: 3, rounds: 4, forgets: 2, cuts: 0 };

fn explore(holder: impl Holder, bounds: Bounds) -> Explored<Step> {
    search(&Extension { bounds, holder }, STATES_MAX)
}

/// Explores the rule as built, with the client's own state machines and the rule's wording side by
/// side.
fn explore_as_built(bounds: Bounds) -> Explored<Step> {
    let policy = Policy::new(Wording::AS_BUILT, bounds.ttl);
    explore(Both::new(policy, Production::new(bounds.ttl, bounds.rounds)), bounds)
}

fn assert_safe(explored: &Explored<Step>, golden: [usize; 3]) {
    assert_eq!(explored.counterexample, None);
    let found = [explored.states, explored.transitions, explored.depth];
    assert_eq!(found, golden, "states, transitions, depth");
}

#[test]
fn the_rule_as_built_is_safe_with_one_forgetful_node() {
    assert_safe(&explore_as_built(Bounds { forgets: 1, ..BOUNDS }), [199_682, 725_237, 26]);
}

#[test]
fn the_rule_as_built_is_safe_with_two_forgetful_nodes() {
    assert_safe(&explore_as_built(BOUNDS), [391_745, 1_701_134, 27]);
}

#[test]
fn the_rule_as_built_is_safe_with_a_connection_that_is_cut() {
    let bounds = Bounds { rounds: 3, forgets: 1, cuts: 1, ..BOUNDS };
    assert_safe(&explore_as_built(bounds), [422_161, 1_474_992, 21]);
}

#[test]
fn to_set_a_key_again_at_once_is_safe_as_long_as_it_counts_late() {
    let policy = Policy::new(Wording::SET_AGAIN_AT_ONCE, BOUNDS.ttl);
    assert_safe(&explore(policy, Bounds { forgets: 1, ..BOUNDS }), [365_520, 1_417_201, 26]);
}

/// Returns a counterexample to each weaker wording, with as few faults as possible.
fn weaker() -> impl Iterator<Item = (&'static str, Bounds, Explored<Step>)> {
    Wording::WEAKER.into_iter().map(|(name, wording)| {
        let faults = [(0, 0), (1, 0), (1, 1)];
        let bounds = faults.map(|(forgets, cuts)| Bounds { forgets, cuts, ..BOUNDS });
        let mut tried = bounds.into_iter().map(|bounds| {
            let policy = Policy::new(wording, bounds.ttl);
            (name, bounds, explore(policy, bounds))
        });
        let found = tried.find(|(_, _, explored)| explored.counterexample.is_some());
        found.unwrap_or_else(|| panic!("nothing breaks: {name}"))
    })
}

/// Renders the page's section for a weaker wording.
fn section(name: &str, bounds: Bounds, found: &Counterexample<Step>) -> String {
    let faults = match (bounds.forgets, bounds.cuts) {
        (0, 0) => "No node forgets",
        (1, 0) => "One node forgets",
        _ => "One node forgets, one connection is cut",
    };
    let (wrong, steps) = (found.violation, story(&found.steps));
    format!("### {name}\n\n{faults}. Violated: {wrong}.\n\n```text\n{steps}```\n")
}

#[test]
fn every_weaker_wording_is_unsafe_and_the_page_says_how() {
    let page = include_str!("../docs/extension.md");
    let mut violated = Vec::new();
    for (name, bounds, explored) in weaker() {
        let found = explored.counterexample.expect("weaker() finds nothing else");
        violated.push(found.violation);
        let section = section(name, bounds, &found);
        assert!(page.contains(&section), "docs/extension.md does not have:\n\n{section}");
    }
    use violations::{CONTINUITY, OUTLIVED, REVIVED};
    let expected = [CONTINUITY, CONTINUITY, CONTINUITY, CONTINUITY, OUTLIVED, REVIVED, OUTLIVED];
    assert_eq!(violated, expected);
}

#[test]
#[ignore = "prints what docs/extension.md has to have"]
fn prints_the_counterexamples() {
    for (name, bounds, explored) in weaker() {
        let found = explored.counterexample.expect("weaker() finds nothing else");
        println!("{}", section(name, bounds, &found));
    }
}
