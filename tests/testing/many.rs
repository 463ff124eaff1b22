//! Several locks at once and semaphores under contention, on nodes with delays.

#![expect(clippy::disallowed_methods, reason = "the clock of a test is tokio's")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use redlock_client::testing::Nodes;
use redlock_client::{AcquireErrorKind, Redlock};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep};

use crate::{MS, SECOND};

const MINUTE: Duration = Duration::from_secs(60);

const CLIENTS: usize = 6;

/// Resources in use, and the number of times that each client was served.
#[derive(Default)]
struct Room {
    inside: BTreeMap<&'static str, usize>,
    most: usize,
    served: [usize; CLIENTS],
}

impl Room {
    fn enter(&mut self, client: usize, resources: &[&'static str]) {
        for resource in resources {
            let inside = self.inside.entry(resource).or_default();
            *inside += 1;
            self.most = self.most.max(*inside);
        }
        self.served[client] += 1;
    }

    fn leave(&mut self, resources: &[&'static str]) {
        resources.iter().for_each(|resource| *self.inside.get_mut(resource).unwrap() -= 1);
    }
}

/// Nodes whose replies take a while, and not all as long.
fn slow_nodes() -> Nodes {
    let nodes = Nodes::new(3);
    (0..3).for_each(|place| nodes.delay(place, MS * (place as u32 + 1)));
    nodes
}

/// Lets one node after another hang for a while.
async fn trouble(nodes: Nodes) {
    for place in (0..3).cycle() {
        nodes.advance(3 * SECOND).await;
        nodes.hang(place);
        nodes.advance(SECOND).await;
        nodes.start(place);
    }
}

/// Runs `work` for each of the clients until `time` is over. Returns what happened in the room.
async fn crowd<F>(time: Duration, work: impl Fn(Redlock, usize, Rc<RefCell<Room>>) -> F) -> Room
where
    F: Future<Output = ()> + 'static,
{
    let (nodes, room) = (slow_nodes(), Rc::new(RefCell::new(Room::default())));
    let (tasks, ends) = (LocalSet::new(), Instant::now() + time);
    let mut joined = JoinSet::new();
    for client in 0..CLIENTS {
        let (redlock, room) = (nodes.client(), Rc::clone(&room));
        let work = work(redlock, client, room);
        joined.spawn_local_on(
            async move {
                let _over = tokio::time::timeout_at(ends, work).await;
            },
            &tasks,
        );
    }
    let until = tokio::time::timeout_at(ends, trouble(nodes));
    joined.spawn_local_on(async move { drop(until.await) }, &tasks);
    tasks.run_until(async { while joined.join_next().await.is_some() {} }).await;
    drop(tasks);
    Rc::into_inner(room).expect("all tasks have ended").into_inner()
}

/// Sets of resources in orders of all kinds.
const SETS: [&[&str]; CLIENTS] =
    [&["a", "b"], &["b", "a"], &["b", "c", "a"], &["c", "b"], &["d", "a"], &["c", "d"]];

#[tokio::test(start_paused = true)]
async fn overlapping_sets_exclude_each_other_and_all_are_served() {
    let room = crowd(MINUTE / 2, |redlock, client, room| async move {
        let resources = SETS[client];
        loop {
            let leases = redlock.acquire_all(resources.iter().copied()).wait(MINUTE);
            let leases = leases.await.expect("a minute is long");
            room.borrow_mut().enter(client, resources);
            sleep(20 * MS).await;
            room.borrow_mut().leave(resources);
            leases.release().await;
        }
    })
    .await;
    println!("sets: {:?}", room.served);
    assert_eq!(room.most, 1, "one holder of each lock");
    assert!(room.served.iter().all(|&times| times > 0), "{:?}", room.served);
}

#[tokio::test(start_paused = true)]
async fn clients_of_a_semaphore_share_its_permits() {
    let room = crowd(MINUTE / 2, |redlock, client, room| async move {
        let pool = redlock.semaphore("pool", 3);
        loop {
            let permit = pool.acquire().wait(MINUTE).await.expect("a minute is long");
            room.borrow_mut().enter(client, &["pool"]);
            sleep(20 * MS).await;
            room.borrow_mut().leave(&["pool"]);
            permit.release().await;
        }
    })
    .await;
    println!("permits: {:?}", room.served);
    assert_eq!(room.most, 3, "all permits are used, and no more");
    assert!(room.served.iter().all(|&times| times > 0), "{:?}", room.served);
}

#[tokio::test(start_paused = true)]
async fn nested_calls_in_opposite_orders_block_until_a_wait_ends() {
    let nodes = slow_nodes();
    let (one, other) = (nodes.client(), nodes.client());
    let nested = async |redlock: &Redlock, first, second| {
        let _outer = redlock.acquire(first).await.unwrap();
        sleep(100 * MS).await;
        redlock.acquire(second).wait(SECOND).await.map(drop).map_err(|error| error.kind())
    };
    let begun = Instant::now();
    let (first, second) = tokio::join!(nested(&one, "a", "b"), nested(&other, "b", "a"));
    assert!([first, second].contains(&Err(AcquireErrorKind::Taken)), "{first:?} {second:?}");
    assert!(begun.elapsed() >= SECOND);
}
