//! Connections that are given up, or that are gone.

use super::*;

#[test]
fn a_silent_connection_is_reset_after_half_a_second() {
    let (mut world, _) = held();
    world.pass(ms(499));
    assert_eq!(world.nodes[4].resets, 0);
    world.pass(ms(1));
    assert_eq!((world.nodes[4].resets, world.nodes[3].resets), (1, 1));
    assert_eq!(world.nodes[0].resets, 0, "nothing is outstanding there");
}

#[test]
fn a_connection_is_not_given_up_for_the_time_before_it_was_open() {
    let mut world = World::warm(1);
    let lock = world.acquire(lock_config(1), 1);
    world.answer(0);
    world.client.deliver(lock, world.now).expect("granted");
    world.close(0);
    world.pass(ms(8));
    // The connection is being dialled: the release waits until it opens, which takes long.
    world.release(lock);
    world.pass(ms(499));
    world.accept(0);
    assert_eq!(world.nodes[0].inbox.len(), 1);
    world.pass(ms(499));
    assert_eq!(world.nodes[0].resets, 1, "only the close above");
}

#[test]
fn a_connection_whose_answers_do_not_match_is_reset() {
    let mut world = World::warm(1);
    world.acquire(lock_config(1), 1);
    world.answer_with(0, Reply::Integer(1));
    assert_eq!(world.nodes[0].resets, 1);
    let mut world = World::warm(1);
    world.answer_with(0, Reply::Ok);
    assert_eq!(world.nodes[0].resets, 1, "an answer to nothing");
}

#[test]
fn replies_of_a_closed_connection_are_ignored() {
    let mut world = World::warm(1);
    world.acquire(lock_config(1), 1);
    let epoch = world.nodes[0].epoch.expect("open");
    world.close(0);
    world.pass(ms(10));
    world.client.handle_reply(node(0), epoch, Reply::Ok, world.now);
    world.client.handle_closed(node(0), epoch, world.now);
    world.client.handle_connected(node(0), epoch, world.now);
    world.drain();
    world.accept(0);
    assert!(world.client.is_open(node(0)));
    assert_eq!(decided(&world.events), None);
}
