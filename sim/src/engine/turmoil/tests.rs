//! Cases of the scenarios, played by this engine.

mod connections;
mod hosts;

use lock_judge::history::{AttemptId, ClientId, Event, EventKind, NodeId, OpKind, Settlement};
use lock_judge::oracle::{Blame, Judgement, Violation};
use lock_judge::scenario::{Property, Span};

use super::*;

/// Returns the case `slug` of the scenario `name`; an empty `slug` means the base case.
fn case(name: &str, slug: &str) -> Case {
    let files = crate::library::embedded().unwrap();
    let file = files.iter().find(|file| file.scenario().name == name).unwrap();
    let cases = file.cases(&[]).unwrap();
    cases.into_iter().find(|case| case.slug.as_deref().unwrap_or("") == slug).unwrap()
}

fn play(case: &Case) -> (Outcome, Vec<Event>) {
    let mut kept = Vec::new();
    let outcome = run(case, 0, Some(&mut kept)).unwrap();
    (outcome, kept)
}

fn violation(outcome: &Outcome, property: Property) -> Violation {
    match outcome.verdicts.of(property) {
        Judgement::Violated(violation) => violation,
        other => panic!("{}: {other:?}", property.name()),
    }
}

/// Returns a case with one client and five nodes, 1 ms away, and these faults.
fn inline(steps: &str, faults: &str) -> Case {
    let text = format!(
        "schema = 1\nname = \"inline\"\ntitle = \"t\"\n[lock]\nttl = \"10s\"\n\
         [[client]]\nid = \"c1\"\nsteps = [{steps}]\n{faults}"
    );
    let scenario = toml::from_str(&text).unwrap();
    Case { slug: None, name: None, scenario, overrides: Vec::new() }
}

fn history_of(steps: &str, faults: &str) -> Vec<Event> {
    play(&inline(steps, faults)).1
}

/// Returns the times of the events of client 0 that `what` selects, in milliseconds.
fn times_ms(history: &[Event], what: impl Fn(&EventKind) -> bool) -> Vec<u64> {
    history.iter().filter(|it| what(&it.kind)).map(|it| it.at_ns / 1_000_000).collect()
}

fn is_executed_set(kind: &EventKind, on: u8) -> bool {
    let EventKind::Executed { attempt, node, op, .. } = *kind else { return false };
    attempt.client == ClientId(0) && node.0 == on && op == OpKind::Set
}

#[test]
fn two_clients_take_turns() {
    let (outcome, history) = play(&case("canonical", ""));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    assert_eq!(outcome.verdicts.of(Property::ExclusiveSection), Judgement::Holds);
    assert_eq!(outcome.verdicts.of(Property::SoundGrant), Judgement::Holds);
    assert_eq!(outcome.counters.granted, 2);
    assert!(outcome.counters.contended > 0, "the second client was refused first");
    assert!(history.is_sorted_by_key(|event| event.at_ns));
    let applied = |event: &&Event| matches!(event.kind, EventKind::WriteApplied { .. });
    assert_eq!(history.iter().filter(applied).count(), 2);
}

/// Counterexample K1.
#[test]
fn a_pause_after_the_check_lets_two_into_the_section() {
    let (outcome, _) = play(&case("pause-after-the-check", ""));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    let overlap = violation(&outcome, Property::ExclusiveSection);
    assert!(overlap.blamed.iter().eq([Blame::Pause]), "{overlap:?}");
}

/// Counterexample K3: a false promise of durability breaks exclusion; the default, the quarantine, needs
/// no promise.
#[test]
fn failover_breaks_a_false_promise_and_not_the_quarantine() {
    let (outcome, _) = play(&case("replica-within-redlock", ""));
    let overlap = violation(&outcome, Property::MutualExclusion);
    let node = lock_judge::history::HostId(2);
    assert!(overlap.blamed.iter().eq([Blame::Amnesia(node)]), "{overlap:?}");
    let (outcome, history) = play(&case("restart-without-persistence", "quarantine"));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    let from = history.iter().find_map(|event| match event.kind {
        EventKind::Eligible { client: ClientId(1), node: NodeId(2), from_local_ns } => {
            Some(from_local_ns)
        }
        _ => None,
    });
    let boot_ns = crate::world::BOOT_AT_START_NS;
    assert!(from > Some(boot_ns + 11_000_000_000), "one TTL after the restart: {from:?}");
}

#[test]
fn a_change_behind_an_open_connection_is_noticed() {
    for (name, slug) in [
        ("restart-behind-a-proxy", ""),
        ("demoted-on-a-live-connection", ""),
        ("demoted-on-a-live-connection", "filled-again-by-its-own-former-replica"),
    ] {
        let (outcome, history) = play(&case(name, slug));
        assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds, "{name}");
        let quarantined = |event: &Event| {
            let boot_ns = crate::world::BOOT_AT_START_NS;
            matches!(event.kind, EventKind::Eligible { client: ClientId(1), node: NodeId(2), from_local_ns }
                if from_local_ns != u64::MAX && from_local_ns > boot_ns + 11_000_000_000)
        };
        assert!(history.iter().any(quarantined), "{name} {slug}");
    }
}

#[test]
fn events_without_a_loss_cause_no_quarantine() {
    for slug in [
        "",
        "another-database-is-emptied-while-nodes-are-asked",
        "two-other-databases-change-places",
        "durable-masters-restart-behind-a-proxy",
    ] {
        let (_, history) = play(&case("nothing-was-lost", slug));
        let granted = history.iter().find(|event| {
            matches!(event.kind, EventKind::GrantDecided { attempt, .. } if attempt.client == ClientId(1))
        });
        assert!(granted.is_some_and(|event| event.at_ns < 3_020_000_000), "{slug}");
    }
}

/// Counterexample K5.
#[test]
fn a_pause_while_the_replies_are_in_flight_is_refused_by_step_3() {
    let (outcome, history) = play(&case("pause-in-flight", ""));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    let settled = history.iter().find_map(|event| match event.kind {
        EventKind::AttemptSettled { attempt, outcome } if attempt.client == ClientId(0) => {
            Some((event.at_ns, outcome))
        }
        _ => None,
    });
    assert_eq!(settled, Some((12_000_000_000, Settlement::TooSlow)), "when the pause is over");
}

#[test]
fn a_seed_is_a_history() {
    let case = case("canonical", "");
    let hash = |seed| run(&case, seed, None).unwrap().hash;
    assert_eq!(hash(0), hash(0));
    assert_ne!(hash(0), hash(1));
}

#[test]
fn unsupported_settings_are_named_as_in_the_scenario() {
    let refused = |case: &Case| run(case, 0, None).unwrap_err().to_string();
    let cannot = "the engine `turmoil` does not support ";
    let mut other = case("canonical", "");
    other.scenario.clients[1].subject = String::from("redlock-literal");
    assert_eq!(refused(&other), format!("{cannot}the subject `redlock-literal`"));
    let mut slow = case("canonical", "");
    slow.scenario.lock.node_timeout = Span::from_ms(2_500);
    assert!(refused(&slow).contains("a quarter of the TTL"), "{}", refused(&slow));
    let mut hasty = case("canonical", "");
    hasty.scenario.lock.node_timeout = Span::from_ms(2);
    assert_eq!(refused(&hasty), format!("{cannot}`node-timeout = \"2ms\"`, no two ticks"));
    let mut newer = case("canonical", "");
    newer.scenario.cluster.server = lock_judge::scenario::Server::Redis84;
    assert_eq!(refused(&newer), format!("{cannot}`plain-extensions = false` on this server"));
}
