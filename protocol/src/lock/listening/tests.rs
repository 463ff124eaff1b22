//! Rules of a use that waits, one per test. There are five nodes; the test decides when they reply,
//! push and forget.

mod faults;

use core::time::Duration;

use crate::command::{LockId, Op};
use crate::lock::{AttemptError, Limit, LockConfig};
use crate::node_set::Event;
use crate::testing::{NODE_TIMEOUT, RESOURCE, World, fresh, lock_config, ms, node, token};

const WAIT_MS: u64 = 60_000;

/// Longest delay after a wake-up: the contention window that nobody has changed.
const WINDOW: Duration = Duration::from_millis(5);

fn config(world: &World) -> LockConfig {
    let limit = Limit::Until(world.now.after(ms(WAIT_MS)));
    LockConfig { limit, ..lock_config(world.nodes.len()) }
}

/// A world of five nodes whose key another client holds for `ttl_ms`, and a use that begins its
/// first attempt.
fn taken_for(ttl_ms: u64) -> (World, LockId) {
    taken_on(5, ttl_ms)
}

/// The same with this number of nodes.
fn taken_on(nodes: usize, ttl_ms: u64) -> (World, LockId) {
    let mut world = World::warm(nodes);
    (0..nodes).for_each(|index| world.change(index, Some((9, ttl_ms))));
    let config = config(&world);
    let lock = world.acquire(config, 1);
    (world, lock)
}

/// The same, after the attempt was refused and the looks were answered.
fn asleep_for(ttl_ms: u64) -> (World, LockId) {
    let (mut world, lock) = taken_for(ttl_ms);
    world.answer_all();
    world.events();
    (world, lock)
}

/// The same, once the use listens to as many nodes as it needs.
fn sound_asleep() -> (World, LockId) {
    let (mut world, lock) = asleep_for(30_000);
    world.pass(ms(20));
    world.answer_all();
    (world, lock)
}

fn looks(world: &World) -> usize {
    let written = world.nodes.iter().flat_map(|node| &node.written);
    written.filter(|op| matches!(op, Op::Look { .. })).count()
}

fn commands(world: &World) -> usize {
    world.nodes.iter().map(|node| node.written.len()).sum()
}

fn registered(world: &World) -> Vec<usize> {
    (0..world.nodes.len()).filter(|&index| world.nodes[index].registered).collect()
}

fn is_due(world: &mut World) -> bool {
    world.events().iter().any(|event| matches!(event, Event::AttemptDue(_)))
}

fn release(world: &mut World) {
    (0..world.nodes.len()).for_each(|index| world.change(index, None));
}

#[test]
fn a_failed_attempt_looks_at_one_node_behind_its_own_release() {
    let (mut world, _) = taken_for(30_000);
    (0..5).for_each(|index| world.answer(index));
    let written: Vec<_> = world.nodes.iter().map(|node| node.written[1..].to_vec()).collect();
    let look = Op::Look { resource: RESOURCE, token: token(1) };
    assert_eq!(written.iter().filter(|ops| ops[..] == [World::del(1)]).count(), 4);
    assert_eq!(written.iter().filter(|ops| ops[..] == [World::del(1), look]).count(), 1);
}

#[test]
fn a_long_wait_leaves_no_majority_without_a_listener() {
    let (mut world, _) = asleep_for(30_000);
    assert_eq!(registered(&world).len(), 1);
    world.pass(ms(20));
    world.answer_all();
    assert_eq!(registered(&world).len(), 3);
    let before = commands(&world);
    world.pass(ms(4_900));
    assert_eq!(commands(&world), before, "it is silent");
}

#[test]
fn a_push_leads_to_a_look_and_after_a_short_delay_to_an_attempt() {
    let (mut world, lock) = sound_asleep();
    let before = looks(&world);
    release(&mut world);
    assert_eq!(looks(&world), before + 1, "one node is looked at again");
    world.answer_all();
    assert!(!is_due(&mut world), "it draws a delay");
    world.pass(WINDOW);
    assert!(is_due(&mut world));
    world.begin(lock, 2);
    world.answer_all();
    assert!(world.events().iter().any(|event| matches!(event, Event::Decided { .. })));
}

#[test]
fn no_attempt_begins_before_the_look_is_answered() {
    let (mut world, _) = sound_asleep();
    release(&mut world);
    world.pass(NODE_TIMEOUT - ms(1));
    assert!(!is_due(&mut world));
    world.answer_all();
    world.pass(ms(1));
    assert!(is_due(&mut world));
}

#[test]
fn another_client_that_is_faster_is_heard_within_the_delay() {
    let (mut world, _) = sound_asleep();
    release(&mut world);
    world.answer_all();
    (0..5).for_each(|index| world.change(index, Some((8, 30_000))));
    world.pass_answering(ms(1_000));
    assert!(!is_due(&mut world), "it sleeps on");
    assert_eq!(registered(&world).len(), 3);
    release(&mut world);
    world.answer_all();
    world.pass(WINDOW);
    assert!(is_due(&mut world));
}

#[test]
fn an_extension_is_a_push_and_no_reason_for_an_attempt() {
    let (mut world, _) = sound_asleep();
    for _ in 0..20 {
        (0..5).for_each(|index| world.change(index, Some((9, 30_000))));
        world.pass_answering(ms(1_000));
        assert!(!is_due(&mut world));
    }
}

#[test]
fn a_lock_of_a_dead_holder_is_attempted_when_its_keys_expire() {
    let (mut world, _) = asleep_for(3_000);
    world.pass(ms(20));
    world.answer_all();
    world.pass(ms(2_970));
    assert!(!is_due(&mut world));
    world.pass(ms(20) + WINDOW);
    assert!(is_due(&mut world), "no node has pushed the expiry");
}

#[test]
fn a_wait_ends_when_it_is_over() {
    let (mut world, _) = sound_asleep();
    let end = ms(WAIT_MS);
    (0..12).for_each(|_| {
        (0..5).for_each(|index| world.change(index, Some((9, 30_000))));
        world.pass_answering(ms(4_980));
    });
    assert!(!is_due(&mut world));
    world.pass_answering(end / 100);
    let gave_up = world.events().into_iter().find_map(|event| match event {
        Event::GaveUp { reason, taken_for, .. } => Some((reason, taken_for)),
        _ => None,
    });
    let (reason, taken_for) = gave_up.expect("the wait is over");
    assert_eq!(reason, AttemptError::Taken);
    assert!(taken_for.is_some_and(|left| left > ms(20_000)), "{taken_for:?}");
}

#[test]
fn a_long_silence_ends_with_a_look_and_not_with_an_attempt() {
    let (mut world, _) = sound_asleep();
    let before = looks(&world);
    world.pass(ms(5_001));
    assert_eq!(looks(&world), before + 3);
    world.answer_all();
    assert!(!is_due(&mut world));
    assert_eq!(registered(&world).len(), 3);
}

#[test]
fn votes_that_were_split_are_attempted_again_soon() {
    let mut world = World::warm(5);
    let config = config(&world);
    let lock = world.acquire(config, 1);
    for (index, byte) in [(0, 8), (1, 8), (2, 7), (3, 7)] {
        world.change(index, Some((byte, 30_000)));
    }
    world.answer_all();
    world.events();
    release(&mut world);
    world.answer_all();
    world.pass(4 * WINDOW);
    assert!(is_due(&mut world));
    world.begin(lock, 2);
}

#[test]
fn a_change_by_another_task_of_the_client_is_no_change_unheard() {
    let (mut world, _) = sound_asleep();
    release(&mut world);
    world.answer_all();
    let other = world.acquire(lock_config(5), 2);
    world.answer_all();
    world.client.deliver(other, world.now).expect("the lock was free");
    world.pass_answering(ms(100));
    world.events();
    world.release(other);
    world.answer_all();
    world.pass(4 * WINDOW);
    assert!(is_due(&mut world), "the nodes push no change of one's own");
}

#[test]
fn a_push_without_a_listener_changes_nothing() {
    let mut world = World::warm(5);
    let epoch = world.nodes[0].epoch.expect("connected");
    assert!(!world.client.handle_key_changed(node(0), epoch, RESOURCE, world.now));
    let lock = world.acquire(lock_config(5), 1);
    assert!(!world.client.handle_key_changed(node(0), epoch, RESOURCE, world.now));
    world.release(lock);
}

#[test]
fn a_client_that_has_waited_yields_after_its_lease() {
    let (mut world, lock) = sound_asleep();
    release(&mut world);
    world.answer_all();
    world.pass(WINDOW);
    world.begin(lock, 2);
    world.answer_all();
    world.client.deliver(lock, world.now).expect("granted");
    world.release(lock);
    world.answer_all();
    world.events();
    let config = config(&world);
    let again = world.client.open(RESOURCE, config, world.now);
    world.drain();
    assert!(!is_due(&mut world), "the others have not heard yet");
    world.pass(WINDOW);
    assert!(is_due(&mut world));
    world.client.begin(again, fresh(3), world.now);
}
