//! Clients of two versions on the same real servers: the version under test writes canaries, the
//! version before it did not.

#![allow(dead_code, reason = "the modules of the other tests on real servers are used in part")]
#![expect(clippy::disallowed_methods, reason = "the real world is what is tested here")]
#![expect(clippy::disallowed_types, reason = "the real world is what is tested here")]

#[path = "../real/fleet.rs"]
mod fleet;
#[path = "../real/server.rs"]
mod server;
#[path = "../real/wait.rs"]
mod wait;
#[path = "../real/wreck.rs"]
mod wreck;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use redlock_client::{Redlock, Standing};
use tokio::task::JoinSet;

use fleet::{Fleet, SOON, TTL};
use server::CANARY;
use wait::eventually;
use wreck::{Dice, seed, wreck};

/// Number of workers of each version.
const WORKERS: u64 = 4;

/// Work of all workers of both versions.
#[derive(Default)]
struct Work {
    /// Incremented by a read and a later write, which only the lock guards.
    counter: AtomicU64,
    is_over: AtomicBool,
}

/// Defines, in a module `$version`, a client that is promised nothing about the nodes' memory, and
/// the worker that uses it: only what both versions offer under the same names.
macro_rules! version {
    ($version:ident, $crate_name:ident) => {
        mod $version {
            use super::*;
            use $crate_name::{Redlock, RestartGuard};

            pub(crate) fn client(urls: Vec<String>, ttl: Duration) -> Redlock {
                let guarded = Redlock::builder().restart_guard(RestartGuard::Quarantine);
                let timed = guarded.ttl(ttl).fleet_max_ttl(ttl).node_timeout(ttl / 10);
                timed.nodes(urls).build().unwrap()
            }

            /// Increments the counter again and again. Returns the number of increments.
            pub(crate) async fn work(redlock: Redlock, work: Arc<Work>, mut dice: Dice) -> u64 {
                let mut written = 0;
                while !work.is_over.load(Ordering::SeqCst) {
                    let Ok(lease) = redlock.acquire("counter").wait(wreck::TTL / 2).await else {
                        continue;
                    };
                    let value = work.counter.load(Ordering::SeqCst);
                    // Another worker that is wrongly inside would read the same value meanwhile.
                    tokio::time::sleep(dice.up_to(Duration::from_millis(20))).await;
                    if lease.check(wreck::TTL / 4).is_ok() {
                        work.counter.store(value + 1, Ordering::SeqCst);
                        written += 1;
                    }
                    match dice.roll(2) {
                        0 => drop(lease),
                        _ => drop(lease.release().await),
                    }
                }
                written
            }
        }
    };
}
version!(before, redlock_before);
version!(now, redlock_client);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_update_is_lost_while_servers_come_and_go() {
    let seed = seed();
    println!("REDLOCK_SOAK_SEED={seed} repeats the choices of this run");
    let mut fleet = Fleet::of(5);
    let work = Arc::new(Work::default());
    let [mut before, mut now] = [(); 2].map(|()| JoinSet::new());
    for worker in 1..=WORKERS {
        let dice = |version: u64| Dice(seed ^ worker << 32 ^ version << 48);
        let client = before::client(fleet.urls(), wreck::TTL);
        before.spawn(before::work(client, Arc::clone(&work), dice(1)));
        let client = now::client(fleet.urls(), wreck::TTL);
        now.spawn(now::work(client, Arc::clone(&work), dice(2)));
    }
    let is_thorough = std::env::var_os("CI").is_some_and(|value| value == "true");
    let lasts = Duration::from_secs(if is_thorough { 60 } else { 5 });
    let [stops, kills, restarts] = wreck(&mut fleet, &mut Dice(seed), lasts).await;
    let marked = || canaries(&fleet).iter().all(Option::is_some);
    eventually("every server has a canary", SOON, marked).await;
    work.is_over.store(true, Ordering::SeqCst);
    let written = [before.join_all().await, now.join_all().await];
    let [before, now] = written.map(|each| each.iter().sum::<u64>());
    println!(
        "{before} updates by the version before and {now} by this one, \
         in spite of {stops} stops, {kills} kills and {restarts} restarts"
    );
    assert_eq!(work.counter.load(Ordering::SeqCst), before + now, "updates were lost");
    assert!(before > 0 && now > 0, "a version never got in");
}

#[tokio::test]
async fn a_version_is_refused_while_the_other_one_holds() {
    let fleet = Fleet::of(5);
    let (before, now) = acquainted(&fleet).await;
    let lease = before.try_acquire("res").await.unwrap();
    let error = now.try_acquire("res").await.unwrap_err();
    assert_eq!(error.kind(), redlock_client::AcquireErrorKind::Taken, "{error}");
    lease.release().await;
    let lease = now.try_acquire("res").await.unwrap();
    let error = before.try_acquire("res").await.unwrap_err();
    assert_eq!(error.kind(), redlock_before::AcquireErrorKind::Taken, "{error}");
    lease.release().await;
    before.try_acquire("res").await.unwrap().release().await;
}

#[tokio::test]
async fn only_a_restart_is_quarantined_beside_the_version_before() {
    let mut fleet = Fleet::of(5);
    let (before, now) = acquainted(&fleet).await;
    let canaries_before = canaries(&fleet);
    assert!(canaries_before.iter().all(Option::is_some), "{canaries_before:?}");
    before.try_acquire("res").await.unwrap().release().await;
    drop(before);
    let before = before::client(fleet.urls(), TTL);
    before.acquire("res").wait(2 * TTL).await.unwrap().release().await;
    all_count(&now).await;
    fleet[0].restart();
    // A client of this version that starts now believes the other four at once.
    let late = now::client(fleet.urls(), TTL);
    late.try_acquire("res").await.unwrap().release().await;
    now.try_acquire("res").await.unwrap().release().await;
    before.try_acquire("res").await.unwrap().release().await;
    for redlock in [&now, &late] {
        let is_right = || {
            let standings = standings(redlock);
            matches!(standings[0], Standing::Quarantined(_))
                && standings[1..].iter().all(|it| *it == Standing::Counts)
        };
        eventually("only the restarted server is quarantined", SOON, is_right).await;
    }
    let canaries = canaries(&fleet);
    assert_eq!(canaries[1..], canaries_before[1..]);
    assert_ne!(canaries[0], canaries_before[0]);
}

/// Returns a client of each version, for both of which every server counts.
async fn acquainted(fleet: &Fleet) -> (redlock_before::Redlock, Redlock) {
    let before = before::client(fleet.urls(), TTL);
    let now = now::client(fleet.urls(), TTL);
    now.acquire("first").wait(2 * TTL).await.unwrap().release().await;
    before.acquire("first").wait(2 * TTL).await.unwrap().release().await;
    let counts = |it: &redlock_before::NodeHealth| it.standing == redlock_before::Standing::Counts;
    let all_count_before = || before.health().nodes.iter().all(counts);
    eventually("every server counts for the version before", SOON, all_count_before).await;
    all_count(&now).await;
    (before, now)
}

async fn all_count(redlock: &Redlock) {
    let all_count = || standings(redlock).iter().all(|it| *it == Standing::Counts);
    eventually("every server counts", SOON, all_count).await;
}

fn standings(redlock: &Redlock) -> Vec<Standing> {
    redlock.health().nodes.iter().map(|it| it.standing).collect()
}

/// Content of the canary on each server.
fn canaries(fleet: &Fleet) -> Vec<Option<String>> {
    fleet.iter().map(|server| server.ask(&format!("GET {CANARY}"))).collect()
}
