//! Leases that detect the loss of their keys.

use std::future::pending;
use std::time::Duration;

use redlock_client::{CheckError, KeepAlive, Lease, LostReason, Redlock};

use crate::node::Habit;
use crate::world::{MS, SECOND, World};

/// Lets `time` pass; timers and nodes are on time.
fn live_for(world: &World, time: Duration) {
    let end = world.now() + time;
    while world.now() < end {
        world.pass(10 * MS);
        world.settle();
    }
}

/// A lease that is watched.
fn watched(world: &World, redlock: &Redlock) -> Lease {
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    live_for(world, SECOND);
    lease
}

fn votes(lease: &Lease) -> (usize, usize) {
    let votes = lease.votes();
    (votes.confirmed, votes.possible)
}

/// Number of times that the nodes have executed the command `name`.
fn executed(world: &World, name: &str) -> usize {
    let mut executed = 0;
    world.each_node(|node| executed += node.executed.iter().filter(|it| *it == name).count());
    executed
}

#[test]
fn keys_that_an_operator_deletes_end_the_lease_at_once() {
    let world = World::new();
    let redlock = world.client();
    let lease = watched(&world, &redlock);
    for name in ["a", "b"] {
        world.node(name, |node| node.delete("res"));
    }
    world.settle();
    assert_eq!((lease.check(SECOND), votes(&lease)), (Ok(()), (3, 3)));
    assert_eq!(lease.check_confirmed(SECOND), Ok(()));
    world.node("c", |node| node.delete("res"));
    assert_eq!(world.poll(&mut lease.lost()), Some(LostReason::KeysGone));
    assert_eq!(lease.check_confirmed(MS), Err(CheckError::Lost(LostReason::KeysGone)));
    assert_eq!(votes(&lease), (0, 0));
}

#[test]
fn a_key_of_another_owner_ends_the_lease() {
    let world = World::new();
    let redlock = world.client();
    let lease = watched(&world, &redlock);
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.set("res", "somebody"));
    }
    assert_eq!(world.poll(&mut lease.lost()), Some(LostReason::KeysGone));
}

#[test]
fn work_is_dropped_when_the_keys_are_gone() {
    let world = World::new();
    let redlock = world.client();
    let lease = watched(&world, &redlock);
    let mut work = Box::pin(lease.guard(pending::<()>()));
    assert_eq!(world.poll(&mut work), None);
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.delete("res"));
    }
    assert_eq!(world.poll(&mut work), Some(Err(LostReason::KeysGone)));
}

#[test]
fn servers_that_restart_empty_end_the_lease_when_they_are_back() {
    let world = World::new();
    let redlock = world.client();
    let lease = watched(&world, &redlock);
    for name in ["a", "b", "c"] {
        world.node(name, |node| {
            node.disconnect();
            node.delete("res");
        });
    }
    live_for(&world, 100 * MS);
    assert_eq!(lease.check(MS), Err(LostReason::KeysGone));
}

#[test]
fn servers_that_are_silent_do_not_end_the_lease() {
    let world = World::new();
    let redlock = world.client();
    let lease = watched(&world, &redlock);
    for name in ["a", "b", "c"] {
        world.node(name, |node| {
            node.habit = Habit::Refuses;
            node.disconnect();
        });
    }
    live_for(&world, SECOND);
    assert_eq!((lease.check(SECOND), votes(&lease)), (Ok(()), (2, 5)));
    let error = lease.check_confirmed(SECOND).unwrap_err();
    assert!(matches!(error, CheckError::Unconfirmed(votes) if votes.majority == 3));
    assert_eq!(error.to_string(), "too few nodes confirm the lease: 2 of the 3 that are needed");
    assert_eq!(world.block_on(lease.lost()), LostReason::DeadlinePassed);
}

#[test]
fn a_lease_that_is_kept_alive_goes_on_hearing() {
    let world = World::new();
    let redlock = world.client();
    let keep_alive = KeepAlive::at_most(60 * SECOND);
    let lease = world.block_on(redlock.acquire("res").keep_alive(keep_alive)).unwrap();
    live_for(&world, 20 * SECOND);
    assert_eq!(votes(&lease), (5, 5));
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.delete("res"));
    }
    assert_eq!(world.poll(&mut lease.lost()), Some(LostReason::KeysGone));
}

#[test]
fn a_short_lease_costs_no_read() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    live_for(&world, 400 * MS);
    assert_eq!(lease.check_confirmed(SECOND), Ok(()), "it has just been granted");
    world.block_on(lease.release());
    live_for(&world, SECOND);
    assert_eq!(executed(&world, "GET"), 0);
}

#[test]
fn servers_that_do_not_push_are_asked_once_and_confirm_nothing() {
    let world = World::new();
    world.each_node(|node| node.is_old = true);
    let redlock = world.client();
    let lease = watched(&world, &redlock);
    assert_eq!(executed(&world, "GET"), 5);
    assert_eq!((lease.check(SECOND), votes(&lease)), (Ok(()), (0, 5)));
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.delete("res"));
    }
    live_for(&world, SECOND);
    assert_eq!(lease.check(SECOND), Ok(()), "nobody tells it");
    assert!(world.block_on(lease.extend(10 * SECOND)).is_err());
    world.settle();
    assert_eq!(world.poll(&mut lease.lost()), Some(LostReason::KeysGone));
}
