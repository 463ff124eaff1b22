//! Several locks at once and semaphores, on real servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redlock_client::{AcquireErrorKind, Released};
use tokio::task::JoinSet;

use crate::fleet::{Fleet, SOON, TTL};
use crate::{Test, on_threads, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(all_locks_are_on_every_server_or_none_is),
    on_tokio!(clients_with_opposite_orders_all_get_their_locks),
    on_tokio!(permits_bound_the_holders_and_are_handed_on),
    on_threads!(threads_lock_more_than_one_thing),
];

const WAIT: Duration = Duration::from_secs(60);

/// Number of those inside, and the largest there was.
#[derive(Default)]
struct Room {
    inside: AtomicUsize,
    most: AtomicUsize,
    visits: AtomicUsize,
}

impl Room {
    async fn visit(&self) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.visits.fetch_add(1, Ordering::SeqCst);
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn all_locks_are_on_every_server_or_none_is() {
    let fleet = Fleet::of(3);
    let (redlock, other) = (fleet.client(), fleet.client());
    fleet.connect(&redlock).await;
    let leases = redlock.acquire_all(["c", "a", "b"]).await.unwrap();
    for (name, lease) in leases.iter() {
        fleet.all_hold(std::str::from_utf8(name).unwrap(), lease).await;
    }
    let error = other.try_acquire_all(["x", "b", "d"]).await.unwrap_err();
    assert_eq!((error.kind(), error.resource()), (AcquireErrorKind::Taken, Some(&b"b"[..])));
    assert!(leases.extend(TTL).await.is_ok());
    assert_eq!(leases.release().await, Released::Confirmed);
    fleet.empties(SOON).await;
    assert!(other.try_acquire_all(["x", "b", "d"]).await.is_ok());
    fleet.empties(SOON).await;
}

async fn clients_with_opposite_orders_all_get_their_locks() {
    let fleet = Fleet::of(3);
    let room = Arc::new(Room::default());
    let mut tasks = JoinSet::new();
    for number in 0..6 {
        let (redlock, room) = (fleet.client(), Arc::clone(&room));
        let names = if number % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
        tasks.spawn(async move {
            for _ in 0..5 {
                let leases = redlock.acquire_all(names).wait(WAIT).await.unwrap();
                room.visit().await;
                leases.release().await;
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert_eq!(room.visits.load(Ordering::SeqCst), 30);
    assert_eq!(room.most.load(Ordering::SeqCst), 1);
    fleet.empties(SOON).await;
}

async fn permits_bound_the_holders_and_are_handed_on() {
    let fleet = Fleet::of(3);
    let room = Arc::new(Room::default());
    let mut tasks = JoinSet::new();
    for _ in 0..6 {
        let (pool, room) = (fleet.client().semaphore("pool", 2), Arc::clone(&room));
        tasks.spawn(async move {
            for _ in 0..5 {
                let permit = pool.acquire().wait(WAIT).await.unwrap();
                room.visit().await;
                permit.release().await;
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert_eq!(room.visits.load(Ordering::SeqCst), 30);
    assert!(room.most.load(Ordering::SeqCst) <= 2);
    fleet.empties(SOON).await;
}

fn threads_lock_more_than_one_thing() {
    let fleet = Fleet::of(3);
    let redlock = fleet.builder().build_blocking().unwrap();
    let pool = redlock.semaphore("pool", 1);
    let both = redlock.acquire_all(["a", "b"]).block().unwrap();
    let permit = pool.acquire().block().unwrap();
    assert!(both.is_valid() && permit.is_valid());
    assert_eq!(pool.try_acquire().block().unwrap_err().kind(), AcquireErrorKind::Taken);
    assert_eq!(both.release(), Released::Confirmed);
    assert_eq!(permit.release(), Released::Confirmed);
    let names = redlock.acquire_all(["a", "b"]).with(|leases| leases.remaining() < TTL);
    assert_eq!(names, Ok(true));
    assert!(redlock.close(SOON).is_complete());
}
