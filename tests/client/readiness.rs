//! Readiness of a client: connections before its first attempt, and a majority that counts.

use redlock_client::AcquireErrorKind;

use crate::kind;
use crate::node::Habit;
use crate::world::{MS, SECOND, TTL, World};

#[test]
fn a_distant_node_has_time_to_connect_before_the_first_attempt() {
    let world = World::new();
    world.each_node(|node| node.habit = Habit::Refuses);
    let refused = world.client();
    assert_eq!(kind(world.block_on(refused.try_acquire("res"))), AcquireErrorKind::TooFewNodes);
    world.each_node(|node| node.habit = Habit::Hangs);
    let redlock = world.client();
    let mut acquiring = Box::pin(redlock.try_acquire("res").into_future());
    assert!(world.poll(&mut acquiring).is_none());
    // Many node timeouts later, but within the connect timeout.
    world.pass(400 * MS);
    assert!(world.poll(&mut acquiring).is_none());
    world.each_node(|node| node.habit = Habit::Answers);
    let lease = world.poll(&mut acquiring).expect("no time passes").unwrap();
    assert_eq!(lease.remaining(), TTL - 102 * MS, "T1 was read when the nodes were there");
}

#[test]
fn a_client_is_ready_when_a_majority_counts() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.uptime_s = 1);
    }
    let redlock = world.client();
    let error = world.block_on(redlock.ready(SECOND)).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Quarantined);
    assert_eq!(error.retry_after(), Some(TTL + 102 * MS - 2 * SECOND));
    assert_eq!(world.block_on(redlock.ready(TTL)), Ok(()));
    assert!(redlock.health().has_quorum);
    let _closed = world.block_on(redlock.close(SECOND));
    let error = world.block_on(redlock.ready(SECOND)).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Closed);
}

#[test]
fn a_client_that_is_not_ready_names_the_nodes_that_are_away() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.habit = Habit::Refuses);
    }
    let redlock = world.client();
    let error = world.block_on(redlock.ready(SECOND)).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::TooFewNodes);
    let away: Vec<_> = error.nodes().iter().map(|it| (it.place, it.error.is_some())).collect();
    assert_eq!(away, [(0, true), (1, true), (2, true)]);
}
