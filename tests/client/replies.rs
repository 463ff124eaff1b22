//! Replies in any pieces, beyond the limits, of old servers and without scripts.

use redlock_client::Released;

use crate::acquiring;
use crate::node::Habit;
use crate::world::{SECOND, World};

#[test]
fn an_answer_may_be_split_at_any_byte() {
    // The longest reply is that to INFO: about 120 bytes.
    for at in 0..130 {
        let world = World::new();
        world.each_node(|node| node.habit = Habit::SplitsAt(at));
        let redlock = world.client();
        let lease = world.poll(&mut acquiring(&redlock, "res")).expect("no time passes").unwrap();
        assert_eq!(world.block_on(lease.release()), Released::Confirmed, "split at {at}");
        assert_eq!(world.node("a", |node| node.accepted), 1, "split at {at}");
    }
}

#[test]
fn a_frame_beyond_the_limits_costs_the_connection_and_no_more() {
    let nested = b"*1\r\n".repeat(4_000);
    let long = [b"+".to_vec(), vec![b'x'; 65_534]].concat();
    let many = b"*1025\r\n".to_vec();
    for frame in [nested, long, many, b"$2\r\nhi\r\n".to_vec()] {
        let world = World::new();
        world.node("a", |node| node.habit = Habit::Says(frame.clone()));
        let redlock = world.client();
        let lease = world.poll(&mut acquiring(&redlock, "res")).unwrap().unwrap();
        world.settle();
        assert_eq!(world.holders("res"), 4);
        world.node("a", |node| node.habit = Habit::Answers);
        world.block_on(lease.release());
        world.pass(SECOND);
        world.settle();
        assert_eq!(world.node("a", |node| node.accepted), 2, "a new connection");
        assert!(world.poll(&mut acquiring(&redlock, "again")).unwrap().is_ok());
    }
}

#[test]
fn an_old_server_serves() {
    let world = World::new();
    world.each_node(|node| node.is_old = true);
    let redlock = world.client();
    let lease = world.poll(&mut acquiring(&redlock, "res")).unwrap().unwrap();
    world.settle();
    assert_eq!(world.block_on(lease.release()), Released::Confirmed);
    assert_eq!(world.holders("res"), 0);
    assert_eq!(world.node("a", |node| node.executed.join(" ")), "INTRODUCE SET EVALSHA");
}

#[test]
fn scripts_that_are_flushed_are_sent_again() {
    let world = World::new();
    let redlock = world.client();
    for executed in ["INTRODUCE SET EVALSHA EVAL", "INTRODUCE SET EVALSHA EVAL SET EVALSHA EVAL"] {
        let lease = world.poll(&mut acquiring(&redlock, "res")).unwrap().unwrap();
        world.settle();
        world.each_node(|node| node.has_scripts = false);
        assert_eq!(world.block_on(lease.release()), Released::Confirmed);
        assert_eq!(world.node("a", |node| node.executed.join(" ")), executed);
    }
    assert_eq!(world.node("a", |node| node.accepted), 1, "on the same connection");
}
