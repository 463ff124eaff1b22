use core::num::NonZeroU16;

use super::*;
use crate::command::{Reply, ResourceId};
use crate::link::{LinkConfig, Window};
use crate::lock::{AttemptError, Limit, LockConfig};
use crate::testing::{NODE_TIMEOUT, World, failed, fresh, held_by, link_config, lock_config, ms};

/// A world of three nodes whose connections have room for two attempts.
fn two_at_once() -> World {
    let window = Window::new(NonZeroU16::new(4).expect("it is not zero"));
    World::warm_with(LinkConfig { window, ..link_config() }, 3)
}

/// A configuration that tries for 20 ms.
fn patient(world: &World) -> LockConfig {
    LockConfig { limit: Limit::Until(world.now.after(ms(20))), ..lock_config(3) }
}

/// Opens uses of `count` locks.
fn open(world: &mut World, count: u32, config: LockConfig) -> Vec<LockId> {
    let open = |number| world.client.open(ResourceId(number), config, world.now);
    let locks = (0..count).map(open).collect();
    world.drain();
    locks
}

/// Two attempts that are under way, and a use that waits behind them for up to 20 ms.
fn one_waits() -> (World, LockId) {
    let mut world = two_at_once();
    let config = patient(&world);
    let locks = open(&mut world, 3, config);
    world.begin(locks[0], 1);
    world.begin(locks[1], 2);
    world.events();
    (world, locks[2])
}

/// Returns the uses whose attempt is due, in order.
fn due(world: &mut World) -> Vec<LockId> {
    let events = world.events().into_iter();
    let due = events.filter_map(|event| match event {
        Event::AttemptDue(lock) => Some(lock),
        _ => None,
    });
    due.collect()
}

/// Returns the uses that gave up, and why.
fn gave_up(world: &mut World) -> Vec<(LockId, AttemptError)> {
    let events = world.events().into_iter();
    let gave_up = events.filter_map(|event| match event {
        Event::GaveUp { lock, reason, .. } => Some((lock, reason)),
        _ => None,
    });
    gave_up.collect()
}

#[test]
fn attempts_beyond_the_bound_wait_for_their_turn() {
    let mut world = two_at_once();
    let locks = open(&mut world, 5, lock_config(3));
    assert_eq!(due(&mut world), locks[..2]);
    world.client.begin(locks[2], fresh(9), world.now);
    world.drain();
    assert!(world.nodes[0].written.is_empty(), "it is not its turn");
    world.begin(locks[0], 1);
    world.begin(locks[1], 2);
    (0..2).for_each(|index| world.answer_with(index, Reply::Ok));
    assert_eq!(due(&mut world), [locks[2]], "the first one is decided");
    (0..2).for_each(|index| world.answer_with(index, held_by(9)));
    assert_eq!(due(&mut world), [locks[3]], "the second one has failed");
}

#[test]
fn an_unanswered_attempt_makes_room_after_the_node_timeout() {
    let mut world = two_at_once();
    let locks = open(&mut world, 4, lock_config(3));
    world.begin(locks[0], 1);
    world.begin(locks[1], 2);
    world.events();
    world.pass(NODE_TIMEOUT);
    assert_eq!(due(&mut world), locks[2..]);
}

#[test]
fn a_use_gives_up_as_overloaded_if_its_turn_comes_too_late() {
    let (mut world, waiting) = one_waits();
    world.pass(ms(20));
    assert_eq!(gave_up(&mut world), [(waiting, AttemptError::Overloaded)]);
}

#[test]
fn another_attempt_waits_for_its_turn_and_keeps_its_reason() {
    let mut world = two_at_once();
    let config = patient(&world);
    let first = open(&mut world, 1, config)[0];
    world.begin(first, 1);
    world.answer_with(0, Reply::Ok);
    (1..3).for_each(|index| world.answer_with(index, held_by(7 + index as u8)));
    assert_eq!(failed(&world.events()), Some(AttemptError::Split));
    // Nobody answers two uses of other locks that begin while it sleeps.
    for number in 1..3 {
        let later = world.client.open(ResourceId(number), lock_config(3), world.now);
        world.begin(later, number as u8);
    }
    world.events();
    world.pass(ms(20));
    assert_eq!(gave_up(&mut world), [(first, AttemptError::Split)]);
}

#[test]
fn a_use_that_ends_before_its_turn_is_passed_over() {
    let mut world = two_at_once();
    let locks = open(&mut world, 5, lock_config(3));
    world.begin(locks[0], 1);
    world.release(locks[2]);
    world.events();
    world.release(locks[1]);
    world.release(locks[0]);
    assert_eq!(due(&mut world), locks[3..]);
}

#[test]
fn a_use_is_not_admitted_after_its_time() {
    let (mut world, waiting) = one_waits();
    // The timer is late, and the answers come first.
    world.now = world.now.after(ms(20));
    (0..2).for_each(|index| world.answer_with(index, Reply::Ok));
    assert_eq!(due(&mut world), []);
    world.fire();
    assert_eq!(gave_up(&mut world), [(waiting, AttemptError::Overloaded)]);
}
