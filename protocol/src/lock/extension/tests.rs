//! Rules of extension, one per test, at the interface that drivers use.
//!
//! `held_by_three` grants a lease at one day, by the nodes 0 and 1; the key of node 2 is younger
//! than the grant. The lease of 10 s is over after 9 898 ms.

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

// ---- conditions of success

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

// ---- rejected extensions

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

// ---- nothing is written after the deadline

#[test]
fn commands_held_back_at_the_deadline_are_never_written() {
    let (mut world, lock) = held_by_three();
    for index in 0..3 {
        let epoch = world.nodes[index].epoch.expect("connected");
        world.client.handle_writable(node(index), epoch, false, world.now);
    }
    world.pass(ms(9_890));
    world.extend(lock).expect("begun");
    // The process is suspended; the first thing it hears is that it may write again.
    world.now = world.now.after(ms(8));
    let mut written = 0;
    for index in 0..3 {
        let epoch = world.nodes[index].epoch.expect("connected");
        world.client.handle_writable(node(index), epoch, true, world.now);
        world.drain();
        written += world.nodes[index].written.iter().filter(|&&op| op == World::prolong(1)).count();
    }
    assert_eq!(written, 0);
    let outcome = settled(&world.events());
    assert_eq!(outcome, Some(Err(ExtendError::TooSlow)));
}

#[test]
fn a_link_drops_what_is_too_late_as_soon_as_it_is() {
    let (mut world, lock) = held_by_three();
    let epoch = world.nodes[2].epoch.expect("connected");
    world.client.handle_writable(node(2), epoch, false, world.now);
    world.pass(ms(9_870));
    world.extend(lock).expect("begun");
    (0..2).for_each(|index| world.answer(index));
    assert!(settled(&world.events()).is_some_and(|outcome| outcome.is_ok()));
    assert!(world.client.uses(RESOURCE) && !world.client.is_idle());
    world.pass(ms(28));
    assert!(world.client.is_idle(), "before the node timeout");
}

#[test]
fn an_extension_that_was_not_written_in_time_is_dropped() {
    let (mut world, lock) = held_by_three();
    world.close(2);
    world.pass(ms(10));
    world.extend(lock).expect("begun");
    world.pass(NODE_TIMEOUT);
    world.nodes[2].written.clear();
    world.accept(2);
    assert_eq!(world.nodes[2].written, []);
}

#[test]
fn a_node_that_owes_an_answer_is_not_asked() {
    let (mut world, lock) = held();
    world.pass(ms(100));
    world.extend(lock).expect("begun");
    assert_eq!(world.nodes[2].written.last(), Some(&World::prolong(1)));
    assert_eq!(world.nodes[3].written, [World::set(1)]);
}

// ---- loss

#[test]
fn a_lease_whose_keys_are_gone_is_lost_at_once_and_for_good() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 0);
    forget(&mut world, 1);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer(0);
    assert_eq!(settled(&world.events()), Some(Err(ExtendError::TooFewNodes)));
    assert!(world.client.check(lock, Duration::ZERO, world.now).is_ok());
    world.answer(1);
    assert_eq!(lost(&world.events()), Some(LostReason::KeysGone));
    let check = world.client.check(lock, Duration::ZERO, world.now);
    assert_eq!(check, Err(LostReason::KeysGone));
    assert_eq!(world.extend(lock), Err(ExtendError::Lost(LostReason::KeysGone)));
    world.pass(TTL);
    assert_eq!(lost(&world.events()), None, "once");
}

#[test]
fn lacking_half_of_an_even_number_of_keys_loses_the_lease() {
    let mut world = World::warm(4);
    let lock = world.acquire(lock_config(4), 1);
    (0..3).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.answer(3);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    (0..2).for_each(|index| forget(&mut world, index));
    world.events();
    world.answer(0);
    assert_eq!(lost(&world.events()), None, "three of four are a majority");
    world.answer(1);
    assert_eq!(lost(&world.events()), Some(LostReason::KeysGone), "two of four are none");
}

#[test]
fn a_round_under_way_fails_with_the_lease() {
    let (mut world, lock) = held();
    (3..5).for_each(|index| world.answer(index));
    [0, 3, 4].into_iter().for_each(|index| forget(&mut world, index));
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer(3);
    world.answer(4);
    assert_eq!(world.events(), []);
    world.answer(0);
    let reason = LostReason::KeysGone;
    let failed =
        Event::ExtensionFailed { lock, token: token(1), reason: ExtendError::Lost(reason) };
    assert_eq!(world.events(), [failed, Event::Lost { lock, reason }]);
}

#[test]
fn a_node_that_refused_the_lock_lacks_the_key() {
    let mut world = World::warm(3);
    let lock = world.acquire(lock_config(3), 1);
    world.answer_with(2, Reply::Nil);
    (0..2).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.events();
    forget(&mut world, 1);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer(1);
    assert_eq!(lost(&world.events()), Some(LostReason::KeysGone));
}

#[test]
fn a_success_that_comes_after_the_loss_counts_for_nothing() {
    let (mut world, lock) = held_by_three();
    let deadline = world.now.after(ms(9_898));
    world.pass(ms(9_890));
    world.extend(lock).expect("begun");
    world.answer(0);
    world.pass(ms(7));
    let reason = ExtendError::Lost(LostReason::DeadlinePassed);
    assert_eq!(settled(&world.events()), Some(Err(reason)));
    assert!(world.now < deadline);
    world.answer(1);
    assert_eq!(world.events(), []);
    let check = world.client.check(lock, Duration::ZERO, world.now);
    assert_eq!(check, Err(LostReason::DeadlinePassed));
}

// ---- keys that are set again

#[test]
fn missing_key_is_set_after_a_success_and_counts_after_the_next() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    world.nodes[2].written.clear();
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 1])));
    assert_eq!(world.nodes[2].written, [World::prolong(1), World::set(1)]);
    assert_eq!(world.nodes[2].key, Some(token(1)));
    forget(&mut world, 1);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    (0..3).for_each(|index| world.answer(index));
    assert_eq!(settled(&world.events()), Some(Err(ExtendError::TooFewNodes)), "one, and one young");
}

#[test]
fn repaired_key_counts_after_a_success_without_it() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 1])));
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 1])));
    forget(&mut world, 1);
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 2])));
}

#[test]
fn round_without_the_repair_begins_after_its_acknowledgement() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    [2, 0, 1].into_iter().for_each(|index| world.answer(index));
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[0, 1]))));
    world.pass(ms(1));
    world.extend(lock).expect("begun while the repair is under way");
    world.answer(2);
    (0..2).for_each(|index| world.answer(index));
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[0, 1]))));
    world.answer(2);
    forget(&mut world, 1);
    assert_eq!(round(&mut world, lock), Err(ExtendError::TooFewNodes));
}

#[test]
fn nothing_is_set_again_before_a_round_has_succeeded() {
    let (mut world, lock) = held();
    forget(&mut world, 0);
    world.nodes[0].written.clear();
    world.pass(ms(1));
    world.extend(lock).expect("begun");
    (0..3).for_each(|index| world.answer(index));
    assert_eq!(settled(&world.events()), Some(Err(ExtendError::TooFewNodes)));
    assert_eq!(world.nodes[0].written, [World::prolong(1)]);
}

#[test]
fn a_node_found_missing_after_the_success_is_set_again_too() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    world.nodes[2].written.clear();
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    (0..2).for_each(|index| world.answer(index));
    assert_eq!(world.nodes[2].written, [World::prolong(1)]);
    world.answer(2);
    assert_eq!(world.nodes[2].written, [World::prolong(1), World::set(1)]);
}

#[test]
fn a_repair_that_was_not_written_before_the_deadline_is_dropped() {
    let (mut world, lock) = held_by_three_with(LockConfig { ttl: ms(60), ..lock_config(3) });
    world.pass(ms(10));
    forget(&mut world, 2);
    world.client.extend(lock, ms(60), world.now).expect("begun");
    world.drain();
    (0..2).for_each(|index| world.answer(index));
    world.pass(ms(45));
    let epoch = world.nodes[2].epoch.expect("open");
    world.client.handle_writable(node(2), epoch, false, world.now);
    world.answer(2);
    let deadline = world.client.deadline(lock).expect("held");
    let late = deadline.since(world.now) + ms(1);
    assert!(late < NODE_TIMEOUT, "nothing else drops it");
    world.pass(late);
    world.client.handle_writable(node(2), epoch, true, world.now);
    world.drain();
    assert!(matches!(world.nodes[2].written[..], [Op::Set { .. }, Op::Extend { .. }]));
}

#[test]
fn somebody_elses_key_stays_and_the_node_is_asked_once_a_round() {
    let (mut world, lock) = held_by_three();
    world.nodes[2].key = Some(token(9));
    world.nodes[2].written.clear();
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 1])));
    assert_eq!(world.nodes[2].written, [World::prolong(1), World::set(1)]);
    assert_eq!(world.nodes[2].key, Some(token(9)));
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 1])));
    assert_eq!(world.nodes[2].written.len(), 4);
}

#[test]
fn a_set_without_an_answer_is_not_followed_by_another() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    [2, 0, 1].into_iter().for_each(|index| world.answer(index));
    world.close(2);
    world.pass(ms(20));
    world.accept(2);
    world.nodes[2].written.clear();
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 1])));
    assert_eq!(world.nodes[2].written, [World::prolong(1)]);
    // The lost connection's SET is executed at last.
    let now = world.now;
    world.nodes[2].execute(World::set(1), now);
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 1])));
    forget(&mut world, 1);
    assert_eq!(round(&mut world, lock), Err(ExtendError::TooFewNodes), "known by that round only");
}

#[test]
fn set_answered_after_the_grant_counts_after_a_round_without_it() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 1);
    assert_eq!(round(&mut world, lock), Err(ExtendError::TooFewNodes), "node 2 is young");
    let (mut world, lock) = held_by_three();
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 1])));
    forget(&mut world, 1);
    assert_eq!(round(&mut world, lock), Ok(mask(&[0, 2])));
}

#[test]
fn a_key_that_is_lost_again_is_young_again() {
    let (mut world, lock) = held_by_three();
    for _ in 0..2 {
        forget(&mut world, 2);
        assert_eq!(round(&mut world, lock), Ok(mask(&[0, 1])));
    }
    forget(&mut world, 1);
    assert_eq!(round(&mut world, lock), Err(ExtendError::TooFewNodes));
}

// ---- releasing

#[test]
fn a_release_goes_behind_a_repair_without_an_answer() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    [2, 0, 1].into_iter().for_each(|index| world.answer(index));
    world.nodes[2].written.clear();
    world.release(lock);
    assert_eq!(world.nodes[2].written, [World::del(1)], "behind the SET, on the same connection");
    world.answer(2);
    world.answer(2);
    assert_eq!(world.nodes[2].key, None);
}

#[test]
fn a_repair_on_a_lost_connection_leaves_a_release_owed() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    [2, 0, 1].into_iter().for_each(|index| world.answer(index));
    world.close(2);
    world.release(lock);
    assert_eq!(world.client.owed(node(2)), 1);
}

#[test]
fn node_with_an_unwritten_repair_is_released_like_the_others() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    (0..2).for_each(|index| world.answer(index));
    let epoch = world.nodes[2].epoch.expect("connected");
    world.client.handle_writable(node(2), epoch, false, world.now);
    world.answer(2);
    world.pass(NODE_TIMEOUT);
    world.client.handle_writable(node(2), epoch, true, world.now);
    world.nodes[2].written.clear();
    world.release(lock);
    assert_eq!(world.nodes[2].written, [World::del(1)]);
}

#[test]
fn a_release_during_a_round_ends_it_and_late_answers_do_nothing() {
    let (mut world, lock) = held_by_three();
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer(0);
    world.release(lock);
    let reason = ExtendError::Cancelled;
    let cancelled = Event::ExtensionFailed { lock, token: token(1), reason };
    assert_eq!(world.events(), [cancelled]);
    for index in [1, 2, 0, 1, 2] {
        world.answer(index);
    }
    let outcome = ReleaseOutcome { deleted: mask(&[0, 1, 2]), ..ReleaseOutcome::default() };
    assert_eq!(world.events(), [Event::Released { lock, outcome }]);
    assert!(world.nodes.iter().all(|node| node.key.is_none()));
}

#[test]
fn a_release_is_owed_for_as_long_as_the_longest_key_may_live() {
    let mut world = World::warm(1);
    let lock = world.acquire(LockConfig { ttl: ms(1_000), ..lock_config(1) }, 1);
    world.answer(0);
    world.client.deliver(lock, world.now).expect("granted");
    world.pass(ms(500));
    world.extend(lock).expect("begun");
    world.answer(0);
    world.release(lock);
    world.close(0);
    world.pass(ms(9_999));
    assert_eq!(world.client.owed(node(0)), 1);
    world.pass(ms(1));
    assert_eq!(world.client.owed(node(0)), 0);
    assert!(matches!(world.nodes[0].written[..], [_, Op::Extend { ttl: TTL, .. }, _]));
}

// ---- plain SETs

/// A lease of four seconds whose extensions may be plain SETs, on nodes that support them.
fn plain() -> (World, LockId) {
    let config =
        LockConfig { plain_extensions: true, ttl: ms(4_000), extensions_max: 9, ..lock_config(3) };
    let (mut world, lock) = held_by_three_with(config);
    world.nodes.iter_mut().for_each(|node| node.has_plain = true);
    (world, lock)
}

fn begin(world: &mut World, lock: LockId, ttl_ms: u64) {
    world.client.extend(lock, ms(ttl_ms), world.now).expect("begun");
    world.drain();
}

fn is_plain(world: &World, index: usize) -> bool {
    match world.nodes[index].written.last() {
        Some(&Op::Extend { plain, .. }) => plain,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_round_is_plain_if_it_asks_for_the_most_so_far_and_may_be() {
    let (mut world, lock) = plain();
    let rounds = [(4_000, true), (6_000, true), (5_000, false), (6_000, true), (7_000, true)];
    for (ttl_ms, expected) in rounds {
        world.pass(ms(2_000));
        begin(&mut world, lock, ttl_ms);
        assert_eq!(is_plain(&world, 0), expected, "{ttl_ms}");
        (0..3).for_each(|index| world.answer(index));
        assert!(settled(&world.events()).expect("settled").is_ok(), "{ttl_ms}");
    }
    let (mut world, lock) = held_by_three();
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    assert!(!is_plain(&world, 0), "unless it may be");
}

/// A plain round to six seconds that nodes 1 and 2 answer. The command to node 0 is left in its
/// receive queue, and its connection is open again.
fn one_is_late() -> (World, LockId) {
    let (mut world, lock) = plain();
    world.pass(ms(1_000));
    // After this round the key of node 2 is no longer young.
    begin(&mut world, lock, 4_000);
    (0..3).for_each(|index| world.answer(index));
    begin(&mut world, lock, 6_000);
    (1..3).for_each(|index| world.answer(index));
    world.close_late(0);
    world.pass(ms(10));
    world.accept(0);
    world.events();
    (world, lock)
}

#[test]
fn node_with_a_late_plain_set_does_not_count_for_more() {
    let (mut world, lock) = one_is_late();
    begin(&mut world, lock, 10_000);
    world.answer(0);
    world.answer(1);
    assert_eq!(settled(&world.events()), None, "one of them does not count");
    world.answer(2);
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[1, 2]))));
    // The reason for the rule: the late SET shortens the key's life by four seconds.
    let before = world.nodes[0].expires;
    world.execute_late(0);
    assert_eq!(before.since(world.nodes[0].expires), ms(4_000));
    // Node 0 does not count later either: nobody knows whether every late SET has been executed.
    world.pass(ms(1_000));
    begin(&mut world, lock, 10_000);
    world.answer(0);
    world.answer(1);
    assert_eq!(settled(&world.events()), None);
}

#[test]
fn late_plain_set_does_not_hurt_a_round_that_asks_no_more() {
    let (mut world, lock) = one_is_late();
    world.pass(ms(500));
    begin(&mut world, lock, 6_000);
    world.answer(0);
    world.answer(1);
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[0, 1]))));
    let deadline = world.client.deadline(lock).expect("held");
    world.execute_late(0);
    assert!(world.nodes[0].expires > deadline);
}

#[test]
fn a_plain_set_without_an_answer_in_time_may_be_late_too() {
    let (mut world, lock) = plain();
    world.pass(ms(1_000));
    begin(&mut world, lock, 4_000);
    (0..3).for_each(|index| world.answer(index));
    begin(&mut world, lock, 6_000);
    (1..3).for_each(|index| world.answer(index));
    world.pass(NODE_TIMEOUT);
    world.answer(0);
    begin(&mut world, lock, 7_000);
    (0..2).for_each(|index| world.answer(index));
    world.events();
    world.answer(2);
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[1, 2]))), "node 0 is not believed");
}

#[test]
fn a_plain_set_that_was_answered_is_never_late() {
    let (mut world, lock) = plain();
    world.pass(ms(1_000));
    begin(&mut world, lock, 4_000);
    (0..3).for_each(|index| world.answer(index));
    begin(&mut world, lock, 6_000);
    // The answer of node 0 comes after the round was settled without it.
    [1, 2, 0].into_iter().for_each(|index| world.answer(index));
    begin(&mut world, lock, 7_000);
    world.events();
    (0..2).for_each(|index| world.answer(index));
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[0, 1]))));
}

#[test]
fn where_nothing_was_written_nothing_can_be_late() {
    let (mut world, lock) = plain();
    world.pass(ms(1_000));
    begin(&mut world, lock, 4_000);
    (0..3).for_each(|index| world.answer(index));
    let epoch = world.nodes[0].epoch.expect("open");
    world.client.handle_writable(node(0), epoch, false, world.now);
    begin(&mut world, lock, 6_000);
    (1..3).for_each(|index| world.answer(index));
    world.pass(NODE_TIMEOUT);
    world.client.handle_writable(node(0), epoch, true, world.now);
    begin(&mut world, lock, 7_000);
    world.events();
    (0..2).for_each(|index| world.answer(index));
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[0, 1]))));
}

#[test]
fn plain_set_pending_when_its_round_settled_may_be_late() {
    let (mut world, lock) = plain();
    world.pass(ms(1_000));
    begin(&mut world, lock, 4_000);
    (0..3).for_each(|index| world.answer(index));
    begin(&mut world, lock, 6_000);
    (1..3).for_each(|index| world.answer(index));
    // The next round does not reach node 0, and the round before gets no further answers.
    let epoch = world.nodes[0].epoch.expect("open");
    world.client.handle_writable(node(0), epoch, false, world.now);
    world.pass(ms(1));
    begin(&mut world, lock, 6_000);
    (1..3).for_each(|index| world.answer(index));
    world.close_late(0);
    world.pass(ms(10));
    world.accept(0);
    world.events();
    begin(&mut world, lock, 10_000);
    world.answer(0);
    world.answer(1);
    assert_eq!(settled(&world.events()), None, "node 0 does not count");
    // The reason: the late SET shortens the key's life by four seconds.
    let before = world.nodes[0].expires;
    world.execute_late(0);
    assert_eq!(before.since(world.nodes[0].expires), ms(4_000));
    world.answer(2);
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[1, 2]))));
}
