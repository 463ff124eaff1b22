//! Runtimes that are blocked, left or missing, and their effect on leases.
//!
//! The tests assert the order of events, never durations.

use std::fs;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use redlock_client::{AcquireErrorKind, KeepAlive, Lease, LostReason, Released};
use tokio::runtime::{Builder, Runtime};

use crate::fleet::{Fleet, SOON, TTL};
use crate::{Test, many_threads, on_threads, one_thread};

pub(crate) const TESTS: &[Test] = &[
    on_threads!(a_blocked_worker_holds_up_no_loss).alone(),
    on_threads!(a_blocked_runtime_holds_up_no_loss_on_another).alone(),
    on_threads!(a_wait_ends_though_the_first_runtime_is_not_polled),
    on_threads!(a_client_in_the_background_extends_beside_a_blocked_runtime).alone(),
    on_threads!(a_client_in_the_background_needs_no_runtime),
    on_threads!(a_background_thread_ends_with_its_client).alone(),
    on_threads!(a_call_without_a_runtime_fails_and_the_next_works),
    on_threads!(leases_that_are_waited_for_cost_no_thread_and_no_file).alone(),
];

const SHORT: Duration = Duration::from_secs(4);

/// Events in the order in which they happened.
#[derive(Clone, Default)]
struct Course(Arc<Mutex<Vec<&'static str>>>);

impl Course {
    fn note(&self, event: &'static str) {
        self.0.lock().unwrap().push(event);
    }

    fn so_far(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

fn build(mut builder: Builder) -> Runtime {
    builder.enable_all().build().unwrap()
}

/// Configuration for leases whose drift, 42 ms, exceeds the time that a busy machine takes to
/// schedule a thread.
fn short_leases(fleet: &Fleet) -> redlock_client::Builder {
    fleet.builder().ttl(SHORT).fleet_max_ttl(SHORT).node_timeout(SHORT / 8)
}

/// Works under `lease` until the lease is over, then notes the end of the work.
async fn work_until_lost(lease: Lease, course: Course) {
    assert_eq!(lease.guard(std::future::pending::<()>()).await, Err(LostReason::DeadlinePassed));
    course.note("the work ended");
}

/// Waits for the lock on its own runtime, as another process would.
fn competitor(fleet: &Fleet, course: Course) -> thread::JoinHandle<()> {
    let redlock = short_leases(fleet).build().unwrap();
    thread::spawn(move || {
        build(one_thread()).block_on(async {
            let lease = redlock.acquire("res").wait(5 * SHORT).await.unwrap();
            course.note("another was granted");
            lease.release().await;
        });
    })
}

/// Polls `future` once, with the waker of the calling task.
async fn poll_once(future: impl Future) {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let _ = future.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

/// Blocks the thread until told to go on, as blocking code in an `async` function does.
fn block(over: &Receiver<()>) {
    let _ = over.recv();
}

fn gate() -> (Sender<()>, Receiver<()>) {
    channel()
}

fn a_blocked_worker_holds_up_no_loss() {
    let (fleet, course) = (Fleet::of(5), Course::default());
    let redlock = short_leases(&fleet).build().unwrap();
    let (go_on, over) = gate();
    let mut workers = Builder::new_multi_thread();
    workers.worker_threads(4);
    let runtime = build(workers);
    let lease = runtime.block_on(redlock.acquire("res").into_future()).unwrap();
    // From here on the client waits for nothing but the end of the lease. The timers of the next
    // acquisition are thus due earlier.
    crate::wait::until("no answer is awaited", SHORT, || lease.remaining() < SHORT * 3 / 4);
    let work = runtime.spawn(work_until_lost(lease, course.clone()));
    // Tasks that the client wakes during this poll are queued on the worker that blocks next.
    runtime.spawn(async move {
        poll_once(redlock.acquire("another").into_future()).await;
        block(&over);
    });
    competitor(&fleet, course.clone()).join().unwrap();
    assert_eq!(course.so_far(), ["the work ended", "another was granted"]);
    go_on.send(()).unwrap();
    runtime.block_on(work).unwrap();
}

fn a_blocked_runtime_holds_up_no_loss_on_another() {
    let (fleet, course) = (Fleet::of(5), Course::default());
    let redlock = short_leases(&fleet).build().unwrap();
    let (go_on, over) = gate();
    let (first, second) = (build(one_thread()), build(many_threads()));
    let lease = first.block_on(redlock.acquire("res").into_future()).unwrap();
    let work = second.spawn(work_until_lost(lease, course.clone()));
    let blocked = thread::spawn(move || first.block_on(async { block(&over) }));
    competitor(&fleet, course.clone()).join().unwrap();
    assert_eq!(course.so_far(), ["the work ended", "another was granted"]);
    go_on.send(()).unwrap();
    blocked.join().unwrap();
    second.block_on(work).unwrap();
}

fn a_wait_ends_though_the_first_runtime_is_not_polled() {
    let fleet = Fleet::of(3);
    let redlock = fleet.builder().node_timeout(Duration::from_millis(50)).build().unwrap();
    let (first, second) = (build(one_thread()), build(one_thread()));
    first.block_on(redlock.acquire("res").into_future()).unwrap().leave_until_expiry();
    let wait = Duration::from_millis(500);
    let outcome = second.block_on(redlock.acquire("another").wait(wait).into_future());
    assert_eq!(outcome.unwrap_err().kind(), AcquireErrorKind::TooFewNodes);
    // The connections are served again as soon as their runtime runs.
    first.block_on(async {
        let lease = redlock.acquire("another").wait(TTL / 2).await.unwrap();
        lease.release().await;
    });
}

fn a_client_in_the_background_extends_beside_a_blocked_runtime() {
    let fleet = Fleet::of(5);
    let redlock = short_leases(&fleet).background_thread().build().unwrap();
    let other = short_leases(&fleet).build().unwrap();
    let (go_on, over) = gate();
    let (blocked, elsewhere) = (build(one_thread()), build(one_thread()));
    let keep_alive = KeepAlive::at_most(10 * SHORT);
    let acquire = redlock.acquire("res").keep_alive(keep_alive);
    let lease = blocked.block_on(acquire.into_future()).unwrap();
    let thread = thread::spawn(move || {
        blocked.block_on(async { block(&over) });
        lease
    });
    let refused = elsewhere.block_on(other.acquire("res").wait(2 * SHORT).into_future());
    assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::Taken);
    go_on.send(()).unwrap();
    let lease = thread.join().unwrap();
    assert!(lease.is_valid());
    block_on(lease.release());
}

fn a_client_in_the_background_needs_no_runtime() {
    let fleet = Fleet::of(5);
    let redlock = fleet.builder().background_thread().build().unwrap();
    let lease = block_on(redlock.acquire("res").into_future()).unwrap();
    block_on(lease.extend(TTL)).unwrap();
    assert_eq!(block_on(lease.release()), Released::Confirmed);
    let inspection = block_on(redlock.inspect());
    assert!(inspection.nodes.iter().all(|node| node.report.is_ok()), "{inspection}");
    assert!(block_on(redlock.close(SOON)).left().is_empty());
}

fn a_background_thread_ends_with_its_client() {
    let fleet = Fleet::of(3);
    let before = tasks_and_files();
    let redlock = fleet.builder().background_thread().build().unwrap();
    assert_eq!(block_on(redlock.acquire("res").into_future()).map(drop), Ok(()));
    assert!(tasks_and_files() > before);
    drop(redlock);
    crate::wait::until("its thread and its files are gone", SOON, || tasks_and_files() <= before);
}

fn a_call_without_a_runtime_fails_and_the_next_works() {
    let fleet = Fleet::of(3);
    let without_network = Builder::new_current_thread().build().unwrap();
    let redlock = fleet.client();
    for _ in 0..2 {
        for outcome in [
            block_on(redlock.acquire("res").into_future()),
            without_network.block_on(redlock.acquire("res").into_future()),
        ] {
            assert_eq!(outcome.unwrap_err().kind(), AcquireErrorKind::NoRuntime);
        }
        let inspection = block_on(redlock.inspect());
        assert!(inspection.nodes.iter().all(|node| node.report.is_err()), "{inspection}");
    }
    let runtime = build(one_thread());
    let lease = runtime.block_on(redlock.acquire("res").into_future()).unwrap();
    assert_eq!(runtime.block_on(lease.release()), Released::Confirmed);
    // The connections now have a runtime that is being polled, so a call needs no runtime of its
    // own.
    let (go_on, over) = tokio::sync::oneshot::channel::<()>();
    let polled = thread::spawn(move || runtime.block_on(over));
    let lease = block_on(redlock.acquire("res").into_future()).unwrap();
    assert_eq!(block_on(lease.release()), Released::Confirmed);
    drop(go_on);
    let _ = polled.join().unwrap();
}

fn leases_that_are_waited_for_cost_no_thread_and_no_file() {
    const LEASES: usize = 10_000;
    let fleet = Fleet::of(3);
    let redlock = fleet.builder().node_timeout(2 * SOON / 5).build().unwrap();
    let runtime = build(many_threads());
    runtime.block_on(async {
        fleet.connect(&redlock).await;
        let before = tasks_and_files();
        let held = redlock.acquire("held").await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        let (stop, _) = tokio::sync::broadcast::channel::<()>(1);
        for place in 0..LEASES {
            let (redlock, mut stopped) = (redlock.clone(), stop.subscribe());
            let own = redlock.acquire(format!("own/{place}")).await.unwrap();
            tasks.spawn(async move {
                let waiting = redlock.acquire("held").wait(TTL);
                tokio::select! {
                    _ = own.lost() => {}
                    _ = waiting.into_future() => {}
                    _ = stopped.recv() => {}
                }
            });
        }
        let ((threads, files), (threads_before, files_before)) = (tasks_and_files(), before);
        assert!(threads <= threads_before, "{threads_before} threads, then {threads}");
        assert!(files < files_before + 16, "{files_before} files, then {files}");
        drop(held);
        stop.send(()).unwrap();
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        assert!(redlock.close(2 * SOON).await.left().is_empty());
    });
}

/// Returns the numbers of threads and of open files of this process.
fn tasks_and_files() -> (usize, usize) {
    let entries = |of| fs::read_dir(format!("/proc/self/{of}")).expect("Linux").count();
    (entries("task"), entries("fd"))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs `future` on this thread, without a runtime.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
