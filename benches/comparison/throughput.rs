//! Throughput of many tasks in cycles per second, each task with its own keys.

use core::fmt::Write;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::ROUNDS;
use crate::clients::{Client, Ours, Peer};
use crate::process;
use crate::raw::Raw;
use crate::report::{Demand, Report, Rounds, heading};
use crate::servers::Servers;

const NODES: usize = 5;
const TASKS: usize = 64;
const WORKERS: usize = 2;
const WARM_UP: Duration = Duration::from_millis(200);
const MEASURED: Duration = Duration::from_millis(1_200);
/// Length of a turn in a comparison of two builds (`pairs`).
const SLICE: Duration = Duration::from_millis(60);
const COUNTED: Duration = Duration::from_millis(200);

/// Figures of all rounds of one client.
#[derive(Default)]
struct Figures {
    cycles: Rounds,
    client_us: Rounds,
    server_us: Rounds,
    allocations: Rounds,
}

pub(crate) fn run(servers: &mut Servers, report: &mut Report) {
    heading(
        "throughput",
        "n = 5, 64 tasks on keys of their own, 2 worker threads; a cycle is acquire and release, \
         and ends when all releases are answered",
    );
    let [mut ours, mut peer, mut raw] = [(); 3].map(|()| Figures::default());
    for round in 1..=ROUNDS {
        let urls = servers.urls(NODES);
        measure(round, servers, Ours::connect(urls.clone()), &mut ours);
        measure(round, servers, Peer::connect(urls), &mut peer);
        let ports = servers.ports(NODES);
        measure(round, servers, Raw::connect(&ports, TASKS), &mut raw);
    }
    let row = |of: fn(&Figures) -> &Rounds| [&ours, &peer, &raw].map(|it| of(it).to_string());
    report.row("throughput, cycles/s", row(|it| &it.cycles));
    report.row("CPU of the client a cycle, µs", row(|it| &it.client_us));
    report.row("CPU of the servers a cycle, µs", row(|it| &it.server_us));
    report.row("allocations a cycle", row(|it| &it.allocations));
    let cycles = |it: &Figures| it.cycles.median();
    let (against_peer, against_raw) = (cycles(&ours) / cycles(&peer), cycles(&ours) / cycles(&raw));
    report.demand("throughput", Demand::at_least("× rslock", against_peer, 2.0).gate());
    report.demand("throughput", Demand::at_least("× raw", against_raw, 0.65).gate());
}

/// Runs all tasks for a short time. Returns cycles, elapsed seconds, and CPU time of this process in
/// seconds.
pub(crate) fn slice<C: Client>(runtime: &Runtime, client: &Arc<C>) -> [f64; 3] {
    let (cpu, began) = (process::cpu(), Instant::now());
    let cycles = cycle_for(runtime, client, SLICE) as f64;
    [cycles, began.elapsed().as_secs_f64(), (process::cpu() - cpu).as_secs_f64()]
}

/// Returns the runtime that all tasks of a client share.
pub(crate) fn runtime(name: &str) -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(WORKERS).thread_name(name).enable_all().build().expect("threads")
}

/// Runs one round of one client, in its own runtime.
fn measure<C: Client>(
    round: usize,
    servers: &mut Servers,
    connect: impl Future<Output = C>,
    figures: &mut Figures,
) {
    servers.clear();
    let runtime = runtime(C::NAME);
    let client = Arc::new(runtime.block_on(connect));
    cycle_for(&runtime, &client, WARM_UP);
    let (cpu, server_cpu, began) = (process::cpu(), servers.cpu(), Instant::now());
    let cycles = cycle_for(&runtime, &client, MEASURED) as f64;
    let took = began.elapsed();
    let cpu = (process::cpu() - cpu).as_secs_f64() * 1e6 / cycles;
    let server_cpu = (servers.cpu() - server_cpu).as_secs_f64() * 1e6 / cycles;
    let (counted, allocations) =
        process::allocations(|| cycle_for(&runtime, &client, COUNTED) as f64);
    let (a_second, allocations) = (cycles / took.as_secs_f64(), allocations as f64 / counted);
    println!(
        "round {round} {:6}  {a_second:6.0} cycles/s  client {cpu:5.1} µs  \
         servers {server_cpu:5.1} µs  {allocations:5.1} allocations",
        C::NAME,
    );
    figures.cycles.push(a_second);
    figures.client_us.push(cpu);
    figures.server_us.push(server_cpu);
    figures.allocations.push(allocations);
    assert_eq!(servers.keys(), 0, "{} left keys behind", C::NAME);
}

/// Runs all tasks for `time`, and returns the number of cycles they made.
fn cycle_for<C: Client>(runtime: &Runtime, client: &Arc<C>, time: Duration) -> usize {
    runtime.block_on(async {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            tasks.spawn(cycle(Arc::clone(client), task, Arc::clone(&stop)));
        }
        tokio::time::sleep(time).await;
        stop.store(true, Ordering::Relaxed);
        tasks.join_all().await.into_iter().sum()
    })
}

async fn cycle<C: Client>(client: Arc<C>, task: usize, stop: Arc<AtomicBool>) -> usize {
    let (mut cycles, mut key) = (0, String::new());
    while !stop.load(Ordering::Relaxed) {
        key.clear();
        write!(key, "order/{task}/{cycles}").expect("memory takes it");
        let held = client.acquire(task, &key).await;
        client.release(held).await;
        cycles += 1;
    }
    cycles
}
