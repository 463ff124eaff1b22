//! A client without a network, for unit tests.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};

use redlock_protocol::{
    BootInstant, Drift, Limit, LinkConfig, LockConfig, NodeCount, RestartGuard, RetryDelay, Window,
};

use super::Driver;
use crate::environment::{BoxFuture, Endpoint, Environment, Stream, Timer};
use crate::observe::Observers;

/// A clock and a process that the test chooses; no connection opens, and no task runs.
#[derive(Default)]
pub(super) struct Clock(pub(super) Mutex<Duration>, pub(super) AtomicU32);

impl Environment for Clock {
    fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(core::future::pending())
    }

    fn now(&self) -> BootInstant {
        BootInstant::ZERO.after(*self.0.lock().unwrap())
    }

    fn timer(&self) -> Box<dyn Timer> {
        unreachable!("no task runs")
    }

    fn can_spawn(&self) -> io::Result<()> {
        Err(io::Error::other("no task runs"))
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) {
        unreachable!("no task runs")
    }

    fn spawn_apart(&self, _: BoxFuture<'static, ()>) {
        unreachable!("no task runs")
    }

    fn process(&self) -> u32 {
        self.1.load(Ordering::Relaxed)
    }

    fn fill_random(&self, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }
}

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// A client of one node with a connect timeout of a second.
pub(super) fn driver_of(url: &str, clock: &Arc<Clock>) -> Driver {
    let link = LinkConfig {
        node_timeout: SECOND / 20,
        connect_timeout: SECOND,
        restart_guard: RestartGuard::Quarantine,
        fleet_max_ttl: 10 * SECOND,
        drift: Drift::default(),
        introduction_max_age: SECOND,
        window: Window::default(),
    };
    let endpoints = vec![url.parse().unwrap()];
    let observers = Observers::new(Vec::new(), &endpoints);
    let environment = Arc::clone(clock) as Arc<dyn Environment>;
    Driver::new(environment, observers, endpoints, Box::from(*b"canary"), &[link])
}

/// A use of a lock of one node that waits until the instant given.
pub(super) fn lock_config(until: BootInstant) -> LockConfig {
    LockConfig {
        nodes: NodeCount::new(1).expect("one node"),
        ttl: 10 * SECOND,
        drift: Drift::default(),
        min_validity: Duration::ZERO,
        retry: RetryDelay::default(),
        limit: Limit::Until(until),
        extensions_max: 0,
        keep_alive: None,
        plain_extensions: false,
        watched: false,
    }
}
