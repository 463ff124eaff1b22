//! First attempts of a client whose connections are still being opened.

use super::*;
use crate::lock::LockConfig;
use crate::quorum::NodeIndex;
use crate::testing::{RESOURCE, World, lock_config, ms};

fn open(world: &mut World, config: LockConfig) -> LockId {
    let lock = world.client.open(RESOURCE, config, world.now);
    world.drain();
    lock
}

#[test]
fn a_first_attempt_waits_for_a_majority_of_connections() {
    let mut world = World::cold(3);
    let lock = open(&mut world, lock_config(3));
    world.accept(0);
    world.pass(ms(400));
    assert_eq!(world.events(), [], "its T1 has not been read");
    world.accept(1);
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
}

#[test]
fn a_first_attempt_waits_no_longer_than_a_connection_may_take() {
    let mut world = World::cold(3);
    let lock = open(&mut world, lock_config(3));
    world.accept(0);
    world.pass(ms(499));
    assert_eq!(world.events(), []);
    world.pass(ms(1));
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
}

#[test]
fn a_first_attempt_does_not_wait_for_nodes_that_refuse() {
    let mut world = World::cold(3);
    let lock = open(&mut world, lock_config(3));
    world.close(0);
    assert_eq!(world.events(), [], "the other two are a majority");
    world.close(1);
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
}

#[test]
fn first_attempt_begins_at_the_end_of_its_wait_at_the_latest() {
    let mut world = World::cold(3);
    let config = LockConfig { limit: Limit::Until(world.now.after(ms(30))), ..lock_config(3) };
    let lock = open(&mut world, config);
    world.pass(ms(30));
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
}

#[test]
fn a_further_attempt_keeps_its_random_wait() {
    let mut world = World::cold(3);
    let config = LockConfig { limit: Limit::Attempts(2), ..lock_config(3) };
    let lock = open(&mut world, config);
    world.pass(ms(500));
    world.begin(lock, 1);
    world.events();
    for node in 0..3 {
        if world.nodes[node].dialed.is_some() {
            world.close(node);
        }
    }
    assert!(!world.events().contains(&Event::AttemptDue(lock)));
}

#[test]
fn connections_are_first_ones_again_after_a_runtimes_end() {
    let mut world = World::warm(3);
    (0..3).for_each(|node| world.abandon(node));
    assert!(world.nodes.iter().all(|it| it.dialed.is_none()), "nothing needs a connection");
    world.pass(ms(1_000));
    let lock = open(&mut world, lock_config(3));
    assert_eq!(world.events(), [], "its T1 has not been read");
    world.accept(0);
    world.accept(1);
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
}

#[test]
fn the_time_of_a_dial_counts_from_when_the_transport_begins_it() {
    let mut world = World::cold(3);
    let lock = open(&mut world, lock_config(3));
    world.pass(ms(499));
    let epoch = world.nodes[0].dialed.expect("it is dialled");
    world.client.handle_dialing(NodeIndex::new(0), epoch, world.now);
    world.pass(ms(499));
    world.accept(0);
    assert!(world.client.is_open(NodeIndex::new(0)));
    assert_eq!(world.events(), [Event::AttemptDue(lock)], "it waits no longer than before");
}

#[test]
fn a_release_owed_at_the_runtimes_end_needs_a_connection() {
    let mut world = World::warm(3);
    let lock = world.acquire(lock_config(3), 1);
    world.answer(0);
    world.release(lock);
    world.abandon(0);
    world.accept(0);
    assert!(world.nodes[0].key.is_some());
    world.answer_all();
    assert_eq!(world.nodes[0].key, None);
}

#[test]
fn a_release_while_connections_open_ends_the_use() {
    let mut world = World::cold(3);
    let lock = open(&mut world, lock_config(3));
    world.release(lock);
    let cancelled = Event::GaveUp { lock, reason: AttemptError::Cancelled, taken_for: None };
    assert_eq!(world.events(), [cancelled]);
    (0..3).for_each(|node| world.accept(node));
    assert_eq!(world.events(), []);
}
