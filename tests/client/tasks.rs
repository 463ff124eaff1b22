//! Tasks of the client: their end and their new beginning.

use crate::world::{SECOND, World};

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
fn the_first_attempt_on_another_runtime_waits_for_its_connections() {
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
