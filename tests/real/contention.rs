//! Many tasks, one key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use redlock_client::{AcquireErrorKind, Redlock};
use tokio::task::JoinSet;

use crate::fleet::{Fleet, SOON};
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(a_thousand_tasks_of_one_client_go_in_one_by_one).alone(),
    on_tokio!(a_thousand_tasks_of_many_clients_go_in_one_by_one).alone(),
];

/// What the lock protects.
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
/// Every tenth task is in a hurry.
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
                    assert_eq!(error.kind(), AcquireErrorKind::Taken);
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
