//! Several locks at once.

use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redlock_client::environment::BoxFuture;
use redlock_client::many::{LeaseSet, RESOURCES_MAX};
use redlock_client::{
    AcquireError, AcquireErrorKind, ExtendErrorKind, KeepAlive, LostReason, Redlock, Released,
    WithError,
};

use crate::node::Habit;
use crate::world::{MS, SECOND, TTL, World};

type AcquiringAll<'a> = BoxFuture<'a, Result<LeaseSet, AcquireError>>;

fn all<'a>(redlock: &'a Redlock, resources: &[&'a str]) -> AcquiringAll<'a> {
    redlock.acquire_all(resources.iter().copied()).into_future()
}

fn set(world: &World, redlock: &Redlock, resources: &[&str]) -> LeaseSet {
    let leases = world.poll(&mut all(redlock, resources)).expect("no time passes").unwrap();
    world.settle();
    leases
}

/// Number of nodes that have each of the keys.
pub(crate) fn holders<const N: usize>(world: &World, keys: [&str; N]) -> [usize; N] {
    keys.map(|key| world.holders(key))
}

/// Number of SETs that a node has executed.
pub(crate) fn sets(world: &World) -> usize {
    world.node("a", |node| node.executed.iter().filter(|it| *it == "SET").count())
}

/// Polls once, and lets nothing else take a step.
fn poll_alone<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn all_locks_are_held_and_released_together() {
    let world = World::new();
    let redlock = world.client();
    let leases = set(&world, &redlock, &["b", "c", "a"]);
    assert_eq!(holders(&world, ["a", "b", "c"]), [5, 5, 5]);
    let names: Vec<&[u8]> = leases.iter().map(|(name, _)| name).collect();
    assert_eq!(names, [b"a", b"b", b"c"]);
    assert_eq!(leases.remaining(), TTL - 102 * MS);
    assert_eq!(leases.check_confirmed(SECOND), Ok(()));
    assert_eq!(world.block_on(leases.release()), Released::Confirmed);
    assert_eq!(holders(&world, ["a", "b", "c"]), [0, 0, 0]);
}

#[test]
fn leases_that_are_dropped_are_released() {
    let world = World::new();
    let redlock = world.client();
    drop(set(&world, &redlock, &["a", "b"]));
    world.settle();
    assert_eq!(holders(&world, ["a", "b"]), [0, 0]);
}

#[test]
fn one_lock_that_is_taken_leaves_none() {
    let world = World::new();
    world.each_node(|node| node.set("c", "somebody"));
    let redlock = world.client();
    let error = world.block_on(redlock.try_acquire_all(["a", "c", "b", "d"])).unwrap_err();
    assert_eq!((error.kind(), error.resource()), (AcquireErrorKind::Taken, Some(&b"c"[..])));
    assert!(error.to_string().starts_with("lock `c`: the lock is taken"), "{error}");
    world.settle();
    assert_eq!(holders(&world, ["a", "b", "c", "d"]), [0, 0, 5, 0]);
    assert_eq!(sets(&world), 3, "d comes after c");
}

#[test]
fn locks_are_taken_in_the_order_of_their_names() {
    let world = World::new();
    world.each_node(|node| node.set("a", "somebody"));
    let redlock = world.client();
    let error = world.block_on(redlock.try_acquire_all(["b", "a"])).unwrap_err();
    assert_eq!(error.resource(), Some(&b"a"[..]));
    assert_eq!(sets(&world), 1, "b was not asked for");
}

#[test]
fn a_waiting_acquisition_holds_no_other_lock() {
    let world = World::new();
    world.each_node(|node| node.set("b", "somebody"));
    let redlock = world.client();
    let mut acquiring = all(&redlock, &["a", "b"]);
    assert!(world.poll(&mut acquiring).is_none());
    world.pass(10 * MS); // the pause between two passes is over
    assert!(world.poll(&mut acquiring).is_none());
    assert_eq!(holders(&world, ["a", "b"]), [0, 5]);
    world.each_node(|node| node.delete("b"));
    let leases = world.block_on(acquiring).unwrap();
    world.settle();
    assert_eq!(holders(&world, ["a", "b"]), [5, 5]);
    assert!(leases.remaining() > TTL - SECOND, "woken, not expired");
}

#[test]
fn two_clients_with_opposite_orders_do_not_block_each_other() {
    let world = World::new();
    let (one, other) = (world.client(), world.client());
    let work = async |redlock: &Redlock, resources: [&str; 2]| {
        let leases = redlock.acquire_all(resources).await?;
        leases.release().await;
        Ok::<_, AcquireError>(())
    };
    let both = async { tokio::join!(work(&one, ["a", "b"]), work(&other, ["b", "a"])) };
    let begun = world.now();
    assert_eq!(world.block_on(both), (Ok(()), Ok(())));
    assert!(world.now() - begun < SECOND);
}

#[test]
fn tasks_of_one_client_take_their_turns() {
    let world = World::new();
    let redlock = world.client();
    let first = set(&world, &redlock, &["a", "b"]);
    let mut second = all(&redlock, &["b", "a"]);
    assert!(world.poll(&mut second).is_none());
    drop(first);
    assert!(world.poll(&mut second).expect("it was next").is_ok());
}

#[test]
fn wait_is_for_all_locks_together() {
    let world = World::new();
    for name in ["a", "b"] {
        world.each_node(|node| node.set(name, "somebody"));
    }
    let redlock = world.client();
    let begun = world.now();
    let mut acquiring = redlock.acquire_all(["a", "b"]).wait(SECOND).into_future();
    assert!(world.poll(&mut acquiring).is_none());
    world.pass(900 * MS);
    world.each_node(|node| node.delete("a"));
    let error = world.block_on(acquiring).unwrap_err();
    assert_eq!(error.resource(), Some(&b"b"[..]));
    assert!(world.now() - begun <= SECOND);
    world.settle();
    assert_eq!(holders(&world, ["a", "b"]), [0, 5]);
}

#[test]
fn passes_are_limited_by_their_number() {
    let world = World::new();
    world.each_node(|node| node.set("b", "somebody"));
    let redlock = world.client();
    let error = world.block_on(redlock.acquire_all(["a", "b"]).attempts(3)).unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (AcquireErrorKind::Taken, 3));
    world.settle();
    assert_eq!(holders(&world, ["a", "b"]), [0, 5]);
}

#[test]
fn acquisition_of_all_that_is_dropped_leaves_nothing() {
    let world = World::new();
    let redlock = world.client();
    world.poll(&mut Box::pin(redlock.ready(Duration::ZERO)));
    world.settle();
    let mut acquiring = all(&redlock, &["a", "b"]);
    assert!(poll_alone(&mut acquiring).is_pending());
    world.settle();
    assert!(poll_alone(&mut acquiring).is_pending());
    world.settle();
    assert_eq!(holders(&world, ["a", "b"]), [5, 5]);
    drop(acquiring);
    world.settle();
    assert_eq!(holders(&world, ["a", "b"]), [0, 0]);
}

#[test]
fn lease_that_has_aged_too_much_is_not_handed_out() {
    let world = World::new();
    let redlock = world.client();
    world.poll(&mut Box::pin(redlock.ready(Duration::ZERO)));
    world.settle();
    let acquire = redlock.try_acquire_all(["a", "b", "c"]).min_validity(TTL - 132 * MS);
    let mut acquiring = acquire.into_future();
    for _ in 0..3 {
        assert!(poll_alone(&mut acquiring).is_pending());
        world.pass(20 * MS);
        world.settle();
    }
    let error = world.block_on(acquiring).unwrap_err();
    assert_eq!((error.kind(), error.resource()), (AcquireErrorKind::TooSlow, Some(&b"a"[..])));
    world.settle();
    assert_eq!(holders(&world, ["a", "b", "c"]), [0, 0, 0]);
}

#[test]
fn first_deadline_is_that_of_the_set() {
    let world = World::new();
    let redlock = world.client();
    let leases = set(&world, &redlock, &["a", "b"]);
    world.pass(SECOND);
    let (_, first) = leases.iter().next().unwrap();
    world.block_on(first.extend(TTL)).unwrap();
    let (_, second) = leases.iter().nth(1).unwrap();
    assert!(second.deadline() < first.deadline());
    assert_eq!(leases.deadline(), second.deadline());
    assert_eq!(leases.remaining(), second.remaining());
    let extended = world.block_on(leases.extend(TTL + SECOND)).unwrap_err();
    assert_eq!(extended.error().kind(), ExtendErrorKind::Invalid);
    world.settle();
    world.pass(SECOND);
    let deadline = world.block_on(leases.extend(TTL)).unwrap();
    assert_eq!(leases.remaining(), TTL - 102 * MS);
    assert_eq!(leases.leave_until_expiry(), deadline);
    world.settle();
    assert_eq!(holders(&world, ["a", "b"]), [5, 5]);
}

#[test]
fn loss_of_one_lease_is_the_loss_of_the_set() {
    let world = World::new();
    let redlock = world.client();
    let leases = set(&world, &redlock, &["a", "b"]);
    world.pass(SECOND);
    let (_, first) = leases.iter().next().unwrap();
    world.block_on(first.extend(TTL)).unwrap();
    let lost = leases.lost();
    let loss = world.block_on(lost.clone());
    assert_eq!((loss.resource(), *loss.error()), (&b"b"[..], LostReason::DeadlinePassed));
    assert_eq!(loss.to_string(), "lock `b`: the lease's deadline has passed, or is too near");
    assert_eq!(world.poll(&mut lost.clone()), Some(loss.clone()), "a latch");
    assert_eq!(leases.check(Duration::ZERO), Err(loss.clone()));
    assert_eq!(world.block_on(leases.guard(pending::<()>())), Err(loss));
    assert_eq!((leases.is_valid(), leases.remaining()), (false, Duration::ZERO));
    let (_, first) = leases.iter().next().unwrap();
    assert!(first.is_valid(), "the other lease goes on");
}

#[test]
fn all_leases_are_kept_alive() {
    let world = World::new();
    let redlock = world.client();
    let acquire = redlock.acquire_all(["a", "b"]).keep_alive(KeepAlive::at_most(3 * TTL));
    let leases = world.block_on(acquire).unwrap();
    let begun = world.now();
    let loss = world.block_on(leases.lost());
    assert_eq!(*loss.error(), LostReason::KeepAliveEnded);
    assert!(world.now() - begun > 2 * TTL);
}

#[test]
fn work_is_done_under_all_locks() {
    let world = World::new();
    let redlock = world.client();
    let work = async |leases: &LeaseSet| leases.iter().count();
    assert_eq!(world.block_on(redlock.acquire_all(["a", "b"]).with(work)), Ok(2));
    let endless = async |_: &LeaseSet| pending::<()>().await;
    let dropped = world.block_on(redlock.acquire_all(["a", "b"]).with(endless)).unwrap_err();
    assert!(matches!(dropped, WithError::Lost(loss) if loss.resource() == b"a"));
    world.settle();
    assert_eq!(holders(&world, ["a", "b"]), [0, 0]);
}

#[test]
fn silent_node_is_named_once_by_the_release_of_all() {
    let world = World::new();
    let redlock = world.client();
    let leases = set(&world, &redlock, &["a", "b"]);
    world.node("e", |node| node.habit = Habit::Mute);
    let Released::Unconfirmed(nodes) = world.block_on(leases.release()) else {
        panic!("a node was silent");
    };
    assert_eq!(nodes.iter().map(|node| node.place).collect::<Vec<_>>(), [4]);
}

#[test]
fn impossible_sets_of_locks_are_refused_and_send_nothing() {
    let world = World::new();
    let redlock = world.client();
    let thousand = (0..1_000).map(|number| number.to_string());
    for (acquire, message) in [
        (redlock.acquire_all([""; 0]), "zero resources: at least one is needed".into()),
        (
            redlock.acquire_all(["b", "a", "b"]),
            "resources 0 and 2, counted from 0, have the same name; name each lock once".into(),
        ),
        (redlock.acquire_all(["a", ""]), "lock ``: the resource name is empty".into()),
        (
            redlock.acquire_all(thousand),
            format!("more than {RESOURCES_MAX} resources at once; lock one that stands for them"),
        ),
        (
            redlock.acquire_all(["redlock-client:canary", "a"]),
            "lock `redlock-client:canary`: the resource has the name of the canary: choose another \
             name for it, or for the canary (`Builder::canary_key`)"
                .into(),
        ),
        (
            redlock.acquire_all(["a", "b"]).attempts(0),
            "zero attempts: at least one is needed".into(),
        ),
    ] {
        let error = world.block_on(acquire).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (AcquireErrorKind::Invalid, message));
    }
    assert_eq!(sets(&world), 0);
}

#[test]
fn closed_client_ends_every_wait() {
    let world = World::new();
    for name in ["a", "pool#0"] {
        world.each_node(|node| node.set(name, "somebody"));
    }
    let redlock = world.client();
    let pool = redlock.semaphore("pool", 1);
    let (mut both, mut permit) = (all(&redlock, &["a", "b"]), pool.acquire().into_future());
    for _ in 0..2 {
        assert!(world.poll(&mut both).is_none());
        assert!(world.poll(&mut permit).is_none());
        world.pass(10 * MS);
    }
    let _closed = world.block_on(redlock.close(SECOND));
    assert_eq!(world.block_on(both).unwrap_err().kind(), AcquireErrorKind::Closed);
    assert_eq!(world.block_on(permit).unwrap_err().kind(), AcquireErrorKind::Closed);
}

#[test]
fn futures_and_leases_can_be_sent_to_other_threads() {
    fn is_sent<T: Send>(value: T) -> T {
        value
    }
    let world = World::new();
    let redlock = world.client();
    drop(is_sent(all(&redlock, &["a"])));
    let pool = is_sent(redlock.semaphore("pool", 1));
    drop(is_sent(pool.acquire().into_future()));
    let leases = is_sent(world.block_on(redlock.acquire_all(["a"])).unwrap());
    drop(is_sent(leases.lost()));
}
