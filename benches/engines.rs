//! Number of runs per second on one core.
//!
//! `event`: two clients, five masters, one acquisition each, oracle and hash on. `turmoil`: the
//! same set-up for one simulated second, with the real client over simulated TCP.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lock_judge::scenario::{Case, Scenario};
use redlock_sim::engine::{event, turmoil};

fn case(text: &str) -> Case {
    let scenario: Scenario = toml::from_str(text).expect("a valid scenario");
    Case { slug: None, name: None, scenario, overrides: Vec::new() }
}

fn event_runs(criterion: &mut Criterion) {
    let mut engine = event::Engine::new(&case(include_str!("two_clients.toml"))).unwrap();
    let mut group = criterion.benchmark_group("event");
    group.throughput(Throughput::Elements(1));
    let mut seed = 0;
    group.bench_function("run", |bencher| {
        bencher.iter(|| {
            seed += 1;
            engine.run(seed, None)
        });
    });
    let steps = engine.steps();
    group.finish();
    println!("event: {steps} steps of the queue a run");
}

fn turmoil_runs(criterion: &mut Criterion) {
    let case = case(include_str!("one_second.toml"));
    let mut group = criterion.benchmark_group("turmoil");
    group.throughput(Throughput::Elements(1));
    group.sample_size(20);
    let mut seed = 0;
    group.bench_function("one simulated second", |bencher| {
        bencher.iter(|| {
            seed += 1;
            turmoil::run(&case, seed, None).expect("supported")
        });
    });
    group.finish();
}

criterion_group!(benches, event_runs, turmoil_runs);
criterion_main!(benches);
