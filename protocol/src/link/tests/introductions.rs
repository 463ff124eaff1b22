//! Introductions that a server refuses.

use super::*;

#[test]
fn a_node_too_busy_to_introduce_itself_is_asked_again() {
    let mut world = World::reconnecting(1);
    let limit = Limit::Until(world.now.after(TTL / 2));
    let lock = world.acquire(LockConfig { limit, ..lock_config(1) }, 1);
    world.open(0);
    world.answer_with(0, Reply::Error);
    world.answer(0);
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
    world.answer(0);
    world.pass(ms(499));
    assert_eq!(world.events(), [], "it is left alone for the link's patience");
    world.pass(ms(6));
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
    world.begin(lock, 2);
    assert_eq!(world.nodes[0].inbox.front().map(|&(_, op)| op), Some(Op::Introduce));
    world.answer(0);
    world.answer(0);
    assert_eq!(decided(&world.events()).map(|(counted, _)| counted), Some(mask(&[0])));
}

#[test]
fn node_that_never_introduces_itself_counts_in_the_end() {
    let mut world = World::cold(1);
    world.client.connect(world.now);
    world.drain();
    world.open(0);
    let counts_from = world.now.after(TTL + Drift::default().of(TTL));
    let mut pause = ms(500);
    while world.now < counts_from {
        world.answer_with(0, Reply::Error);
        assert_eq!(world.client.eligible_from(node(0)), Some(counts_from));
        while !world.nodes[0].inbox.is_empty() {
            world.answer(0);
        }
        world.pass(pause - ms(1));
        world.acquire(lock_config(1), 1);
        assert_ne!(world.nodes[0].inbox[0].1, Op::Introduce, "{pause:?}");
        while !world.nodes[0].inbox.is_empty() {
            world.answer(0);
        }
        world.pass(ms(1));
        world.acquire(lock_config(1), 1);
        assert_eq!(world.nodes[0].inbox[0].1, Op::Introduce, "{pause:?}");
        pause *= 2;
    }
    world.answer_with(0, Reply::Error);
    world.answer(0);
    assert_eq!(decided(&world.events()).map(|(counted, _)| counted), Some(mask(&[0])));
}

#[test]
fn a_node_that_refuses_its_introduction_does_not_vote() {
    let mut world = World::warm(1);
    world.close(0);
    world.pass(ms(10));
    world.open(0);
    world.answer_with(0, Reply::Error);
    assert!(world.client.eligible_from(node(0)) > Some(world.now), "it may have forgotten keys");
    world.acquire(lock_config(1), 1);
    world.answer(0);
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
}
