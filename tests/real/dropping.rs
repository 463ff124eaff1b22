//! Leases, acquisitions and clients that are dropped at any point, and runtimes that end while a
//! client is in use.

use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use redlock_client::{LostReason, Redlock, Released};
use tokio::runtime::Runtime;

use crate::fleet::{Fleet, SOON, TTL};
use crate::wait::{eventually, until};
use crate::{Test, on_threads};

pub(crate) const TESTS: &[Test] = &[
    on_threads!(a_lease_may_be_dropped_outside_of_any_runtime),
    on_threads!(a_lease_may_be_dropped_in_another_thread),
    on_threads!(a_lease_may_be_dropped_by_a_panic),
    on_threads!(a_lease_may_be_dropped_after_its_runtime_has_ended),
    on_threads!(a_lease_may_be_dropped_with_its_runtime),
    on_threads!(a_static_client_serves_one_runtime_after_the_other),
    on_threads!(a_static_client_serves_two_runtimes_at_once),
    on_threads!(a_waiter_outlives_the_runtime_that_served_it),
    on_threads!(lease_is_lost_in_time_although_its_runtime_has_ended),
];

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("a runtime")
}

/// Runs `future` on `runtime`. Panics if it takes so long that it must hang.
fn on<T>(runtime: &Runtime, future: impl Future<Output = T>) -> T {
    runtime.block_on(async {
        tokio::time::timeout(2 * TTL, future).await.expect("somebody is to wake the future")
    })
}

fn is_empty(fleet: &Fleet) -> bool {
    fleet.keys().iter().all(|&keys| keys == 0)
}

fn a_lease_may_be_dropped_outside_of_any_runtime() {
    let fleet = Fleet::of(3);
    let (runtime, redlock) = (runtime(), fleet.client());
    let lease = on(&runtime, async { redlock.acquire("res").await.unwrap() });
    drop(lease);
    until("the lease is released", SOON, || is_empty(&fleet));
}

fn a_lease_may_be_dropped_in_another_thread() {
    let fleet = Fleet::of(3);
    let (runtime, redlock) = (runtime(), fleet.client());
    let lease = on(&runtime, async { redlock.acquire("res").await.unwrap() });
    thread::spawn(move || drop(lease)).join().expect("it does not panic");
    until("the lease is released", SOON, || is_empty(&fleet));
}

fn a_lease_may_be_dropped_by_a_panic() {
    let fleet = Fleet::of(3);
    let (runtime, redlock) = (runtime(), fleet.client());
    let work = async {
        let _lease = redlock.acquire("res").await.unwrap();
        panic::resume_unwind(Box::new("the work has failed"));
    };
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| on(&runtime, work)));
    assert!(outcome.is_err());
    until("the lease is released", SOON, || is_empty(&fleet));
    let lease = on(&runtime, async { redlock.try_acquire("res").await.unwrap() });
    assert_eq!(on(&runtime, lease.release()), Released::Confirmed);
}

/// No task can send the release until the client is used again.
fn a_lease_may_be_dropped_after_its_runtime_has_ended() {
    let fleet = Fleet::of(3);
    let redlock = fleet.client();
    let first = runtime();
    let lease = on(&first, async {
        let lease = redlock.acquire("res").await.unwrap();
        fleet.all_hold("res", &lease).await;
        lease
    });
    drop(first);
    assert!(lease.is_valid(), "the keys are still there");
    assert_eq!(fleet.keys(), [1; 3]);
    drop(lease);
    let second = runtime();
    on(&second, async { redlock.acquire("res").wait(SOON).await.unwrap().release().await });
    until("the leases are released", SOON, || is_empty(&fleet));
}

fn a_lease_may_be_dropped_with_its_runtime() {
    let fleet = Fleet::of(3);
    let redlock = fleet.client();
    let first = runtime();
    let (client, (tell, told)) = (redlock.clone(), std::sync::mpsc::channel());
    first.spawn(async move {
        let lease = client.acquire("res").await.unwrap();
        tell.send(()).unwrap();
        lease.lost().await;
    });
    told.recv().unwrap();
    drop(first);
    for server in &*fleet {
        let ttl_ms: i64 = server.ask("PTTL res");
        assert!(ttl_ms == -2 || (0..=TTL.as_millis() as i64).contains(&ttl_ms), "{ttl_ms}");
    }
    let second = runtime();
    on(&second, async { redlock.acquire("res").wait(SOON).await.unwrap().release().await });
    until("the leases are released", SOON, || is_empty(&fleet));
    drop(redlock);
}

fn a_static_client_serves_one_runtime_after_the_other() {
    static REDLOCK: OnceLock<Redlock> = OnceLock::new();
    let fleet = Fleet::of(3);
    let redlock = REDLOCK.get_or_init(|| fleet.client());
    for _ in 0..3 {
        let runtime = runtime();
        for _ in 0..3 {
            let lease = on(&runtime, async { redlock.acquire("res").await.unwrap() });
            drop(lease);
        }
    }
    let last = runtime();
    on(&last, async { redlock.acquire("res").await.unwrap().release().await });
    until("the leases are released", SOON, || is_empty(&fleet));
}

fn a_static_client_serves_two_runtimes_at_once() {
    static REDLOCK: OnceLock<Redlock> = OnceLock::new();
    static INSIDE: AtomicBool = AtomicBool::new(false);
    let fleet = Fleet::of(3);
    let redlock = REDLOCK.get_or_init(|| fleet.client());
    let work = || {
        let runtime = runtime();
        for _ in 0..50 {
            on(&runtime, async {
                let lease = redlock.acquire("res").await.unwrap();
                assert!(!INSIDE.swap(true, Ordering::SeqCst), "two inside");
                INSIDE.store(false, Ordering::SeqCst);
                lease.release().await;
            });
        }
    };
    let other = thread::spawn(work);
    work();
    other.join().expect("it does not panic");
    // Releases left undone by a runtime that ended are sent on the next one.
    let last = runtime();
    on(&last, async { redlock.acquire("res").await.unwrap().release().await });
    until("the leases are released", SOON, || is_empty(&fleet));
}

/// The client's tasks run on the runtime that first used the client.
fn a_waiter_outlives_the_runtime_that_served_it() {
    let fleet = Fleet::of(3);
    let (redlock, holder) = (fleet.client(), fleet.client());
    let (first, second) = (runtime(), runtime());
    let lease = on(&second, async { holder.acquire("res").await.unwrap() });
    on(&first, fleet.connect(&redlock));
    let waiting = redlock.clone();
    let waiting = second.spawn(async move { waiting.acquire("res").await });
    on(&second, async {
        // One SET by `connect`, one by the holder, and two failed ones by the waiter.
        eventually("somebody waits", SOON, || fleet[0].calls("set") >= 4).await;
    });
    drop(first);
    on(&second, lease.release());
    let lease = on(&second, waiting).unwrap().unwrap();
    assert_eq!(on(&second, lease.release()), Released::Confirmed);
}

fn lease_is_lost_in_time_although_its_runtime_has_ended() {
    let fleet = Fleet::of(3);
    let (first, second) = (runtime(), runtime());
    let ttl = Duration::from_secs(2);
    let redlock = fleet.builder().node_timeout(ttl / 8).build().unwrap();
    on(&first, fleet.connect(&redlock));
    let lease = on(&second, async { redlock.acquire("res").ttl(ttl).await.unwrap() });
    let lost = second.spawn(lease.lost());
    // Polls `lost` once, so that it sleeps.
    on(&second, tokio::task::yield_now());
    drop(first);
    assert_eq!(on(&second, lost).unwrap(), LostReason::DeadlinePassed);
}
