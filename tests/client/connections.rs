//! Guarantees of the connections and their tasks, towards callers and nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use redlock_client::environment::BoxFuture;

use crate::acquiring;
use crate::node::Habit;
use crate::world::{MS, SECOND, TTL, World};

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn bytes_for_a_lost_connection_are_not_written_on_the_next() {
    let world = World::new();
    let redlock = world.client();
    world.poll(&mut Box::pin(redlock.ready(std::time::Duration::ZERO)));
    world.settle();
    let mut lost = acquiring(&redlock, "lost");
    assert!(lost.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    // The tasks that would write the SET end before they are polled.
    world.drop_tasks();
    drop(lost);
    let _lease = world.block_on(redlock.acquire("next")).unwrap();
    world.settle();
    world.each_node(|node| {
        let sets = node.executed.iter().filter(|name| *name == "SET").count();
        assert_eq!((node.accepted, sets), (2, 1), "{:?}", node.executed);
    });
}

#[test]
fn an_extension_behind_a_full_transport_is_not_written_late() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.settle();
    world.pass(lease.remaining() - 20 * MS);
    world.settle();
    world.each_node(|node| node.habit = Habit::Hangs);
    // More than the 64 KiB that a connection takes before its node reads.
    let names: Vec<String> = ('a'..='t').map(|name| name.to_string().repeat(4_000)).collect();
    let mut others: Vec<_> = names.iter().map(|name| acquiring(&redlock, name)).collect();
    others.iter_mut().for_each(|other| assert!(world.poll(other).is_none()));
    let mut extending = Box::pin(lease.extend(TTL));
    assert!(world.poll(&mut extending).is_none());
    world.pass(40 * MS);
    assert_eq!(world.holders("res"), 5, "a late extension would be executed");
    world.each_node(|node| node.habit = Habit::Answers);
    world.settle();
    world.pass(100 * MS);
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn callers_are_woken_when_the_runtime_of_the_tasks_ends() {
    for what in ["acquire", "extend", "close"] {
        let world = World::new();
        let redlock = world.client();
        let lease = world.block_on(redlock.acquire("held")).unwrap();
        world.settle();
        world.pass(MS);
        world.each_node(|node| node.habit = Habit::Hangs);
        let mut wait: BoxFuture<'_, ()> = match what {
            "acquire" => Box::pin(async { _ = redlock.acquire("res").await }),
            "extend" => Box::pin(async { _ = lease.extend(TTL).await }),
            _ => Box::pin(async { _ = redlock.close(TTL).await }),
        };
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(), "{what}");
        world.settle();
        assert!(!woken.0.load(Ordering::Relaxed), "{what}: nothing has happened so far");
        // Nobody but the waiter could start the tasks again, so the waiter must be woken.
        world.drop_tasks();
        assert!(woken.0.load(Ordering::Relaxed), "{what}");
    }
}

#[test]
fn answers_during_a_pause_decide_before_the_node_timeout() {
    for pause in [100 * MS, 5 * SECOND] {
        let world = World::new();
        let redlock = world.client();
        world.poll(&mut Box::pin(redlock.ready(std::time::Duration::ZERO)));
        world.settle();
        world.each_node(|node| node.habit = Habit::Hangs);
        let mut acquiring = redlock.try_acquire("res").into_future();
        assert!(world.poll(&mut acquiring).is_none());
        // The client's process is stopped; its nodes are not.
        world.each_node(|node| node.habit = Habit::Answers);
        let (now, mut context) = (world.now(), Context::from_waker(Waker::noop()));
        (0..3).for_each(|_| world.each_node(|node| node.step(now, &mut context)));
        world.pass(pause);
        let acquired = world.poll(&mut acquiring).expect("settled");
        assert!(acquired.is_ok(), "{pause:?}: {}", acquired.unwrap_err());
    }
}
