//! The blocking client: other threads wait, while this thread drives the nodes and the clock.

use std::thread;
use std::time::Duration;

use redlock_client::blocking::{Lease, LeaseSet, Lost, LostAny, Redlock, Semaphore};
use redlock_client::{AcquireErrorKind, Holding, KeepAlive, LostReason, Released, WithError};

use crate::world::{SECOND, TTL, World};

/// A client whose tasks were started in this thread. Started by another one, between two steps of
/// the world, they would not be in step with each other, and the world would never settle.
fn client(world: &World) -> Redlock {
    let redlock = world.builder().build_blocking().unwrap();
    assert!(redlock.ready(Duration::ZERO).is_err(), "no connection is open yet");
    world.settle();
    redlock
}

/// Runs `act` in a thread of its own, and the world in this one. No time passes.
fn aside<T: Send>(world: &World, act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let acting = scope.spawn(act);
        while !acting.is_finished() {
            world.settle();
            thread::yield_now();
        }
        acting.join().unwrap()
    })
}

#[test]
fn a_lease_is_held_and_released() {
    let world = World::new();
    let redlock = client(&world);
    let lease = aside(&world, || redlock.acquire("res").block()).unwrap();
    world.settle();
    assert_eq!(world.holders("res"), 5);
    assert_eq!(lease.check(SECOND), Ok(()));
    assert_eq!(aside(&world, || lease.release()), Released::Confirmed);
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn a_dropped_lease_is_released() {
    let world = World::new();
    let redlock = client(&world);
    drop(aside(&world, || redlock.acquire("res").block()).unwrap());
    world.settle();
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn a_taken_lock_is_refused() {
    let world = World::new();
    world.each_node(|node| node.set("res", "somebody"));
    let redlock = client(&world);
    let refused = aside(&world, || redlock.try_acquire("res").block());
    assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::Taken);
}

#[test]
fn a_holder_is_shown_and_its_lock_broken() {
    let world = World::new();
    let redlock = client(&world);
    let lease = aside(&world, || redlock.acquire("res").block()).unwrap();
    world.settle();
    let seen = aside(&world, || redlock.inspect_lock("res"));
    let (holding, owner) = (seen.holding(), lease.owner().as_bytes());
    let is_owner = matches!(holding, Holding::Held { value, nodes: 5, .. } if value == owner);
    assert!(is_owner, "{seen:?}");
    let after = aside(&world, || redlock.break_lock(&seen));
    assert_eq!((after.holding(), world.holders("res")), (Holding::Free, 0));
}

#[test]
fn a_thread_hears_of_the_end_of_the_lease() {
    let world = World::new();
    let redlock = client(&world);
    let lease = aside(&world, || redlock.acquire("res").block()).unwrap();
    let lost = lease.lost();
    world.pass(TTL);
    assert_eq!(aside(&world, || lost.wait()), LostReason::DeadlinePassed);
    assert!(!lease.is_valid());
}

#[test]
fn a_released_lease_is_over_for_its_waiters() {
    let world = World::new();
    let redlock = client(&world);
    let lease = aside(&world, || redlock.acquire("res").block()).unwrap();
    let lost = lease.lost();
    aside(&world, || {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| lost.wait());
            lease.release();
            assert_eq!(waiting.join().unwrap(), LostReason::Released);
        });
    });
}

#[test]
fn an_extension_moves_the_deadline() {
    let world = World::new();
    let redlock = client(&world);
    let lease = aside(&world, || redlock.acquire("res").block()).unwrap();
    let before = lease.deadline();
    world.pass(SECOND);
    assert!(aside(&world, || lease.extend(TTL)).unwrap() > before);
}

#[test]
fn work_that_ends_too_late_gets_an_error() {
    let world = World::new();
    let redlock = client(&world);
    let in_time = aside(&world, || redlock.acquire("res").with(|lease| lease.is_valid()));
    assert_eq!(in_time, Ok(true));
    let late = aside(&world, || {
        redlock.acquire("res").with(|_| {
            world.pass(TTL);
            7
        })
    });
    assert_eq!(late, Err(WithError::LostAfter(7)));
    world.settle();
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn a_panic_in_the_work_releases_the_lease() {
    let world = World::new();
    let redlock = client(&world);
    let panicked = aside(&world, || {
        let work = || redlock.acquire("res").with::<()>(|_| panic!("on purpose"));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err()
    });
    assert!(panicked);
    world.settle();
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn options_are_those_of_the_client() {
    let world = World::new();
    let redlock = client(&world);
    let keep_alive = KeepAlive::at_most(TTL);
    let refused = aside(&world, || redlock.acquire("res").keep_alive(keep_alive).block());
    assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::Invalid);
    let lease = aside(&world, || redlock.acquire("res").ttl(TTL / 2).block()).unwrap();
    assert!(lease.remaining() < TTL / 2);
    assert!(aside(&world, || redlock.close(SECOND)).is_complete());
    assert_eq!(lease.check(Duration::ZERO), Err(LostReason::Closed));
}

#[test]
fn threads_hold_several_locks_and_permits() {
    let world = World::new();
    let redlock = client(&world);
    let both = aside(&world, || redlock.acquire_all(["b", "a"]).block()).unwrap();
    world.settle();
    assert_eq!((world.holders("a"), world.holders("b")), (5, 5));
    assert_eq!(both.check(SECOND), Ok(()));
    assert_eq!(both.check_confirmed(SECOND), Ok(()));
    world.pass(SECOND);
    let deadline = both.deadline();
    assert!(aside(&world, || both.extend(TTL)).unwrap() > deadline);
    let lost = both.lost();
    assert_eq!(aside(&world, || both.release()), Released::Confirmed);
    assert_eq!(*aside(&world, || lost.wait()).error(), LostReason::Released);
    let with = |leases: &LeaseSet| leases.remaining() > SECOND;
    assert_eq!(aside(&world, || redlock.acquire_all(["c", "d"]).with(with)), Ok(true));
    let pool = redlock.semaphore("pool", 1);
    let held = aside(&world, || {
        pool.acquire().with(|_| pool.try_acquire().block().map(drop).map_err(|it| it.kind()))
    });
    assert_eq!(held, Ok(Err(AcquireErrorKind::Taken)));
}

#[test]
fn a_lease_may_be_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Redlock>();
    is_shared::<Lease>();
    is_shared::<Lost>();
    is_shared::<LeaseSet>();
    is_shared::<LostAny>();
    is_shared::<Semaphore>();
}
