//! Tests that application steps have the same effect on both engines.

use lock_judge::history::{Event, EventKind, Refusal};
use lock_judge::scenario::{Case, Scenario};

use super::{event, turmoil};

/// Returns the histories of one client with these steps on each engine. The TTL is 10 s; one
/// extension may succeed.
fn histories(steps: &str) -> [Vec<Event>; 2] {
    let text = format!(
        "schema = 1\nname = \"inline\"\ntitle = \"t\"\n[lock]\nextensions-max = 1\n\
         [[client]]\nid = \"c1\"\nsteps = [{steps}]\n"
    );
    let scenario: Scenario = toml::from_str(&text).expect("it is a scenario");
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    let (mut one, mut other) = (Vec::new(), Vec::new());
    event::Engine::new(&case).expect("it can be played").run(0, Some(&mut one));
    turmoil::run(&case, 0, Some(&mut other)).expect("it can be played");
    [one, other]
}

/// Returns the times of the events that `what` selects, in milliseconds.
fn times_ms(history: &[Event], what: impl Fn(&EventKind) -> bool) -> Vec<u64> {
    history.iter().filter(|it| what(&it.kind)).map(|it| it.at_ns / 1_000_000).collect()
}

fn left(history: &[Event]) -> Vec<u64> {
    times_ms(history, |kind| matches!(kind, EventKind::SectionLeft { .. }))
}

#[test]
fn refused_extension_is_recorded_with_its_reason() {
    for (steps, expected) in [
        ("{ extend = {} }, { at = \"2s\", extend = {} }", vec![(2_000, Refusal::TooMany)]),
        ("{ at = \"1s\", extend = { ttl = \"5s\" } }", vec![(1_000, Refusal::WouldShorten)]),
        ("{ at = \"1s\", extend = { ttl = \"20s\" } }", vec![]),
        ("{ at = \"11s\", extend = {} }", vec![(11_000, Refusal::Lost)]),
    ] {
        for history in histories(&format!("{{ acquire = {{}} }}, {steps}")) {
            let refused = history.iter().filter_map(|event| match event.kind {
                EventKind::ExtensionRefused { why, .. } => Some((event.at_ns / 1_000_000, why)),
                _ => None,
            });
            assert_eq!(refused.collect::<Vec<_>>(), expected, "{steps}");
        }
    }
}

#[test]
fn a_hold_ends_with_its_time_or_with_the_lease_if_it_is_to() {
    let held = |hold: &str| {
        let steps = format!("{{ acquire = {{}} }}, {{ hold = {hold} }}, {{ release = {{}} }}");
        histories(&steps).map(|history| left(&history))
    };
    let around = |times_ms: &[u64], at_ms: u64| {
        assert!(
            matches!(times_ms, [ms] if (at_ms..at_ms + 5).contains(ms)),
            "{times_ms:?} {at_ms}"
        );
    };
    for (hold, at_ms) in [
        ("{ for = \"2s\", or-lost = true }", 2_002),
        // Lost 2 ms before the deadline, which is 102 ms before the end of the TTL.
        ("{ for = \"20s\", or-lost = true }", 9_896),
        ("\"20s\"", 20_002),
    ] {
        held(hold).iter().for_each(|times_ms| around(times_ms, at_ms));
    }
}
