//! Tasks of the client: their end and their new beginning.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use redlock_client::{KeepAlive, Lease, Redlock};

use crate::world::{MS, SECOND, TTL, World};

#[test]
fn tasks_end_when_the_client_is_gone_and_nothing_is_owed() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    drop(redlock);
    world.settle();
    assert_eq!(world.tasks(), 6, "the lease needs them");
    drop(lease);
    world.settle();
    assert_eq!(world.holders("res"), 0);
    assert_eq!(world.tasks(), 0);
}

#[test]
fn tasks_start_again_after_their_runtime_has_ended() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.drop_tasks();
    drop(lease);
    let again = world.block_on(redlock.acquire("res")).expect("released first, on new connections");
    assert_eq!(world.tasks(), 6);
    world.block_on(again.release());
    world.settle();
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn the_first_attempt_on_a_new_runtime_awaits_connections() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.block_on(lease.release());
    world.end_runtime();
    let lease = world.block_on(redlock.try_acquire("res")).expect("all nodes are up");
    drop(lease); // its releases are owed when the runtime ends, until the keys expire
    world.end_runtime();
    world.pass(11 * SECOND);
    world.settle(); // nobody opens connections
    let lease = world.block_on(redlock.try_acquire("res")).expect("all nodes are up");
    world.block_on(lease.release());
    assert_eq!(world.holders("res"), 0);
}

type Call = fn(&Redlock, &Lease);

/// The calls that make no caller wait.
const CALLS: [(&str, Call); 7] = [
    ("check", |_, lease| _ = lease.check(Duration::ZERO)),
    ("check_confirmed", |_, lease| _ = lease.check_confirmed(Duration::ZERO)),
    ("deadline", |_, lease| _ = lease.deadline()),
    ("is_valid", |_, lease| _ = lease.is_valid()),
    ("remaining", |_, lease| _ = lease.remaining()),
    ("votes", |_, lease| _ = lease.votes()),
    ("health", |redlock, _| _ = redlock.health()),
];

#[test]
fn any_call_serves_a_kept_lease_after_the_runtimes_end() {
    for (name, call) in CALLS {
        for end in [World::end_runtime, World::drop_tasks] {
            let world = World::new();
            let redlock = world.client();
            let keep_alive = KeepAlive::at_most(60 * SECOND);
            let acquire = redlock.acquire("res").keep_alive(keep_alive);
            let lease = world.block_on(acquire).unwrap();
            world.settle();
            end(&world);
            call(&redlock, &lease);
            let end = world.now() + 3 * TTL;
            while world.now() < end {
                world.pass(100 * MS);
                world.settle();
            }
            assert_eq!(lease.check(TTL / 2), Ok(()), "{name}");
            assert_eq!(world.holders("res"), 5, "{name}");
            world.block_on(lease.release());
        }
    }
}

#[test]
fn any_call_opens_connections_after_the_runtimes_end() {
    let lost = ("lost", poll_lost as Call);
    for (name, call) in CALLS.into_iter().chain([lost]) {
        let world = World::new();
        let redlock = world.client();
        let lease = world.block_on(redlock.acquire("res")).unwrap();
        let watch = || {
            for _ in 0..20 {
                world.pass(100 * MS);
                world.settle();
            }
            lease.votes().confirmed
        };
        assert_eq!(watch(), 5, "{name}");
        world.end_runtime();
        call(&redlock, &lease);
        assert_eq!(watch(), 5, "{name}: no node would push the loss of the key");
    }
}

fn poll_lost(_: &Redlock, lease: &Lease) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(lease.lost()).poll(&mut context).is_pending());
}

#[test]
fn no_call_needs_a_runtime_to_look_at_a_lease() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.end_runtime();
    world.set_outside_runtime(true);
    CALLS.iter().for_each(|(_, call)| call(&redlock, &lease));
    assert_eq!(lease.check(Duration::ZERO), Ok(()));
    assert_eq!(world.tasks(), 1, "the timer goes on");
    world.set_outside_runtime(false);
    assert_eq!(lease.check(Duration::ZERO), Ok(()));
    assert_eq!(world.tasks(), 6);
}

#[test]
fn a_call_within_a_runtime_that_is_ending_fails_no_node() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.end_runtime();
    world.set_runtime_is_ending(true);
    assert_eq!(lease.check(Duration::ZERO), Ok(()));
    for _ in 0..50 {
        world.pass(100 * MS);
        world.settle();
    }
    world.set_runtime_is_ending(false);
    assert!(redlock.health().nodes.iter().all(|node| node.last_error.is_none()));
    drop(world.block_on(redlock.try_acquire("other")).expect("all nodes are up"));
}

#[test]
fn a_report_starts_no_task_before_the_first_use_or_at_the_end() {
    let world = World::new();
    let redlock = world.client();
    assert_eq!(redlock.health().nodes.len(), 5);
    assert_eq!(world.tasks(), 0);
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    _ = world.block_on(redlock.close(TTL));
    world.settle();
    assert!(!lease.is_valid() && redlock.health().is_closed);
    assert_eq!(world.tasks(), 0);
}
