//! A server that hangs while the client works at full rate.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use redlock_client::Redlock;
use tokio::task::JoinSet;

use crate::fleet::{Fleet, SOON};
use crate::wait::eventually;
use crate::{Test, is_thorough, on_tokio};

pub(crate) const TESTS: &[Test] =
    &[on_tokio!(a_server_that_hangs_costs_no_memory_and_leaves_nothing).alone()];

const TTL: Duration = Duration::from_secs(2);
const TASKS: usize = 64;
const GROWTH_MAX: usize = 8 << 20;

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    let kibibytes = line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number");
    kibibytes << 10
}

/// Runs cycles, each with a new name, until told to stop.
async fn work(redlock: Redlock, task: usize, cycles: Arc<AtomicUsize>, over: Arc<AtomicBool>) {
    while !over.load(Ordering::Relaxed) {
        let cycle = cycles.fetch_add(1, Ordering::Relaxed);
        let lease = redlock.acquire(format!("{task}/{cycle}")).await;
        lease.unwrap_or_else(|error| panic!("{error}")).release().await;
    }
}

async fn a_server_that_hangs_costs_no_memory_and_leaves_nothing() {
    let fleet = Fleet::of(5);
    let redlock = fleet.builder().ttl(TTL).fleet_max_ttl(TTL).node_timeout(TTL / 40);
    let redlock = redlock.build().unwrap();
    let (cycles, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(work(redlock.clone(), task, Arc::clone(&cycles), Arc::clone(&over)));
    }
    eventually("everything is warm", SOON, || cycles.load(Ordering::Relaxed) > 2_000).await;
    let (before, cycles_before) = (resident_bytes(), cycles.load(Ordering::Relaxed));
    fleet[0].stop();
    let hangs = Duration::from_secs(if is_thorough() { 30 } else { 5 });
    let mut most = before;
    let _ = crate::wait::comes_true(hangs, || {
        most = most.max(resident_bytes());
        false
    })
    .await;
    let done = cycles.load(Ordering::Relaxed) - cycles_before;
    println!("{done} cycles in {hangs:?}; memory grew by {} KiB", (most - before) >> 10);
    over.store(true, Ordering::Relaxed);
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert!(most - before < GROWTH_MAX, "{before} bytes, then {most}");
    assert!(done > 1_000, "only {done} cycles: the others do not wait for it");
    fleet[0].cont();
    fleet.empties(TTL + SOON).await;
}
