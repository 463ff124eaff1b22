//! Rules of a watched lease, one per test. `watched` grants a lease by the nodes 0, 1 and 2 of
//! five; the nodes 3 and 4 answer later.

mod evidence;

use core::time::Duration;

use crate::command::{LockId, Op, Reply, ResourceId};
use crate::link::{LinkConfig, Window};
use crate::lock::{LockConfig, LostReason, Votes};
use crate::node_set::Event;
use crate::testing::{
    NODE_TIMEOUT, RESOURCE, World, canary, fresh, link_config, lock_config, mask, ms, node, token,
};

/// A world of five nodes with a lease of 10 s that the first three have granted.
fn granted() -> (World, LockId) {
    granted_with(lock_config(5))
}

fn granted_with(config: LockConfig) -> (World, LockId) {
    granted_in(World::warm(5), config)
}

fn granted_in(mut world: World, config: LockConfig) -> (World, LockId) {
    let lock = world.acquire(LockConfig { watched: true, ..config }, 1);
    (0..3).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    // The driver drains the machines after each call.
    world.drain();
    world.events();
    (world, lock)
}

/// The same, after all nodes have granted, when the first reads have been answered.
fn watched() -> (World, LockId) {
    let (mut world, lock) = granted();
    world.answer_all();
    world.pass(ms(500));
    world.answer_all();
    (world, lock)
}

fn reads(world: &World) -> usize {
    let written = world.nodes.iter().flat_map(|node| &node.written);
    written.filter(|op| matches!(op, Op::Read { .. })).count()
}

fn lost(world: &mut World) -> Option<LostReason> {
    world.events().into_iter().find_map(|event| match event {
        Event::Lost { reason, .. } => Some(reason),
        _ => None,
    })
}

fn votes(world: &World, lock: LockId) -> Votes {
    world.client.votes(lock, world.now).expect("it is held")
}

fn read() -> Op {
    Op::Read { resource: RESOURCE, token: token(1) }
}

#[test]
fn a_short_lease_costs_no_read() {
    let (mut world, lock) = granted();
    world.answer_all();
    world.pass(ms(499));
    assert_eq!(reads(&world), 0);
    world.release(lock);
    world.answer_all();
    world.pass(ms(20_000));
    assert_eq!(reads(&world), 0);
    let (mut world, _) = granted_with(LockConfig { ttl: ms(200), ..lock_config(5) });
    world.answer_all();
    world.pass(ms(49));
    assert_eq!(reads(&world), 0, "a twentieth would be 10 ms");
    world.pass(ms(1));
    assert_eq!(reads(&world), 5);
}

#[test]
fn a_lease_that_lives_on_is_read_once_on_each_node() {
    let (mut world, _) = watched();
    assert!(world.nodes.iter().all(|node| node.written.last() == Some(&read()) && node.registered));
    world.pass(ms(9_000));
    assert_eq!(reads(&world), 5);
    assert_eq!(lost(&mut world), None);
}

#[test]
fn keys_that_went_before_the_first_read_are_noticed_by_it() {
    let (mut world, _) = granted();
    world.answer_all();
    (0..3).for_each(|index| world.change(index, None));
    world.pass(ms(500));
    (0..2).for_each(|index| world.answer(index));
    assert_eq!(lost(&mut world), None);
    world.answer(2);
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone));
}

#[test]
fn keys_that_are_gone_are_noticed_however_late_the_nodes_answer() {
    let (mut world, _) = granted();
    world.answer_all();
    (0..3).for_each(|index| world.change(index, None));
    world.pass(ms(500));
    world.pass(NODE_TIMEOUT);
    (0..2).for_each(|index| world.answer(index));
    assert_eq!(lost(&mut world), None);
    world.answer(2);
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone));
}

#[test]
fn a_lease_is_lost_when_a_majority_may_be_free_and_not_before() {
    let (mut world, lock) = watched();
    for index in [4, 0] {
        world.change(index, None);
        world.answer_all();
    }
    assert_eq!(lost(&mut world), None);
    assert_eq!(
        votes(&world, lock),
        Votes { confirmed: mask(&[1, 2, 3]), possible: mask(&[1, 2, 3]) }
    );
    world.change(2, None);
    world.answer_all();
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone));
    assert_eq!(world.client.check(lock, Duration::ZERO, world.now), Err(LostReason::KeysGone));
}

#[test]
fn a_key_of_another_owner_is_a_lost_key() {
    let (mut world, _) = watched();
    (0..3).for_each(|index| world.change(index, Some((9, 30_000))));
    world.answer_all();
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone), "it lives on, but it is another's");
}

#[test]
fn a_push_leads_to_a_read_on_all_nodes() {
    let (mut world, _) = watched();
    // These nodes push nothing, although their keys are gone.
    (0..2).for_each(|index| world.nodes[index].key = None);
    world.change(2, None);
    assert_eq!(reads(&world), 10);
    world.answer_all();
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone));
}

#[test]
fn an_emptied_node_leads_to_a_read_in_front_of_its_introduction() {
    let (mut world, _) = watched();
    (1..3).for_each(|index| world.nodes[index].key = None);
    world.nodes[0].key = None;
    world.forget(0);
    let inbox: Vec<_> = world.nodes[0].inbox.iter().map(|&(_, op)| op).collect();
    assert_eq!(inbox, [read(), Op::Introduce], "the introduction of a replica ends the connection");
    world.answer_all();
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone));
}

#[test]
fn silence_is_no_evidence() {
    let (mut world, lock) = watched();
    world.change(0, None);
    world.answer_all();
    (1..4).for_each(|index| world.push(index));
    world.pass(NODE_TIMEOUT);
    assert_eq!(lost(&mut world), None, "one lacks the key, and nobody else says anything");
    (1..4).for_each(|index| world.close(index));
    assert_eq!(lost(&mut world), None);
    let possible = mask(&[1, 2, 3, 4]);
    let Votes { confirmed, possible: left } = votes(&world, lock);
    assert_eq!((confirmed.without(mask(&[4])), left), (mask(&[]), possible));
    assert!(!world.client.is_confirmed(lock, world.now));
    world.pass(ms(9_000));
    assert_eq!(lost(&mut world), None, "the deadline ends it");
}

#[test]
fn a_node_that_answered_after_the_grant_holds_the_lease() {
    let (mut world, lock) = watched();
    (0..2).for_each(|index| world.change(index, None));
    world.answer_all();
    assert_eq!(lost(&mut world), None, "the nodes 3 and 4 have the key, too");
    assert_eq!(votes(&world, lock).confirmed, mask(&[2, 3, 4]));
}

#[test]
fn reads_follow_behind_an_extension_and_behind_a_repair() {
    let (mut world, lock) = watched();
    world.nodes[4].key = None;
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    for node in &world.nodes {
        let inbox: Vec<_> = node.inbox.iter().map(|&(_, op)| op).collect();
        assert_eq!(inbox, [World::prolong(1), read()]);
    }
    world.answer_all();
    assert_eq!(world.nodes[4].written[2..], [World::prolong(1), read(), World::set(1), read()]);
    assert!(world.nodes.iter().all(|node| node.registered));
    assert_eq!(votes(&world, lock).confirmed.len(), 5);
    (0..3).for_each(|index| world.change(index, None));
    world.answer_all();
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone));
}

#[test]
fn a_key_that_was_set_again_is_not_known_to_be_gone() {
    let (mut world, lock) = watched();
    world.change(4, None);
    world.answer_all();
    assert_eq!(votes(&world, lock).possible, mask(&[0, 1, 2, 3]));
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    (0..4).for_each(|index| (0..2).for_each(|_| world.answer(index)));
    (0..3).for_each(|_| world.answer(4));
    assert_eq!(world.nodes[4].key, Some(token(1)));
    world.answer_with(4, Reply::Error);
    for index in [0, 1] {
        world.change(index, None);
        world.answer(index);
    }
    assert_eq!(lost(&mut world), None, "the nodes 2, 3 and 4 may have it");
}

#[test]
fn a_new_connection_leads_to_a_read_on_all_nodes() {
    let (mut world, lock) = watched();
    for index in 0..3 {
        world.nodes[index].key = None;
        world.close(index);
    }
    assert_eq!(votes(&world, lock).confirmed, mask(&[3, 4]));
    world.pass(ms(10));
    for index in 0..3 {
        assert_eq!(lost(&mut world), None);
        world.accept(index);
        world.answer_all();
    }
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone));
    assert!(world.nodes[3].written.iter().filter(|&&op| op == read()).count() > 1);
}

#[test]
fn an_introduction_with_another_data_set_leads_to_a_read() {
    let link = LinkConfig { introduction_max_age: ms(100), ..link_config() };
    let (mut world, _) = granted_in(World::warm_with(link, 5), lock_config(5));
    world.answer_all();
    world.pass(ms(500));
    world.answer_all();
    // Another server is behind the connections.
    for index in 0..3 {
        world.nodes[index].key = None;
        world.nodes[index].introduction.canary = canary(2);
    }
    let other = world.client.open(ResourceId(8), lock_config(5), world.now);
    world.client.begin(other, fresh(2), world.now);
    world.drain();
    world.answer_all();
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone));
}

#[test]
fn reads_leave_room_for_attempts() {
    let (mut world, _) = granted();
    world.answer_all();
    world.pass(ms(499));
    (0..Window::default().reads()).for_each(|_| _ = world.acquire(lock_config(5), 2));
    world.pass(ms(1));
    assert_eq!(reads(&world), 0);
    world.answer_all();
    assert_eq!(reads(&world), 5, "the answers make room");
}

#[test]
fn a_push_in_front_of_the_reply_is_looked_into_again() {
    let (mut world, lock) = watched();
    world.push(0);
    let (_, op) = *world.nodes[0].inbox.front().expect("it reads");
    let reply = world.nodes[0].execute(op, world.now);
    world.change(0, None);
    world.answer_with(0, reply);
    assert!(!votes(&world, lock).confirmed.contains(node(0)), "the reply was older than the push");
    world.answer_all();
    assert_eq!(votes(&world, lock).possible, mask(&[1, 2, 3, 4]));
}

#[test]
fn a_change_by_another_use_of_the_client_is_heard() {
    let (mut world, lock) = watched();
    world.nodes[0].key = None;
    // No reply of the other use's attempt is an answer of the lease's.
    world.acquire(lock_config(5), 2);
    world.answer_all();
    assert_eq!(votes(&world, lock).possible, mask(&[1, 2, 3, 4]));
}

#[test]
fn pushes_without_a_loss_are_looked_into_ever_more_rarely() {
    let (mut world, lock) = watched();
    world.change(4, None);
    world.answer_all();
    let begun = world.now;
    while world.now.since(begun) < ms(2_000) {
        (0..5).for_each(|index| world.push(index));
        world.answer_all();
        world.pass(Duration::from_micros(100));
    }
    assert!(reads(&world) < 250, "{} reads because of 100 000 pushes", reads(&world));
    assert_eq!(lost(&mut world), None);
    for _ in 0..200 {
        world.pass(ms(1));
        world.answer_all();
    }
    assert_eq!(votes(&world, lock).confirmed.len(), 4, "the last pushes were looked into");
}

#[test]
fn a_node_that_may_set_the_key_late_loses_none() {
    let (mut world, _) = granted();
    world.close(4);
    world.answer_all();
    world.pass(ms(500));
    world.accept(4);
    world.answer_all();
    world.change(4, None);
    let begun = world.now;
    while world.now.since(begun) < ms(1_000) {
        world.push(4);
        world.answer_all();
        world.pass(Duration::from_micros(100));
    }
    assert!(reads(&world) < 150, "{} reads because of 10 000 pushes", reads(&world));
    assert_eq!(lost(&mut world), None);
}

#[test]
fn a_failed_read_without_an_answer_is_repeated() {
    let (mut world, lock) = watched();
    world.push(0);
    (0..3).for_each(|index| world.answer_with(index, Reply::Error));
    world.pass(NODE_TIMEOUT);
    (3..5).for_each(|index| world.answer(index));
    assert_eq!(lost(&mut world), None);
    assert_eq!(votes(&world, lock).possible.len(), 5);
    let before = reads(&world);
    world.pass(ms(1_000));
    assert_eq!(reads(&world) - before, 2, "an error is an answer");
}

#[test]
fn a_node_without_pushes_is_read_only_with_all_others() {
    let (mut world, lock) = granted();
    (0..5).for_each(|index| world.nodes[index].pushes = index > 1);
    world.answer_all();
    assert_eq!(votes(&world, lock).confirmed.len(), 5, "they have just granted it");
    world.pass(ms(500));
    world.answer_all();
    let all = mask(&[0, 1, 2, 3, 4]);
    assert_eq!(votes(&world, lock), Votes { confirmed: mask(&[2, 3, 4]), possible: all });
    world.extend(lock).expect("begun");
    world.answer_all();
    assert_eq!(reads(&world), 8);
    world.push(3);
    assert_eq!(reads(&world), 13);
}
