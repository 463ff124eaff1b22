use lock_judge::oracle::Blamed;

use super::*;
use crate::report::fixture;

/// Tells a violation of `property` by the first lease of the clock jump, without blame.
fn unblamed(property: Property) -> Story {
    let played = fixture::jump();
    let timeline = fixture::timeline(&played);
    let first = timeline.leases().next().expect("a lease").id;
    let (from_ns, to_ns, second, node) = (1_000_000_000, 3_000_000_000, None, None);
    let found = Violation { from_ns, to_ns, first, second, node, blamed: Blamed::NONE };
    of_violation(&timeline, property, &found)
}

#[test]
fn settings_can_prevent_every_grant() {
    let told = unblamed(Property::DeadlockFree).therefore;
    let wrong = "No broken assumption explains it: the lock client or its settings are wrong.";
    assert_eq!(told, wrong);
    let told = unblamed(Property::SoundGrant).therefore;
    assert_eq!(told, "No broken assumption explains it: the lock client is wrong.");
}

#[test]
fn wait_begins_at_its_last_excuse() {
    let told = unblamed(Property::DeadlockFree).headline;
    let waited = "c1 waited for “res” without an excuse from 1.000 s to 3.000 s";
    assert_eq!(told, format!("{waited}: no client was granted it"));
}

#[test]
fn a_fault_that_repeats_is_told_once() {
    let played = fixture::jump();
    let mut timeline = fixture::timeline(&played);
    let mut jump = timeline.fault_windows.last().expect("the jump").clone();
    let mut told = |at_ns: u64| {
        jump.began.at_ns = at_ns;
        timeline.fault_windows.push(jump.clone());
        faults(&timeline).last().expect("the jump").text.clone()
    };
    let first = "Fault “jump” moved C’s wall clock by +10 s at 1.000 s";
    assert_eq!(told(2_000_000_000), format!("{first}; once more at 2.000 s."));
    assert_eq!(told(3_000_000_000), format!("{first}; 2 times more, the last at 3.000 s."));
}
