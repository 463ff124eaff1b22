//! Work under the lock, and leases that are not released.

use std::future::{pending, ready};

use redlock_client::{Lease, LostReason, WithError};

use crate::world::{MS, SECOND, TTL, World};

#[test]
fn work_is_done_under_the_lock_which_is_released_after_it() {
    let world = World::new();
    let redlock = world.client();
    let work = async |lease: &Lease| {
        assert!(lease.is_valid());
        world.holders("res")
    };
    let held = world.block_on(redlock.acquire("res").with(work));
    assert!(held.is_ok_and(|it| it >= 3));
    world.settle();
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn work_is_dropped_when_the_lease_is_over() {
    let world = World::new();
    let redlock = world.client();
    let done = world.block_on(redlock.acquire("res").with(async |_: &Lease| pending::<()>().await));
    assert_eq!(done, Err(WithError::Lost(LostReason::DeadlinePassed)));
}

#[test]
fn work_that_ends_after_the_deadline_is_handed_back_as_late() {
    let world = World::new();
    let redlock = world.client();
    let done = world.block_on(redlock.acquire("res").with(async |_: &Lease| {
        world.pass(TTL);
        7
    }));
    assert_eq!(done, Err(WithError::LostAfter(7)));
}

/// A value without `Debug`, as a connection of a database often is.
#[derive(PartialEq, Eq)]
struct Opaque(u32);

#[test]
fn the_error_of_work_with_any_output_is_an_error() {
    fn boxed(late: WithError<Opaque>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Err(late)?
    }
    let error = boxed(WithError::LostAfter(Opaque(7))).unwrap_err();
    assert_eq!(error.to_string(), "the lease ended before the work did");
    assert_eq!(format!("{error:?}"), "LostAfter(..)");
    let counted = WithError::<Opaque>::LostAfter(Opaque(7)).map(|value| value.0);
    assert_eq!(counted, WithError::LostAfter(7));
}

/// Error of an application.
#[derive(Debug, PartialEq)]
enum Failure {
    Lock(WithError<()>),
    Own,
}

impl From<WithError<()>> for Failure {
    fn from(error: WithError<()>) -> Self {
        Self::Lock(error)
    }
}

#[test]
fn work_that_returns_a_result_has_one_error() {
    let world = World::new();
    let redlock = world.client();
    let run = |result: Result<u32, Failure>, time| {
        let work = async |_: &Lease| {
            world.pass(time);
            result
        };
        world.block_on(redlock.acquire("res").try_with(work))
    };
    assert_eq!(run(Ok(7), MS), Ok(7));
    assert_eq!(run(Err(Failure::Own), MS), Err(Failure::Own));
    assert_eq!(run(Ok(7), TTL), Err(Failure::Lock(WithError::LostAfter(()))));
    assert_eq!(run(Err(Failure::Own), TTL), Err(Failure::Own), "no output is at stake");
    world.each_node(|node| node.set("taken", "somebody"));
    let work = redlock.try_acquire("taken").try_with(async |_: &Lease| Ok::<_, Failure>(7));
    let refused = world.block_on(work);
    assert!(matches!(refused, Err(Failure::Lock(WithError::Acquire(_)))), "{refused:?}");
}

#[test]
fn work_is_not_begun_without_the_lock() {
    let world = World::new();
    world.each_node(|node| node.set("res", "somebody"));
    let redlock = world.client();
    let done = redlock.try_acquire("res").with(async |_: &Lease| panic!("begun"));
    assert!(matches!(world.block_on(done), Err::<(), _>(WithError::Acquire(_))));
}

#[test]
fn a_guard_ends_with_its_work_or_with_the_lease() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    assert_eq!(world.block_on(lease.guard(ready(3))), Ok(3));
    assert_eq!(world.block_on(lease.guard(pending::<()>())), Err(LostReason::DeadlinePassed));
    assert_eq!(world.block_on(lease.guard(ready(3))), Err(LostReason::DeadlinePassed));
}

#[test]
fn a_guard_does_not_vouch_for_work_that_outlived_the_lease() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let late = world.block_on(lease.guard(async { world.pass(TTL) }));
    assert_eq!(late, Err(LostReason::DeadlinePassed));
}

#[test]
fn a_guard_that_is_dropped_keeps_the_lease() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let mut guard = Box::pin(lease.guard(pending::<()>()));
    assert!(world.poll(&mut guard).is_none());
    drop(guard);
    world.settle();
    assert_eq!((world.holders("res"), lease.is_valid()), (5, true));
}

#[test]
fn a_lease_that_is_left_stays_on_the_nodes_until_it_expires() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let deadline = lease.deadline();
    assert_eq!(lease.leave_until_expiry(), deadline);
    world.settle();
    world.pass(TTL - 200 * MS);
    world.settle();
    assert_eq!(world.holders("res"), 5);
    world.pass(SECOND);
    assert_eq!(world.holders("res"), 0);
    assert!(world.block_on(redlock.acquire("res")).is_ok());
}
