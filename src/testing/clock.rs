//! Time of nodes in memory: tokio's clock, which a test may have paused.

#![expect(clippy::disallowed_methods, reason = "the clock of a test is tokio's")]

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use redlock_protocol::BootInstant;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep};

use crate::environment::Timer;

/// Reading of the clients' clock when it is created. Not zero: nothing may depend on its origin.
const BOOT: Duration = Duration::from_secs(1_000);
/// Reading of the nodes' wall clocks at that time.
const WALL: Duration = Duration::from_secs(1_700_000_000);

/// The clock of the clients and the wall clock of the nodes, which agree.
pub(super) struct Clock {
    origin: Instant,
    /// Last reading.
    elapsed: Mutex<Duration>,
}

/// One reading of both clocks.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// The clients' clock.
    pub(super) now: BootInstant,
    /// The nodes' wall clock, in nanoseconds.
    pub(super) wall_ns: u64,
}

impl Reading {
    /// Returns the nodes' wall clock, in milliseconds.
    pub(super) fn wall_ms(self) -> u64 {
        self.wall_ns / 1_000_000
    }
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { origin: Instant::now(), elapsed: Mutex::default() }
    }

    pub(super) fn read(&self) -> Reading {
        let elapsed = self.elapsed();
        let wall_ns = u64::try_from((WALL + elapsed).as_nanos()).unwrap_or(u64::MAX);
        Reading { now: BootInstant::ZERO.after(BOOT + elapsed), wall_ns }
    }

    /// Returns the time since the clock was created. It stands still outside of a runtime, where
    /// tokio reads the system's clock: a paused clock may be ahead of it.
    fn elapsed(&self) -> Duration {
        // A duration is whole, whatever panicked while it was locked.
        let mut elapsed = self.elapsed.lock().unwrap_or_else(PoisonError::into_inner);
        if Handle::try_current().is_ok() {
            *elapsed = self.origin.elapsed().max(*elapsed);
        }
        *elapsed
    }
}

/// A timer on the clients' clock.
pub(super) struct ClockTimer {
    clock: Arc<Clock>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl ClockTimer {
    pub(super) fn new(clock: &Arc<Clock>) -> Self {
        Self { clock: Arc::clone(clock), sleep: None }
    }
}

impl Timer for ClockTimer {
    fn poll_until(&mut self, at: BootInstant, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let left = at.since(self.clock.read().now);
            if left.is_zero() {
                self.sleep = None;
                return Poll::Ready(());
            }
            // An earlier sleep may be for another instant, so each poll starts a new one.
            let sleep = self.sleep.insert(Box::pin(sleep(left)));
            ready!(sleep.as_mut().poll(context));
        }
    }
}
