//! Rounds of many leases of one client.

use super::*;
use crate::command::ResourceId;
use crate::link::Window;

/// Lets `time` pass while the nodes 0 and 1 confirm each key at once.
fn confirm(world: &mut World, time: Duration) {
    let end = world.now.after(time);
    while world.now < end {
        world.pass(ms(1));
        for index in 0..2 {
            while !world.nodes[index].inbox.is_empty() {
                world.answer_with(index, Reply::Integer(1));
            }
        }
    }
}

#[test]
fn a_node_that_is_back_leaves_time_between_the_rounds() {
    let mut world = World::warm(3);
    world.close(2);
    let keep_alive = Some(TTL * 60);
    let config = LockConfig { keep_alive, watched: false, ..lock_config(3) };
    for byte in 0..200 {
        let lock = world.acquire(config, byte);
        (0..2).for_each(|index| world.answer_with(index, Reply::Ok));
        world.client.deliver(lock, world.now).expect("granted");
    }
    // Each lease lacks a key, so it has a round soon after the grant.
    confirm(&mut world, ms(60));
    world.accept(2);
    let before = rounds(&world).len();
    confirm(&mut world, ms(60));
    let at_once = rounds(&world).len() - before;
    assert!((1..=30).contains(&at_once), "{at_once} rounds in 60 ms");
    confirm(&mut world, ms(100));
    assert_eq!(rounds(&world).len() - before, 200);
}

#[test]
fn a_node_that_is_emptied_leaves_time_between_the_rounds() {
    let mut world = World::warm(3);
    let keep_alive = Some(TTL * 60);
    let config = LockConfig { keep_alive, watched: true, ..lock_config(3) };
    for byte in 0..200 {
        let lock = world.acquire(config, byte);
        (0..3).for_each(|index| world.answer_with(index, Reply::Ok));
        world.client.deliver(lock, world.now).expect("granted");
    }
    answer_as_owner(&mut world, ms(700), 1);
    let before = rounds(&world).len();
    world.forget(2);
    answer_as_owner(&mut world, ms(120), 0);
    let at_once = rounds(&world).len() - before;
    assert!((1..=60).contains(&at_once), "{at_once} rounds in 120 ms");
    answer_as_owner(&mut world, ms(100), 0);
    assert!(rounds(&world).len() - before >= 200);
}

#[test]
fn thousands_of_leases_are_read_as_fast_as_the_nodes_answer() {
    let mut world = World::warm(3);
    let config = LockConfig { watched: true, ..lock_config(3) };
    let mut locks = Vec::new();
    for number in 0..2_000 {
        let resource = ResourceId(number);
        let lock = world.client.open(resource, config, world.now);
        world.client.begin(lock, fresh(1), world.now);
        world.drain();
        (0..3).for_each(|index| world.answer_with(index, Reply::Ok));
        world.client.deliver(lock, world.now).expect("granted");
        locks.push(lock);
    }
    answer_as_owner(&mut world, ms(700), 1);
    let read = |world: &World| world.nodes.iter().map(|node| node.written.len()).sum::<usize>();
    let before = read(&world);
    world.forget(2);
    let window = Window::default().reads();
    assert!(world.nodes.iter().all(|node| node.inbox.len() <= window + 1), "room is left");
    world.pass(ms(1));
    answer_as_owner_now(&mut world, 1);
    assert_eq!(read(&world) - before, 3 * 2_000, "in no time, each lease on each node once");
    let confirmed = |lock: &LockId| {
        world.client.votes(*lock, world.now).is_some_and(|it| it.confirmed.len() == 3)
    };
    assert!(locks.iter().all(confirmed));
}

/// Lets `time` pass while every key is there, on node 2 as reads find it: 1 or 0.
fn answer_as_owner(world: &mut World, time: Duration, on_the_last: i64) {
    let end = world.now.after(time);
    while world.now < end {
        world.pass(ms(1));
        answer_as_owner_now(world, on_the_last);
    }
}

fn answer_as_owner_now(world: &mut World, on_the_last: i64) {
    while let Some(index) = (0..3).find(|&index| !world.nodes[index].inbox.is_empty()) {
        let number = if index == 2 { on_the_last } else { 1 };
        let reply = match world.nodes[index].inbox[0].1 {
            Op::Introduce => Reply::Introduction(world.nodes[index].introduction),
            Op::Read { .. } => Reply::Registered(number),
            Op::Set { .. } => Reply::Nil,
            _ => Reply::Integer(number),
        };
        world.answer_with(index, reply);
    }
}
