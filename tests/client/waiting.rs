//! Acquisitions that wait for a lock of another client.

use redlock_client::AcquireErrorKind;

use crate::acquiring;
use crate::world::{MS, SECOND, TTL, World};

/// Number of commands that the nodes have executed for anybody, apart from handshakes.
fn executed(world: &World) -> usize {
    let mut executed = 0;
    world.each_node(|node| executed += node.executed.len());
    executed
}

#[test]
fn a_wait_sends_nothing_until_the_lock_is_released() {
    let world = World::new();
    let (one, other) = (world.client(), world.client());
    let held = world.block_on(one.acquire("res")).unwrap();
    let mut waiting = acquiring(&other, "res");
    assert!(world.poll(&mut waiting).is_none());
    let begun = world.now();
    while world.now() < begun + SECOND {
        assert!(world.poll_once(&mut waiting).is_none());
    }
    let asleep = executed(&world);
    while world.now() < begun + 4 * SECOND {
        assert!(world.poll_once(&mut waiting).is_none());
    }
    assert_eq!(executed(&world), asleep);
    let released = world.now();
    drop(held);
    assert!(world.block_on(waiting).is_ok());
    assert!(world.now() - released < 10 * MS, "{:?}", world.now() - released);
}

#[test]
fn a_lock_of_a_dead_client_is_free_when_its_keys_expire() {
    let world = World::new();
    let (one, other) = (world.client(), world.client());
    let held = world.block_on(one.acquire("res")).unwrap();
    let begun = world.now();
    held.leave_until_expiry();
    assert!(world.block_on(other.acquire("res")).is_ok());
    let waited = world.now() - begun;
    assert!(waited >= TTL && waited < TTL + 20 * MS, "{waited:?}");
}

#[test]
fn a_wait_outlives_its_connections() {
    let world = World::new();
    let (one, other) = (world.client(), world.client());
    let held = world.block_on(one.acquire("res")).unwrap();
    let mut waiting = acquiring(&other, "res");
    assert!(world.poll(&mut waiting).is_none());
    world.each_node(|node| node.disconnect());
    let begun = world.now();
    while world.now() < begun + SECOND {
        assert!(world.poll_once(&mut waiting).is_none());
    }
    let released = world.now();
    drop(held);
    assert!(world.block_on(waiting).is_ok());
    assert!(world.now() - released < 100 * MS, "{:?}", world.now() - released);
}

#[test]
fn a_wait_at_servers_that_push_nothing_asks_ever_more_rarely() {
    let world = World::new();
    world.each_node(|node| node.is_old = true);
    let (one, other) = (world.client(), world.client());
    let held = world.block_on(one.acquire("res").ttl(TTL)).unwrap();
    let mut waiting = acquiring(&other, "res");
    assert!(world.poll(&mut waiting).is_none());
    let begun = world.now();
    let before = executed(&world);
    while world.now() < begun + 9 * SECOND {
        assert!(world.poll_once(&mut waiting).is_none());
    }
    let asked = executed(&world) - before;
    assert!((200..2_000).contains(&asked), "{asked}");
    drop(held);
    assert!(world.block_on(waiting).is_ok());
}

#[test]
fn a_wait_in_vain_ends_on_time_with_the_remaining_life() {
    let world = World::new();
    let (one, other) = (world.client(), world.client());
    let _held = world.block_on(one.acquire("res")).unwrap();
    let begun = world.now();
    let error = world.block_on(other.acquire("res").wait(SECOND)).unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (AcquireErrorKind::Taken, 1));
    assert_eq!(world.now() - begun, SECOND);
    let left = error.retry_after().expect("known");
    assert!(left > TTL - SECOND - 50 * MS && left < TTL, "{left:?}");
}
