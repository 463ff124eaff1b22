//! Ten thousand tasks of one client that ask at once for a lock each, as after the start of a service.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use crate::clients::{Client, Ours, Peer};
use crate::report::{Demand, Report, Rounds, heading};
use crate::servers::Servers;

const NODES: usize = 5;
const ROUNDS: usize = 5;
const TASKS: usize = 10_000;
/// Longest wait of a task.
const WAIT: Duration = Duration::from_secs(5);
/// Default of both clients' users: longer node timeouts hide that answers are late.
const NODE_TIMEOUT: Duration = Duration::from_millis(50);

/// Figures of all rounds of one client.
#[derive(Default)]
struct Figures {
    share: Rounds,
    last_ms: Rounds,
}

pub(crate) fn run(servers: &mut Servers, report: &mut Report) {
    heading("burst", "n = 5; 10 000 tasks ask at once for a lock each, and wait for at most 5 s");
    let [mut ours, mut peer] = [(); 2].map(|()| Figures::default());
    let urls = servers.urls(NODES);
    for _ in 0..ROUNDS {
        measure(servers, || Ours::with_node_timeout(urls.clone(), NODE_TIMEOUT), &mut ours);
        measure(servers, || Peer::connect(urls.clone()), &mut peer);
    }
    let row = |of: fn(&Figures) -> &Rounds| {
        let [ours, peer] = [&ours, &peer].map(|it| of(it).to_string());
        [ours, peer, String::from("–")]
    };
    report.row("burst: share of the tasks that get their lock, %", row(|it| &it.share));
    report.row("burst: time until the last of them has it, ms", row(|it| &it.last_ms));
    report.demand("burst", Demand::at_least("% get their lock", ours.share.median(), 100.0));
}

fn measure<C: Client, F: Future<Output = C>>(
    servers: &mut Servers,
    connect: impl Fn() -> F,
    figures: &mut Figures,
) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().expect("threads");
    servers.clear();
    let (held, last) = runtime.block_on(async {
        let client = Arc::new(connect().await);
        let (mut asking, began) = (JoinSet::new(), Instant::now());
        for task in 0..TASKS {
            let client = Arc::clone(&client);
            asking.spawn(async move {
                let key = task.to_string();
                let held = tokio::time::timeout(WAIT, client.acquire(task, &key)).await.ok()?;
                Some((held, began.elapsed()))
            });
        }
        let asked = asking.join_all().await;
        let held: Vec<_> = asked.into_iter().flatten().collect();
        (held.len(), held.iter().map(|(_, after)| *after).max().unwrap_or_default())
    });
    let share = 100.0 * held as f64 / TASKS as f64;
    println!(
        "{:6} {share:5.1} % of the tasks have their lock, the last one after {last:?}",
        C::NAME
    );
    figures.share.push(share);
    figures.last_ms.push(last.as_secs_f64() * 1e3);
}
