//! Tasks of one client that want the same lock.

use redlock_client::{AcquireErrorKind, Redlock};

use crate::acquiring;
use crate::world::{MS, SECOND, TTL, World};

fn sets(world: &World) -> usize {
    world.node("a", |node| node.executed.iter().filter(|it| *it == "SET").count())
}

#[test]
fn first_in_the_queue_gets_the_lock_and_alone_asks_the_nodes() {
    let world = World::new();
    let redlock = world.client();
    let first = world.block_on(redlock.acquire("res")).unwrap();
    let mut second = acquiring(&redlock, "res");
    let mut third = acquiring(&redlock, "res");
    assert!(world.poll(&mut second).is_none() && world.poll(&mut third).is_none());
    assert_eq!(sets(&world), 1);
    drop(first);
    assert!(world.poll(&mut third).is_none());
    let second = world.poll(&mut second).expect("it was next").unwrap();
    assert_eq!(sets(&world), 2);
    drop(second);
    let third = world.poll(&mut third).expect("it was next");
    assert!(third.is_ok());
    assert_eq!(sets(&world), 3);
}

#[test]
fn a_caller_that_gives_up_is_skipped() {
    let world = World::new();
    let redlock = world.client();
    let first = world.block_on(redlock.acquire("res")).unwrap();
    let mut second = acquiring(&redlock, "res");
    let mut third = acquiring(&redlock, "res");
    assert!(world.poll(&mut second).is_none() && world.poll(&mut third).is_none());
    drop(second);
    drop(first);
    assert!(world.poll(&mut third).expect("it was next").is_ok());
}

#[test]
fn a_queued_caller_that_times_out_gets_taken() {
    let world = World::new();
    let redlock = world.client();
    let _held = world.block_on(redlock.acquire("res")).unwrap();
    let begun = world.now();
    let error = world.block_on(redlock.acquire("res").wait(SECOND)).unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (AcquireErrorKind::Taken, 0));
    assert_eq!(world.now() - begun, SECOND);
}

#[test]
fn a_single_attempt_does_not_queue() {
    let world = World::new();
    let redlock = world.client();
    let _held = world.block_on(redlock.acquire("res")).unwrap();
    let error = world.block_on(redlock.try_acquire("res")).unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (AcquireErrorKind::Taken, 1));
    assert_eq!(error.nodes().len(), 5);
}

#[test]
fn a_lease_that_ends_by_itself_lets_the_next_one_try() {
    let world = World::new();
    let redlock: Redlock = world.client();
    let stuck = world.block_on(redlock.acquire("res")).unwrap();
    let next = world.block_on(redlock.acquire("res").wait(TTL + SECOND));
    assert!(next.is_ok());
    assert!(!stuck.is_valid());
}

#[test]
fn unpolled_acquisition_does_not_keep_the_lock_for_ever() {
    let world = World::new();
    let redlock = world.client();
    let mut forgotten = acquiring(&redlock, "res");
    let waker = std::task::Waker::noop();
    assert!(forgotten.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    world.settle();
    assert!(world.holders("res") >= 3, "granted, and nobody fetches it");
    let next = world.block_on(redlock.acquire("res").wait(3 * TTL));
    assert!(next.is_ok(), "{:?}", world.now() - 1_000 * SECOND - MS);
    drop(forgotten);
}
