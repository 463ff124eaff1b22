//! A counter in SQLite that only the lock guards, while servers come and go at random.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redlock_client::{Redlock, RestartGuard};
use rusqlite::Connection;
use tokio::task::JoinSet;

use crate::fleet::{Fleet, patient};
use crate::wreck::{Dice, TTL, seed, wreck};
use crate::{Test, is_thorough, on_tokio};

pub(crate) const TESTS: &[Test] = &[on_tokio!(no_update_is_lost_while_servers_come_and_go).alone()];

/// Maximum time for an update, from the check of the lease on.
const WRITE: Duration = Duration::from_millis(250);
const WORKERS: usize = 8;

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
