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
