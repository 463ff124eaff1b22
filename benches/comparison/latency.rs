//! Time that one task needs to acquire a free lock.

use core::time::Duration;
use std::time::Instant;

use crate::ROUNDS;
use crate::clients::{Client, Ours, Peer};
use crate::process;
use crate::raw::Raw;
use crate::report::{Demand, Report, Rounds, heading, quantile};
use crate::servers::Servers;

const SAMPLES: usize = 2_000;
/// Samples of a turn in a comparison of two builds (`pairs`).
const SLICE: usize = 150;
const WARM_UP: usize = 200;
/// New clients of a turn in a comparison of two builds.
const NEW_CLIENTS: usize = 8;

/// Figures of all rounds of one client, in microseconds.
#[derive(Default)]
struct Figures {
    p50: Rounds,
    p99: Rounds,
}

pub(crate) fn run(servers: &mut Servers, report: &mut Report) {
    heading("latency", "one task, pinned to one core, the servers to another; acquire alone");
    servers.pin(Some(0));
    process::pin(None, Some(1));
    for nodes in [1, 3, 5] {
        one(nodes, servers, report);
    }
    process::pin(None, None);
    servers.pin(None);
}

/// Returns p50 of a few acquisitions, in microseconds.
pub(crate) async fn slice<C: Client>(client: &C) -> f64 {
    quantile(&samples(client, SLICE).await, 0.5)
}

/// Returns p50 of the first lease of a few new clients, in microseconds.
pub(crate) async fn first(urls: &[String]) -> f64 {
    let mut samples = Vec::with_capacity(NEW_CLIENTS);
    for _ in 0..NEW_CLIENTS {
        let began = Instant::now();
        let client = Ours::connect(urls.to_vec()).await;
        samples.push(began.elapsed().as_secs_f64() * 1e6);
        drop(client);
    }
    samples.sort_by(f64::total_cmp);
    quantile(&samples, 0.5)
}

fn one(nodes: usize, servers: &mut Servers, report: &mut Report) {
    let [mut ours, mut peer, mut raw] = [(); 3].map(|()| Figures::default());
    for round in 1..=ROUNDS {
        let (urls, ports) = (servers.urls(nodes), servers.ports(nodes));
        measure((round, nodes), servers, Ours::connect(urls.clone()), &mut ours);
        measure((round, nodes), servers, Peer::connect(urls), &mut peer);
        measure((round, nodes), servers, Raw::connect(&ports, 1), &mut raw);
    }
    let row = |of: fn(&Figures) -> &Rounds| [&ours, &peer, &raw].map(|it| of(it).to_string());
    report.row(format!("acquire p50, n = {nodes}, µs"), row(|it| &it.p50));
    report.row(format!("acquire p99, n = {nodes}, µs"), row(|it| &it.p99));
    let [ours, peer, raw] = [ours, peer, raw].map(|it| it.p50.median());
    let figure = format!("p50, n = {nodes}");
    report.demand(figure.clone(), Demand::at_most("× raw", ours / raw, 1.3));
    report.demand(figure, Demand::at_most("× rslock", ours / peer, 1.0));
}

fn measure<C: Client>(
    (round, nodes): (usize, usize),
    servers: &mut Servers,
    connect: impl Future<Output = C>,
    figures: &mut Figures,
) {
    servers.clear();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let sorted = runtime.block_on(async {
        let client = connect.await;
        for _ in 0..WARM_UP {
            sample(&client).await;
        }
        samples(&client, SAMPLES).await
    });
    let (p50, p99) = (quantile(&sorted, 0.5), quantile(&sorted, 0.99));
    println!("n = {nodes} round {round} {:6}  p50 {p50:6.1} µs  p99 {p99:6.1} µs", C::NAME);
    figures.p50.push(p50);
    figures.p99.push(p99);
    assert_eq!(servers.keys(), 0, "{} left keys behind", C::NAME);
}

/// Returns the times of `count` acquisitions in microseconds, sorted.
async fn samples<C: Client>(client: &C, count: usize) -> Vec<f64> {
    let mut samples = Vec::with_capacity(count);
    for _ in 0..count {
        samples.push(sample(client).await.as_secs_f64() * 1e6);
    }
    samples.sort_by(f64::total_cmp);
    samples
}

async fn sample<C: Client>(client: &C) -> Duration {
    let began = Instant::now();
    let held = client.acquire(0, "order/1").await;
    let took = began.elapsed();
    client.release(held).await;
    took
}
