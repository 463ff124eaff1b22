//! What makes a client's leases doubt their keys, and what does not, one rule per test.

use super::*;
use crate::testing::{World, lock_config, mask, ms};

const NODES: usize = 3;

/// A world of three nodes with a lease that all have granted, before its first reads.
fn granted() -> (World, LockId) {
    let mut world = World::warm(NODES);
    let lock = world.acquire(LockConfig { watched: true, ..lock_config(NODES) }, 1);
    (0..NODES).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.drain();
    (world, lock)
}

fn answer_all(world: &mut World) {
    while let Some(index) = (0..NODES).find(|&it| !world.nodes[it].inbox.is_empty()) {
        world.answer(index);
    }
}

fn confirmed(world: &World, lock: LockId) -> NodeMask {
    world.client.votes(lock, world.now).expect("it is held").confirmed
}

#[test]
fn a_node_known_to_push_nothing_does_not_confirm_a_lease() {
    let (mut world, lock) = granted();
    world.client.deaf = mask(&[2]);
    world.pass(ms(500));
    answer_all(&mut world);
    assert_eq!(confirmed(&world, lock), mask(&[0, 1]), "it has not pushed what it should have");
    world.push(2);
    answer_all(&mut world);
    assert_eq!(confirmed(&world, lock).len(), NODES, "it does push");
}
