//! Waiting for a lock of another client: events that wake a waiter, and the load on the servers.

use std::time::{Duration, Instant};

use redlock_client::{Lease, Redlock};
use tokio::task::JoinHandle;

use crate::fleet::{Fleet, SOON, TTL, patient};
use crate::server::Server;
use crate::wait::eventually;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(a_wait_costs_a_handful_of_commands),
    on_tokio!(a_release_wakes),
    on_tokio!(an_operator_who_deletes_the_keys_wakes),
    on_tokio!(an_operator_who_empties_the_servers_wakes),
    on_tokio!(a_holder_that_is_gone_is_waited_for_until_its_keys_expire),
    on_tokio!(a_wait_outlives_its_connections),
    on_tokio!(a_user_who_may_not_listen_waits_all_the_same),
    on_tokio!(a_server_without_version_3_is_asked_from_time_to_time),
    on_tokio!(a_table_for_a_single_key_costs_no_storm),
    on_tokio!(waiters_that_listen_and_waiters_that_cannot_are_all_served),
];

/// Time that a waiter needs to fall asleep, and a lease to be watched.
const SETTLED: Duration = Duration::from_secs(1);

/// A task that acquires `res` with `redlock` and returns the lease.
fn waiter(redlock: &Redlock) -> JoinHandle<Lease> {
    let redlock = redlock.clone();
    tokio::spawn(async move { redlock.acquire("res").wait(4 * TTL).await.expect("it is freed") })
}

/// Number of commands of locks and of waits that the servers have executed.
fn commands(fleet: &Fleet) -> usize {
    let of = |server: &Server| {
        ["set", "pttl", "client|caching"].map(|it| server.calls(it)).iter().sum::<usize>()
    };
    fleet.iter().map(of).sum()
}

/// A fleet whose lock one client holds and another, connected, waits for; the waiter is asleep.
async fn asleep() -> (Fleet, Lease, Redlock, JoinHandle<Lease>) {
    let fleet = Fleet::of(3);
    let (one, other) = (fleet.client(), fleet.client());
    fleet.connect(&one).await;
    fleet.connect(&other).await;
    let held = one.acquire("res").await.unwrap();
    let waiting = waiter(&other);
    tokio::time::sleep(SETTLED).await;
    (fleet, held, other, waiting)
}

async fn a_wait_costs_a_handful_of_commands() {
    let (fleet, held, _, waiting) = asleep().await;
    let before = commands(&fleet);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(commands(&fleet), before, "a waiter that sleeps says nothing");
    held.release().await;
    waiting.await.unwrap().release().await;
    let asked = commands(&fleet) - before;
    assert!(asked <= 30, "{asked} commands to take the lock over");
}

async fn a_release_wakes() {
    let (_fleet, held, _, waiting) = asleep().await;
    let released = Instant::now();
    held.release().await;
    drop(waiting.await.unwrap());
    assert!(released.elapsed() < TTL / 4, "{:?}", released.elapsed());
}

async fn an_operator_who_deletes_the_keys_wakes() {
    let (fleet, held, _, waiting) = asleep().await;
    let deleted = Instant::now();
    fleet.iter().for_each(|server| server.ask::<()>("DEL res"));
    drop(waiting.await.unwrap());
    assert!(deleted.elapsed() < TTL / 4, "{:?}", deleted.elapsed());
    drop(held);
}

async fn an_operator_who_empties_the_servers_wakes() {
    let (fleet, held, _, waiting) = asleep().await;
    let (emptied, ends) = (Instant::now(), Instant::now() + held.remaining());
    fleet.iter().for_each(|server| server.ask::<()>("FLUSHALL"));
    // The servers are in quarantine for a TTL, and vote after it.
    let lease = waiting.await.unwrap();
    assert!(emptied.elapsed() < 2 * TTL, "{:?}", emptied.elapsed());
    assert!(Instant::now() >= ends, "two holders");
    lease.release().await;
}

async fn a_holder_that_is_gone_is_waited_for_until_its_keys_expire() {
    let fleet = Fleet::of(3);
    let (one, other) = (fleet.client(), fleet.client());
    let ttl = Duration::from_secs(5);
    let held = one.acquire("res").ttl(ttl).await.unwrap();
    let until = Instant::now() + held.remaining();
    held.leave_until_expiry();
    let waiting = waiter(&other);
    tokio::time::sleep(SETTLED).await;
    let before = commands(&fleet);
    drop(waiting.await.unwrap());
    assert!(Instant::now() >= until, "two holders");
    assert!(until.elapsed() < TTL / 4, "{:?}", until.elapsed());
    assert!(commands(&fleet) - before <= 60, "{}", commands(&fleet) - before);
}

async fn a_wait_outlives_its_connections() {
    let (fleet, held, _, waiting) = asleep().await;
    for server in fleet.iter() {
        server.ask::<()>("CLIENT KILL TYPE normal SKIPME yes");
    }
    for server in fleet.iter() {
        eventually("both clients are back", SOON, || server.connections().len() == 2).await;
    }
    tokio::time::sleep(SETTLED).await;
    let released = Instant::now();
    held.release().await;
    drop(waiting.await.unwrap());
    assert!(released.elapsed() < TTL / 4, "{:?}", released.elapsed());
}

async fn a_user_who_may_not_listen_waits_all_the_same() {
    for missing in ["-client|tracking", "-client|caching"] {
        let server = Server::start(&[]);
        server.ask::<()>(&format!("ACL SETUSER locker on >secret ~* +@all {missing}"));
        let url = server.url().replace("redis://", "redis://locker:secret@");
        waits_without_pushes(&server, vec![url]).await;
    }
}

async fn a_server_without_version_3_is_asked_from_time_to_time() {
    let server = Server::start(&["--rename-command", "HELLO", ""]);
    waits_without_pushes(&server, vec![server.url()]).await;
}

/// Checks that a waiter that no push can wake asks rarely, and gets the lock.
async fn waits_without_pushes(server: &Server, urls: Vec<String>) {
    let build = || patient(urls.clone()).build().unwrap();
    let (one, other) = (build(), build());
    let held = one.acquire("res").await.unwrap();
    let waiting = waiter(&other);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = server.calls("set");
    assert!((10..200).contains(&asked), "{asked} attempts in three seconds");
    let released = Instant::now();
    held.release().await;
    drop(waiting.await.unwrap());
    assert!(released.elapsed() < TTL / 4, "{:?}", released.elapsed());
}

/// Each look of one waiter drops the registration of the other, which is told that its key has
/// changed.
async fn a_table_for_a_single_key_costs_no_storm() {
    let server = Server::start(&["--tracking-table-max-keys", "1"]);
    let build = || patient(vec![server.url()]).build().unwrap();
    let (one, other) = (build(), build());
    let held = [one.acquire("a").await.unwrap(), one.acquire("b").await.unwrap()];
    let wait = |name: &'static str| {
        let redlock = other.clone();
        tokio::spawn(async move { redlock.acquire(name).wait(4 * TTL).await.expect("it is freed") })
    };
    let waiting = [wait("a"), wait("b")];
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = server.calls("pttl");
    assert!(asked < 300, "{asked} looks in three seconds");
    held.into_iter().for_each(drop);
    for waiting in waiting {
        waiting.await.unwrap().release().await;
    }
}

async fn waiters_that_listen_and_waiters_that_cannot_are_all_served() {
    let fleet = Fleet::of(3);
    for server in fleet.iter() {
        server.ask::<()>("ACL SETUSER deaf on >secret ~* +@all -client|tracking");
    }
    let deaf = fleet.urls().into_iter().map(|it| it.replace("redis://", "redis://deaf:secret@"));
    let deaf: Vec<String> = deaf.collect();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..6 {
        let redlock = if number % 3 == 0 { patient(deaf.clone()) } else { fleet.builder() };
        let redlock = redlock.build().unwrap();
        tasks.spawn(async move {
            for _ in 0..20 {
                let lease = redlock.acquire("res").wait(6 * TTL).await.expect("nobody starves");
                tokio::time::sleep(Duration::from_millis(2)).await;
                lease.release().await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}
