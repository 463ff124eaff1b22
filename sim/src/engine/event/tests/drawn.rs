//! Times, counts and chances that are drawn from the seed.

use std::collections::BTreeSet;

use lock_judge::history::{Event, EventKind, FaultId};
use lock_judge::scenario::{Case, Scenario};

use super::{Engine, MS, count};

const HOLD: &str = "{ acquire = {} }, { hold = \"2s\" }, { release = {} }";

/// Runs a client with `steps` and `faults` by each of the first 40 seeds, all in one engine.
fn runs(steps: &str, faults: &str) -> Vec<Vec<Event>> {
    let text = format!(
        r#"
        schema = 1
        name = "test"
        title = "test"
        cluster = {{ nodes = ["A", "B", "C"] }}
        [[client]]
        id = "c1"
        steps = [{steps}]
        {faults}"#
    );
    let scenario: Scenario = toml::from_str(&text).unwrap();
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    let mut engine = Engine::new(&case).unwrap();
    let run = |seed| {
        let mut kept = Vec::new();
        engine.run(seed, Some(&mut kept));
        kept
    };
    (0..40).map(run).collect()
}

/// A run lasts for as long as its clients can take, however often they wait for the end of a lease.
#[test]
fn a_run_lasts_until_its_clients_are_done() {
    let releases = |steps: &str| {
        count(&runs(steps, "")[0], |kind| matches!(kind, EventKind::ReleaseCalled { .. }))
    };
    let section = "{ hold = \"until-deadline\" }, { release = {} }";
    let repeat = |times: u32, acquire: &str| {
        format!(
            "{{ repeat = {{ times = {times}, steps = [{{ acquire = {acquire} }}, {section}] }} }}"
        )
    };
    assert_eq!(releases(&repeat(20, "{}")), 20);
    assert_eq!(releases(&repeat(4, "{ keep-alive = \"90s\" }")), 4);
}

fn stall(id: &str, more: &str) -> String {
    format!("[[fault]]\nid = \"{id}\"\nstall = {{ host = \"A\" }}\n{more}\n")
}

/// Returns the instants at which the fault began, in milliseconds.
fn begins(events: &[Event], fault: u16) -> Vec<u64> {
    let is_own = |kind: &EventKind| *kind == EventKind::FaultBegan { fault: FaultId(fault) };
    events.iter().filter(|event| is_own(&event.kind)).map(|event| event.at_ns / MS).collect()
}

#[test]
fn a_loop_is_taken_as_often_as_the_seed_says() {
    let steps = "{ repeat = { times = \"2..4\", steps = [{ acquire = {} }, { hold = \"1ms..9ms\" }, \
                 { release = {} }, { sleep = \"100ms..200ms\" }] } }";
    let entered = |kind: &EventKind| matches!(kind, EventKind::SectionEntered { .. });
    let runs = runs(steps, "");
    let times: BTreeSet<usize> = runs.iter().map(|events| count(events, entered)).collect();
    assert_eq!(times, BTreeSet::from([2, 3, 4]));
}

#[test]
fn a_loop_begins_at_its_time() {
    let began = |loop_at: &str, inner_at: &str| {
        let acquire = format!("{{ {inner_at} acquire = {{}} }}");
        let steps = format!("{{ {loop_at} repeat = {{ times = 2, steps = [{acquire}] }} }}");
        let events = runs(&steps, "").remove(0);
        let first = events.iter().find(|it| matches!(it.kind, EventKind::AttemptBegan { .. }));
        first.expect("it acquires").at_ns
    };
    assert_eq!(began("at = \"20ms\",", ""), 20 * MS);
    assert_eq!(began("at = \"20ms\",", "at = \"30ms\","), 30 * MS);
    assert_eq!(began("at = \"20ms\",", "at = \"10ms\","), 20 * MS);
}

#[test]
fn each_time_of_a_loop_draws_anew() {
    let steps = "{ repeat = { times = 2, steps = [{ acquire = {} }, { hold = \"1ms..900ms\" }, \
                 { release = {} }] } }";
    let lengths = |events: &[Event]| {
        let of = |wanted: fn(&EventKind) -> bool| -> Vec<u64> {
            let own = events.iter().filter(|event| wanted(&event.kind));
            own.map(|event| event.at_ns).collect()
        };
        let entered = of(|kind| matches!(kind, EventKind::SectionEntered { .. }));
        let left = of(|kind| matches!(kind, EventKind::SectionLeft { .. }));
        left.iter().zip(&entered).map(|(left, entered)| left - entered).collect::<Vec<_>>()
    };
    let all: Vec<Vec<u64>> = runs(steps, "").iter().map(|events| lengths(events)).collect();
    assert!(all.iter().all(|it| it.len() == 2 && it[0] != it[1]), "{all:?}");
    assert!(all.iter().flatten().all(|ns| (MS..=900 * MS).contains(ns)), "{all:?}");
    assert_ne!(all[0], all[1]);
}

#[test]
fn each_extension_draws_its_pause_anew() {
    let steps =
        "{ acquire = {} }, { extend = { every = \"1ms..900ms\", times = 3 } }, { release = {} }";
    let pauses = |events: &Vec<Event>| {
        let is_own = |kind: &EventKind| matches!(kind, EventKind::ExtensionBegan { .. });
        let began = events.iter().filter(|event| is_own(&event.kind)).map(|event| event.at_ns);
        let began: Vec<u64> = began.collect();
        began.windows(2).map(|it| it[1] - it[0]).collect::<Vec<_>>()
    };
    for pauses in runs(steps, "").iter().map(pauses) {
        assert!(pauses.len() == 2 && pauses[0] != pauses[1], "{pauses:?}");
    }
}

#[test]
fn a_wait_ends_when_the_seed_says() {
    let steps = "{ acquire = { wait = \"10ms..900ms\" } }";
    let gave_up = |events: &Vec<Event>| {
        let mut ends = events.iter().filter(|it| matches!(it.kind, EventKind::GaveUp { .. }));
        ends.next().map(|event| event.at_ns / MS)
    };
    let cut = "[[fault]]\nid = \"f\"\nat = \"0s\"\nlasts = \"2s\"\n\
               partition = { between = [[\"c1\"], [\"A\", \"B\", \"C\"]] }";
    let ends: BTreeSet<_> = runs(steps, cut).iter().map(gave_up).collect();
    assert!(
        ends.len() > 20 && ends.iter().all(|end| end.is_some_and(|ms| ms <= 1_000)),
        "{ends:?}"
    );
}

#[test]
fn a_fault_begins_again_and_ends_each_time() {
    let again = "at = \"10ms..20ms\"\nlasts = \"5ms..30ms\"\nevery = \"50ms..60ms\"\ntimes = 3";
    for events in runs(HOLD, &stall("f", again)) {
        let begins = begins(&events, 0);
        assert_eq!(begins.len(), 3);
        assert!((10..=20).contains(&begins[0]), "{begins:?}");
        assert!(begins.windows(2).all(|it| (49..=61).contains(&(it[1] - it[0]))), "{begins:?}");
        let ended = |kind: &EventKind| matches!(kind, EventKind::FaultEnded { .. });
        assert_eq!(count(&events, ended), 3);
    }
}

#[test]
fn a_fault_with_a_chance_happens_in_some_runs() {
    let chance = "at = \"10ms\"\nlasts = \"5ms\"\nevery = \"50ms\"\ntimes = 2\nchance = \"50%\"";
    let runs = runs(HOLD, &stall("f", chance));
    let seen: BTreeSet<Vec<u64>> = runs.iter().map(|events| begins(events, 0)).collect();
    let expected = [vec![], vec![10], vec![10, 60], vec![60]];
    assert_eq!(seen, BTreeSet::from(expected));
}

#[test]
fn a_fault_is_drawn_whatever_else_there_is() {
    let own = stall("f", "at = \"10ms..900ms\"\nlasts = \"5ms\"");
    let other = stall("g", "at = \"10ms..900ms\"\nlasts = \"5ms\"");
    let alone: Vec<_> = runs(HOLD, &own).iter().map(|events| begins(events, 0)).collect();
    let second = runs(HOLD, &format!("{other}{own}"));
    assert_eq!(second.iter().map(|events| begins(events, 1)).collect::<Vec<_>>(), alone);
    assert_ne!(second.iter().map(|events| begins(events, 0)).collect::<Vec<_>>(), alone);
}
