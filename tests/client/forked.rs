//! A client in a child process that was forked without `exec`.

use redlock_client::{AcquireErrorKind, CheckError, ExtendErrorKind, LostReason, Released};

use crate::acquiring;
use crate::world::{MS, SECOND, TTL, World};

const PARENT: u32 = 7;
const CHILD: u32 = 8;

fn parent() -> World {
    let world = World::new();
    world.become_process(PARENT);
    world
}

#[test]
fn a_child_does_not_believe_in_the_lease_of_its_parent() {
    let world = parent();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let mut lost = lease.lost();
    assert!(world.poll(&mut lost).is_none());
    world.become_process(CHILD);
    assert_eq!(lease.check(MS), Err(LostReason::Closed));
    assert_eq!(lease.check_confirmed(MS), Err(CheckError::Lost(LostReason::Closed)));
    assert!(!lease.is_valid());
    assert_eq!((lease.votes().confirmed, lease.votes().possible), (0, 0));
    assert!(lease.remaining().is_zero());
    assert_eq!(world.poll(&mut lost), Some(LostReason::Closed));
    let error = world.block_on(lease.extend(TTL)).unwrap_err();
    assert_eq!(error.kind(), ExtendErrorKind::Lost(LostReason::Closed));
    world.become_process(PARENT);
    lease.check(MS).unwrap();
    world.pass(SECOND);
    world.block_on(lease.extend(TTL)).unwrap();
}

#[test]
fn a_child_takes_no_lease_from_its_parent() {
    let world = parent();
    let redlock = world.client();
    let [dropped, left, released] =
        ["dropped", "left", "released"].map(|it| world.block_on(redlock.acquire(it)).unwrap());
    world.become_process(CHILD);
    drop(dropped);
    left.leave_until_expiry();
    match world.block_on(released.release()) {
        Released::Unconfirmed(nodes) => {
            assert_eq!(nodes.len(), 5);
            assert!(nodes[0].to_string().contains("the process from which this one"), "{nodes:?}");
        }
        other => panic!("{other}"),
    }
    world.become_process(PARENT);
    world.settle();
    for key in ["dropped", "left", "released"] {
        assert_eq!(world.holders(key), 5, "{key}");
    }
}

#[test]
fn a_child_acquires_nothing_with_the_client_of_its_parent() {
    let world = parent();
    let redlock = world.client();
    let held = world.block_on(redlock.acquire("res")).unwrap();
    let mut under_way = acquiring(&redlock, "res");
    assert!(world.poll(&mut under_way).is_none());
    world.become_process(CHILD);
    let mut errors = vec![
        world.poll(&mut under_way).expect("at once").unwrap_err(),
        world.poll(&mut acquiring(&redlock, "res")).expect("at once").unwrap_err(),
        world.block_on(redlock.ready(SECOND)).unwrap_err(),
        world.block_on(redlock.acquire_all(["a", "b"])).unwrap_err(),
        world.block_on(redlock.semaphore("pool", 2).acquire()).unwrap_err(),
    ];
    for error in errors.drain(..) {
        assert_eq!(error.kind(), AcquireErrorKind::Closed);
        assert!(error.to_string().contains("build a new client in a child"), "{error}");
    }
    assert!(redlock.health().is_closed);
    assert!(world.block_on(redlock.close(SECOND)).is_complete());
    drop(under_way);
    // What the child closed is its copy.
    world.become_process(PARENT);
    assert!(!redlock.health().is_closed);
    held.check(MS).unwrap();
}

#[test]
fn a_client_that_was_not_used_before_the_fork_is_the_childs() {
    let world = parent();
    let redlock = world.client();
    assert!(!redlock.health().is_closed);
    world.become_process(CHILD);
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    lease.check(MS).unwrap();
}
