//! Many tasks that want the same key.

use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use redlock_client::{AcquireErrorKind, Redlock};
use tokio::task::JoinSet;

use crate::fleet::{Fleet, SOON, TTL};
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(a_thousand_tasks_of_one_client_go_in_one_by_one).alone(),
    on_tokio!(a_thousand_tasks_of_many_clients_go_in_one_by_one).alone(),
    on_tokio!(a_crowd_on_idle_servers_is_served).alone(),
    on_tokio!(a_burst_of_acquisitions_is_served).alone(),
];

/// Resource that the lock protects.
#[derive(Default)]
struct Room {
    occupied: AtomicBool,
    visits: AtomicUsize,
}

impl Room {
    async fn visit(&self) {
        assert!(!self.occupied.swap(true, Ordering::SeqCst), "two inside");
        tokio::task::yield_now().await;
        self.visits.fetch_add(1, Ordering::SeqCst);
        assert!(self.occupied.swap(false, Ordering::SeqCst), "somebody else has left");
    }
}

const TASKS: usize = 1_000;

/// More commands at once than a connection takes: the rest waits for its turn.
async fn a_crowd_on_idle_servers_is_served() {
    let fleet = Fleet::of(5);
    let redlock = fleet.client();
    fleet.connect(&redlock).await;
    let each = |place| redlock.try_acquire(format!("own/{place}")).into_future();
    let mut leases = Vec::new();
    for acquiring in all_at_once((0..TASKS).map(each)).await {
        leases.push(acquiring.unwrap());
    }
    for extended in all_at_once(leases.iter().map(|lease| lease.extend(TTL))).await {
        extended.unwrap();
    }
    drop(leases);
    fleet.empties(SOON).await;
}

/// Acquisitions at once; far more than are under way together.
const BURST: usize = 10_000;

/// No attempt times out behind those of other tasks.
async fn a_burst_of_acquisitions_is_served() {
    let fleet = Fleet::of(5);
    let redlock = fleet.client();
    fleet.connect(&redlock).await;
    let mut tasks = JoinSet::new();
    for place in 0..BURST {
        let redlock = redlock.clone();
        tasks.spawn(async move { redlock.acquire(format!("own/{place}")).wait(SOON).await });
    }
    let leases: Vec<_> = tasks.join_all().await.into_iter().map(Result::unwrap).collect();
    drop(leases);
    fleet.empties(SOON).await;
}

/// Polls all of `futures` before it waits for any.
async fn all_at_once<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|it| (Box::pin(it), None)).collect();
    std::future::poll_fn(|context| {
        for (future, output) in waiting.iter_mut().filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(it) = future.as_mut().poll(context) {
                *output = Some(it);
            }
        }
        let done = waiting.iter().all(|(_, output)| output.is_some());
        if done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, output)| output).collect()
}
/// Wait of every tenth task.
const HURRY: Duration = Duration::from_millis(50);
const TIME: Duration = Duration::from_secs(60);

async fn a_thousand_tasks_of_one_client_go_in_one_by_one() {
    crowd(1).await;
}

async fn a_thousand_tasks_of_many_clients_go_in_one_by_one() {
    crowd(8).await;
}

async fn crowd(clients: usize) {
    let fleet = Fleet::of(5);
    let clients: Vec<Redlock> = (0..clients).map(|_| fleet.client()).collect();
    let room = Arc::new(Room::default());
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for number in 0..TASKS {
        let (redlock, room) = (clients[number % clients.len()].clone(), Arc::clone(&room));
        let wait = if number % 10 == 0 { HURRY } else { TIME };
        tasks.spawn(async move {
            match redlock.acquire("room").wait(wait).await {
                Ok(lease) => {
                    room.visit().await;
                    lease.release().await;
                    true
                }
                Err(error) => {
                    use AcquireErrorKind::{Split, Taken, TooFewNodes};
                    // Split and TooFewNodes also occur: the task ahead in line may have got no
                    // better answer so far.
                    assert!(matches!(error.kind(), Taken | Split | TooFewNodes), "{error}");
                    assert_eq!(wait, HURRY, "{error}");
                    false
                }
            }
        });
    }
    let mut visits = 0;
    while let Some(visited) = tasks.join_next().await {
        visits += usize::from(visited.unwrap());
    }
    println!("{visits} of {TASKS} tasks were inside, in {:?}", began.elapsed());
    assert!(visits >= TASKS - TASKS / 10);
    assert_eq!(room.visits.load(Ordering::SeqCst), visits);
    fleet.empties(SOON).await;
}
