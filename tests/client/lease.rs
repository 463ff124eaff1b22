//! A lease from its grant to its release or loss.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use redlock_client::{LostReason, Released};

use crate::acquiring;
use crate::node::Habit;
use crate::world::{MS, SECOND, TTL, World};

#[test]
fn a_lease_is_on_every_node_and_gone_after_the_release() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.poll(&mut acquiring(&redlock, "res")).unwrap().unwrap();
    world.settle();
    assert_eq!(world.holders("res"), 5);
    let now = world.now();
    for name in ["a", "b", "c", "d", "e"] {
        let value = world.node(name, |node| node.value(b"res", now).map(<[u8]>::to_vec));
        assert_eq!(value.as_deref(), Some(&lease.owner().as_bytes()[..]));
    }
    assert_eq!(lease.remaining(), TTL - 102 * MS);
    assert_eq!(world.block_on(lease.release()), Released::Confirmed);
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn a_dropped_lease_is_released() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    drop(lease);
    world.settle();
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn a_lost_lease_says_so_without_the_network_and_in_time() {
    let world = World::new();
    let redlock = world.client();
    let began = world.now();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.each_node(|node| node.habit = Habit::Hangs);
    let lost = lease.lost();
    assert_eq!(world.block_on(lost.clone()), LostReason::DeadlinePassed);
    assert!(world.now() - began < TTL, "the keys are still there");
    assert_eq!(world.poll(&mut lost.clone()), Some(LostReason::DeadlinePassed), "a latch");
    assert_eq!(lease.check(Duration::ZERO), Err(LostReason::DeadlinePassed));
    assert!(!lease.is_valid());
    assert_eq!(lease.remaining(), Duration::ZERO);
}

#[test]
fn a_stopped_process_learns_of_the_loss_at_the_next_poll() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let mut lost = lease.lost();
    assert!(world.poll(&mut lost).is_none());
    world.pass(TTL);
    assert!(lease.check(Duration::ZERO).is_err());
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut lost).poll(&mut context).is_ready());
}

#[test]
fn a_lease_asks_whether_enough_is_left() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.pass(TTL - SECOND);
    assert!(lease.check(897 * MS).is_ok());
    assert!(lease.check(898 * MS).is_err(), "no more than what is needed is not enough");
}
