//! Acquires a lock, checks the lease before an effect, and releases the lock.
//!
//! ```console
//! $ cargo run --example quick_start -- redis://a:6379 redis://b:6379 redis://c:6379
//! ```

mod common;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use redlock_client::Released;

#[tokio::main]
async fn main() -> ExitCode {
    common::exit(run().await)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let redlock = common::builder()?
        .ttl(Duration::from_secs(10))
        .fleet_max_ttl(Duration::from_secs(30))
        .build()?;

    // Report problems of the nodes that an operator should know before anybody relies on them.
    print!("{}", redlock.inspect().await);

    let lease = redlock.acquire("invoice/42").wait(Duration::from_secs(5)).await?;
    println!("acquired, {:.1?} left", lease.remaining());

    // Before each effect, check that enough time is left for it.
    lease.check(Duration::from_secs(1))?;
    println!("invoice 42 is being sent");

    match lease.release().await {
        Released::Unconfirmed(nodes) => {
            // No error of this program: the key stays until it expires.
            nodes.iter().for_each(|node| println!("released, but not confirmed by {node}"));
        }
        released => println!("{released}"),
    }

    let closed = redlock.close(Duration::from_secs(2)).await;
    println!("closed, commands pending on {} nodes", closed.left().len());
    Ok(())
}
