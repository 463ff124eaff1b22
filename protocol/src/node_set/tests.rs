//! Rules of the protocol, one per test, at the interface that drivers use.

use super::*;
use crate::command::Reply;
use crate::lock::Limit;
use crate::quorum::NodeIndex;
use crate::restart::{Canary, Introduction, RunId};
use crate::testing::{
    NODE_TIMEOUT, RESOURCE, TTL, World, at_ms, canary, decided, failed, fresh, held, held_by,
    introduction, lock_config, mask, ms, token,
};

// ---- granting

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
fn settling_waits_for_nobody_whose_word_changes_nothing() {
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
fn a_thousand_commands_that_end_at_once_do_not_deepen_the_stack() {
    let mut world = World::reconnecting(1);
    let config = LockConfig { limit: Limit::Attempts(2), ..lock_config(1) };
    for _ in 0..512 {
        world.acquire(config, 1);
    }
    assert_eq!(world.events().len(), 512, "every attempt is under way");
    let depth = std::thread::Builder::new().stack_size(128 * 1_024);
    let closed = depth.spawn(move || {
        world.close(0);
        world.events()
    });
    let events = closed.expect("a thread").join().expect("no overflow");
    assert_eq!(events.len(), 512);
}

// ---- quarantine

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
fn who_can_wait_tries_again_when_a_majority_counts() {
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
fn who_cannot_wait_for_the_quarantine_gives_up_at_once() {
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

// ---- the lease

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

#[test]
fn every_resource_that_is_spoken_of_is_named() {
    let mut world = World::warm(3);
    let named = |world: &World| {
        let mut named = Vec::new();
        world.client.for_each_resource(|it| named.push(it));
        named.sort_unstable();
        named.dedup();
        named
    };
    assert_eq!(named(&world), []);
    let lock = world.acquire(lock_config(3), 1);
    let other = world.client.open(ResourceId(1), lock_config(3), world.now);
    assert_eq!(named(&world), [ResourceId(1), RESOURCE], "by uses");
    world.release(lock);
    world.release(other);
    (0..2).for_each(|index| answer(&mut world, index));
    assert_eq!(named(&world), [RESOURCE], "by what node 2 has not answered");
    world.pass(NODE_TIMEOUT);
    world.close(2);
    assert_eq!(named(&world), [RESOURCE], "by what it is owed");
    world.pass(TTL);
    assert_eq!(named(&world), []);
}

fn answer(world: &mut World, index: usize) {
    while !world.nodes[index].inbox.is_empty() {
        world.answer(index);
    }
}

#[test]
fn nobody_holds_what_was_not_delivered() {
    let mut world = World::warm(1);
    let lock = world.acquire(lock_config(1), 1);
    world.answer(0);
    assert!(world.client.check(lock, Duration::ZERO, world.now).is_err());
}

// ---- attempts

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
fn finished_use_of_a_lock_is_not_mistaken_for_its_successor() {
    let mut world = World::warm(1);
    let old = world.acquire(lock_config(1), 1);
    world.answer_with(0, held_by(9));
    (0..2).for_each(|_| world.answer(0));
    let new = world.acquire(lock_config(1), 2);
    assert_eq!((old.slot, old.generation + 1), (new.slot, new.generation));
    world.answer(0);
    world.client.release(old, world.now);
    assert!(world.client.deliver(old, world.now).is_err());
    assert!(world.client.deliver(new, world.now).is_ok());
    assert!(world.client.check(old, Duration::ZERO, world.now).is_err());
}

#[test]
fn a_reset_client_is_as_good_as_new() {
    let (mut world, lock) = held();
    world.release(lock);
    world.close(4);
    let new = NodeSet::new(&[crate::testing::link_config(); 5]);
    world.client.reset_to(&new);
    assert_eq!(format!("{:?}", world.client), format!("{new:?}"));
    let warm = World::warm(5).client;
    world.client.reset_to(&warm);
    assert_eq!(format!("{:?}", world.client), format!("{warm:?}"));
}

// ---- lock ids

#[test]
fn no_name_is_given_twice_when_generations_are_used_up() {
    let World { mut client, now, .. } = World::warm(1);
    let mut use_once = |generation: Option<u32>| {
        let lock = client.open(RESOURCE, lock_config(1), now);
        client.release(lock, now);
        if let Some(generation) = generation {
            client.slots[0].generation = generation;
        }
        lock
    };
    use_once(Some(u32::MAX - 1));
    let names = [(); 3].map(|()| use_once(None));
    assert_eq!(names.map(|name| name.slot), [0, 1, 1], "{names:?}");
    assert_ne!(names[1], names[2]);
}
