//! A counter in SQLite that only the lock guards, while servers come and go at random.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redlock_client::{Redlock, RestartGuard};
use rusqlite::Connection;
use tokio::task::JoinSet;

use crate::fleet::{Fleet, patient};
use crate::server::Server;
use crate::{Test, is_thorough, on_tokio};

pub(crate) const TESTS: &[Test] = &[on_tokio!(no_update_is_lost_while_servers_come_and_go).alone()];

const TTL: Duration = Duration::from_secs(1);
/// Maximum time for an update, from the check of the lease on.
const WRITE: Duration = Duration::from_millis(250);
const WORKERS: usize = 8;

/// Random numbers that a seed repeats (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn up_to(&mut self, longest: Duration) -> Duration {
        let longest_us = u64::try_from(longest.as_micros()).expect("a short time");
        Duration::from_micros(self.roll(longest_us + 1))
    }
}

/// Seed of this run: the time, unless `REDLOCK_SOAK_SEED` gives one.
fn seed() -> u64 {
    let given = std::env::var("REDLOCK_SOAK_SEED").ok();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
    given.map_or_else(|| now() as u64, |seed| seed.parse().expect("a number"))
}

/// The counter, in an SQLite file in the test's directory.
struct Counter(PathBuf);

impl Counter {
    fn new(directory: &Path) -> Self {
        let counter = Self(directory.join("counter.sqlite"));
        let database = counter.open();
        database.execute("CREATE TABLE counter (value INTEGER NOT NULL)", ()).unwrap();
        database.execute("INSERT INTO counter VALUES (0)", ()).unwrap();
        counter
    }

    fn open(&self) -> Connection {
        let database = Connection::open(&self.0).unwrap();
        // The database must be consistent, not durable.
        database.pragma_update(None, "synchronous", "OFF").unwrap();
        database
    }
}

fn read(database: &Connection) -> i64 {
    database.query_row("SELECT value FROM counter", (), |row| row.get(0)).unwrap()
}

fn write(database: &Connection, value: i64) {
    database.execute("UPDATE counter SET value = ?", [value]).unwrap();
}

/// Increments the counter again and again. Returns the number of updates that were written.
async fn work(redlock: Redlock, database: Connection, seed: u64, over: Arc<AtomicBool>) -> i64 {
    let (mut dice, mut written) = (Dice(seed), 0);
    while !over.load(Ordering::Relaxed) {
        let Ok(lease) = redlock.acquire("counter").wait(TTL / 2).await else {
            continue;
        };
        let value = read(&database);
        // Another worker that is wrongly inside would read the same value meanwhile, or overtake.
        tokio::time::sleep(dice.up_to(Duration::from_millis(20))).await;
        if lease.check(WRITE).is_ok() {
            write(&database, value + 1);
            written += 1;
        }
        match dice.roll(3) {
            0 => drop(lease),
            1 => drop(tokio::time::timeout(dice.up_to(TTL / 500), lease.release()).await),
            _ => drop(lease.release().await),
        }
    }
    written
}

/// Stops, kills and restarts servers, never more than a minority at a time. A server that has come
/// back empty counts as missing until its quarantine is over. Returns the numbers of stops, kills
/// and restarts.
async fn wreck(fleet: &mut Fleet, dice: &mut Dice, lasts: Duration) -> [usize; 3] {
    let (end, mut done) = (Instant::now() + lasts, [0; 3]);
    while Instant::now() < end {
        let first = dice.roll(5) as usize;
        let second = (first + 1 + dice.roll(4) as usize) % 5;
        for victim in [first, second] {
            let action = dice.roll(3) as usize;
            let server: &mut Server = &mut fleet[victim];
            match action {
                0 => server.stop(),
                1 => server.kill(),
                _ => server.restart(),
            }
            done[action] += 1;
            tokio::time::sleep(dice.up_to(TTL / 2)).await;
        }
        for victim in [first, second] {
            fleet[victim].recover();
        }
        tokio::time::sleep(TTL + dice.up_to(TTL / 2)).await;
    }
    done
}

async fn no_update_is_lost_while_servers_come_and_go() {
    let seed = seed();
    println!("REDLOCK_SOAK_SEED={seed} repeats the choices of this run");
    let mut fleet = Fleet::of(5);
    let directory = std::env::temp_dir().join(format!("redlock-soak-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let counter = Counter::new(&directory);
    let over = Arc::new(AtomicBool::new(false));
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let guarded = patient(fleet.urls()).restart_guard(RestartGuard::Quarantine);
        let redlock = guarded.ttl(TTL).fleet_max_ttl(TTL).node_timeout(TTL / 10).build().unwrap();
        let seed = seed ^ (worker as u64 + 1) << 32;
        workers.spawn(work(redlock, counter.open(), seed, Arc::clone(&over)));
    }
    let lasts = Duration::from_secs(if is_thorough() { 60 } else { 5 });
    let [stops, kills, restarts] = wreck(&mut fleet, &mut Dice(seed), lasts).await;
    over.store(true, Ordering::Relaxed);
    let mut written = 0;
    while let Some(worker) = workers.join_next().await {
        written += worker.unwrap();
    }
    println!("{written} updates in spite of {stops} stops, {kills} kills and {restarts} restarts");
    let value = read(&counter.open());
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(value, written, "updates were lost");
    assert!(written > 0, "nobody got in");
}
