//! Tests the client from its public API down to the bytes, with nodes in memory and a clock that
//! the test moves. No test here waits in real time.

mod blocking;
mod cancellation;
mod closing;
mod connections;
mod credentials;
mod docs;
mod extension;
mod handle;
mod line;
mod logs;
mod many;
#[cfg(feature = "metrics")]
mod metrics;
mod node;
mod observing;
mod permits;
mod secrets;
mod taken;
mod waiting;
mod watching;
mod work;
mod world;

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use redlock_client::environment::BoxFuture;
use redlock_client::{AcquireError, AcquireErrorKind, Lease, LostReason, Redlock, Released};

use self::node::Habit;
use self::world::{MS, SECOND, TTL, World};

type Acquiring<'a> = BoxFuture<'a, Result<Lease, AcquireError>>;

fn acquiring<'a>(redlock: &'a Redlock, resource: &'a str) -> Acquiring<'a> {
    Box::pin(redlock.acquire(resource).into_future())
}

fn kind(result: Result<Lease, AcquireError>) -> AcquireErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn a_lease_is_on_every_node_and_gone_after_the_release() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.poll(&mut acquiring(&redlock, "res")).unwrap().unwrap();
    world.settle();
    assert_eq!(world.holders("res"), 5);
    let now = world.now();
    for name in ["a", "b", "c", "d", "e"] {
        let value = world.node(name, |node| node.value(b"res", now).map(<[u8]>::to_vec));
        assert_eq!(value.as_deref(), Some(&lease.owner().as_bytes()[..]));
    }
    assert_eq!(lease.remaining(), TTL - 102 * MS);
    assert_eq!(world.block_on(lease.release()), Released::Confirmed);
    assert_eq!(world.holders("res"), 0);
}

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
    assert_eq!(world.node("a", |node| node.executed.join(" ")), "EVALSHA INTRODUCE SET EVALSHA");
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
fn a_dropped_lease_is_released() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    drop(lease);
    world.settle();
    assert_eq!(world.holders("res"), 0);
}

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

#[test]
fn a_lost_lease_says_so_without_the_network_and_in_time() {
    let world = World::new();
    let redlock = world.client();
    let began = world.now();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.each_node(|node| node.habit = Habit::Hangs);
    let lost = lease.lost();
    assert_eq!(world.block_on(lost.clone()), LostReason::DeadlinePassed);
    assert!(world.now() - began < TTL, "the keys are still there");
    assert_eq!(world.poll(&mut lost.clone()), Some(LostReason::DeadlinePassed), "a latch");
    assert_eq!(lease.check(Duration::ZERO), Err(LostReason::DeadlinePassed));
    assert!(!lease.is_valid());
    assert_eq!(lease.remaining(), Duration::ZERO);
}

#[test]
fn a_stopped_process_learns_of_the_loss_at_the_next_poll() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let mut lost = lease.lost();
    assert!(world.poll(&mut lost).is_none());
    world.pass(TTL);
    assert!(lease.check(Duration::ZERO).is_err());
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut lost).poll(&mut context).is_ready());
}

#[test]
fn a_lease_asks_whether_enough_is_left() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.pass(TTL - SECOND);
    assert!(lease.check(897 * MS).is_ok());
    assert!(lease.check(898 * MS).is_err(), "no more than what is needed is not enough");
}

#[test]
fn a_grant_that_is_fetched_late_is_refused_and_given_back() {
    let world = World::new();
    let redlock = world.client();
    let mut acquiring = redlock.try_acquire("res").into_future();
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut acquiring).poll(&mut context).is_pending());
    world.settle();
    assert_eq!(world.holders("res"), 5, "decided, and not fetched");
    world.pass(TTL);
    assert_eq!(kind(world.block_on(acquiring)), AcquireErrorKind::TooSlow);
    world.settle();
    assert_eq!(world.holders("res"), 0);
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
    ] {
        assert_eq!(kind(world.block_on(acquire)), AcquireErrorKind::Invalid);
    }
}

#[test]
fn tasks_end_when_the_client_is_gone_and_nothing_is_owed() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    drop(redlock);
    world.settle();
    assert_eq!(world.tasks(), 6, "the lease needs them");
    drop(lease);
    world.settle();
    assert_eq!(world.holders("res"), 0);
    assert_eq!(world.tasks(), 0);
}

#[test]
fn tasks_start_again_after_their_runtime_has_ended() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.drop_tasks();
    drop(lease);
    let again = world.block_on(redlock.acquire("res")).expect("released first, on new connections");
    assert_eq!(world.tasks(), 6);
    world.block_on(again.release());
    world.settle();
    assert_eq!(world.holders("res"), 0);
}

#[test]
fn a_distant_node_has_time_to_connect_before_the_first_attempt() {
    let world = World::new();
    world.each_node(|node| node.habit = Habit::Refuses);
    let refused = world.client();
    assert_eq!(kind(world.block_on(refused.try_acquire("res"))), AcquireErrorKind::TooFewNodes);
    world.each_node(|node| node.habit = Habit::Hangs);
    let redlock = world.client();
    let mut acquiring = Box::pin(redlock.try_acquire("res").into_future());
    assert!(world.poll(&mut acquiring).is_none());
    // Many node timeouts later, but within the connect timeout.
    world.pass(400 * MS);
    assert!(world.poll(&mut acquiring).is_none());
    world.each_node(|node| node.habit = Habit::Answers);
    let lease = world.poll(&mut acquiring).expect("no time passes").unwrap();
    assert_eq!(lease.remaining(), TTL - 102 * MS, "T1 was read when the nodes were there");
}

#[test]
fn a_client_is_ready_when_a_majority_counts() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.uptime_s = 1);
    }
    let redlock = world.client();
    let error = world.block_on(redlock.ready(SECOND)).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Quarantined);
    assert_eq!(error.retry_after(), Some(TTL + 102 * MS - 2 * SECOND));
    assert_eq!(world.block_on(redlock.ready(TTL)), Ok(()));
    assert!(redlock.health().has_quorum);
    let _closed = world.block_on(redlock.close(SECOND));
    let error = world.block_on(redlock.ready(SECOND)).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Closed);
}

#[test]
fn a_client_that_is_not_ready_names_the_nodes_that_are_away() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.node(name, |node| node.habit = Habit::Refuses);
    }
    let redlock = world.client();
    let error = world.block_on(redlock.ready(SECOND)).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::TooFewNodes);
    let away: Vec<_> = error.nodes().iter().map(|it| (it.place, it.error.is_some())).collect();
    assert_eq!(away, [(0, true), (1, true), (2, true)]);
}
