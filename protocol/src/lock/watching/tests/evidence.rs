//! Replies that are evidence of a loss, and replies that are none, one rule per test.

use super::*;

#[test]
fn a_read_in_front_of_a_repair_says_nothing_of_the_repaired_key() {
    let (mut world, lock) = granted();
    world.nodes[4].pushes = false;
    answer_all(&mut world);
    world.pass(ms(500));
    answer_all(&mut world);
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
