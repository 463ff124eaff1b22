//! Work that takes longer than the TTL, under a lease that is kept alive meanwhile.
//!
//! ```console
//! $ cargo run --example keep_alive -- redis://a:6379 redis://b:6379 redis://c:6379
//! ```

mod common;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use redlock_client::{KeepAlive, Lease, WithError};
use tokio::time::interval;

const TTL: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> ExitCode {
    common::exit(run().await)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let redlock = common::builder()?
        .ttl(TTL)
        .fleet_max_ttl(Duration::from_secs(30))
        .node_timeout(Duration::from_millis(500))
        .build()?;

    // A holder that hangs must not keep everybody out for ever, so the limit has no default.
    let keep_alive = KeepAlive::at_most(Duration::from_secs(60));

    // The work is dropped as soon as the lease is over, so it never runs beside another holder's
    // work.
    let lease = redlock.acquire("import").keep_alive(keep_alive).await?;
    let rows = lease.guard(import()).await?;
    println!("imported {rows} rows under one lease, {:.1?} left", lease.remaining());
    lease.release().await;

    // The same in one step: acquire, work, release.
    let acquire = redlock.acquire("import").keep_alive(keep_alive);
    match acquire.with(async |_: &Lease| import().await).await {
        Ok(rows) => println!("imported {rows} rows again"),
        Err(WithError::Acquire(error)) => println!("not begun: {error}"),
        Err(WithError::Lost(reason)) => println!("dropped half-way: {reason}"),
        Err(WithError::LostAfter(rows)) => println!("{rows} rows, the last ones too late"),
        Err(other) => return Err(other.into()),
    }

    redlock.close(Duration::from_secs(2)).await.is_complete().then_some(()).ok_or("not closed")?;
    Ok(())
}

/// Takes longer than the TTL.
async fn import() -> u64 {
    let mut batches = interval(TTL / 10);
    for _ in 0..15 {
        batches.tick().await;
    }
    1_500
}
