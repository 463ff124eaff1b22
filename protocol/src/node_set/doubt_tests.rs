//! Events that cast doubt on the keys of a client's leases, and events that do not, one rule per
//! test.

use super::*;
use crate::command::Op;
use crate::quorum::NodeIndex;
use crate::testing::{RESOURCE, World, lock_config, mask, ms};

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

fn confirmed(world: &World, lock: LockId) -> NodeMask {
    world.client.votes(lock, world.now).expect("it is held").confirmed
}

#[test]
fn a_node_known_to_push_nothing_does_not_confirm_a_lease() {
    let (mut world, lock) = granted();
    world.client.mute = mask(&[2]);
    world.pass(ms(500));
    world.answer_all();
    assert_eq!(confirmed(&world, lock), mask(&[0, 1]), "it has not pushed what it should have");
    world.push(2);
    world.answer_all();
    assert_eq!(confirmed(&world, lock).len(), NODES, "it does push");
}

#[test]
fn reports_of_lost_keys_cause_one_doubt_per_introduction() {
    let (mut world, _) = granted();
    world.pass(ms(500));
    world.answer_all();
    let reads = |world: &World| {
        let read = |op: &&Op| matches!(op, Op::Read { .. });
        world.nodes[0].written.iter().filter(read).count()
    };
    assert_eq!(reads(&world), 1);
    world.forget(0);
    assert_eq!(reads(&world), 2);
    // The reply to the read comes in front of that to the introduction.
    world.answer(0);
    world.forget(0);
    world.forget(0);
    assert_eq!(reads(&world), 2);
    assert!(world.nodes[0].inbox.iter().map(|&(_, op)| op).eq([Op::Introduce]));
    world.answer(0);
    assert_eq!(reads(&world), 3, "the keys are gone again");
    world.answer_all();
    assert_eq!(reads(&world), 3);
}

#[test]
fn pushes_that_change_nothing_are_not_acted_on() {
    let (mut world, _) = granted();
    world.pass(ms(500));
    world.answer_all();
    let epoch = world.nodes[0].epoch.expect("connected");
    let push = |world: &mut World| {
        let acts = world.client.handle_key_changed(NodeIndex::new(0), epoch, RESOURCE, world.now);
        world.drain();
        acts
    };
    assert!(push(&mut world), "it reads");
    assert!(!push(&mut world), "a read is under way");
    for acts in [true, true, false, false] {
        // The looks into pushes without a loss are put off: the first one arms a timer.
        world.answer_all();
        assert_eq!(push(&mut world), acts);
    }
}
