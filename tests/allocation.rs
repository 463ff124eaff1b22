//! Once warm, the `event` engine does not allocate: neither for an event nor for a whole run.

use lock_judge::scenario::{Case, Scenario};
use redlock_sim::engine::event::Engine;

fn engine(text: &str) -> Engine {
    let scenario: Scenario = toml::from_str(text).expect("a valid scenario");
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    Engine::new(&case).expect("the engine supports the scenario")
}

#[test]
fn a_warm_engine_allocates_nothing() {
    let mut engine = engine(include_str!("../benches/two_clients.toml"));
    (0..100).for_each(|seed| _ = engine.run(seed, None));
    let counted = allocation_counter::measure(|| {
        (100..200).for_each(|seed| _ = engine.run(seed, None));
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn the_counter_counts() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1_u8])));
    assert_eq!(counted.count_total, 1);
}
