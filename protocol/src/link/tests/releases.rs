//! Releases of leases and of failed attempts.

use super::*;

#[test]
fn failed_attempt_is_released_everywhere_also_without_answers() {
    let mut world = World::warm(5);
    world.acquire(lock_config(5), 1);
    world.answer_with(0, Reply::Ok);
    world.answer_with(1, Reply::Error);
    world.answer_with(2, Reply::Nil);
    assert_eq!(world.nodes[4].written, [World::set(1)], "undecided");
    world.pass(NODE_TIMEOUT);
    for (index, node) in world.nodes.iter().enumerate() {
        assert!(node.written.contains(&World::del(1)), "{index}");
    }
}

#[test]
fn a_release_is_written_at_once_behind_a_set_without_an_answer() {
    let (mut world, lock) = held();
    world.release(lock);
    assert_eq!(world.nodes[4].written, [World::set(1), World::del(1)]);
    world.answer(4);
    world.answer(4);
    assert_eq!(world.nodes[4].key, None);
}

#[test]
fn a_release_is_written_behind_a_set_on_a_link_that_looks_dead() {
    let (mut world, lock) = held();
    world.pass(ms(400));
    world.release(lock);
    assert_eq!(world.nodes[4].written, [World::set(1), World::del(1)]);
}

#[test]
fn a_set_that_was_not_written_is_dropped_with_its_release() {
    let mut world = World::reconnecting(1);
    let lock = world.acquire(lock_config(1), 1);
    world.release(lock);
    let outcome = ReleaseOutcome { absent: mask(&[0]), ..ReleaseOutcome::default() };
    assert!(world.events().contains(&Event::Released { lock, outcome }));
    world.accept(0);
    assert_eq!(world.nodes[0].written, []);
}

#[test]
fn a_cancelled_attempt_is_released() {
    let mut world = World::warm(3);
    let lock = world.acquire(lock_config(3), 1);
    world.answer(0);
    world.release(lock);
    assert_eq!(failed(&world.events()), Some(AttemptError::Cancelled));
    for node in &world.nodes {
        assert_eq!(node.written, [World::set(1), World::del(1)]);
    }
}

#[test]
fn release_reports_deleted_missing_and_silent_per_node() {
    let (mut world, lock) = held();
    world.nodes[1].key = None;
    world.release(lock);
    world.answer(0);
    world.answer(1);
    world.answer(2);
    assert_eq!(world.events(), []);
    world.pass(NODE_TIMEOUT);
    let (deleted, absent, unconfirmed) = (mask(&[0, 2]), mask(&[1]), mask(&[3, 4]));
    let outcome = ReleaseOutcome { deleted, absent, unconfirmed, ..ReleaseOutcome::default() };
    assert_eq!(world.events(), [Event::Released { lock, outcome }]);
}
