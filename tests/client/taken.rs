//! Errors of a failed acquisition: the lock is taken, it is free, or its state is unknown.

use core::time::Duration;

use redlock_client::{AcquireErrorKind, Redlock};

use crate::acquiring;
use crate::node::Habit;
use crate::world::{MS, SECOND, World};

/// Versions of Redis that report the owner of a key in the same command as the SET, and in a second
/// one.
const VERSIONS: [Option<&str>; 2] = [Some("7.0.15"), Some("6.2.14")];

/// A world of five nodes of this version. `holders` are the values of their keys; empty for none.
fn world(version: Option<&'static str>, holders: [&str; 5]) -> World {
    let world = World::new();
    world.each_node(|node| node.version = version);
    for (name, holder) in ["a", "b", "c", "d", "e"].into_iter().zip(holders) {
        if !holder.is_empty() {
            world.node(name, |node| node.set("res", holder));
        }
    }
    world
}

/// Returns the kind of error of a single attempt.
fn of_one_attempt(world: &World) -> AcquireErrorKind {
    let redlock = world.client();
    let error = world.block_on(redlock.acquire("res").attempts(1)).unwrap_err();
    assert_eq!(error.attempts(), 1);
    error.kind()
}

#[test]
fn taken_is_said_only_where_one_holder_has_a_majority() {
    for version in VERSIONS {
        for (holders, kind) in [
            (["x", "x", "x", "", ""], AcquireErrorKind::Taken),
            (["x", "x", "y", "y", ""], AcquireErrorKind::Split),
            (["x", "y", "z", "", ""], AcquireErrorKind::Split),
        ] {
            assert_eq!(of_one_attempt(&world(version, holders)), kind, "{version:?} {holders:?}");
        }
    }
}

#[test]
fn taken_says_in_how_long_the_lock_is_free() {
    let world = World::new();
    let (holder, other) = (world.client(), world.client());
    let lease = world.block_on(holder.acquire("res").ttl(2 * SECOND)).expect("it is free");
    let lock = other.acquire("res").attempts(1);
    let error = world.block_on(lock).unwrap_err();
    let left = error.retry_after().expect("all nodes have told");
    assert!(left > SECOND && left <= 2 * SECOND, "{left:?}");
    assert!(error.to_string().starts_with("the lock is taken, for another "), "{error}");
    // Another task of the same client gets the answer without asking the nodes.
    let error = world.block_on(holder.acquire("res").attempts(1)).unwrap_err();
    let left = error.retry_after().expect("it is our own lease");
    assert!(left > SECOND && left < 2 * SECOND, "{left:?}");
    world.block_on(lease.release());
    // A key without an expiry gives no time to retry after.
    let world = self::world(VERSIONS[0], ["x"; 5]);
    let error = world.block_on(world.client().acquire("res").attempts(1)).unwrap_err();
    assert_eq!((error.kind(), error.retry_after()), (AcquireErrorKind::Taken, None));
}

#[test]
fn a_key_that_outlives_the_clock_is_reported_with_its_life() {
    let world = World::new();
    let left = Duration::from_millis(9_000_000_000_000_000);
    world.each_node(|node| node.set_until("res", "x", world.now() + left));
    let error = world.block_on(world.client().acquire("res").attempts(1)).unwrap_err();
    assert_eq!(error.retry_after(), Some(left));
}

#[test]
fn nodes_that_cannot_be_asked_may_hold_anything() {
    for version in VERSIONS {
        let world = world(version, ["x", "x", "", "", ""]);
        for name in ["c", "d", "e"] {
            world.node(name, |node| node.habit = Habit::Hangs);
        }
        assert_eq!(of_one_attempt(&world), AcquireErrorKind::TooFewNodes, "{version:?}");
    }
}

#[test]
fn a_holder_of_another_length_is_a_holder_and_is_not_shown() {
    let secret = "a-token-of-another-library-0123456789";
    for version in VERSIONS {
        let world = world(version, [secret, secret, secret, "", ""]);
        let redlock = world.client();
        let error = world.block_on(redlock.try_acquire("res")).unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::Taken);
        assert!(!format!("{error} {error:?} {:?}", redlock.health()).contains(secret));
    }
}

#[test]
fn a_split_vote_is_tried_again_and_a_single_attempt_is_not() {
    let world = world(VERSIONS[0], ["x", "x", "y", "y", ""]);
    let redlock = world.client();
    let error = world.block_on(redlock.try_acquire("res")).unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (AcquireErrorKind::Split, 5));
    assert_eq!(of_one_attempt(&world), AcquireErrorKind::Split);
}

#[test]
fn a_retry_after_a_split_vote_may_win() {
    let world = world(VERSIONS[0], ["x", "x", "y", "y", ""]);
    let redlock = world.client();
    let mut trying = Box::pin(redlock.try_acquire("res").into_future());
    assert!(world.poll(&mut trying).is_none(), "a random delay");
    world.each_node(|node| node.delete("res"));
    assert!(world.block_on(trying).is_ok());
}

#[test]
fn lock_is_not_reported_taken_if_no_node_was_asked() {
    let world = World::new();
    world.each_node(|node| node.habit = Habit::Refuses);
    let redlock: Redlock = world.client();
    let mut first = acquiring(&redlock, "res");
    assert!(world.poll(&mut first).is_none());
    let error = world.block_on(redlock.acquire("res").wait(SECOND)).unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (AcquireErrorKind::TooFewNodes, 0));
    drop(first);
}

#[test]
fn a_lease_of_this_client_is_known_whatever_the_nodes_say() {
    let world = World::new();
    let redlock = world.client();
    let held = world.block_on(redlock.acquire("res")).unwrap();
    world.each_node(|node| node.habit = Habit::Hangs);
    world.pass(MS);
    let error = world.block_on(redlock.try_acquire("res")).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Taken);
    drop(held);
}
