//! Keys that are set again on nodes that lack them.

use super::*;

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
    for late in [Duration::ZERO, NODE_TIMEOUT] {
        let (mut world, lock) = held_by_three();
        forget(&mut world, 2);
        world.nodes[2].written.clear();
        world.pass(ms(1_000));
        world.extend(lock).expect("begun");
        (0..2).for_each(|index| world.answer(index));
        world.pass(late);
        assert_eq!(world.nodes[2].written, [World::prolong(1)]);
        world.answer(2);
        assert_eq!(world.nodes[2].written, [World::prolong(1), World::set(1)], "{late:?}");
    }
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
