//! Extensions by plain SETs, and plain SETs that may be executed late.

use super::*;

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

/// Asserts that a round which asks for no more than the late SET counts node 0, whose key the late SET
/// then leaves until the deadline.
fn assert_node_0_counts_for_six_seconds(mut world: World, lock: LockId) {
    begin(&mut world, lock, 6_000);
    world.answer(0);
    world.answer(1);
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[0, 1]))));
    let deadline = world.client.deadline(lock).expect("held");
    world.execute_late(0);
    assert!(world.nodes[0].expires > deadline);
}

#[test]
fn late_plain_set_does_not_hurt_a_round_that_asks_no_more() {
    let (mut world, lock) = one_is_late();
    world.pass(ms(500));
    assert_node_0_counts_for_six_seconds(world, lock);
}

#[test]
fn a_longer_round_before_changes_nothing_for_an_equal_one() {
    let (mut world, lock) = one_is_late();
    begin(&mut world, lock, 10_000);
    (0..3).for_each(|index| world.answer(index));
    assert_eq!(settled(&world.events()), Some(Ok(mask(&[1, 2]))));
    world.pass(ms(5_000));
    assert_node_0_counts_for_six_seconds(world, lock);
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
fn an_unwritten_command_cannot_be_late() {
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
