use super::*;
use crate::history::{Event, EventKind, Settlement};
use crate::oracle::{Blame, Judgement, Violation};
use crate::scenario::{Fault, Property, Verdict, embedded};

/// The case `slug` of the scenario `name`; the base if it is empty.
fn case(name: &str, slug: &str) -> Case {
    let files = embedded().unwrap();
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

/// Catalogue K1.
#[test]
fn a_pause_after_the_check_lets_two_into_the_section() {
    let (outcome, _) = play(&case("pause-after-the-check", ""));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    let overlap = violation(&outcome, Property::ExclusiveSection);
    assert!(overlap.blamed.iter().eq([Blame::Pause]), "{overlap:?}");
}

/// Catalogue K3: a false promise, and the default that needs none.
#[test]
fn a_restart_without_persistence_breaks_a_false_promise_and_not_the_quarantine() {
    let (outcome, _) = play(&case("restart-without-persistence", ""));
    let overlap = violation(&outcome, Property::MutualExclusion);
    let node = crate::history::HostIndex(2);
    assert!(overlap.blamed.iter().eq([Blame::Amnesia(node)]), "{overlap:?}");
    let (outcome, history) = play(&case("restart-without-persistence", "quarantine"));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    let from = history.iter().find_map(|event| match event.kind {
        EventKind::Eligible { client: 1, node: 2, from_local_ns } => Some(from_local_ns),
        _ => None,
    });
    let boot_ns = crate::world::BOOT_AT_START_NS;
    assert!(from > Some(boot_ns + 11_000_000_000), "one TTL after the restart: {from:?}");
}

/// Catalogue K5.
#[test]
fn a_pause_while_the_replies_are_in_flight_is_refused_by_step_3() {
    let (outcome, history) = play(&case("pause-in-flight", ""));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    let settled = history.iter().find_map(|event| match event.kind {
        EventKind::AttemptSettled { attempt, outcome } if attempt.client == 0 => {
            Some((event.at_ns, outcome))
        }
        _ => None,
    });
    assert_eq!(settled, Some((12_000_000_000, Settlement::TooSlow)), "when the pause is over");
}

#[test]
fn a_seed_is_a_history() {
    let case = case("restart-without-persistence", "");
    let hash = |seed| run(&case, seed, None).unwrap().hash;
    assert_eq!(hash(0), hash(0));
    assert_ne!(hash(0), hash(1));
}

#[test]
fn what_cannot_be_played_is_named_in_the_words_of_the_scenario() {
    let refused = |case: &Case| run(case, 0, None).unwrap_err().to_string();
    let cannot = "the engine `turmoil` cannot do ";
    let mut other = case("canonical", "");
    other.scenario.clients[1].subject = String::from("redlock-literal");
    assert_eq!(refused(&other), format!("{cannot}the subject `redlock-literal`"));
    let mut slow = case("canonical", "");
    slow.scenario.lock.node_timeout = crate::scenario::Span::from_ms(2_500);
    assert!(refused(&slow).contains("a quarter of the TTL"), "{}", refused(&slow));
    let mut suspended = case("pause-in-flight", "");
    let fault: &mut Fault = &mut suspended.scenario.faults[0];
    fault.suspend = fault.pause.take();
    assert_eq!(refused(&suspended), format!("{cannot}`suspend` (the fault `gc`)"));
    suspended.scenario.faults[0].enabled = false;
    assert!(run(&suspended, 0, None).is_ok(), "what does not happen need not be played");
}

/// Every case that both engines can play comes out as its scenario expects.
#[test]
fn the_library_is_judged_alike() {
    let (mut played, mut failures) = (0, Vec::new());
    for file in embedded().unwrap() {
        for case in file.cases(&[]).unwrap() {
            let Ok(outcome) = run(&case, 0, None) else { continue };
            played += 1;
            for property in Property::ALL {
                let expected = case.scenario.expect.get(&property);
                let found = outcome.verdicts.of(property);
                let fits = match (expected.map_or(Verdict::Holds, |it| it.verdict), found) {
                    (Verdict::Any | Verdict::Sometimes, _) => true,
                    (Verdict::Holds, Judgement::Violated(_)) => false,
                    (Verdict::Violated, Judgement::Violated(violation)) => {
                        let blame = &expected.unwrap().blame;
                        blame.is_empty() || violation.blamed.names(&case.scenario) == *blame
                    }
                    // A property that the oracle does not judge has no subject anywhere.
                    _ => true,
                };
                if !fits {
                    failures.push(format!("{} {}: {found:?}", case.full_name(), property.name()));
                }
            }
        }
    }
    assert!(played >= 4 && failures.is_empty(), "{played} played\n{}", failures.join("\n"));
}
