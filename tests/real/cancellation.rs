//! Drops futures after any number of polls.
//!
//! Each future is polled at every turn of its runtime, woken or not, so that it is dropped at every
//! step of the sockets. That takes many more polls than the future needs, so only some numbers of
//! polls are tried, spread evenly.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use redlock_client::{KeepAlive, Lease, LostReason, Redlock, Released};

use crate::fleet::{Fleet, SOON, TTL};
use crate::wait::eventually;
use crate::{Test, is_thorough, on_one_thread};

pub(crate) const TESTS: &[Test] = &[
    on_one_thread!(an_acquisition_may_be_dropped_after_any_poll),
    on_one_thread!(first_acquisition_may_be_dropped_after_any_poll),
    on_one_thread!(an_acquisition_that_waits_may_be_dropped_after_any_poll),
    on_one_thread!(a_release_may_be_dropped_after_any_poll),
    on_one_thread!(an_extension_may_be_dropped_after_any_poll),
    on_one_thread!(a_guard_may_be_dropped_after_any_poll),
    on_one_thread!(work_under_a_lease_may_be_dropped_after_any_poll),
    on_one_thread!(an_inspection_may_be_dropped_after_any_poll),
    on_one_thread!(closing_may_be_dropped_after_any_poll),
    on_one_thread!(waiting_for_the_loss_may_be_dropped_after_any_poll),
];

/// A future that is going to be dropped.
struct Victim(Pin<Box<dyn Future<Output = ()>>>);

fn victim<T>(future: impl Future<Output = T> + 'static) -> Victim {
    Victim(Box::pin(async move { drop(future.await) }))
}

/// Polls `victim` at most `most` times, then drops it. Returns the number of polls.
async fn polled(mut victim: Victim, most: usize) -> usize {
    for polls in 1..=most {
        let polled = poll_fn(|context| Poll::Ready(victim.0.as_mut().poll(context))).await;
        if polled.is_ready() {
            return polls;
        }
        tokio::task::yield_now().await;
    }
    most
}

/// Returns the numbers of polls to try, from none up to the number that completes what `prepare`
/// makes.
async fn numbers_of_polls(prepare: &impl AsyncFn() -> Victim) -> impl Iterator<Item = usize> {
    let mut polls = 0;
    for _ in 0..5 {
        polls = polls.max(polled(prepare().await, usize::MAX).await);
    }
    let step = polls.div_ceil(if is_thorough() { 1_000 } else { 100 });
    println!("{polls} polls to completion, dropped after every {step}");
    (0..=polls).step_by(step)
}

/// Drops the future that `prepare` makes, after each number of polls, and checks that other
/// acquisitions still succeed. The future works on `res`.
async fn dropped(fleet: &Fleet, redlock: &Redlock, prepare: impl AsyncFn() -> Victim) {
    fleet.connect(redlock).await;
    let connections = || fleet.iter().map(|server| server.connections()).collect::<Vec<_>>();
    let before = connections();
    for most in numbers_of_polls(&prepare).await {
        let victim = prepare().await;
        let other = async { redlock.try_acquire("other").await };
        let (other, _) = tokio::join!(other, polled(victim, most));
        let other = other.unwrap_or_else(|error| panic!("{most} polls: {error}"));
        // On each connection the release precedes the next command.
        let next = redlock.try_acquire("res").await;
        let next = next.unwrap_or_else(|error| panic!("{most} polls: {error}"));
        fleet.all_hold("other", &other).await;
        fleet.all_hold("res", &next).await;
        assert_eq!(other.release().await, Released::Confirmed, "{most} polls");
        assert_eq!(next.release().await, Released::Confirmed, "{most} polls");
        assert_eq!(fleet.keys(), [0; 5], "{most} polls");
    }
    assert_eq!(connections(), before);
}

async fn an_acquisition_may_be_dropped_after_any_poll() {
    let fleet = Fleet::of(5);
    let redlock = fleet.client();
    let prepare = async || {
        let redlock = redlock.clone();
        victim(async move { drop(redlock.try_acquire("res").await.unwrap()) })
    };
    dropped(&fleet, &redlock, prepare).await;
}

async fn first_acquisition_may_be_dropped_after_any_poll() {
    let fleet = Fleet::of(5);
    let prepare = async || {
        let redlock = fleet.client();
        victim(async move { drop(redlock.try_acquire("res").await.unwrap()) })
    };
    let other = fleet.client();
    for most in numbers_of_polls(&prepare).await {
        polled(prepare().await, most).await;
        other.acquire("res").wait(SOON).await.unwrap().release().await;
        fleet.empties(SOON).await;
    }
}

async fn an_acquisition_that_waits_may_be_dropped_after_any_poll() {
    let fleet = Fleet::of(5);
    let (redlock, holder) = (fleet.client(), fleet.client());
    let lease = holder.acquire("res").keep_alive(KeepAlive::at_most(60 * TTL)).await.unwrap();
    fleet.all_hold("res", &lease).await;
    let prepare = async || {
        let redlock = redlock.clone();
        victim(async move {
            redlock.acquire("res").attempts(2).await.unwrap_err();
        })
    };
    for most in numbers_of_polls(&prepare).await {
        polled(prepare().await, most).await;
        assert!(lease.check(TTL / 4).is_ok(), "the lease is kept alive");
    }
    fleet.all_hold("res", &lease).await;
    assert_eq!(lease.release().await, Released::Confirmed);
    redlock.acquire("res").await.unwrap().release().await;
    fleet.empties(SOON).await;
}

async fn a_release_may_be_dropped_after_any_poll() {
    let fleet = Fleet::of(5);
    let redlock = fleet.client();
    let prepare = async || {
        let lease = redlock.try_acquire("res").await.unwrap();
        victim(lease.release())
    };
    dropped(&fleet, &redlock, prepare).await;
}

async fn an_extension_may_be_dropped_after_any_poll() {
    let fleet = Fleet::of(5);
    // Every round of the loop below extends twice, so the limit must be high.
    let redlock = fleet.builder().extensions_max(u32::MAX).build().unwrap();
    let lease = Rc::new(redlock.try_acquire("lease").await.unwrap());
    fleet.all_hold("lease", &lease).await;
    let prepare = async || {
        let lease = Rc::clone(&lease);
        victim(async move { lease.extend(TTL).await.map(drop) })
    };
    for most in numbers_of_polls(&prepare).await {
        polled(prepare().await, most).await;
        // The next extension waits for its turn, and uses the same connections.
        let deadline = lease.extend(TTL).await.unwrap();
        assert_eq!(lease.deadline(), deadline);
    }
    fleet.all_hold("lease", &lease).await;
    drop(lease);
    fleet.empties(SOON).await;
}

async fn a_guard_may_be_dropped_after_any_poll() {
    let fleet = Fleet::of(5);
    let redlock = fleet.client();
    let lease = Rc::new(redlock.try_acquire("lease").await.unwrap());
    fleet.all_hold("lease", &lease).await;
    let prepare = async || {
        let (lease, redlock) = (Rc::clone(&lease), redlock.clone());
        victim(async move {
            let work = async { redlock.acquire("res").await.unwrap().release().await };
            lease.guard(work).await.unwrap();
        })
    };
    for most in numbers_of_polls(&prepare).await {
        polled(prepare().await, most).await;
        assert!(lease.check(Duration::ZERO).is_ok(), "{most} polls");
        redlock.try_acquire("res").await.unwrap().release().await;
    }
    fleet.all_hold("lease", &lease).await;
    drop(lease);
    fleet.empties(SOON).await;
}

async fn work_under_a_lease_may_be_dropped_after_any_poll() {
    let fleet = Fleet::of(5);
    let redlock = fleet.client();
    let prepare = async || {
        let redlock = redlock.clone();
        victim(async move {
            let work = async |lease: &Lease| {
                tokio::task::yield_now().await;
                assert!(lease.is_valid());
            };
            redlock.try_acquire("res").with(work).await.unwrap();
        })
    };
    dropped(&fleet, &redlock, prepare).await;
}

async fn an_inspection_may_be_dropped_after_any_poll() {
    let fleet = Fleet::of(3);
    let redlock = fleet.client();
    let prepare = async || {
        let redlock = redlock.clone();
        victim(async move { assert!(redlock.inspect().await.fingerprint.is_some()) })
    };
    for most in numbers_of_polls(&prepare).await {
        polled(prepare().await, most).await;
        redlock.try_acquire("res").await.unwrap().release().await;
    }
    // The key with which an inspection tests a server lives for half a second.
    fleet.empties(SOON).await;
    eventually("only the client's own connections are left", SOON, || {
        fleet.iter().all(|server| server.connections().len() == 1)
    })
    .await;
}

async fn closing_may_be_dropped_after_any_poll() {
    let fleet = Fleet::of(5);
    let prepare = async || {
        let redlock = fleet.client();
        let lease = redlock.try_acquire("res").await.unwrap();
        victim(async move {
            let closed = redlock.close(SOON).await;
            assert!(closed.is_complete(), "{closed:?}");
            assert_eq!(lease.check(Duration::ZERO), Err(LostReason::Closed));
        })
    };
    for most in numbers_of_polls(&prepare).await {
        polled(prepare().await, most).await;
        fleet.empties(SOON).await;
    }
}

async fn waiting_for_the_loss_may_be_dropped_after_any_poll() {
    let fleet = Fleet::of(5);
    let redlock = fleet.client();
    let lease = redlock.try_acquire("res").await.unwrap();
    for most in 0..=5 {
        let lost = lease.lost();
        polled(victim(lost), most).await;
        assert!(lease.check(TTL / 4).is_ok(), "{most} polls");
    }
    fleet.all_hold("res", &lease).await;
    let lost = lease.lost();
    assert_eq!(lease.release().await, Released::Confirmed);
    assert_eq!(lost.await, LostReason::Released);
    assert_eq!(fleet.keys(), [0; 5]);
}
