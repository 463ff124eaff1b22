//! Nodes in quarantine, and attempts that wait for its end.

use super::*;
use crate::retry::RetryDelay;

fn young(run: u8) -> Introduction {
    let canary = canary(1).map(|it| Canary { age: Duration::ZERO, ..it });
    Introduction { canary, ..introduction(run) }
}

#[test]
fn a_young_node_is_asked_and_not_counted() {
    let mut world = World::reconnecting(3);
    world.nodes[1].introduction = young(1);
    world.nodes[2].introduction = young(1);
    world.acquire(lock_config(3), 1);
    (0..3).for_each(|index| world.accept(index));
    (0..3).for_each(|index| world.answer(index));
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
    assert!(world.nodes[1].written.contains(&World::set(1)));
}

#[test]
fn quarantine_is_judged_by_t1_and_not_by_the_answer() {
    let mut world = World::cold(1);
    world.nodes[0].introduction = young(1);
    world.client.connect(world.now);
    world.drain();
    world.accept(0);
    // Quarantine: ten seconds and 102 ms.
    world.pass(ms(10_102) - Duration::from_nanos(1));
    world.acquire(lock_config(1), 1);
    world.pass(ms(1));
    world.answer(0);
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
    world.answer(0);
    world.acquire(lock_config(1), 2);
    world.answer(0);
    assert!(decided(&world.events).is_some());
}

#[test]
fn restarted_node_introduced_after_t1_does_not_count() {
    let mut world = World::warm(1);
    world.close(0);
    world.nodes[0].introduction = Introduction { run_id: RunId([2; 20]), ..introduction(1) };
    world.pass(ms(10));
    world.acquire(lock_config(1), 1);
    world.accept(0);
    world.answer(0);
    assert_eq!(failed(&world.events), Some(AttemptError::Quarantined));
}

#[test]
fn a_node_that_refuses_to_introduce_itself_is_not_counted() {
    let mut world = World::reconnecting(1);
    world.acquire(lock_config(1), 1);
    world.open(0);
    world.answer_with(0, Reply::Error);
    world.answer(0);
    assert_eq!(failed(&world.events), Some(AttemptError::Quarantined));
}

/// Three nodes, of which the first `young_nodes` are young at the client's first contact.
fn quarantined(young_nodes: usize) -> World {
    let mut world = World::cold(3);
    (0..young_nodes).for_each(|index| world.nodes[index].introduction = young(1));
    world.client.connect(world.now);
    world.drain();
    (0..3).for_each(|index| world.accept(index));
    world
}

fn patient(world: &World, wait_ms: u64) -> LockConfig {
    LockConfig { limit: Limit::Until(world.now.after(ms(wait_ms))), ..lock_config(3) }
}

fn answer_all(world: &mut World) {
    (0..3).for_each(|index| answer(world, index));
}

#[test]
fn a_waiting_use_tries_again_when_a_majority_is_eligible() {
    let mut world = quarantined(2);
    let counts = world.now.after(ms(10_102));
    assert_eq!(world.client.quorum_from(), Some(counts));
    let config = patient(&world, 20_000);
    let lock = world.acquire(config, 1);
    (0..2).for_each(|_| answer_all(&mut world));
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
    let due = world.client.poll_timeout().expect("another attempt follows");
    assert!(due >= counts && due < counts.after(ms(5)), "after it, and a random wait");
    world.pass(due.since(world.now));
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
    world.begin(lock, 2);
    answer_all(&mut world);
    assert!(decided(&world.events()).is_some());
}

#[test]
fn a_slow_answer_delays_the_end_of_a_quarantine_no_longer() {
    let mut world = quarantined(2);
    let counts = world.now.after(ms(10_102));
    let longest = ms(8);
    let retry = RetryDelay { longest, ..RetryDelay::default() };
    world.acquire(LockConfig { retry, ..patient(&world, 20_000) }, 1);
    // The host sleeps, and then reads the answers.
    world.pass(NODE_TIMEOUT.saturating_sub(ms(1)));
    (0..2).for_each(|_| answer_all(&mut world));
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
    let due = world.client.poll_timeout().expect("another attempt follows");
    assert!(due >= counts && due < counts.after(longest), "{:?}", due.since(counts));
}

#[test]
fn a_use_too_short_for_the_quarantine_fails_at_once() {
    let mut world = quarantined(2);
    let config = patient(&world, 10_102);
    let lock = world.acquire(config, 1);
    answer_all(&mut world);
    let reason = AttemptError::Quarantined;
    assert_eq!(world.events().last(), Some(&Event::GaveUp { lock, reason, taken_for: None }));
}

#[test]
fn only_quarantined_attempts_wait_for_the_quarantine() {
    let mut world = quarantined(2);
    let config = patient(&world, 20_000);
    let lock = world.acquire(config, 1);
    (0..3).for_each(|index| world.answer_with(index, held_by(9)));
    assert_eq!(failed(&world.events()), Some(AttemptError::Taken));
    (0..3).for_each(|index| (0..world.nodes[index].inbox.len()).for_each(|_| world.answer(index)));
    world.pass(ms(5));
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
}

#[test]
fn wait_for_a_quarantine_notices_a_node_that_connects() {
    let mut world = World::reconnecting(3);
    world.nodes[0].introduction = young(1);
    let config = patient(&world, 5_000);
    let lock = world.acquire(config, 1);
    (0..2).for_each(|index| world.accept(index));
    answer_all(&mut world);
    // The third node's connection takes longer to open than an attempt waits for it.
    world.pass(NODE_TIMEOUT);
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
    world.accept(2);
    world.pass(ms(5));
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
    world.begin(lock, 2);
    answer_all(&mut world);
    assert_eq!(decided(&world.events()).expect("granted").0, mask(&[1, 2]));
}

#[test]
fn wait_for_a_quarantine_does_not_pass_over_a_suspended_node() {
    let mut world = quarantined(1);
    let config = patient(&world, 5_000);
    let lock = world.acquire(config, 1);
    world.forget(2);
    (0..2).for_each(|index| answer(&mut world, index));
    // The third node's introduction takes longer than an attempt waits for it.
    world.pass(NODE_TIMEOUT);
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
    // About a tenth of the wait so far.
    world.pass(ms(8));
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
}

#[test]
fn majority_counts_when_its_last_node_counts() {
    let mut world = quarantined(1);
    assert_eq!(world.client.quorum_from(), Some(BootInstant::ZERO));
    world.close(1);
    world.nodes[1].introduction = introduction(2);
    world.pass(ms(10));
    world.accept(1);
    let first = world.client.eligible_from(NodeIndex::new(0)).expect("in ten seconds");
    assert_eq!(world.client.quorum_from(), Some(first));
    assert_eq!(World::cold(3).client.quorum_from(), None, "nobody has introduced itself");
}

/// Three nodes, of which the first is young, and a use whose attempt failed for it: the last has the
/// key of an owner that is gone, for `ttl_ms`.
fn blocked_beside_a_quarantine(ttl_ms: u64) -> (World, LockId) {
    let mut world = quarantined(1);
    world.answer_all();
    world.change(2, Some((9, ttl_ms)));
    let config = patient(&world, 20_000);
    let lock = world.acquire(config, 1);
    world.pass_answering(ms(30));
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
    (world, lock)
}

#[test]
fn a_use_sleeps_until_a_key_or_the_quarantine_ends() {
    for (ttl_ms, ends_ms) in [(5_000, 5_000), (15_000, 10_102)] {
        let (mut world, lock) = blocked_beside_a_quarantine(ttl_ms);
        world.pass_answering(ms(ends_ms - 30));
        assert_eq!(world.events(), [], "{ttl_ms}");
        world.pass_answering(ms(7));
        assert_eq!(world.events(), [Event::AttemptDue(lock)], "{ttl_ms}");
    }
}

#[test]
fn a_use_that_waits_for_a_quarantine_hears_pushes() {
    let (mut world, lock) = blocked_beside_a_quarantine(15_000);
    world.change(2, None);
    answer(&mut world, 2);
    world.pass(ms(5));
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
}

/// Lets `time_ms` pass, in which the last node is silent; returns the number of attempts that begin.
fn attempts_beside_silence(world: &mut World, lock: LockId, time_ms: u64) -> u32 {
    let mut attempts = 0;
    for _ in 0..time_ms {
        (0..2).for_each(|index| answer(world, index));
        world.pass(ms(1));
        if world.events().contains(&Event::AttemptDue(lock)) {
            attempts += 1;
            world.begin(lock, 2);
        }
    }
    attempts
}

#[test]
fn attempts_grow_rare_beside_a_quarantine_and_a_silent_node() {
    let mut world = quarantined(1);
    world.answer_all();
    let config = patient(&world, 20_000);
    let lock = world.acquire(config, 1);
    let attempts = 1 + attempts_beside_silence(&mut world, lock, 10_090);
    assert!((10..80).contains(&attempts), "{attempts}");
    attempts_beside_silence(&mut world, lock, 20);
    (0..2).for_each(|index| answer(&mut world, index));
    assert!(world.client.deliver(lock, world.now).is_ok(), "as soon as the quarantine is over");
}

#[test]
fn attempts_stay_rare_when_the_first_of_two_quarantines_ends() {
    let mut world = quarantined(1);
    world.answer_all();
    world.pass_answering(ms(3_000));
    world.close(1);
    world.nodes[1].introduction = introduction(2);
    world.pass(ms(10));
    world.accept(1);
    world.answer_all();
    let config = patient(&world, 20_000);
    let lock = world.acquire(config, 1);
    let while_both = attempts_beside_silence(&mut world, lock, 7_000);
    assert!(while_both <= 1, "{while_both}");
    let between = attempts_beside_silence(&mut world, lock, 1_100);
    assert!((1..5).contains(&between), "a tenth of seven seconds apart: {between}");
}
