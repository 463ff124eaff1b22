//! Locks, sets of locks and semaphores in random crowds of tasks, on nodes in random trouble.

#![expect(clippy::disallowed_methods, reason = "the clock of a test is tokio's")]

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;
use redlock_client::many::LeaseSet;
use redlock_client::testing::Nodes;
use redlock_client::{Acquire, AcquireError, KeepAlive, Lease, Redlock};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::{MS, SECOND};

const LOCKS: [&str; 3] = ["a", "b", "c"];
const POOL: &str = "pool";
const PERMITS: usize = 2;
const FLEET_MAX_TTL: Duration = Duration::from_secs(3);
const NODE_TIMEOUT: Duration = Duration::from_millis(50);

/// One acquisition of a task: its lock, set or permit, its options, and the end of its lease.
#[derive(Clone, Debug)]
struct Round {
    what: What,
    ttl: Duration,
    keep_alive: bool,
    /// None for an acquisition that waits for no other holder.
    wait: Option<Duration>,
    /// Time after which the caller gives the acquisition up.
    patience: Option<Duration>,
    hold: Duration,
    end: End,
    /// Time until the next round.
    pause: Duration,
}

#[derive(Clone, Debug)]
enum What {
    Lock(usize),
    Set(Vec<usize>),
    Permit,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Release,
    Drop,
    LeaveUntilExpiry,
}

#[derive(Clone, Copy, Debug)]
enum Trouble {
    Stop,
    Hang,
    Forget,
    Delay(Duration),
}

/// A crowd on some nodes: each task with its client, each trouble with its beginning, its place
/// and its length.
#[derive(Clone, Debug)]
struct Plan {
    nodes: usize,
    tasks: Vec<(usize, Vec<Round>)>,
    troubles: Vec<(Duration, usize, Trouble, Duration)>,
}

fn ms(range: core::ops::Range<u32>) -> impl Strategy<Value = Duration> + Clone {
    range.prop_map(|it| MS * it)
}

fn rounds() -> impl Strategy<Value = Round> {
    let what = prop_oneof![
        (0..LOCKS.len()).prop_map(What::Lock),
        proptest::sample::subsequence(vec![0, 1, 2], 1..=3).prop_shuffle().prop_map(What::Set),
        Just(What::Permit),
    ];
    let end = prop_oneof![9 => Just(End::Release), 9 => Just(End::Drop), 1 => Just(End::LeaveUntilExpiry)];
    let wait = prop_oneof![1 => Just(None), 3 => ms(1..8_000).prop_map(Some)];
    let patience = prop_oneof![3 => Just(None), 1 => ms(0..500).prop_map(Some)];
    let pause = prop_oneof![Just(Duration::ZERO), ms(0..400)];
    let hold = prop_oneof![ms(0..30), ms(0..2_000)];
    (what, ms(300..3_000), any::<bool>(), wait, patience, hold, end, pause).prop_map(
        |(what, ttl, keep_alive, wait, patience, hold, end, pause)| Round {
            what,
            ttl,
            keep_alive,
            wait,
            patience,
            hold,
            end,
            pause,
        },
    )
}

fn plans() -> impl Strategy<Value = Plan> {
    let nodes = prop_oneof![1 => Just(1_usize), 1 => Just(2), 3 => Just(3), 3 => Just(5)];
    nodes.prop_flat_map(|nodes| {
        let trouble = prop_oneof![
            Just(Trouble::Stop),
            Just(Trouble::Hang),
            Just(Trouble::Forget),
            ms(0..80).prop_map(Trouble::Delay),
        ];
        let troubles = (ms(0..10_000), 0..nodes, trouble, ms(1..3_000));
        let tasks = (0..3_usize, proptest::collection::vec(rounds(), 1..6));
        (proptest::collection::vec(tasks, 1..7), prop_oneof![Just(0..1), Just(1..5)])
            .prop_flat_map(move |(tasks, many)| {
                (Just(tasks), proptest::collection::vec(troubles.clone(), many))
            })
            .prop_map(move |(tasks, troubles)| Plan { nodes, tasks, troubles })
    })
}

/// A lease or a set of leases.
enum Held {
    One(Lease),
    Set(LeaseSet),
}

impl Held {
    /// Returns the lease on `resource`, if there is one.
    fn on(&self, resource: &[u8]) -> Option<&Lease> {
        match self {
            Self::One(lease) => Some(lease).filter(|it| it.resource() == resource),
            Self::Set(leases) => {
                leases.iter().find(|(name, _)| *name == resource).map(|(_, it)| it)
            }
        }
    }

    fn resources(&self) -> Vec<Vec<u8>> {
        match self {
            Self::One(lease) => vec![lease.resource().to_vec()],
            Self::Set(leases) => leases.iter().map(|(name, _)| name.to_vec()).collect(),
        }
    }

    async fn end(self, end: End) {
        match (self, end) {
            (Self::One(lease), End::Release) => drop(lease.release().await),
            (Self::Set(leases), End::Release) => drop(leases.release().await),
            (held, End::Drop) => drop(held),
            (Self::One(lease), End::LeaveUntilExpiry) => drop(lease.leave_until_expiry()),
            (Self::Set(leases), End::LeaveUntilExpiry) => drop(leases.leave_until_expiry()),
        }
    }
}

/// The leases of all tasks.
type Room = Rc<RefCell<Vec<Rc<Held>>>>;

/// Enters the room, where no other lease on the same lock may be valid.
fn enter(room: &Room, held: Held) -> Rc<Held> {
    let held = Rc::new(held);
    for resource in held.resources() {
        let is_valid = |it: &Held| it.on(&resource).is_some_and(Lease::is_valid);
        assert!(
            !is_valid(&held) || !room.borrow().iter().any(|it| is_valid(it)),
            "two leases on {} are valid",
            String::from_utf8_lossy(&resource)
        );
    }
    room.borrow_mut().push(Rc::clone(&held));
    held
}

/// Sets the options of `round`.
fn with_options<'a, W>(acquire: Acquire<'a, W>, round: &Round) -> Acquire<'a, W> {
    let acquire = match round.wait {
        Some(wait) => acquire.wait(wait),
        None => acquire.attempts(1),
    };
    let acquire = acquire.ttl(round.ttl);
    if round.keep_alive { acquire.keep_alive(KeepAlive::at_most(10 * SECOND)) } else { acquire }
}

async fn acquire(redlock: &Redlock, round: &Round) -> Result<Held, AcquireError> {
    let pool = redlock.semaphore(POOL, PERMITS);
    match &round.what {
        What::Lock(place) => {
            with_options(redlock.acquire(LOCKS[*place]), round).await.map(Held::One)
        }
        What::Set(places) => {
            let names = places.iter().map(|&it| LOCKS[it]);
            with_options(redlock.acquire_all(names), round).await.map(Held::Set)
        }
        What::Permit => with_options(pool.acquire(), round).await.map(Held::One),
    }
}

async fn play(redlock: Redlock, rounds: Vec<Round>, room: Room) {
    for round in rounds {
        let begun = Instant::now();
        let acquiring = acquire(&redlock, &round);
        let outcome = match round.patience {
            Some(patience) => timeout(patience, acquiring).await.ok(),
            None => Some(acquiring.await),
        };
        // A pass that has begun is completed: an attempt and a release for each of three locks.
        let latest = round.wait.unwrap_or_default() + 3 * 3 * NODE_TIMEOUT;
        assert!(begun.elapsed() <= latest, "{:?} for {round:?}", begun.elapsed());
        if let Some(Ok(held)) = outcome {
            let held = enter(&room, held);
            sleep(round.hold).await;
            room.borrow_mut().retain(|it| !Rc::ptr_eq(it, &held));
            let held = Rc::into_inner(held).expect("it has left the room");
            held.end(round.end).await;
        }
        sleep(round.pause).await;
    }
}

async fn trouble(nodes: Nodes, begins: Instant, place: usize, trouble: Trouble, lasts: Duration) {
    sleep_until(begins).await;
    match trouble {
        Trouble::Stop => nodes.stop(place),
        Trouble::Hang => nodes.hang(place),
        Trouble::Forget => nodes.forget(place),
        Trouble::Delay(delay) => nodes.delay(place, delay),
    }
    sleep(lasts).await;
    nodes.start(place);
    nodes.delay(place, Duration::ZERO);
}

/// Returns the number of keys of locks and permits on all nodes.
fn keys(nodes: &Nodes) -> usize {
    let names = LOCKS.into_iter().chain(["pool#0", "pool#1"]);
    names.map(|name| nodes.copies(name)).sum()
}

/// Plays the crowd. Afterwards each client gets each lock and each permit, and none leaves a key.
async fn run(plan: Plan) {
    let (nodes, room) = (Nodes::new(plan.nodes), Room::default());
    let client = || {
        let builder = nodes.builder().fleet_max_ttl(FLEET_MAX_TTL).ttl(SECOND);
        builder.node_timeout(NODE_TIMEOUT).build().expect("the settings fit")
    };
    let clients = [client(), client(), client()];
    let leaves = |round: &Round| matches!(round.end, End::LeaveUntilExpiry);
    let is_calm =
        plan.troubles.is_empty() && !plan.tasks.iter().flat_map(|(_, rounds)| rounds).any(leaves);
    let (tasks, begun) = (LocalSet::new(), Instant::now());
    let mut joined = JoinSet::new();
    for (client, rounds) in plan.tasks {
        joined.spawn_local_on(play(clients[client].clone(), rounds, Rc::clone(&room)), &tasks);
    }
    for (at, place, kind, lasts) in plan.troubles {
        joined.spawn_local_on(trouble(nodes.clone(), begun + at, place, kind, lasts), &tasks);
    }
    tasks
        .run_until(async {
            while let Some(ended) = joined.join_next().await {
                ended.expect("no task panics");
            }
        })
        .await;
    if is_calm {
        sleep(NODE_TIMEOUT).await;
        assert_eq!(keys(&nodes), 0, "every lease was released, and every failed attempt");
    }
    sleep(2 * FLEET_MAX_TTL).await;
    for redlock in &clients {
        let all = redlock.acquire_all(LOCKS).wait(SECOND).await.expect("all nodes are back");
        let pool = redlock.semaphore(POOL, PERMITS);
        let mut permits = Vec::new();
        for _ in 0..PERMITS {
            permits.push(pool.acquire().wait(SECOND).await.expect("all permits are free"));
        }
        all.release().await;
        drop(permits);
        sleep(10 * MS).await;
        assert_eq!(keys(&nodes), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_crowds_exclude_each_other_and_leave_nothing(plan in plans()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build();
        runtime.expect("it needs no file descriptor").block_on(run(plan));
    }
}
