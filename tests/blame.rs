//! Checks blame by removing faults, for every violation that a scenario expects.
//!
//! Without any one of the blamed faults, the verdict flips. Without all the other faults that could
//! have been blamed, it stays. (Where only the client is to blame, the scenario has a second case,
//! in which the missing rule makes the property hold.)

use std::path::Path;

use lock_judge::oracle::Judgement;
use lock_judge::scenario::{
    Case, Cause, ExpectedBlame, Fault, FaultKind, Property, RestartGuard, Verdict,
};
use redlock_sim::engine::event::Engine;
use redlock_sim::library;

const SEEDS: u64 = 5;

#[test]
fn without_a_blamed_fault_the_verdict_flips() {
    let mut checked = 0;
    for (case, property, blame) in expected_violations() {
        let faults = case.scenario.faults.iter().enumerate();
        for (place, fault) in faults.filter(|(_, fault)| is_blamed(&case, fault, &blame)) {
            let mut without = case.clone();
            without.scenario.faults[place].enabled = false;
            let found = violating(&without, property);
            assert_eq!(found, 0, "{} {property:?}: still without {}", case.full_name(), fault.id);
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} blamed faults were found");
}

#[test]
fn without_the_faults_that_are_not_blamed_it_stays() {
    let mut checked = 0;
    for (case, property, blame) in expected_violations() {
        let mut without = case.clone();
        for fault in &mut without.scenario.faults {
            let steers = steers(&case, fault) || is_made_up_for(&case, fault, &blame);
            fault.enabled &= steers || is_blamed(&case, fault, &blame);
        }
        let found = violating(&without, property);
        assert_eq!(found, SEEDS, "{} {property:?}: gone with others", case.full_name());
        checked += 1;
    }
    assert!(checked > 20, "only {checked} violations were found");
}

/// Returns true if the fault only sets up the situation in which another fault does harm:
/// partitions, delays and snapshots, and the pause that makes the acquisition of counterexample C1 slow,
/// as the entry describes.
fn steers(case: &Case, fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Partition(_) | FaultKind::Delay(_) | FaultKind::Snapshot(_))
        || (case.scenario.name == "client-wall-clock-set-back" && fault.id == "slow")
}

/// Returns true for a restart that the restart guard makes up for, and that only keeps a node from
/// refusing a later client: one with a shorter list of nodes, or one that comes after the delay that was
/// promised, while a slow clock would have kept the key.
fn is_made_up_for(case: &Case, fault: &Fault, blame: &ExpectedBlame) -> bool {
    let is_delayed = case.scenario.lock.restart_guard == RestartGuard::DelayedRestart;
    fault.kind.restarting().is_some() && (is_delayed || blame.includes("membership"))
}

/// Returns every violation that is expected for all seeds and blamed on something, with its blame.
fn expected_violations() -> Vec<(Case, Property, ExpectedBlame)> {
    let files = library::load(Path::new("../scenarios")).expect("the scenarios are valid");
    let cases = files.iter().flat_map(|file| file.cases(&[]).expect("the cases are valid"));
    let violations = cases.flat_map(|case| {
        let expected = case.scenario.expect.properties.iter();
        let violated = expected.filter(|(_, expected)| expected.verdict == Verdict::Violated);
        let of_case = violated.filter_map(|(&property, expected)| {
            let blame = expected.blame.clone().filter(|blame| !blame.includes("none"))?;
            Some((case.clone(), property, blame))
        });
        of_case.collect::<Vec<_>>()
    });
    violations.collect()
}

fn is_blamed(case: &Case, fault: &Fault, blame: &ExpectedBlame) -> bool {
    let blames = |word: &str| fault.enabled && blame.includes(word);
    // If a replica forgets keys, its node is blamed.
    let replicas = &case.scenario.cluster.replicas;
    let node = |name: &String| {
        let replica = replicas.iter().find(|replica| replica.id == *name);
        replica.map_or(name.clone(), |replica| replica.of.clone())
    };
    fault.kind.descriptor().blames.iter().any(|cause| match cause {
        Cause::Amnesia | Cause::Clock => {
            let hosts = fault.kind.hosts().iter();
            hosts.map(&node).any(|host| blames(&format!("{}({host})", cause.name())))
        }
        Cause::DelayedWrite | Cause::Operator | Cause::Pause => blames(cause.name()),
    })
}

fn violating(case: &Case, property: Property) -> u64 {
    let mut engine = Engine::new(case).expect("every case runs on `event`");
    let violated = |seed: &u64| {
        matches!(engine.run(*seed, None).verdicts.of(property), Judgement::Violated(_))
    };
    (0..SEEDS).filter(violated).count() as u64
}
