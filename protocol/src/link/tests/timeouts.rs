//! Node timeouts, and nodes that owe an answer.

use super::*;

#[test]
fn a_set_that_times_out_unwritten_is_never_written() {
    let mut world = World::reconnecting(1);
    world.acquire(lock_config(1), 1);
    world.open(0);
    world.pass(NODE_TIMEOUT);
    assert_eq!(failed(&world.events()), Some(AttemptError::TooFewNodes));
    world.answer(0);
    assert_eq!(world.nodes[0].written, []);
}

#[test]
fn node_timeout_runs_from_the_attempt_not_the_connection() {
    let mut world = World::reconnecting(1);
    world.acquire(lock_config(1), 1);
    world.pass(NODE_TIMEOUT - ms(20));
    world.open(0);
    world.pass(ms(20));
    assert_eq!(failed(&world.events()), Some(AttemptError::TooFewNodes));
}

#[test]
fn node_that_owes_an_answer_gets_no_new_set_before_it() {
    let (mut world, lock) = held();
    world.pass(NODE_TIMEOUT);
    world.release(lock);
    (0..3).for_each(|index| world.answer(index));
    world.pass(NODE_TIMEOUT);
    world.acquire(lock_config(5), 2);
    assert!(!world.nodes[4].written.contains(&World::set(2)));
    assert!(world.nodes[0].written.contains(&World::set(2)));
    world.answer(4);
    world.answer(4);
    world.acquire(lock_config(5), 3);
    assert!(world.nodes[4].written.contains(&World::set(3)));
}

#[test]
fn a_node_with_an_unanswered_release_gets_no_new_set() {
    let (mut world, lock) = held();
    world.release(lock);
    world.close(4);
    world.pass(ms(10));
    world.accept(4);
    assert_eq!(world.nodes[4].inbox.len(), 1, "the release that was owed");
    (0..3).for_each(|index| world.answer(index));
    world.pass(NODE_TIMEOUT);
    world.acquire(lock_config(5), 2);
    assert!(!world.nodes[4].written.contains(&World::set(2)));
}
