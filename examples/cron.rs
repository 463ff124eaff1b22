//! A nightly job that several machines start at the same time and that only one of them runs.
//!
//! The lease is not released when the job is done: a machine whose clock is behind would find the
//! lock free and run the job again. Instead the lease is left until it expires. So the TTL must be
//! longer than the difference between the machines' clocks and the wait together, and shorter than
//! the time to the next run. The job must end within the TTL; a longer one needs `keep_alive`.
//!
//! ```console
//! $ cargo run --example cron -- redis://a:6379 redis://b:6379 redis://c:6379
//! ```

mod common;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use redlock_client::AcquireErrorKind;

const TTL: Duration = Duration::from_secs(60);

/// The code that every machine runs.
async fn nightly(machine: &str) -> Result<(), Box<dyn Error>> {
    let redlock = common::builder()?.ttl(TTL).fleet_max_ttl(TTL).build()?;

    // One second is long enough for a node that is briefly slow, and too short for another machine
    // to finish the job.
    let lease = match redlock.acquire("nightly-report").wait(Duration::from_secs(1)).await {
        Ok(lease) => lease,
        Err(error) if error.kind() == AcquireErrorKind::Taken => {
            println!("{machine}: another machine has it");
            return Ok(());
        }
        // After a lasting split vote, or with too few nodes, it is unknown whether another machine
        // has the lock. A person must look at that.
        Err(error) => return Err(error.into()),
    };

    // If the job fails, the lease is dropped and so released, and another machine may try.
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
async fn main() -> ExitCode {
    common::exit(run().await)
}

async fn run() -> Result<(), Box<dyn Error>> {
    for machine in ["one", "two", "three"] {
        nightly(machine).await?;
    }
    Ok(())
}
