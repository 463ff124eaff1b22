//! Releases that a connection or a server still owes.

use super::*;

#[test]
fn release_on_a_lost_connection_is_sent_twice_on_the_next() {
    let (mut world, lock) = held();
    world.release(lock);
    world.close(4);
    assert_eq!(world.client.owed(node(4)), 1);
    world.nodes[4].written.clear();
    world.pass(ms(10));
    world.accept(4);
    assert_eq!(world.nodes[4].written, [World::del(1)]);
    // The old SET is executed only now, from the server's receive queue.
    world.answer(4);
    world.nodes[4].key = Some(token(1));
    world.nodes[4].expires = world.now.after(TTL);
    world.pass(NODE_TIMEOUT - ms(1));
    assert_eq!(world.nodes[4].written.len(), 1);
    world.pass(ms(1));
    assert_eq!(world.nodes[4].written.len(), 2);
    world.answer(4);
    assert_eq!((world.nodes[4].key, world.client.owed(node(4))), (None, 0));
}

#[test]
fn an_owed_release_sent_twice_and_lost_is_owed_again() {
    let (mut world, lock) = held();
    world.release(lock);
    world.close(4);
    world.pass(ms(10));
    world.accept(4);
    world.answer(4);
    world.pass(NODE_TIMEOUT);
    world.close(4);
    world.nodes[4].written.clear();
    world.pass(ms(20));
    world.accept(4);
    assert_eq!(world.nodes[4].written, [World::del(1)]);
}

#[test]
fn release_is_owed_if_the_connection_was_lost_before() {
    let (mut world, lock) = held();
    world.close(4);
    world.pass(ms(10));
    world.accept(4);
    world.nodes[4].written.clear();
    world.release(lock);
    assert_eq!(world.nodes[4].written, [World::del(1)]);
    world.answer(4);
    world.pass(NODE_TIMEOUT);
    assert_eq!(world.nodes[4].written, [World::del(1), World::del(1)]);
}

#[test]
fn an_owed_release_is_dropped_a_ttl_after_the_reset() {
    let (mut world, lock) = held();
    world.release(lock);
    world.close(4);
    world.pass(TTL - ms(1));
    assert_eq!(world.client.owed(node(4)), 1);
    world.pass(ms(1));
    assert_eq!(world.client.owed(node(4)), 0);
}

#[test]
fn release_answered_by_an_error_is_retried_after_the_patience() {
    let (mut world, lock) = held();
    world.release(lock);
    world.answer_with(0, Reply::Error);
    (1..3).for_each(|index| world.answer(index));
    (3..5).for_each(|index| (0..2).for_each(|_| world.answer(index)));
    let outcome = ReleaseOutcome {
        deleted: mask(&[1, 2, 3, 4]),
        unconfirmed: mask(&[0]),
        failed: mask(&[0]),
        ..ReleaseOutcome::default()
    };
    assert_eq!(world.events(), [Event::Released { lock, outcome }]);
    assert_eq!(world.client.owed(node(0)), 1);
    for tries in 1..=3 {
        world.nodes[0].written.clear();
        world.pass(ms(499));
        assert_eq!(world.nodes[0].written, [], "{tries}");
        world.pass(ms(1));
        assert_eq!(world.nodes[0].written, [World::del(1)], "{tries}");
        if tries < 3 {
            world.answer_with(0, Reply::Error);
        }
    }
    world.answer(0);
    assert_eq!((world.nodes[0].key, world.client.owed(node(0))), (None, 0));
    assert_eq!(world.client.poll_timeout(), None);
}

#[test]
fn release_that_always_fails_ends_when_the_key_is_gone() {
    let (mut world, lock) = held();
    world.release(lock);
    world.answer_with(0, Reply::Error);
    let mut tries = 0;
    for _ in 0..TTL.as_millis() {
        world.pass(ms(1));
        if !world.nodes[0].inbox.is_empty() {
            tries += 1;
            world.answer_with(0, Reply::Error);
        }
    }
    assert_eq!((tries, world.client.owed(node(0))), (19, 0));
    world.pass(TTL);
    assert_eq!(world.nodes[0].inbox.len(), 0);
}

#[test]
fn the_release_of_a_failed_attempt_is_tried_again_too() {
    let mut world = World::warm(3);
    world.acquire(lock_config(3), 1);
    (0..3).for_each(|index| world.answer_with(index, Reply::Error));
    world.answer_with(0, Reply::Error);
    (1..3).for_each(|index| world.answer(index));
    assert_eq!([0, 1, 2].map(|index| world.client.owed(node(index))), [1, 0, 0]);
}

#[test]
fn refused_release_on_a_lost_connection_is_owed_like_others() {
    let (mut world, lock) = held();
    world.release(lock);
    world.answer_with(0, Reply::Error);
    world.close(0);
    world.nodes[0].written.clear();
    world.pass(ms(10));
    world.accept(0);
    assert_eq!(world.nodes[0].written, [World::del(1)]);
    world.answer_with(0, Reply::Error);
    world.pass(NODE_TIMEOUT);
    assert_eq!(world.nodes[0].written.len(), 1, "not before its patience is over");
    world.pass(ms(450));
    world.answer(0);
    assert_eq!(world.client.owed(node(0)), 0);
}

#[test]
fn nothing_is_owed_to_nodes_that_were_never_asked() {
    let mut world = World::warm(3);
    (0..3).for_each(|index| world.close(index));
    world.acquire(lock_config(3), 1);
    let events = world.events();
    let ballot = events.iter().find_map(|it| match it {
        Event::AttemptFailed { ballot, .. } => Some(ballot),
        _ => None,
    });
    let ballot = ballot.expect("no node can be asked");
    for node in (0..3).map(node) {
        assert_eq!(ballot.of(node).0, NodeVerdict::NotAsked, "{node:?}");
        assert_eq!(world.client.owed(node), 0, "no SET was written to {node:?}");
    }
}
