//! Permits of a semaphore: how many, in which order, and who is woken.

use std::collections::BTreeSet;
use std::future::{IntoFuture, poll_fn};

use redlock_client::many::PERMITS_MAX;
use redlock_client::{AcquireErrorKind, Lease};

use crate::many::{holders, sets};
use crate::world::{MS, SECOND, TTL, World};

#[test]
fn as_many_permits_are_held_as_there_are() {
    let world = World::new();
    let (one, other) = (world.client(), world.client());
    let (one, other) = (one.semaphore("pool", 2), other.semaphore("pool", 2));
    let first = world.block_on(one.acquire()).unwrap();
    let second = world.block_on(other.try_acquire()).unwrap();
    world.settle();
    assert_eq!(holders(&world, ["pool", "pool#0", "pool#1", "pool#2"]), [0, 5, 5, 0]);
    let error = world.block_on(one.try_acquire()).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Taken);
    assert!(error.retry_after().is_some_and(|left| left > TTL / 2), "{error}");
    world.block_on(second.release());
    assert!(world.block_on(one.try_acquire()).is_ok());
    assert!(first.is_valid());
}

#[test]
fn permits_are_asked_for_in_a_random_order() {
    let mut first = BTreeSet::new();
    let world = World::new();
    for _ in 0..20 {
        let redlock = world.client();
        let permit = world.block_on(redlock.semaphore("pool", 16).acquire()).unwrap();
        world.settle();
        let names = (0..16).map(|number| format!("pool#{number}"));
        first.insert(names.map(|name| world.holders(&name)).collect::<Vec<_>>());
        world.block_on(permit.release());
    }
    assert!(first.len() > 1, "always the same permit: {first:?}");
}

#[test]
fn the_first_free_permit_wakes_a_waiter() {
    for place in 0..3 {
        let world = World::new();
        let (redlock, other) = (world.client(), world.client());
        let (pool, others) = (redlock.semaphore("pool", 3), other.semaphore("pool", 3));
        let mut held: Vec<Lease> =
            (0..3).map(|_| world.block_on(others.acquire()).unwrap()).collect();
        let mut waiting = pool.acquire().into_future();
        assert!(world.poll(&mut waiting).is_none());
        world.pass(30 * MS); // long enough to listen
        assert!(world.poll(&mut waiting).is_none());
        let begun = world.now();
        drop(held.remove(place));
        let permit = world.block_on(waiting).unwrap();
        assert!(world.now() - begun < SECOND, "permit {place}: woken, not expired");
        world.settle();
        let keys = holders(&world, ["pool#0", "pool#1", "pool#2"]);
        assert_eq!(keys, [5, 5, 5], "permit {place}");
        world.block_on(permit.release());
    }
}

#[test]
fn a_failed_wait_for_a_permit_leaves_nothing() {
    let world = World::new();
    for name in ["pool#0", "pool#1"] {
        world.each_node(|node| node.set(name, "somebody"));
    }
    let redlock = world.client();
    let begun = world.now();
    let error = world.block_on(redlock.semaphore("pool", 2).acquire().wait(SECOND)).unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (AcquireErrorKind::Taken, 2));
    assert!(world.now() - begun <= SECOND);
    assert_eq!(world.block_on(redlock.semaphore("pool", 3).try_acquire()).map(drop), Ok(()));
}

#[test]
fn nodes_in_quarantine_are_not_asked_for_every_permit() {
    let world = World::new();
    world.each_node(|node| node.uptime_s = 1);
    let redlock = world.client();
    let pool = redlock.semaphore("pool", 8);
    let permit = world.block_on(pool.acquire().wait(3 * TTL)).unwrap();
    assert!(permit.is_valid());
    assert_eq!(sets(&world), 2, "one before the end of the quarantine, one after it");
}

#[test]
fn semaphores_that_make_no_sense_are_refused() {
    let world = World::new();
    let redlock = world.client();
    let long = "x".repeat(redlock_client::RESOURCE_BYTES_MAX - 1);
    for (name, permits) in [("pool", 0), ("pool", PERMITS_MAX + 1), ("", 1), (&long, 1)] {
        let refused = world.block_on(redlock.semaphore(name, permits).acquire());
        assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::Invalid, "{permits}");
    }
    let error = world.block_on(redlock.semaphore("pool", 0).try_acquire()).unwrap_err();
    assert_eq!(error.to_string(), "a semaphore of 0 permits; 1 to 64 are allowed");
    assert_eq!(sets(&world), 0);
}

#[test]
fn tasks_of_one_client_take_turns_at_a_permit() {
    let world = World::new();
    let redlock = world.client();
    let pool = redlock.semaphore("pool", 1);
    let mut permit = world.block_on(pool.acquire()).unwrap();
    for _ in 0..5 {
        let mut waiting = pool.acquire().into_future();
        assert!(world.poll(&mut waiting).is_none());
        world.pass(30 * MS); // long enough to queue
        assert!(world.poll(&mut waiting).is_none());
        world.block_on(permit.release());
        let mut again = pool.acquire().into_future();
        permit = world.block_on(poll_fn(|context| {
            assert!(again.as_mut().poll(context).is_pending(), "another task has waited");
            waiting.as_mut().poll(context).map(Result::unwrap)
        }));
    }
}
