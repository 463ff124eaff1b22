//! Drops futures after every number of polls, from none up to the number they need.

use redlock_client::environment::BoxFuture;
use redlock_client::{Lease, LostReason, Redlock, Released};

use crate::world::{SECOND, TTL, World};

type Victim = BoxFuture<'static, ()>;

fn victim<T>(future: impl Future<Output = T> + Send + 'static) -> Victim {
    Box::pin(async move { drop(future.await) })
}

/// Drops the future that `prepare` makes, after each number of polls, each time in a new world. The
/// future works on `res`.
///
/// An acquisition of `other` that is under way at the same time must still be granted. `settled`
/// checks the remaining state of `res` and releases what may be held.
fn dropped(
    what: &str,
    prepare: impl Fn(&World, Redlock) -> Victim,
    settled: impl Fn(&World, &Redlock),
) {
    let mut polls = 0;
    loop {
        let world = World::new();
        let redlock = world.client();
        let mut victim = prepare(&world, redlock.clone());
        let mut other = redlock.try_acquire("other").into_future();
        assert!(world.poll_once(&mut other).is_none());
        let is_complete = (0..polls).any(|_| world.poll_once(&mut victim).is_some());
        drop(victim);
        let other = world.block_on(other);
        let other = other.unwrap_or_else(|error| panic!("{what}, {polls} polls: {error}"));
        settled(&world, &redlock);
        world.settle();
        assert_eq!((world.holders("other"), world.holders("res")), (5, 0), "{what}, {polls} polls");
        assert_eq!(world.block_on(other.release()), Released::Confirmed, "{what}, {polls} polls");
        world.each_node(|node| assert_eq!(node.accepted, 1, "{what}, {polls} polls"));
        if is_complete {
            break println!("{what}: {polls} polls to completion");
        }
        polls += 1;
    }
    assert!(polls > 1, "{what} waits for something");
}

/// Acquires `res` at once. On each connection the SET comes behind the release, so no key is in its
/// way.
fn next_gets_it(world: &World, redlock: &Redlock) {
    let acquired = world.poll(&mut redlock.try_acquire("res").into_future());
    let lease = acquired.expect("no time passes").unwrap();
    world.settle();
    assert_eq!(world.holders("res"), 5);
    assert_eq!(world.block_on(lease.release()), Released::Confirmed);
}

fn lease(world: &World, redlock: &Redlock) -> Lease {
    let lease = world.block_on(redlock.try_acquire("res")).unwrap();
    world.settle();
    lease
}

#[test]
fn an_acquisition() {
    let acquiring = |redlock: Redlock| victim(async move { redlock.try_acquire("res").await });
    dropped("the first acquisition", |_, redlock| acquiring(redlock), next_gets_it);
    let warm = |world: &World, redlock: Redlock| {
        world.block_on(lease(world, &redlock).release());
        acquiring(redlock)
    };
    dropped("an acquisition", warm, next_gets_it);
}

#[test]
fn an_acquisition_that_tries_again() {
    let prepare = |world: &World, redlock: Redlock| {
        world.each_node(|node| node.set("res", "somebody"));
        victim(async move { redlock.acquire("res").attempts(3).await.unwrap_err() })
    };
    dropped("an acquisition in vain", prepare, |world, redlock| {
        world.settle();
        assert_eq!(world.holders("res"), 5, "the holder's keys");
        world.each_node(|node| node.delete("res"));
        next_gets_it(world, redlock);
    });
}

#[test]
fn an_acquisition_that_stands_in_line() {
    let prepare = |world: &World, redlock: Redlock| {
        let lease = lease(world, &redlock);
        victim(async move {
            let mut waiting = redlock.acquire("res").into_future();
            let begun = std::future::poll_fn(|context| {
                std::task::Poll::Ready(std::pin::Pin::new(&mut waiting).poll(context).is_pending())
            });
            assert!(begun.await);
            drop(lease);
            waiting.await.unwrap()
        })
    };
    dropped("an acquisition that stands in line", prepare, next_gets_it);
}

#[test]
fn a_release() {
    let prepare = |world: &World, redlock: Redlock| victim(lease(world, &redlock).release());
    dropped("a release", prepare, next_gets_it);
}

#[test]
fn an_extension() {
    let prepare = |world: &World, redlock: Redlock| {
        let lease = lease(world, &redlock);
        world.pass(SECOND);
        victim(async move { lease.extend(TTL).await.unwrap() })
    };
    dropped("an extension, and the lease", prepare, next_gets_it);
}

#[test]
fn a_guard_and_what_it_guards() {
    let prepare = |world: &World, redlock: Redlock| {
        let guard = world.block_on(redlock.try_acquire("guard")).unwrap();
        victim(async move {
            let work = async { redlock.try_acquire("res").await.unwrap().release().await };
            guard.guard(work).await.unwrap()
        })
    };
    dropped("a guard", prepare, next_gets_it);
}

#[test]
fn work_under_a_lease() {
    let prepare = |_: &World, redlock: Redlock| {
        victim(async move {
            let work = async |lease: &Lease| lease.extend(TTL).await.map(drop);
            redlock.try_acquire("res").with(work).await.map_err(drop)
        })
    };
    dropped("work under a lease", prepare, next_gets_it);
}

/// Drops the future that `prepare` makes of a lease on `res`, after each number of polls, each time
/// in a new world.
fn dropped_under_a_lease(
    what: &str,
    prepare: impl Fn(&Redlock, &Lease) -> Victim,
    settled: impl Fn(&World, &Redlock, Lease),
) {
    for polls in 0.. {
        let world = World::new();
        let redlock = world.client();
        let lease = lease(&world, &redlock);
        let mut victim = prepare(&redlock, &lease);
        if (0..polls).any(|_| world.poll_once(&mut victim).is_some()) {
            assert!(polls > 1, "{what} waits for something");
            return println!("{what}: {polls} polls to completion");
        }
        drop(victim);
        settled(&world, &redlock, lease);
        world.settle();
        assert_eq!(world.holders("res"), 0, "{what}, {polls} polls");
    }
}

#[test]
fn waiting_for_the_loss() {
    let prepare = |_: &Redlock, lease: &Lease| victim(lease.lost());
    dropped_under_a_lease("the loss of a lease", prepare, |world, redlock, lease| {
        assert_eq!(world.block_on(lease.lost()), LostReason::DeadlinePassed);
        drop(lease);
        next_gets_it(world, redlock);
    });
}

#[test]
fn closing() {
    let prepare = |redlock: &Redlock, _: &Lease| {
        let redlock = redlock.clone();
        victim(async move { redlock.close(SECOND).await.is_complete() })
    };
    dropped_under_a_lease("closing", prepare, |world, _, lease| {
        world.settle();
        drop(lease);
    });
}
