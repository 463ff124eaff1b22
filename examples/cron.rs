//! A nightly job that several machines begin at the same time, and that one of them does.
//!
//! The lease is not released when the job is done: a machine whose clock is behind would find the
//! lock free and do the job again. It is left until it expires, so the TTL is longer than the
//! machines' clocks are apart, and shorter than the time to the next run.
//!
//! ```console
//! $ cargo run --example cron -- redis://a:6379 redis://b:6379 redis://c:6379
//! ```

mod common;

use std::error::Error;
use std::time::Duration;

use redlock_client::{AcquireErrorKind, Redlock};

const TTL: Duration = Duration::from_secs(60);

/// What runs on every machine.
async fn nightly(machine: &str) -> Result<(), Box<dyn Error>> {
    let redlock = Redlock::builder()
        .nodes(common::nodes())
        .ttl(TTL)
        .fleet_max_ttl(TTL)
        .restart_guard(common::restart_guard())
        .build()?;

    // One second: enough for a node that stumbles, too little for the job of another machine.
    let lease = match redlock.acquire("nightly-report").wait(Duration::from_secs(1)).await {
        Ok(lease) => lease,
        Err(error) if error.kind() == AcquireErrorKind::Taken => {
            println!("{machine}: another machine has it");
            return Ok(());
        }
        // A split vote that lasts, or too few nodes: nobody knows whether another machine has it, and
        // that is for people to see.
        Err(error) => return Err(error.into()),
    };

    // If the job fails, the lease is dropped, hence released, and another machine may try.
    let pages = lease.guard(report()).await??;
    println!("{machine}: reported {pages} pages");

    lease.leave_until_expiry();
    println!("{machine}: nobody does it again within {TTL:?}");
    Ok(())
}

async fn report() -> Result<u32, std::io::Error> {
    Ok(7)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for machine in ["one", "two", "three"] {
        nightly(machine).await?;
    }
    Ok(())
}
