//! Nodes that are away or fall silent.

use std::time::Duration;

use redlock_client::{AcquireErrorKind, NodeVerdict, Released};

use crate::node::Habit;
use crate::world::{MS, SECOND, World};
use crate::{acquiring, kind};

#[test]
fn two_nodes_that_were_never_reached_delay_nothing() {
    for habit in [Habit::Hangs, Habit::Refuses, Habit::Mute] {
        let world = World::new();
        for name in ["d", "e"] {
            world.node(name, |node| node.habit = habit.clone());
        }
        let redlock = world.client();
        let lease = world.poll(&mut acquiring(&redlock, "res")).expect("no time passes").unwrap();
        let released = world.poll(&mut Box::pin(lease.release()));
        assert_eq!(released, Some(Released::Confirmed), "{habit:?}: nothing was sent to d and e");
    }
}

#[test]
fn nodes_that_fall_silent_are_named_by_the_release() {
    for habit in [Habit::Hangs, Habit::Mute] {
        let world = World::new();
        let redlock = world.client();
        world.poll(&mut Box::pin(redlock.ready(Duration::ZERO)));
        world.settle();
        for name in ["d", "e"] {
            world.node(name, |node| node.habit = habit.clone());
        }
        let lease = world.poll(&mut acquiring(&redlock, "res")).expect("no time passes").unwrap();
        let begun = world.now();
        let Released::Unconfirmed(nodes) = world.block_on(lease.release()) else {
            panic!("{habit:?}: two nodes cannot have confirmed");
        };
        assert_eq!(world.now() - begun, 50 * MS, "{habit:?}: one node timeout");
        let places: Vec<usize> = nodes.iter().map(|node| node.place).collect();
        assert_eq!(places, [3, 4], "{habit:?}");
        assert_eq!(nodes[0].node, "redis://d:6379");
    }
}

#[test]
fn a_node_that_answers_a_release_with_an_error_is_not_silent() {
    let world = World::new();
    let lease = world.block_on(world.client().acquire("res")).unwrap();
    world.node("d", |node| node.habit = Habit::Forbids(b"-NOPERM no such right\r\n".to_vec()));
    let begun = world.now();
    let Released::Unconfirmed(nodes) = world.block_on(lease.release()) else {
        panic!("a node cannot have confirmed");
    };
    let verdicts: Vec<_> = nodes.iter().map(|node| (node.place, node.verdict)).collect();
    assert_eq!(verdicts, [(3, NodeVerdict::Error)]);
    assert_eq!(world.now(), begun, "nothing was waited for");
}

#[test]
fn a_panic_of_a_dial_is_an_error_of_the_node() {
    let world = World::new();
    world.node("a", |node| node.habit = Habit::Panics);
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let last_error = redlock.health().nodes[0].last_error.clone();
    assert_eq!(last_error.as_deref(), Some("opening the connection panicked"));
    world.node("a", |node| node.habit = Habit::Answers);
    drop(lease);
    world.pass(SECOND);
    drop(world.block_on(redlock.acquire("res")).unwrap());
    world.settle();
    world.node("a", |node| assert_eq!(node.accepted, 1, "it is dialled again"));
}

#[test]
fn three_dead_nodes_are_too_many() {
    let world = World::new();
    for name in ["c", "d", "e"] {
        world.node(name, |node| node.habit = Habit::Hangs);
    }
    let redlock = world.client();
    let outcome = world.block_on(redlock.try_acquire("res"));
    assert_eq!(kind(outcome), AcquireErrorKind::TooFewNodes);
    world.settle();
    assert_eq!(world.holders("res"), 0);
}
