//! Rules of extension, one per test, at the interface that drivers use.
//!
//! `held_by_three` grants a lease at one day, by the nodes 0 and 1; the key of node 2 is younger
//! than the grant. The lease of 10 s is over after 9 898 ms.

mod late;
mod loss;
mod plain;
mod release;
mod repair;

use super::*;
use crate::command::{LockId, Op};
use crate::lock::{LockConfig, ReleaseOutcome};
use crate::node_set::Event;
use crate::testing::{
    NODE_TIMEOUT, RESOURCE, TTL, World, held, held_by_three, held_by_three_with, introduction,
    lock_config, mask, ms, node, token,
};

fn settled(events: &[Event]) -> Option<Result<NodeMask, ExtendError>> {
    events.iter().find_map(|event| match *event {
        Event::Extended { counted, .. } => Some(Ok(counted)),
        Event::ExtensionFailed { reason, .. } => Some(Err(reason)),
        _ => None,
    })
}

fn lost(events: &[Event]) -> Option<LostReason> {
    events.iter().find_map(|event| match *event {
        Event::Lost { reason, .. } => Some(reason),
        _ => None,
    })
}

/// Begins a round a second from now, lets all nodes answer it, and returns its result.
fn round(world: &mut World, lock: LockId) -> Result<NodeMask, ExtendError> {
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    for index in 0..world.nodes.len() {
        while !world.nodes[index].inbox.is_empty() {
            world.answer(index);
        }
    }
    settled(&world.events()).expect("every node has answered")
}

fn forget(world: &mut World, index: usize) {
    world.nodes[index].key = None;
}

fn left(world: &World, lock: LockId) -> Duration {
    let alive = |need: u64| world.client.check(lock, ms(need), world.now).is_ok();
    ms((0..20_000).rev().find(|&need| alive(need)).map_or(0, |need| need + 1))
}

#[test]
fn majority_with_the_key_extends_from_t1_of_the_round() {
    let (mut world, lock) = held();
    (3..5).for_each(|index| world.answer(index));
    world.pass(ms(5_000));
    let t1 = world.now;
    world.extend(lock).expect("begun");
    for index in 0..5 {
        assert_eq!(world.nodes[index].written.last(), Some(&World::prolong(1)), "{index}");
    }
    world.pass(ms(20));
    world.answer(0);
    world.answer(1);
    assert_eq!(settled(&world.events()), None);
    world.answer(2);
    let deadline = t1.after(ms(10_000 - 102));
    let counted = mask(&[0, 1, 2]);
    assert_eq!(world.events(), [Event::Extended { lock, token: token(1), counted, deadline }]);
    assert_eq!(left(&world, lock), ms(9_898 - 20));
}

#[test]
fn the_loss_moves_with_the_deadline() {
    let (mut world, lock) = held_by_three();
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 1])));
    world.pass(ms(9_895));
    assert_eq!(lost(&world.events()), None);
    world.pass(ms(1));
    assert_eq!(lost(&world.events()), Some(LostReason::DeadlinePassed));
}

#[test]
fn a_minority_extends_nothing_and_costs_nothing() {
    let (mut world, lock) = held();
    world.pass(ms(5_000));
    world.extend(lock).expect("begun");
    world.answer(0);
    world.answer(1);
    world.answer_with(2, Reply::Error);
    // The SETs to the other nodes were never answered, so their answers do not count in this round.
    assert_eq!(settled(&world.events()), Some(Err(ExtendError::TooFewNodes)));
    assert_eq!(left(&world, lock), ms(4_898));
    for node in &world.nodes {
        assert!(!node.written.contains(&World::del(1)), "nothing is released");
    }
}

#[test]
fn answers_count_before_the_old_deadline_and_not_at_it() {
    for (late_ns, outcome) in [(1, Err(ExtendError::TooSlow)), (0, Err(ExtendError::TooSlow))]
        .into_iter()
        .chain([(-1, Ok(mask(&[0, 1])))])
    {
        let (mut world, lock) = held_by_three();
        let deadline = world.now.after(ms(9_898));
        world.pass(ms(9_850));
        world.extend(lock).expect("begun");
        world.answer(0);
        // The process is stopped: no timer fires.
        world.now = BootInstant::from_nanos(deadline.as_nanos().wrapping_add_signed(late_ns));
        world.answer(1);
        assert_eq!(settled(&world.events()), Some(outcome), "{late_ns}");
        let alive = world.client.check(lock, Duration::ZERO, world.now).is_ok();
        assert_eq!(alive, outcome.is_ok(), "{late_ns}");
    }
}

#[test]
fn a_round_settles_when_a_majority_is_out_of_reach() {
    let (mut world, lock) = held_by_three();
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer_with(0, Reply::Error);
    assert_eq!(settled(&world.events()), Some(Err(ExtendError::TooFewNodes)));
}

#[test]
fn a_round_settles_when_the_node_timeout_is_over() {
    let (mut world, lock) = held_by_three();
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer(0);
    world.pass(NODE_TIMEOUT - ms(1));
    assert_eq!(settled(&world.events()), None);
    world.pass(ms(1));
    assert_eq!(settled(&world.events()), Some(Err(ExtendError::TooFewNodes)));
}

#[test]
fn an_answer_to_an_old_round_does_not_count_for_a_later_one() {
    let (mut world, lock) = held_by_three();
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer_with(0, Reply::Error);
    assert_eq!(settled(&world.events()), Some(Err(ExtendError::TooFewNodes)));
    world.extend(lock).expect("begun");
    world.answer(1);
    world.answer(0);
    assert_eq!(settled(&world.events()), None, "node 1 has answered the first round only");
    world.answer(1);
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[0, 1]))));
}

#[test]
fn a_node_in_quarantine_counts_for_an_extension() {
    let mut world = World::warm(3);
    world.close(2);
    world.nodes[2].introduction = introduction(2);
    world.pass(ms(10));
    world.accept(2);
    let lock = world.acquire(lock_config(3), 1);
    [2, 0, 1].into_iter().for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.events();
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer(2);
    world.answer(0);
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[0, 2]))));
}

#[test]
fn without_a_live_lease_nothing_is_extended() {
    let passed = Err(ExtendError::Lost(LostReason::DeadlinePassed));
    let mut world = World::warm(3);
    let lock = world.acquire(lock_config(3), 1);
    assert_eq!(world.extend(lock), passed, "not granted yet");
    (0..2).for_each(|index| world.answer(index));
    assert_eq!(world.extend(lock), passed, "not delivered yet");
    world.client.deliver(lock, world.now).expect("granted");
    world.now = world.now.after(ms(9_898));
    assert_eq!(world.extend(lock), passed, "at the deadline, before the timer");
    world.fire();
    assert_eq!(world.extend(lock), passed, "after the timer");
    world.release(lock);
    assert_eq!(world.extend(lock), passed, "released");
    assert!(world.nodes.iter().all(|node| !node.written.contains(&World::prolong(1))));
}

#[test]
fn a_round_that_would_end_no_later_than_the_lease_is_refused() {
    let (mut world, lock) = held_by_three();
    assert_eq!(world.extend(lock), Err(ExtendError::WouldShorten), "as long as it is");
    world.pass(ms(1_000));
    // A drift of 1 % and 2 ms: 8 999 ms are worth 8 907.01 ms, 8 991 ms are worth 8 899.09 ms.
    let shorter = world.client.extend(lock, ms(8_989), world.now);
    assert_eq!(shorter, Err(ExtendError::WouldShorten));
    assert_eq!(world.client.extend(lock, ms(8_999), world.now), Ok(()));
}

#[test]
fn a_ttl_beyond_the_quarantine_is_refused() {
    let (mut world, lock) = held_by_three();
    world.pass(ms(1_000));
    let longer = world.client.extend(lock, TTL + ms(1), world.now);
    assert_eq!(longer, Err(ExtendError::TooLong));
}

#[test]
fn one_round_at_a_time() {
    let (mut world, lock) = held_by_three();
    world.pass(ms(1_000));
    assert_eq!(world.extend(lock), Ok(()));
    assert_eq!(world.extend(lock), Err(ExtendError::Busy));
    (0..2).for_each(|index| world.answer(index));
    world.pass(ms(1));
    assert_eq!(world.extend(lock), Ok(()));
}

#[test]
fn so_many_successes_and_no_more() {
    let (mut world, lock) = held_by_three();
    for _ in 0..lock_config(3).extensions_max {
        round(&mut world, lock).expect("extended");
    }
    world.pass(ms(1_000));
    assert_eq!(world.extend(lock), Err(ExtendError::TooMany));
}

#[test]
fn a_failure_is_not_counted() {
    let (mut world, lock) = held_by_three_with(LockConfig { extensions_max: 1, ..lock_config(3) });
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer_with(0, Reply::Error);
    (1..3).for_each(|index| world.answer(index));
    assert_eq!(settled(&world.events()), Some(Err(ExtendError::TooFewNodes)));
    assert!(round(&mut world, lock).is_ok());
    world.pass(ms(1_000));
    assert_eq!(world.extend(lock), Err(ExtendError::TooMany));
}
