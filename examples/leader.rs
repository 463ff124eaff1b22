//! Candidates that elect a leader: the holder of the lock leads, until it steps down or its lease is
//! over.
//!
//! A lease cannot keep a leader that was stopped from sending one more command. So each term has an
//! epoch, from a counter that the followers share, and the followers refuse commands of an earlier
//! one.
//!
//! ```console
//! $ cargo run --example leader -- redis://a:6379 redis://b:6379 redis://c:6379
//! ```

mod common;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use redlock_client::{KeepAlive, Redlock};
use tokio::time::interval;

const TTL: Duration = Duration::from_secs(3);
/// A leader that hangs, and whose lease is kept alive, must not lead for ever.
const TERM_MAX: Duration = Duration::from_secs(3_600);
/// Longest wait for the lock, after which a candidate reports why nobody leads, and tries again.
const WAIT: Duration = Duration::from_secs(60);

/// Stands for the followers' database, which checks the epoch in the transaction of the command.
#[derive(Default)]
struct Followers {
    epoch: Mutex<u64>,
}

impl Followers {
    fn next_epoch(&self) -> u64 {
        let mut epoch = self.epoch.lock().expect("nobody panics while it is locked");
        *epoch += 1;
        *epoch
    }

    /// Returns false if a later term has begun: the command is refused.
    fn obey(&self, epoch: u64) -> bool {
        *self.epoch.lock().expect("nobody panics while it is locked") == epoch
    }
}

/// Leads for one term. A service does this in a loop.
async fn lead_once(
    name: &str,
    redlock: &Redlock,
    followers: &Followers,
) -> Result<(), Box<dyn Error>> {
    let keep_alive = KeepAlive::at_most(TERM_MAX);
    let lease = redlock.acquire("leader").wait(WAIT).keep_alive(keep_alive).await?;
    let epoch = followers.next_epoch();
    // A candidate that was stopped before it took its epoch has an epoch without a lease. It deposes
    // the leader, which notices by its next command, and must not lead itself.
    lease.check(TTL / 10)?;
    println!("{name} leads in epoch {epoch}");

    // The commands end with the lease.
    match lease.guard(command(followers, epoch)).await {
        Ok(true) => println!("{name} steps down"),
        Ok(false) => println!("{name} was deposed by a later epoch"),
        Err(reason) => println!("{name} leads no more: {reason}"),
    }
    // The next leader need not wait until the lease expires.
    lease.release().await;
    Ok(())
}

/// Sends some commands. Returns false once the followers refuse one.
async fn command(followers: &Followers, epoch: u64) -> bool {
    let mut beats = interval(TTL / 100);
    for _ in 0..5 {
        beats.tick().await;
        if !followers.obey(epoch) {
            return false;
        }
    }
    true
}

#[tokio::main]
async fn main() -> ExitCode {
    common::exit(run().await)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let followers = Followers::default();
    let candidate = async |name| {
        let redlock = common::builder()?.ttl(TTL).fleet_max_ttl(TTL).build()?;
        lead_once(name, &redlock, &followers).await
    };
    tokio::try_join!(candidate("one"), candidate("two"), candidate("three"))?;
    println!(
        "a late command of epoch 1 is {}",
        if followers.obey(1) { "obeyed" } else { "refused" }
    );
    Ok(())
}
