//! Delivery of a lease, and its end.

use super::*;

#[test]
fn a_grant_delivered_after_its_deadline_is_refused_and_released() {
    let mut world = World::warm(3);
    let lock = world.acquire(lock_config(3), 1);
    (0..3).for_each(|index| world.answer(index));
    world.now = world.now.after(ms(9_898));
    let delivered = world.client.deliver(lock, world.now);
    assert_eq!(delivered, Err(AttemptError::TooSlow));
    world.drain();
    for node in &world.nodes {
        assert_eq!(node.written, [World::set(1), World::del(1)]);
    }
}

#[test]
fn the_minimum_validity_must_be_exceeded_at_delivery_too() {
    for (late_ms, delivered) in [(8_897, true), (8_898, false)] {
        let mut world = World::warm(3);
        let lock = world.acquire(LockConfig { min_validity: ms(1_000), ..lock_config(3) }, 1);
        (0..3).for_each(|index| world.answer(index));
        world.now = world.now.after(ms(late_ms));
        assert_eq!(world.client.deliver(lock, world.now).is_ok(), delivered, "{late_ms}");
    }
}

#[test]
fn a_grant_is_delivered_until_a_nanosecond_before_its_deadline() {
    let mut world = World::warm(3);
    let lock = world.acquire(lock_config(3), 1);
    (0..3).for_each(|index| world.answer(index));
    world.now = world.now.after(ms(9_898)).before(Duration::from_nanos(1));
    assert!(world.client.deliver(lock, world.now).is_ok());
}

#[test]
fn an_undelivered_grant_is_no_lease() {
    let mut world = World::warm(1);
    let lock = world.acquire(lock_config(1), 1);
    world.answer(0);
    assert!(world.client.check(lock, Duration::ZERO, world.now).is_err());
}

#[test]
fn lost_comes_before_the_deadline_without_any_network() {
    let (mut world, lock) = held();
    let begun = at_ms(86_400_000);
    world.pass(ms(9_895));
    assert!(!world.events().contains(&Event::Lost { lock, reason: LostReason::DeadlinePassed }));
    assert!(world.client.check(lock, Duration::ZERO, world.now).is_ok());
    world.pass(ms(1));
    assert_eq!(world.now, begun.after(ms(9_896)));
    assert_eq!(world.events(), [Event::Lost { lock, reason: LostReason::DeadlinePassed }]);
    assert!(world.client.check(lock, Duration::ZERO, world.now).is_err(), "a latch");
}

#[test]
fn check_reads_the_clock_and_wants_more_than_asked() {
    let (world, lock) = held();
    // No timer fired: the process was suspended.
    let deadline = world.now.after(ms(9_898));
    let check = |need, now| world.client.check(lock, need, now).is_ok();
    assert!(check(Duration::ZERO, deadline.before(Duration::from_nanos(1))));
    assert!(!check(Duration::ZERO, deadline));
    assert!(check(ms(897), deadline.before(ms(898))));
    assert!(!check(ms(898), deadline.before(ms(898))));
}

#[test]
fn a_caller_can_ask_when_the_lease_is_over_once_it_has_one() {
    let (mut world, lock) = held();
    let deadline = world.now.after(ms(9_898));
    assert_eq!(world.client.deadline(lock), Some(deadline));
    world.pass(ms(1_000));
    assert_eq!(world.client.deadline(lock), Some(deadline));
    world.release(lock);
    assert_eq!(world.client.deadline(lock), None);
}
