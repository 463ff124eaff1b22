//! Time and number of the attempts of one use, and the round trips that they measure.

use super::*;

#[test]
fn the_next_attempt_is_due_after_a_random_wait() {
    let config = LockConfig { limit: Limit::Attempts(2), ..lock_config(1) };
    for (jitter, wait_ms) in [(0, 0), (u64::MAX / 2, 2), (u64::MAX, 4)] {
        let mut world = World::warm(1);
        let lock = world.client.open(RESOURCE, config, world.now);
        world.client.begin(lock, Fresh { jitter, ..fresh(1) }, world.now);
        world.drain();
        world.answer_with(0, held_by(9));
        world.events();
        let due = world.client.poll_timeout().expect("another attempt follows");
        assert_eq!(due.since(world.now).as_millis(), wait_ms);
        world.pass(ms(5));
        assert_eq!(world.events(), [Event::AttemptDue(lock)]);
    }
}

#[test]
fn attempts_are_bounded_by_count_and_by_time() {
    let until = at_ms(86_400_000).after(ms(4));
    for limit in [Limit::Attempts(1), Limit::Until(until)] {
        let mut world = World::warm(1);
        let lock = world.acquire(LockConfig { limit, ..lock_config(1) }, 1);
        world.answer_with(0, held_by(9));
        world.answer_with(0, Reply::Integer(0));
        world.answer_with(0, Reply::Error);
        world.pass(ms(4));
        if !world.nodes[0].inbox.is_empty() {
            world.answer_with(0, Reply::Error);
        }
        let gave_up = Event::GaveUp { lock, reason: AttemptError::Taken, taken_for: None };
        assert_eq!(world.events.last(), Some(&gave_up), "{limit:?}");
    }
}

#[test]
fn round_trips_are_remembered_the_longest_of_late() {
    let mut world = World::warm(1);
    assert_eq!(world.client.round_trip(NodeIndex::new(0)), Duration::ZERO);
    world.acquire(lock_config(1), 1);
    world.pass(ms(8));
    world.answer(0);
    assert_eq!(world.client.round_trip(NodeIndex::new(0)), ms(8));
    world.acquire(lock_config(1), 2);
    world.answer(0);
    assert_eq!(world.client.round_trip(NodeIndex::new(0)), ms(7), "seven eighths");
}
