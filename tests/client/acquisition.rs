//! Acquisitions: refused, repeated, dropped and too late.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use redlock_client::AcquireErrorKind;

use crate::node::Habit;
use crate::world::{MS, SECOND, TTL, World};
use crate::{acquiring, kind};

#[test]
fn a_taken_lock_is_refused_and_left_alone() {
    let world = World::new();
    world.each_node(|node| node.set("res", "somebody"));
    let redlock = world.client();
    assert_eq!(kind(world.block_on(redlock.try_acquire("res"))), AcquireErrorKind::Taken);
    world.settle();
    assert_eq!(world.holders("res"), 5);
}

#[test]
fn a_minority_that_was_won_is_given_back() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.set("res", "somebody"));
    }
    let redlock = world.client();
    assert_eq!(kind(world.block_on(redlock.try_acquire("res"))), AcquireErrorKind::Taken);
    world.settle();
    assert_eq!(world.holders("res"), 3);
}

#[test]
fn an_acquisition_tries_again_until_the_lock_is_free() {
    let world = World::new();
    world.each_node(|node| node.set("res", "somebody"));
    let redlock = world.client();
    let mut acquiring = acquiring(&redlock, "res");
    assert!(world.poll(&mut acquiring).is_none());
    world.each_node(|node| node.delete("res"));
    assert!(world.block_on(acquiring).is_ok());
    assert_eq!(world.node("a", |node| node.executed.join(" ")), "INTRODUCE SET GET EVALSHA SET");
}

#[test]
fn an_acquisition_ends_when_its_wait_is_over() {
    let world = World::new();
    world.each_node(|node| node.set("res", "somebody"));
    let redlock = world.client();
    let began = world.now();
    let outcome = world.block_on(redlock.acquire("res").wait(SECOND));
    assert_eq!(kind(outcome), AcquireErrorKind::Taken);
    assert!(world.now() - began <= SECOND);
    assert!(world.node("a", |node| node.executed.len()) > 4, "it tried more than once");
}

#[test]
fn a_dropped_acquisition_gives_back_what_it_may_have() {
    let world = World::new();
    let redlock = world.client();
    world.poll(&mut Box::pin(redlock.ready(Duration::ZERO)));
    world.settle();
    world.each_node(|node| node.habit = Habit::Mute);
    let mut acquiring = acquiring(&redlock, "res");
    assert!(world.poll(&mut acquiring).is_none());
    assert_eq!(world.holders("res"), 5, "executed, and unanswered");
    drop(acquiring);
    world.settle();
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn acquisition_dropped_before_the_first_write_writes_nothing() {
    let world = World::new();
    world.each_node(|node| node.habit = Habit::Hangs);
    let redlock = world.client();
    let mut acquiring = acquiring(&redlock, "res");
    assert!(world.poll(&mut acquiring).is_none());
    drop(acquiring);
    world.each_node(|node| node.habit = Habit::Answers);
    world.settle();
    assert_eq!(world.node("a", |node| node.executed.join(" ")), "INTRODUCE");
}

#[test]
fn a_grant_that_is_fetched_late_is_refused_and_given_back() {
    for timer_is_first in [false, true] {
        let world = World::new();
        let redlock = world.client();
        let mut acquiring = redlock.try_acquire("res").into_future();
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut acquiring).poll(&mut context).is_pending());
        world.settle();
        assert_eq!(world.holders("res"), 5, "decided, and not fetched");
        world.pass(TTL);
        if timer_is_first {
            world.settle();
        }
        let error = world.block_on(acquiring).unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::TooSlow);
        assert!(error.to_string().contains("the caller took the lease too late"), "{error}");
        world.settle();
        assert_eq!(world.holders("res"), 0);
    }
}

#[test]
fn answers_that_come_too_late_are_no_fault_of_the_caller() {
    let world = World::new();
    let redlock = world.client();
    world.poll(&mut Box::pin(redlock.ready(Duration::ZERO)));
    world.settle();
    world.each_node(|node| node.habit = Habit::Hangs);
    let acquire = redlock.try_acquire("res").min_validity(TTL - 112 * MS);
    let mut acquiring = acquire.into_future();
    assert!(world.poll(&mut acquiring).is_none());
    world.pass(20 * MS);
    world.each_node(|node| node.habit = Habit::Answers);
    let error = world.block_on(acquiring).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::TooSlow);
    assert!(error.to_string().contains("a majority answered too late"), "{error}");
}

#[test]
fn young_nodes_do_not_vote() {
    let world = World::new();
    world.each_node(|node| node.uptime_s = 1);
    let redlock = world.client();
    assert_eq!(kind(world.block_on(redlock.try_acquire("res"))), AcquireErrorKind::Quarantined);
}

#[test]
fn no_token_is_used_twice() {
    let world = World::new();
    let redlock = world.client();
    let one = world.block_on(redlock.acquire("one")).unwrap();
    let other = world.block_on(redlock.acquire("other")).unwrap();
    assert_ne!(one.owner(), other.owner());
}

#[test]
fn without_entropy_nothing_is_sent() {
    let world = World::new();
    let redlock = world.client();
    world.exhaust_entropy();
    assert_eq!(kind(world.block_on(redlock.acquire("res"))), AcquireErrorKind::NoEntropy);
    assert_eq!(world.node("a", |node| node.executed.join(" ")), "INTRODUCE");
}

#[test]
fn options_that_cannot_be_met_are_refused() {
    let world = World::new();
    let redlock = world.client();
    let long = "x".repeat(redlock_client::RESOURCE_BYTES_MAX + 1);
    for acquire in [
        redlock.acquire("res").ttl(TTL + MS),
        redlock.acquire("res").ttl(MS / 2),
        redlock.acquire("res").ttl(2 * MS),
        redlock.acquire("res").min_validity(TTL - 102 * MS),
        redlock.acquire("res").attempts(0),
        redlock.acquire(long.as_str()),
        redlock.acquire("redlock-client:canary"),
        redlock.acquire("redlock-client:inspect"),
    ] {
        assert_eq!(kind(world.block_on(acquire)), AcquireErrorKind::Invalid);
    }
}
