//! Cost of a wait for a lock that another client holds, and delay of the hand-over.
//!
//! Commands are counted on all servers, from the start of the waiters' connections until the first
//! waiter has the lock: handshakes, introductions, looks and attempts. The holder's release is not
//! counted. The hand-over is the time from the call that releases the lock to the return of the
//! call that acquires it.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clients::{Client, Ours, Peer};
use crate::report::{Demand, Report, Rounds, heading};
use crate::servers::Servers;

const NODES: usize = 5;
const ROUNDS: usize = 3;
const KEY: &str = "nightly";
const CROWD: usize = 50;
const LONG: Duration = Duration::from_secs(9);
const CROWDED: Duration = Duration::from_secs(3);
const SHORT: Duration = Duration::from_millis(200);
/// Holds of which the hand-over to one waiter is measured.
const HAND_OVERS: usize = 21;
/// Bound of the peer's waits between two attempts; its default.
const PEER_DELAY: Duration = Duration::from_millis(200);

/// Figures of all rounds of one client.
#[derive(Default)]
struct Figures {
    commands: Rounds,
    hand_over_ms: Rounds,
}

pub(crate) fn run(servers: &mut Servers, report: &mut Report) {
    heading(
        "waiting",
        "n = 5; one waiter during a hold of 9 s, and its hand-over after holds of 0.2 s; fifty \
         waiters during a hold of 3 s, until the first of them has the lock",
    );
    let [mut alone, mut alone_peer] = [(); 2].map(|()| Figures::default());
    let [mut crowd, mut crowd_peer] = [(); 2].map(|()| Figures::default());
    let urls = servers.urls(NODES);
    let ours = || Ours::connect(urls.clone());
    let peer = || Peer::with_retry_delay(urls.clone(), PEER_DELAY);
    for _ in 0..ROUNDS {
        alone.commands.push(measure(servers, 1, LONG, ours).0);
        alone_peer.commands.push(measure(servers, 1, LONG, peer).0);
        many(servers, ours, &mut crowd);
        many(servers, peer, &mut crowd_peer);
    }
    for _ in 0..HAND_OVERS {
        alone.hand_over_ms.push(measure(servers, 1, SHORT, ours).1);
        alone_peer.hand_over_ms.push(measure(servers, 1, SHORT, peer).1);
    }
    rows(report, "one waiter", [&alone, &alone_peer]);
    rows(report, "fifty waiters", [&crowd, &crowd_peer]);
    let at_most = |words, rounds: &Rounds, most| Demand::at_most(words, rounds.median(), most);
    report.demand("one waiter", at_most("commands", &alone.commands, 120.0));
    report.demand("one waiter", at_most("ms to hand over", &alone.hand_over_ms, 5.0));
    report.demand("fifty waiters", at_most("commands", &crowd.commands, 6_000.0));
    report.demand("fifty waiters", at_most("ms to hand over", &crowd.hand_over_ms, 10.0));
}

fn rows(report: &mut Report, title: &str, subjects: [&Figures; 2]) {
    let row = |of: fn(&Figures) -> &Rounds| {
        let [ours, peer] = subjects.map(|it| of(it).to_string());
        [ours, peer, String::from("–")]
    };
    report.row(format!("{title}: commands"), row(|it| &it.commands));
    report.row(format!("{title}: hand-over, ms"), row(|it| &it.hand_over_ms));
}

fn many<C: Client, F: Future<Output = C>>(
    servers: &mut Servers,
    connect: impl Fn() -> F,
    figures: &mut Figures,
) {
    let (commands, hand_over_ms) = measure(servers, CROWD, CROWDED, connect);
    figures.commands.push(commands);
    figures.hand_over_ms.push(hand_over_ms);
}

/// Returns the number of commands and the hand-over in milliseconds.
fn measure<C: Client, F: Future<Output = C>>(
    servers: &mut Servers,
    waiters: usize,
    hold: Duration,
    connect: impl Fn() -> F,
) -> (f64, f64) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().expect("threads");
    servers.clear();
    let (holder, held) = runtime.block_on(async {
        let holder = connect().await;
        let held = holder.acquire(0, KEY).await;
        (holder, held)
    });
    servers.reset_statistics();
    let began = Instant::now();
    let (mut waiting, mut granted) = wait(&runtime, waiters, connect);
    runtime.block_on(async { tokio::time::sleep(hold.saturating_sub(began.elapsed())).await });
    let released = Instant::now();
    let got = runtime.block_on(async {
        let (release, got) = tokio::join!(holder.release(held), granted.recv());
        let () = release;
        got.expect("one of them gets it")
    });
    let commands = servers.commands() as f64 - NODES as f64;
    let hand_over_ms = (got - released).as_secs_f64() * 1e3;
    println!(
        "{:6} {waiters:2} waiting for {hold:?}: {commands:6} commands, handed over in \
         {hand_over_ms:5.2} ms",
        C::NAME,
    );
    runtime.block_on(async {
        waiting.abort_all();
        while waiting.join_next().await.is_some() {}
    });
    (commands, hand_over_ms)
}

/// Starts the waiters. Each reports when it has the lock, and keeps it.
fn wait<C: Client, F: Future<Output = C>>(
    runtime: &Runtime,
    waiters: usize,
    connect: impl Fn() -> F,
) -> (JoinSet<()>, mpsc::UnboundedReceiver<Instant>) {
    let (grants, granted) = mpsc::unbounded_channel();
    let mut waiting = JoinSet::new();
    for number in 0..waiters {
        let client = Arc::new(runtime.block_on(connect()));
        let grants = grants.clone();
        waiting.spawn_on(
            async move {
                let held = client.acquire(number, KEY).await;
                let _ = grants.send(Instant::now());
                core::future::pending::<()>().await;
                client.release(held).await;
            },
            runtime.handle(),
        );
    }
    (waiting, granted)
}
