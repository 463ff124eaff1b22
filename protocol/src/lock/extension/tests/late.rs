//! Nothing is written after the deadline.

use super::*;

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
