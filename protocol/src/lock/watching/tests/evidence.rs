//! Replies that are evidence of a loss, and replies that are none, one rule per test.

use super::*;
use crate::command::NoAnswer;

#[test]
fn a_read_in_front_of_a_repair_says_nothing_of_the_repaired_key() {
    let (mut world, lock) = granted();
    world.nodes[4].pushes = false;
    world.answer_all();
    world.pass(ms(500));
    world.answer_all();
    world.nodes[4].key = None;
    world.extend(lock).expect("begun");
    (0..4).for_each(|index| (0..2).for_each(|_| world.answer(index)));
    // Node 4 is read behind the extension, whose reply leads to the repair behind the read.
    world.push(0);
    world.answer(4);
    let inbox: Vec<_> = world.nodes[4].inbox.iter().map(|&(_, op)| op).collect();
    assert_eq!(inbox, [read(), World::set(1)]);
    (0..2).for_each(|_| world.answer(4));
    assert_eq!(votes(&world, lock).possible.len(), 5);
}

/// A world of three nodes with a lease of the nodes 0 and 1. The SET to node 2 was on its way when
/// its connection ended, the next connection's read has shown that the key is not there, and an
/// extension as well.
fn set_under_way() -> (World, LockId) {
    let mut world = World::warm(3);
    let lock = world.acquire(LockConfig { watched: true, ..lock_config(3) }, 1);
    (0..2).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.drain();
    world.close_late(2);
    world.pass(ms(500));
    world.open(2);
    world.answer_all();
    world.extend(lock).expect("begun");
    world.answer_all();
    world.events();
    assert_eq!(votes(&world, lock).possible, mask(&[0, 1]));
    (world, lock)
}

#[test]
fn a_push_may_be_that_of_the_own_set() {
    let (mut world, lock) = set_under_way();
    world.execute_late(2);
    assert_eq!(votes(&world, lock).possible.len(), 3);
    world.answer_all();
    assert_eq!(votes(&world, lock).confirmed.len(), 3);
    world.change(1, None);
    world.answer_all();
    assert_eq!(lost(&mut world), None, "the nodes 0 and 2 have the key");
}

#[test]
fn a_set_may_be_executed_without_a_reply() {
    let (mut world, lock) = set_under_way();
    world.close(2);
    world.execute_late(2);
    assert_eq!(votes(&world, lock).possible.len(), 3);
    world.change(1, None);
    world.answer_all();
    assert_eq!(lost(&mut world), None, "the nodes 0 and 2 have the key");
}

#[test]
fn a_push_of_another_owners_key_is_not_looked_into() {
    let (mut world, _) = watched();
    world.change(0, None);
    world.answer_all();
    let before = reads(&world);
    world.change(0, Some((9, 30_000)));
    assert_eq!(reads(&world), before, "the key cannot be the lease's own");
}

#[test]
fn an_unwritten_read_is_repeated_on_a_living_connection() {
    let (mut world, _) = watched();
    // Node 0 takes no bytes: its read is given up unwritten.
    let epoch = world.nodes[0].epoch.expect("connected");
    world.client.handle_writable(node(0), epoch, false, world.now);
    world.push(1);
    (1..5).for_each(|index| world.answer(index));
    world.pass(NODE_TIMEOUT);
    world.client.handle_writable(node(0), epoch, true, world.now);
    world.drain();
    let before = reads(&world);
    world.pass(ms(1_000));
    assert_eq!(reads(&world) - before, 1);
}

#[test]
fn a_node_without_a_connection_is_not_read_again_and_again() {
    let (mut world, lock) = watched();
    world.push(0);
    world.close(1);
    assert_eq!(world.nodes[1].dialed, None);
    world.push(2);
    (0..5).filter(|&index| index != 1).for_each(|index| world.answer(index));
    assert!(is_at_rest(&world, lock), "it is read when it is back");
}

#[test]
fn a_node_away_at_the_beginning_is_read_when_it_is_back() {
    let (mut world, lock) = granted();
    world.answer_all();
    world.close(4);
    world.pass(ms(500));
    world.answer_all();
    world.pass(NODE_TIMEOUT);
    assert_eq!(votes(&world, lock).confirmed, mask(&[0, 1, 2, 3]));
    assert!(is_at_rest(&world, lock), "nobody is there to be read");
    world.open(4);
    world.answer_all();
    assert_eq!(votes(&world, lock).confirmed.len(), 5);
}

/// Returns true if no read of the lease is put off.
fn is_at_rest(world: &World, lock: LockId) -> bool {
    let machine = world.client.locks().flatten().find(|it| it.id() == lock).expect("it is held");
    machine.poll_watching_timeout().is_none()
}

#[test]
fn pushes_of_others_do_not_replace_the_read_of_a_slow_node() {
    let (mut world, _) = watched();
    for index in [0, 1] {
        world.change(index, None);
        world.answer_all();
    }
    world.nodes[2].key = None;
    for _ in 0..3 {
        world.push(3);
        (3..5).for_each(|index| world.answer(index));
    }
    world.answer(2);
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone), "it has answered its first read");
}

#[test]
fn a_postponed_read_does_not_replace_that_of_a_slow_node() {
    let (mut world, _) = watched();
    for index in [0, 1] {
        world.change(index, None);
        world.answer_all();
    }
    // So many pushes that the next ones are put off.
    for _ in 0..4 {
        world.push(3);
        world.answer_all();
    }
    world.nodes[2].key = None;
    world.push(3);
    world.pass(ms(20));
    assert!(!world.nodes[2].inbox.is_empty(), "it is read in the end");
    world.answer(3);
    world.push(3);
    world.pass(ms(20));
    world.answer(2);
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone), "it has answered its first read");
}

#[test]
fn a_push_in_front_of_a_reply_that_shows_a_loss_is_looked_into() {
    let (mut world, _) = watched();
    world.push(2);
    (0..2).for_each(|index| world.answer(index));
    // Only node 2 pushes.
    (0..3).for_each(|index| world.nodes[index].key = None);
    world.push(2);
    world.answer_all();
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone));
}

#[test]
fn a_replaced_read_that_found_no_room_says_nothing_of_a_round() {
    let (world, lock) = watched();
    let mut locks = world.client.locks().flatten();
    let mut machine = locks.find(|it| it.id() == lock).expect("it is held").clone();
    let id = machine.command(machine.watching.serials[0]);
    let crowded = Err(NoAnswer::Crowded);
    assert_eq!(machine.handle_outcome(id, node(0), crowded, None, world.now), None);
    assert!(machine.crowded.is_empty());
}

#[test]
fn a_node_that_reported_the_key_is_not_counted_as_lacking_it() {
    for is_pushed in [false, true] {
        let (mut world, lock) = granted();
        (3..5).for_each(|index| world.answer(index));
        world.pass(ms(500));
        world.answer_all();
        // The key is missing when the lease is extended, and there when it is read.
        world.nodes[4].key = None;
        world.extend(lock).expect("begun");
        world.answer(4);
        world.nodes[4].key = Some(token(1));
        world.answer(4);
        assert!(votes(&world, lock).confirmed.contains(node(4)));
        if is_pushed {
            world.push(4);
        } else {
            world.close(4);
        }
        let Votes { confirmed, possible } = votes(&world, lock);
        assert!(!confirmed.contains(node(4)) && possible.contains(node(4)), "{is_pushed}");
    }
}

#[test]
fn a_node_is_confirmed_again_when_a_read_registers_the_key() {
    let (mut world, lock) = watched();
    world.push(0);
    world.answer_with(0, Reply::Error);
    (1..5).for_each(|index| world.answer(index));
    assert_eq!(votes(&world, lock).confirmed, mask(&[1, 2, 3, 4]));
    world.extend(lock).expect("begun");
    world.answer(0);
    assert_eq!(votes(&world, lock).confirmed, mask(&[1, 2, 3, 4]), "it would push nothing");
    world.answer(0);
    assert_eq!(votes(&world, lock).confirmed.len(), 5);
}

#[test]
fn a_superseded_reply_shows_that_the_key_is_gone() {
    let (mut world, lock) = watched();
    world.nodes[0].key = None;
    world.extend(lock).expect("begun");
    world.answer_all();
    // The nodes 1 and 2 alone count: each round fails at once, and the next may begin before any
    // node has answered.
    for _ in 0..2 {
        world.pass(ms(10));
        world.extend(lock).expect("begun");
    }
    world.nodes[1].key = None;
    world.nodes[2].key = None;
    world.events();
    world.answer(1);
    assert_eq!(lost(&mut world), None, "the nodes 2, 3 and 4 may have it");
    world.answer(2);
    assert_eq!(lost(&mut world), Some(LostReason::KeysGone));
}

#[test]
fn a_superseded_read_shows_that_the_key_is_there() {
    let (mut world, lock) = watched();
    world.push(0);
    (1..5).for_each(|index| world.answer(index));
    assert_eq!(votes(&world, lock).confirmed, mask(&[1, 2, 3, 4]));
    world.extend(lock).expect("begun");
    world.answer(0);
    assert_eq!(votes(&world, lock).confirmed.len(), 5);
}

#[test]
fn a_superseded_read_shows_nothing_in_front_of_a_push() {
    let (mut world, lock) = watched();
    world.push(0);
    (1..5).for_each(|index| world.answer(index));
    world.extend(lock).expect("begun");
    world.push(0);
    world.answer(0);
    assert_eq!(votes(&world, lock).confirmed, mask(&[1, 2, 3, 4]), "it may be older than the push");
    (0..2).for_each(|_| world.answer(0));
    assert_eq!(votes(&world, lock).confirmed, mask(&[1, 2, 3, 4]));
    world.answer(0);
    assert_eq!(votes(&world, lock).confirmed.len(), 5);
}
