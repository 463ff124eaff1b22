//! Many leases that one process keeps alive.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use redlock_client::{KeepAlive, Lease, Redlock};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::ROUNDS;
use crate::clients::Ours;
use crate::process;
use crate::report::{Demand, Report, Rounds, heading};
use crate::servers::Servers;

const NODES: usize = 3;
const LEASES: usize = 10_000;
const TASKS: usize = 64;
const LEASE_TTL: Duration = Duration::from_secs(6);
/// More than three extension periods; a period is a third of the TTL.
const WATCHED: Duration = Duration::from_secs(7);
/// Shorter than any extension period, so that no extension is missed.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Two readings of the same deadline differ by up to this much, because reading takes time.
const SAME_DEADLINE: Duration = Duration::from_millis(100);

pub(crate) fn run(servers: &mut Servers, report: &mut Report) {
    heading(
        "kept-alive",
        "n = 3, 10 000 leases of 6 s, taken at once and kept alive by one client; memory without \
         that of the client itself; the time between the beginnings of two extensions of a lease",
    );
    let [mut heap, mut latest] = [(); 2].map(|()| Rounds::default());
    for round in 1..=ROUNDS {
        let seen = measure(servers);
        let Seen { extensions, latest: gap, heap_bytes, resident_bytes } = seen;
        let share = gap.as_secs_f64() / LEASE_TTL.as_secs_f64();
        println!(
            "round {round}  {heap_bytes:4} bytes a lease on the heap, {resident_bytes:5} more \
             resident than before; {extensions} extensions, the latest after {share:4.2} of the TTL",
        );
        heap.push(heap_bytes as f64);
        latest.push(share);
    }
    let ours = |rounds: &Rounds| [rounds.to_string(), String::from("–"), String::from("–")];
    report.row("heap a kept lease, bytes", ours(&heap));
    report.row("latest extension, share of the TTL", ours(&latest));
    report.demand("latest extension", Demand::at_most("of the TTL", latest.most(), 0.5));
}

struct Seen {
    extensions: usize,
    /// Longest time between the beginnings of two extensions.
    latest: Duration,
    heap_bytes: i64,
    resident_bytes: i64,
}

fn measure(servers: &mut Servers) -> Seen {
    servers.clear();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().expect("threads");
    let client = Arc::new(runtime.block_on(Ours::connect(servers.urls(NODES))).0);
    let mut deadlines = vec![None; LEASES];
    let mut leases = Vec::with_capacity(LEASES);
    let resident = process::resident_bytes();
    let ((extensions, latest), heap) = process::live_bytes(|| {
        leases.extend(runtime.block_on(take(&client)));
        runtime.block_on(watch(&leases, &mut deadlines))
    });
    let resident = process::resident_bytes() as i64 - resident as i64;
    release(&runtime, leases);
    assert_eq!(servers.keys(), 0, "ours left keys behind");
    let each = |bytes: i64| bytes / LEASES as i64;
    Seen { extensions, latest, heap_bytes: each(heap), resident_bytes: each(resident) }
}

async fn take(client: &Arc<Redlock>) -> Vec<Lease> {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let client = Arc::clone(client);
        tasks.spawn(async move {
            let mut leases = Vec::new();
            for number in (task..LEASES).step_by(TASKS) {
                let acquire = client.acquire(format!("session/{number}")).ttl(LEASE_TTL);
                let acquire = acquire.keep_alive(KeepAlive::at_most(100 * LEASE_TTL));
                leases.push(acquire.await.expect("the servers are up"));
            }
            leases
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

/// Reads all deadlines repeatedly. Returns the number of times they moved, and the longest step.
async fn watch(leases: &[Lease], deadlines: &mut [Option<Instant>]) -> (usize, Duration) {
    let (mut extensions, mut latest) = (0, Duration::ZERO);
    let end = Instant::now() + WATCHED;
    while Instant::now() < end {
        for (lease, before) in leases.iter().zip(deadlines.iter_mut()) {
            let left = lease.remaining();
            assert!(!left.is_zero(), "a lease was lost: {:?}", lease.check(Duration::ZERO));
            let deadline = Instant::now() + left;
            let Some(before) = before else {
                *before = Some(deadline);
                continue;
            };
            let step = deadline.saturating_duration_since(*before);
            if step > SAME_DEADLINE {
                *before = deadline;
                extensions += 1;
                latest = latest.max(step);
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    (extensions, latest)
}

fn release(runtime: &Runtime, leases: Vec<Lease>) {
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for lease in leases {
            // Release few at a time: a connection accepts a bounded number of commands.
            if tasks.len() == TASKS {
                tasks.join_next().await;
            }
            tasks.spawn(lease.release());
        }
        tasks.join_all().await;
    });
}
