//! A script without `async`: threads share the work under one lease, and check it before each
//! effect.
//!
//! ```console
//! $ cargo run --example blocking -- redis://a:6379 redis://b:6379 redis://c:6379
//! ```

mod common;

use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use redlock_client::blocking::Lease;
use redlock_client::{KeepAlive, LostReason};

const BATCHES: u32 = 12;

fn main() -> ExitCode {
    common::exit(run())
}

fn run() -> Result<(), Box<dyn Error>> {
    let redlock = common::builder()?
        .ttl(Duration::from_secs(10))
        .fleet_max_ttl(Duration::from_secs(30))
        .build_blocking()?;

    // The client's own thread keeps the lease alive while these threads compute.
    let keep_alive = KeepAlive::at_most(Duration::from_secs(600));
    let lease = redlock.acquire("thumbnails").keep_alive(keep_alive).block()?;
    let next = AtomicU32::new(0);
    let done = thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(|| work(&lease, &next))).collect();
        let done = workers.into_iter().map(|worker| worker.join().expect("no worker panics"));
        done.sum::<Result<u32, LostReason>>()
    })?;
    println!("{done} batches under one lease, {:.1?} left", lease.remaining());

    // Waits for the nodes. The end of the process would stop a release that is on its way.
    println!("{}", lease.release());
    let closed = redlock.close(Duration::from_secs(2));
    println!("closed, {} nodes are owed something", closed.left().len());
    Ok(())
}

/// Takes batches until none is left. Nobody can stop a thread when the lease is over, so the thread
/// asks before each effect.
fn work(lease: &Lease, next: &AtomicU32) -> Result<u32, LostReason> {
    let mut done = 0;
    while next.fetch_add(1, Ordering::Relaxed) < BATCHES {
        lease.check(Duration::from_secs(1))?;
        done += 1;
    }
    Ok(done)
}
