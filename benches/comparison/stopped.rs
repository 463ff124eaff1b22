//! Effect of one hung node on acquisitions.

use core::fmt::Write;
use core::time::Duration;
use std::time::Instant;

use crate::ROUNDS;
use crate::clients::{Client, Ours, Peer};
use crate::report::{Demand, Report, Rounds, heading, quantile};
use crate::servers::Servers;

const NODES: usize = 5;
const DEFAULT_NODE_TIMEOUT: Duration = Duration::from_millis(50);
const HEALTHY: Duration = Duration::from_millis(600);
/// Long enough for the client to give up the connection and to fail to connect again.
const STOPPED: Duration = Duration::from_millis(1_500);
/// The peer waits for half a second each time.
const PEER_STOPPED: Duration = Duration::from_millis(700);

/// Acquire p99 in microseconds.
#[derive(Default)]
struct Figures {
    healthy: Rounds,
    stopped: Rounds,
}

pub(crate) fn run(servers: &mut Servers, report: &mut Report) {
    heading(
        "stopped",
        "n = 5, one task, acquire alone; first all nodes are healthy, then one is stopped by \
         SIGSTOP (ours gives back in the background, rslock leaves its keys until they expire)",
    );
    let [mut ours, mut peer] = [(); 2].map(|()| Figures::default());
    for round in 1..=ROUNDS {
        let urls = servers.urls(NODES);
        let connect = Ours::with_node_timeout(urls.clone(), DEFAULT_NODE_TIMEOUT);
        measure(round, servers, STOPPED, connect, &mut ours);
        measure(round, servers, PEER_STOPPED, Peer::connect(urls), &mut peer);
    }
    let row = |of: fn(&Figures) -> &Rounds| {
        [of(&ours).to_string(), of(&peer).to_string(), String::from("–")]
    };
    report.row("acquire p99, five healthy nodes, µs", row(|it| &it.healthy));
    report.row("acquire p99, one of them stopped, µs", row(|it| &it.stopped));
    let ratio = ours.stopped.median() / ours.healthy.median();
    report.demand("p99, one stopped", Demand::at_most("× healthy", ratio, 1.2).gate());
}

fn measure<C: Client>(
    round: usize,
    servers: &mut Servers,
    stopped: Duration,
    connect: impl Future<Output = C>,
    figures: &mut Figures,
) {
    servers.clear();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().expect("threads");
    let (healthy, stopped) = runtime.block_on(async {
        let client = connect.await;
        let healthy = acquire_for(&client, "healthy", HEALTHY).await;
        servers.stop_last();
        let stopped = acquire_for(&client, "stopped", stopped).await;
        servers.go_on();
        (healthy, stopped)
    });
    let (before, after) = (quantile(&healthy, 0.99), quantile(&stopped, 0.99));
    println!(
        "round {round} {:6}  healthy p99 {before:7.1} µs of {:5}  stopped p99 {after:8.1} µs of {:5}",
        C::NAME,
        healthy.len(),
        stopped.len(),
    );
    figures.healthy.push(before);
    figures.stopped.push(after);
}

/// Acquires one lock after another for `time`. Returns the sorted latencies, in microseconds.
async fn acquire_for<C: Client>(client: &C, phase: &str, time: Duration) -> Vec<f64> {
    let (mut samples, mut key, end) = (Vec::new(), String::new(), Instant::now() + time);
    while Instant::now() < end {
        key.clear();
        write!(key, "{phase}/{}", samples.len()).expect("memory takes it");
        let began = Instant::now();
        let held = client.acquire(0, &key).await;
        samples.push(began.elapsed().as_secs_f64() * 1e6);
        drop(held);
    }
    samples.sort_by(f64::total_cmp);
    samples
}
