//! Closing a client, its health, and what its errors tell.

use redlock_client::{AcquireErrorKind, ExtendErrorKind, LostReason, NodeVerdict, Standing};

use crate::acquiring;
use crate::node::Habit;
use crate::world::{MS, SECOND, World};

#[test]
fn closing_releases_what_is_held_and_refuses_what_is_asked_for_later() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let mut waiting = acquiring(&redlock, "res");
    assert!(world.poll(&mut waiting).is_none());
    let closed = world.block_on(redlock.close(SECOND));
    assert!(closed.is_complete(), "{closed:?}");
    assert_eq!(world.holders("res"), 0);
    assert_eq!(lease.check(MS), Err(LostReason::Closed));
    assert_eq!(world.poll(&mut lease.lost()), Some(LostReason::Closed));
    let refused = world.poll(&mut waiting).expect("nothing to wait for").unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Closed);
    let refused = world.block_on(redlock.acquire("other")).unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Closed);
    drop(lease);
    world.settle();
    assert_eq!(world.tasks(), 0);
}

#[test]
fn closing_waits_no_longer_than_it_is_told_and_names_who_is_left() {
    let world = World::new();
    let redlock = world.client();
    let _lease = world.block_on(redlock.acquire("res")).unwrap();
    world.node("b", |node| node.habit = Habit::Hangs);
    let begun = world.now();
    let closed = world.block_on(redlock.close(300 * MS));
    assert_eq!(world.now() - begun, 300 * MS);
    let left: Vec<_> = closed.left().iter().map(|it| (it.place, it.node.as_str())).collect();
    assert_eq!(left, [(1, "redis://b:6379")]);
}

#[test]
fn health_tells_of_each_node_without_asking_it() {
    let world = World::new();
    let redlock = world.client();
    assert!(!redlock.health().has_quorum);
    world.node("c", |node| node.uptime_s = 1);
    world.node("d", |node| node.habit = Habit::Refuses);
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.settle();
    let health = redlock.health();
    assert!(health.has_quorum && !health.is_closed);
    let connected: Vec<_> = health.nodes.iter().map(|it| it.connected).collect();
    assert_eq!(connected, [true, true, true, false, true]);
    assert_eq!(health.nodes[0].standing, Standing::Counts);
    assert!(matches!(health.nodes[2].standing, Standing::Quarantined(left) if left > 9 * SECOND));
    assert_eq!(health.nodes[3].standing, Standing::NotKnown);
    drop(lease);
}

#[test]
fn an_error_tells_what_each_node_said() {
    let world = World::new();
    world.node("a", |node| node.set("res", "somebody"));
    world.node("c", |node| node.habit = Habit::Says(b"-OOM too much\r\n".to_vec()));
    world.node("d", |node| node.habit = Habit::Refuses);
    let redlock = world.client();
    let error = world.block_on(redlock.try_acquire("res")).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::TooFewNodes);
    let verdicts: Vec<_> = error.nodes().iter().map(|it| it.verdict).collect();
    use NodeVerdict::{Error, NotAsked, Taken};
    assert_eq!([verdicts[0], verdicts[2], verdicts[3]], [Taken, Error, NotAsked]);
    let said = "too few nodes answered without an error: redis://a:6379 taken";
    assert!(error.to_string().starts_with(said), "{error}");
}

#[test]
fn a_quarantine_says_when_it_ends_and_a_wait_that_is_long_enough_waits_it_out() {
    let world = World::new();
    world.each_node(|node| node.uptime_s = 1);
    let redlock = world.client();
    let error = world.block_on(redlock.try_acquire("res")).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Quarantined);
    let left = error.retry_after().expect("it is known");
    assert!(left > 10 * SECOND && left < 11 * SECOND, "{left:?}");
    let error = world.block_on(redlock.acquire("res").wait(2 * SECOND)).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Quarantined);
    let asked = world.node("a", |node| node.executed.len());
    assert!(world.block_on(redlock.acquire("res").wait(12 * SECOND)).is_ok());
    let asked = world.node("a", |node| node.executed.len()) - asked;
    assert!(asked <= 4, "{asked} commands: it asks once to block others, and once when it counts");
}

#[test]
fn a_closed_client_extends_nothing() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.pass(SECOND);
    assert!(world.block_on(redlock.close(SECOND)).is_complete());
    let error = world.block_on(lease.extend(10 * SECOND)).unwrap_err();
    assert_eq!(error.kind(), ExtendErrorKind::Lost(LostReason::Closed));
}

#[test]
fn closing_goes_on_when_the_runtime_that_served_it_has_ended() {
    let world = World::new();
    let redlock = world.client();
    let _lease = world.block_on(redlock.acquire("res")).unwrap();
    world.each_node(|node| node.habit = Habit::Hangs);
    let mut closing = Box::pin(redlock.close(5 * SECOND));
    assert!(world.poll(&mut closing).is_none());
    world.each_node(|node| node.habit = Habit::default());
    world.drop_tasks();
    // The connections of the runtime that ended are gone: what was owed on them is paid on new ones.
    let closed = world.block_on(closing);
    assert!(closed.is_complete(), "{closed:?}");
    assert_eq!(world.holders("res"), 0);
}
