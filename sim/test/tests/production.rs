//! The production client of this project, tested as anybody's would be: by what the masters see and
//! what its worker reports.

#![allow(clippy::disallowed_methods, reason = "the clock and the tasks of a worker are simulated")]

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redlock_client::environment::{BootInstant, BoxFuture, Endpoint, Environment, Stream, Timer};
use redlock_client::{KeepAlive, Redlock};
use redlock_sim_test::Host;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// The environment of a client on a simulated machine.
struct OnHost {
    host: Host,
    begun: Instant,
}

impl Environment for OnHost {
    fn connect<'a>(&'a self, to: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let (host, port) = to.tcp().ok_or(io::ErrorKind::Unsupported)?;
            let ip: IpAddr = host.parse().map_err(io::Error::other)?;
            let stream = self.host.connect((ip, port).into()).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn now(&self) -> BootInstant {
        // Any time but 0, which a clock that counts from boot does not show either.
        BootInstant::from_nanos(1_000_000_000 + self.begun.elapsed().as_nanos() as u64)
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(OnSleep { begun: self.begun, sleep: Box::pin(sleep_until(self.begun)) })
    }

    fn can_spawn(&self) -> io::Result<()> {
        Ok(())
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    fn spawn_apart(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.host.random().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// A timer of tokio.
struct OnSleep {
    begun: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl Timer for OnSleep {
    fn poll_until(&mut self, at: BootInstant, context: &mut Context<'_>) -> Poll<()> {
        let after = Duration::from_nanos(at.as_nanos().saturating_sub(1_000_000_000));
        let Some(at) = self.begun.checked_add(after) else { return Poll::Pending };
        if self.sleep.deadline() != at {
            self.sleep.as_mut().reset(at);
        }
        self.sleep.as_mut().poll(context)
    }
}

/// Takes the lock three times, and works as long as it has it.
async fn worker(host: Host) {
    let environment = OnHost { host: host.clone(), begun: Instant::now() };
    let redlock = Redlock::builder()
        .nodes(host.nodes().iter().map(|node| format!("redis://{node}")))
        .ttl(host.ttl())
        .fleet_max_ttl(host.ttl())
        .node_timeout(Duration::from_millis(100))
        .environment(Arc::new(environment) as Arc<dyn Environment>)
        .build()
        .expect("valid settings");
    for turn in 0..3_u32 {
        let acquire = redlock.acquire(host.resource()).wait(Duration::from_secs(20));
        // Every other lease outlives its first keys.
        let acquire = match turn % 2 {
            0 => acquire,
            _ => acquire.keep_alive(KeepAlive::at_most(3 * host.ttl())),
        };
        let Ok(lease) = acquire.await else { continue };
        let section = host.enter(lease.owner().as_bytes());
        tokio::select! {
            biased;
            _ = lease.lost() => {}
            () = sleep(host.ttl() / 2 * (1 + 2 * (turn % 2))) => {}
        }
        drop(section);
        lease.release().await;
        sleep(host.ttl() / 10).await;
    }
}

// Without `crash`, whose faults need connections with the worker's name: this client names its own.
redlock_sim_test::main!("tests/production", worker);
