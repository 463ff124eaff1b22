//! Extensions of a lease, by its holder and by keep-alive.

use redlock_client::{ExtendErrorKind, KeepAlive, LostReason, TtlError};

use crate::node::Habit;
use crate::world::{MS, SECOND, TTL, World};

#[test]
fn an_extension_moves_the_deadline_and_the_keys() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.settle();
    let before = lease.deadline();
    world.pass(4 * SECOND);
    let deadline = world.block_on(lease.extend(TTL)).unwrap();
    assert!(deadline > before);
    assert_eq!((lease.deadline(), lease.remaining()), (deadline, TTL - 102 * MS));
    world.pass(9 * SECOND);
    world.settle();
    assert_eq!((world.holders("res"), lease.check(MS)), (5, Ok(())));
}

#[test]
fn extension_that_would_shorten_or_is_invalid_is_refused() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let refused = |ttl| world.block_on(lease.extend(ttl)).unwrap_err();
    assert_eq!(refused(5 * SECOND).kind(), ExtendErrorKind::WouldShorten);
    assert_eq!(refused(TTL + MS).kind(), ExtendErrorKind::Invalid);
    assert_eq!(
        refused(TTL + MS).to_string(),
        format!("a TTL of 10.001s: {}", TtlError::BeyondFleet)
    );
    assert_eq!(lease.check(9 * SECOND), Ok(()));
}

#[test]
fn an_extension_without_a_majority_leaves_the_lease_what_it_was() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let before = lease.deadline();
    world.pass(SECOND);
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.habit = Habit::Hangs);
    }
    let error = world.block_on(lease.extend(TTL)).unwrap_err();
    assert_eq!(error.kind(), ExtendErrorKind::TooFewNodes);
    assert_eq!((lease.deadline(), lease.is_valid()), (before, true));
}

#[test]
fn keys_that_are_gone_end_the_lease_at_once() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.settle();
    world.pass(SECOND);
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.delete("res"));
    }
    assert!(world.block_on(lease.extend(TTL)).is_err());
    world.settle();
    assert_eq!(world.poll(&mut lease.lost()), Some(LostReason::KeysGone));
    let error = world.block_on(lease.extend(TTL)).unwrap_err();
    assert_eq!(error.kind(), ExtendErrorKind::Lost(LostReason::KeysGone));
}

#[test]
fn two_extensions_at_once_take_turns() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.pass(SECOND);
    let mut one = Box::pin(lease.extend(8 * SECOND + 500 * MS));
    let mut other = Box::pin(lease.extend(TTL));
    assert!(world.poll(&mut other).is_none_or(|it| it.is_ok()));
    // The other extension asked for more, so this one has nothing to gain.
    let late = world.block_on(&mut one);
    assert!(late.is_err_and(|it| it.kind() == ExtendErrorKind::WouldShorten));
    assert_eq!(lease.remaining(), TTL - 102 * MS);
}

#[test]
fn an_outcome_waits_for_its_asker_while_others_extend() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.pass(SECOND);
    let mut one = Box::pin(lease.extend(TTL - SECOND / 2));
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    assert!(one.as_mut().poll(&mut context).is_pending());
    world.settle();
    // The first caller has not been polled when the next round is over.
    assert!(world.block_on(lease.extend(TTL)).is_ok());
    assert!(world.block_on(&mut one).is_ok());
}

#[test]
fn a_dropped_extension_does_no_harm() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.pass(SECOND);
    let mut dropped = Box::pin(lease.extend(TTL));
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    assert!(dropped.as_mut().poll(&mut context).is_pending());
    drop(dropped);
    world.settle();
    world.pass(SECOND);
    assert!(world.block_on(lease.extend(TTL)).is_ok());
}

#[test]
fn a_lease_that_is_kept_alive_outlives_its_ttl_up_to_the_limit() {
    let world = World::new();
    let redlock = world.client();
    let keep_alive = KeepAlive::at_most(60 * SECOND);
    let begun = world.now();
    let lease = world.block_on(redlock.acquire("res").keep_alive(keep_alive)).unwrap();
    assert_eq!(world.block_on(lease.lost()), LostReason::KeepAliveEnded);
    let lived = world.now() - begun;
    assert!(lived > 59 * SECOND && lived <= 60 * SECOND, "{lived:?}");
    let sent = world.node("a", |node| node.executed.iter().filter(|it| *it == "EVALSHA").count());
    assert!((15..=25).contains(&sent), "{sent} extensions");
}

#[test]
fn a_kept_lease_never_has_less_than_half_of_its_ttl_left() {
    let world = World::new();
    let redlock = world.client();
    let keep_alive = KeepAlive::at_most(60 * SECOND);
    let lease = world.block_on(redlock.acquire("res").keep_alive(keep_alive)).unwrap();
    let end = world.now() + 45 * SECOND;
    while world.now() < end {
        assert!(lease.remaining() > TTL / 2, "{:?}", lease.remaining());
        world.pass(100 * MS);
        world.settle();
    }
}

#[test]
fn a_kept_lease_without_a_majority_is_lost_before_its_deadline() {
    let world = World::new();
    let redlock = world.client();
    let keep_alive = KeepAlive::at_most(60 * SECOND);
    let lease = world.block_on(redlock.acquire("res").keep_alive(keep_alive)).unwrap();
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.habit = Habit::Hangs);
    }
    let begun = world.now();
    assert_eq!(world.block_on(lease.lost()), LostReason::KeepAliveFailed);
    assert!(world.now() - begun < TTL - 102 * MS);
}

#[test]
fn a_kept_lease_that_recovered_is_not_lost_for_want_of_nodes() {
    let world = World::new();
    let redlock = world.client();
    let keep_alive = KeepAlive::at_most(60 * SECOND);
    let lease = world.block_on(redlock.acquire("res").keep_alive(keep_alive)).unwrap();
    let hang =
        |habit: Habit| ["a", "b", "c"].map(|it| world.node(it, |node| node.habit = habit.clone()));
    let poll_until = |end| {
        while world.now() < end {
            world.pass(10 * MS);
            world.settle();
        }
    };
    hang(Habit::Hangs);
    poll_until(world.now() + 5 * SECOND);
    hang(Habit::Answers);
    poll_until(world.now() + 10 * SECOND);
    assert!(lease.is_valid());
    // The process is stopped, so nothing can be confirmed meanwhile.
    world.pass(TTL);
    assert_eq!(world.block_on(lease.lost()), LostReason::DeadlinePassed);
}
