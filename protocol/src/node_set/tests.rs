//! Rules of the protocol, one per test, at the interface that drivers use.

mod attempts;
mod lease;
mod quarantine;
mod uses;

use super::*;
use crate::command::Reply;
use crate::link::Window;
use crate::lock::Limit;
use crate::quorum::NodeIndex;
use crate::restart::{Canary, Introduction, RunId};
use crate::testing::{
    NODE_TIMEOUT, RESOURCE, TTL, World, at_ms, canary, decided, failed, fresh, held, held_by,
    introduction, lock_config, mask, ms, token,
};

fn answer(world: &mut World, index: usize) {
    while !world.nodes[index].inbox.is_empty() {
        world.answer(index);
    }
}

#[test]
fn a_majority_grants_and_two_of_five_do_not() {
    let mut world = World::warm(5);
    world.acquire(lock_config(5), 1);
    world.answer(0);
    world.answer(1);
    assert_eq!(decided(&world.events()), None);
    world.answer(4);
    assert_eq!(decided(&world.events()).expect("granted").0, mask(&[0, 1, 4]));
}

#[test]
fn half_of_an_even_number_is_no_majority() {
    let mut world = World::warm(4);
    world.acquire(lock_config(4), 1);
    world.answer(0);
    world.answer(1);
    world.answer_with(2, held_by(9));
    assert_eq!(decided(&world.events), None);
    world.answer_with(3, held_by(9));
    assert_eq!(failed(&world.events), Some(AttemptError::Split), "nor for another attempt");
}

#[test]
fn quorum_is_of_the_configured_nodes_not_the_connected_ones() {
    let mut world = World::cold(5);
    world.client.connect(world.now);
    world.drain();
    (0..2).for_each(|index| world.accept(index));
    (2..5).for_each(|index| world.close(index));
    world.acquire(lock_config(5), 1);
    let reason = failed(&world.events()).expect("three of five are down");
    assert_eq!(reason, AttemptError::TooFewNodes);
}

#[test]
fn an_attempt_that_reaches_no_majority_writes_nothing() {
    for (count, away) in [(2, 1), (3, 2), (4, 2), (5, 3)] {
        let mut world = World::warm(count);
        (0..away).for_each(|index| world.close(index));
        world.acquire(lock_config(count), 1);
        assert_eq!(failed(&world.events()), Some(AttemptError::TooFewNodes), "{away} of {count}");
        assert!(world.nodes.iter().all(|node| node.written.is_empty()), "{away} of {count}");
    }
}

#[test]
fn deadline_is_t1_plus_ttl_minus_drift_despite_late_messages() {
    let mut world = World::reconnecting(3);
    let t1 = world.now;
    let lock = world.acquire(lock_config(3), 1);
    world.pass(ms(20));
    (0..3).for_each(|index| world.accept(index));
    world.pass(ms(20));
    (0..2).for_each(|index| world.answer(index));
    let deadline = t1.after(ms(10_000 - 102));
    assert_eq!(decided(&world.events).expect("granted").1, deadline);
    let grant = world.client.deliver(lock, world.now).expect("granted");
    assert_eq!((grant.deadline, grant.token), (deadline, token(1)));
}

#[test]
fn a_majority_that_answers_when_nothing_is_left_grants_nothing() {
    // The lease of 60 ms ends 2.6 ms early; the node timeout is 50 ms, and timers may be late.
    for (late_us, granted) in [(57_399, true), (57_400, false), (58_000, false)] {
        let mut world = World::warm(3);
        world.acquire(LockConfig { ttl: ms(60), ..lock_config(3) }, 1);
        world.now = world.now.after(Duration::from_micros(late_us));
        world.answer(0);
        world.answer(1);
        assert_eq!(decided(&world.events).is_some(), granted, "{late_us}");
        let slow = failed(&world.events) == Some(AttemptError::TooSlow);
        assert_eq!(slow, !granted, "{late_us}");
    }
}

#[test]
fn the_minimum_validity_must_be_exceeded() {
    for (min_ms, granted) in [(9_897, true), (9_898, false)] {
        let mut world = World::warm(3);
        let min_validity = ms(min_ms);
        world.acquire(LockConfig { min_validity, ..lock_config(3) }, 1);
        world.answer(0);
        world.answer(1);
        assert_eq!(decided(&world.events).is_some(), granted, "{min_ms}");
    }
}

#[test]
fn settling_waits_only_for_answers_that_matter() {
    let (mut won, mut lost) = (World::warm(5), World::warm(5));
    won.acquire(lock_config(5), 1);
    (0..3).for_each(|index| won.answer(index));
    assert!(decided(&won.events).is_some(), "a hung minority costs nothing");
    lost.acquire(lock_config(5), 1);
    (0..3).for_each(|index| lost.answer_with(index, held_by(9)));
    assert_eq!(failed(&lost.events), Some(AttemptError::Taken));
}

#[test]
fn an_answer_to_an_earlier_attempt_never_counts_for_a_later_one() {
    let mut world = World::warm(3);
    let config = LockConfig { limit: Limit::Attempts(2), ..lock_config(3) };
    let lock = world.acquire(config, 1);
    world.answer_with(0, held_by(9));
    world.answer_with(1, held_by(9));
    world.pass(ms(10));
    world.begin(lock, 2);
    world.events();
    // Node 2 is slow: its OK is for the first attempt.
    world.answer_with(2, Reply::Ok);
    world.answer(0);
    world.answer_with(0, Reply::Ok);
    assert_eq!(decided(&world.events), None, "one vote of the second attempt only");
    world.answer(1);
    world.answer_with(1, Reply::Ok);
    assert_eq!(decided(&world.events).expect("granted").0, mask(&[0, 1]));
}

#[test]
fn an_answer_after_the_node_timeout_does_not_count() {
    let mut world = World::warm(3);
    world.acquire(lock_config(3), 1);
    world.answer(0);
    world.pass(NODE_TIMEOUT);
    assert_eq!(failed(&world.events), Some(AttemptError::TooFewNodes));
    world.answer(1);
    assert_eq!(decided(&world.events), None);
}

#[test]
fn an_error_is_no_vote() {
    let mut world = World::warm(3);
    world.acquire(lock_config(3), 1);
    world.answer_with(0, Reply::Error);
    world.answer_with(1, Reply::Error);
    assert_eq!(failed(&world.events), Some(AttemptError::TooFewNodes));
}

#[test]
fn hundreds_of_commands_ending_at_once_deepen_no_stack() {
    let mut world = World::reconnecting(1);
    let config = LockConfig { limit: Limit::Attempts(2), ..lock_config(1) };
    let attempts = Window::default().attempts();
    for _ in 0..attempts {
        world.acquire(config, 1);
    }
    assert_eq!(world.events().len(), attempts, "every attempt is under way");
    let depth = std::thread::Builder::new().stack_size(128 * 1_024);
    let closed = depth.spawn(move || {
        world.close(0);
        world.events()
    });
    let events = closed.expect("a thread").join().expect("no overflow");
    assert_eq!(events.len(), attempts);
}
