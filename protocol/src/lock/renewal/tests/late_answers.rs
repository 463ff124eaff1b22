//! Keys of nodes whose SET is answered late, or whose vote is not confirmed.

use super::*;
use crate::link::LinkConfig;
use crate::restart::RunId;
use crate::testing::link_config;

#[test]
fn a_key_refused_after_the_node_timeout_is_soon_set_again() {
    let (mut world, lock) = granted_by_two();
    world.change(2, Some((9, 60_000)));
    live_among(&mut world, 2 * NODE_TIMEOUT, &[0, 1]);
    live(&mut world, ms(10));
    world.change(2, None);
    assert_kept_without_node_0((world, lock));
}

#[test]
fn a_key_that_was_set_late_and_lost_is_soon_set_again() {
    let (mut world, lock) = granted_by_two();
    live_among(&mut world, 2 * NODE_TIMEOUT, &[0, 1]);
    world.answer(2);
    world.change(2, None);
    assert_kept_without_node_0((world, lock));
}

/// Returns a world in which an introduction follows each SET, and confirms its vote.
fn confirming() -> World {
    World::warm_with(LinkConfig { introduction_max_age: Duration::ZERO, ..link_config() }, 3)
}

/// Acquires by the nodes 0 and 1, after `first` has happened at node 2.
fn confirmed_by_two(mut world: World, first: impl FnOnce(&mut World)) -> (World, LockId) {
    let config = LockConfig { keep_alive: Some(TTL * 60), ..lock_config(3) };
    let lock = world.acquire(config, 1);
    first(&mut world);
    [0, 0, 1, 1].into_iter().for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    (world, lock)
}

fn assert_kept_without_node_0((mut world, lock): (World, LockId)) {
    live(&mut world, ms(2_000));
    live_among(&mut world, ms(8_000), &[1, 2]);
    assert!(world.client.check(lock, ms(5_000), world.now).is_ok());
}

#[test]
fn a_key_set_late_in_front_of_an_introduction_is_soon_set_again() {
    let (mut world, lock) = confirmed_by_two(confirming(), |_| {});
    live_among(&mut world, 2 * NODE_TIMEOUT, &[0, 1]);
    world.answer(2);
    world.pass(ms(1));
    world.change(2, None);
    assert_kept_without_node_0((world, lock));
}

#[test]
fn a_key_whose_vote_was_not_confirmed_is_soon_set_again() {
    let (mut world, lock) = confirmed_by_two(confirming(), |world| {
        world.answer(2);
        world.close(2);
    });
    world.nodes[2].key = None;
    live_among(&mut world, ms(100), &[0, 1]);
    world.accept(2);
    assert_kept_without_node_0((world, lock));
}

#[test]
fn a_key_of_a_process_that_never_answered_is_set_again_by_the_next() {
    let (mut world, lock) = granted_by_two();
    world.close(2);
    live_among(&mut world, ms(100), &[0, 1]);
    world.nodes[2].key = None;
    world.nodes[2].introduction.run_id = RunId([7; 20]);
    world.accept(2);
    assert_kept_without_node_0((world, lock));
}

#[test]
fn a_key_is_not_set_again_while_the_same_process_may_set_it() {
    let (mut world, _) = granted_by_two();
    world.close_late(2);
    live_among(&mut world, ms(100), &[0, 1]);
    world.accept(2);
    live(&mut world, ms(2_000));
    let sets = world.nodes[2].written.iter().filter(|op| matches!(op, Op::Set { .. }));
    assert_eq!(sets.count(), 1);
}
