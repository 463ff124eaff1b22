//! Separate clients, or tasks of one client, that all want the same lock.
//!
//! The holder of the lock waits 5 ms on a timer, releases, and pauses for between 0.5 and 5.5 ms
//! after the reply to the release. Some task is always waiting, so the ceiling is one lock per hold
//! time, without any time for the hand-over. The hold time is measured, because timers fire a
//! little late.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::task::JoinSet;

use crate::ROUNDS;
use crate::clients::{Client, Ours, Peer};
use crate::report::{Demand, Report, Rounds, heading, quantile};
use crate::servers::Servers;

const NODES: usize = 3;
const CLIENTS: usize = 8;
const HOLD: Duration = Duration::from_millis(5);
const PAUSE_FROM_US: u64 = 500;
const PAUSE_SPAN_US: u64 = 5_000;
/// Enough for 1 000 grants, so that chance alone costs Jain's index less than a hundredth.
const MEASURED: Duration = Duration::from_millis(7_000);
/// Upper bounds of the peer's waits. Our client's waits begin at the first value and double up to
/// the last.
const PEER_DELAYS_MS: [u64; 3] = [5, 20, 200];

/// Figures of all rounds of one arrangement.
#[derive(Default)]
struct Figures {
    share: Rounds,
    fairness: Rounds,
    wait_p99_ms: Rounds,
    commands: Rounds,
}

/// Measurements of one taker.
#[derive(Default)]
struct Seen {
    waits_ms: Vec<f64>,
    held: Duration,
}

pub(crate) fn run(servers: &mut Servers, report: &mut Report) {
    heading(
        "contended",
        "n = 3, one key, 8 takers, hold 5 ms, pause U(0.5, 5.5 ms) after the release; the ceiling \
         is a lock that is handed over in no time",
    );
    let [mut clients, mut tasks] = [(); 2].map(|()| Figures::default());
    let mut peers = PEER_DELAYS_MS.map(|_| Figures::default());
    for round in 1..=ROUNDS {
        let urls = servers.urls(NODES);
        measure(round, servers, "8 clients", &mut clients, || {
            separate(|| Ours::connect(urls.clone()))
        });
        measure(round, servers, "8 tasks of one", &mut tasks, || {
            shared(Ours::connect(urls.clone()))
        });
        for (delay_ms, peer) in PEER_DELAYS_MS.into_iter().zip(&mut peers) {
            let delay = Duration::from_millis(delay_ms);
            let arrangement = format!("8 clients, wait below {delay_ms} ms");
            let connect = || Peer::with_retry_delay(urls.clone(), delay);
            measure(round, servers, &arrangement, peer, || separate(connect));
        }
    }
    rows(report, "8 clients", [Some(&clients), None]);
    for (delay_ms, peer) in PEER_DELAYS_MS.into_iter().zip(&peers) {
        rows(report, &format!("8 clients that wait below {delay_ms} ms"), [None, Some(peer)]);
    }
    rows(report, "8 tasks of one client", [Some(&tasks), None]);
    let share = Demand::at_least("of the ceiling", clients.share.median(), 0.92);
    report.demand("8 clients", share);
    let commands = Demand::at_most("commands a lock", clients.commands.median(), 60.0);
    report.demand("8 clients", commands);
    let fairness = Demand::at_least("Jain's index", clients.fairness.median(), 0.95);
    report.demand("8 clients", fairness);
    let share = Demand::at_least("of the ceiling", tasks.share.median(), 0.95);
    report.demand("8 tasks of one client", share);
}

fn rows(report: &mut Report, title: &str, subjects: [Option<&Figures>; 2]) {
    let row = |of: fn(&Figures) -> &Rounds| {
        let nothing = || String::from("–");
        let [ours, peer] = subjects.map(|it| it.map_or_else(nothing, |it| of(it).to_string()));
        [ours, peer, nothing()]
    };
    report.row(format!("{title}: share of the ceiling"), row(|it| &it.share));
    report.row(format!("{title}: Jain's index"), row(|it| &it.fairness));
    report.row(format!("{title}: wait p99, ms"), row(|it| &it.wait_p99_ms));
    report.row(format!("{title}: commands a lock"), row(|it| &it.commands));
}

async fn separate<C: Client, F: Future<Output = C>>(connect: impl Fn() -> F) -> Vec<Arc<C>> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Arc::new(connect().await));
    }
    clients
}

async fn shared<C: Client>(connect: impl Future<Output = C>) -> Vec<Arc<C>> {
    let client = Arc::new(connect.await);
    (0..CLIENTS).map(|_| Arc::clone(&client)).collect()
}

fn measure<C: Client, F: Future<Output = Vec<Arc<C>>>>(
    round: usize,
    servers: &mut Servers,
    arrangement: &str,
    figures: &mut Figures,
    connect: impl FnOnce() -> F,
) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().expect("threads");
    // Clients that see all keys of a node vanish do not count its votes for a while.
    servers.clear();
    let clients = runtime.block_on(connect());
    servers.reset_statistics();
    let began = Instant::now();
    let seen = runtime.block_on(async {
        let mut takers = JoinSet::new();
        for (number, client) in clients.into_iter().enumerate() {
            takers.spawn(take(client, number, began + MEASURED));
        }
        takers.join_all().await
    });
    let locks: usize = seen.iter().map(|it| it.waits_ms.len()).sum();
    let held: Duration = seen.iter().map(|it| it.held).sum();
    // The last hold of a taker may end after `end`, so the measured time lasts until the last hold
    // has ended.
    let share = held.as_secs_f64() / began.elapsed().as_secs_f64();
    let commands = servers.commands() as f64 / locks as f64;
    let counts: Vec<f64> = seen.iter().map(|it| it.waits_ms.len() as f64).collect();
    let fairness = jain(&counts);
    let mut waits: Vec<f64> = seen.into_iter().flat_map(|it| it.waits_ms).collect();
    waits.sort_by(f64::total_cmp);
    let wait = quantile(&waits, 0.99);
    let (rate, hold) =
        (share * locks as f64 / held.as_secs_f64(), held.as_secs_f64() * 1e3 / locks as f64);
    println!(
        "round {round} {:6} {arrangement:28}  {rate:5.1} locks/s of {hold:4.2} ms, {:5.1} % of the \
         ceiling  Jain {fairness:5.3}  wait p99 {wait:5.0} ms  {commands:4.1} commands a lock",
        C::NAME,
        share * 100.0,
    );
    figures.share.push(share);
    figures.fairness.push(fairness);
    figures.wait_p99_ms.push(wait);
    figures.commands.push(commands);
}

/// Acquires and releases the lock until `end`.
async fn take<C: Client>(client: Arc<C>, number: usize, end: Instant) -> Seen {
    let (mut seen, mut timer, mut pause) = (Seen::default(), Timer::new(), Pauses(number as u64));
    while Instant::now() < end {
        let began = Instant::now();
        let lock = client.acquire(number, "wanted").await;
        let granted = Instant::now();
        if granted < end {
            timer.sleep(HOLD).await;
            seen.held += granted.elapsed();
            seen.waits_ms.push((granted - began).as_secs_f64() * 1e3);
        }
        client.release(lock).await;
        timer.sleep(pause.next()).await;
    }
    seen
}

/// Jain's fairness index: 1 if all have the same count, 1/n if one has everything.
fn jain(counts: &[f64]) -> f64 {
    let sum: f64 = counts.iter().sum();
    let squares: f64 = counts.iter().map(|it| it * it).sum();
    sum * sum / (squares * counts.len() as f64)
}

/// Random pauses of one taker; the same sequence for every client under test.
struct Pauses(u64);

impl Pauses {
    /// SplitMix64, by Steele, Lea and Flood.
    fn next(&mut self) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        Duration::from_micros(PAUSE_FROM_US + mixed % PAUSE_SPAN_US)
    }
}

/// A timer that is precise to tens of microseconds; tokio's own timers count whole milliseconds.
struct Timer(AsyncFd<std::os::fd::OwnedFd>);

impl Timer {
    fn new() -> Self {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).expect("a timer");
        // SAFETY: an `OwnedFd` is the same descriptor for as long as it lives.
        let timer = unsafe { AsyncFd::register(timer) };
        Self(timer.expect("a runtime with I/O"))
    }

    async fn sleep(&mut self, time: Duration) {
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let at = Timespec::try_from(time).expect("a short time");
        let setting = Itimerspec { it_interval: once, it_value: at };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &setting).expect("a timer");
        loop {
            let mut ready = self.0.readable().await.expect("a timer");
            // Reading the expiry makes the timer unreadable again.
            if rustix::io::read(self.0.get_ref(), &mut [0_u8; 8]).is_ok() {
                return;
            }
            ready.clear_ready();
        }
    }
}
