//! The run clock: true time is the time since the masters started, real or simulated.

#![expect(clippy::disallowed_methods, reason = "real time is what `serve` is about")]
#![expect(clippy::disallowed_types, reason = "real time is what `serve` is about")]

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;

use crate::world::{HostClocks, WALL_AT_START_MS};

/// The run clock, and the scenario's time 0.
#[derive(Debug)]
pub(super) struct RunClock {
    begun: tokio::time::Instant,
    time: Time,
    wall_at_begin_ns: u64,
    /// The scenario's time 0; empty until the scenario starts.
    origin_ns: OnceLock<u64>,
}

/// Source of the true time.
#[derive(Debug)]
enum Time {
    Real,
    /// The paused clock of the masters' runtime.
    Simulated(Handle),
}

impl RunClock {
    /// Returns a clock that begins now, in real time.
    pub(super) fn begin() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_at_begin_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        let begun = Instant::now().into();
        Self { begun, time: Time::Real, wall_at_begin_ns, origin_ns: OnceLock::new() }
    }

    /// Returns a clock that begins now, in the time of the runtime `masters`.
    pub(super) fn simulated(masters: Handle) -> Self {
        let guard = masters.enter();
        let begun = tokio::time::Instant::now();
        drop(guard);
        let wall_at_begin_ns = WALL_AT_START_MS * 1_000_000;
        Self { begun, time: Time::Simulated(masters), wall_at_begin_ns, origin_ns: OnceLock::new() }
    }

    /// Returns true if time passes only while every task waits.
    pub(super) fn is_simulated(&self) -> bool {
        matches!(self.time, Time::Simulated(_))
    }

    /// Returns the true time since the masters started, in nanoseconds.
    pub(super) fn now_ns(&self) -> u64 {
        let passed = match &self.time {
            Time::Real => Instant::now().duration_since(self.begun.into_std()),
            Time::Simulated(masters) => {
                let _guard = masters.enter();
                self.begun.elapsed()
            }
        };
        u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Waits until the true time is `at_ns`.
    pub(super) async fn sleep_until(&self, at_ns: u64) {
        match self.begun.checked_add(Duration::from_nanos(at_ns)) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => core::future::pending().await,
        }
    }

    /// Creates a host's clocks as they are when the masters start, with the wall clock `offset_ns`
    /// ahead of the machine's.
    pub(super) fn clocks(&self, offset_ns: i64) -> HostClocks {
        let usual_ns = WALL_AT_START_MS * 1_000_000;
        let ahead_ns = (self.wall_at_begin_ns as i64).saturating_sub(usual_ns as i64);
        HostClocks::new(ahead_ns.saturating_add(offset_ns), 0)
    }

    /// Returns the scenario's time 0, in true time; `None` before it starts.
    pub(super) fn origin_ns(&self) -> Option<u64> {
        self.origin_ns.get().copied()
    }

    /// Starts the scenario at `at_ns`. Returns false if it had already started.
    pub(super) fn start(&self, at_ns: u64) -> bool {
        self.origin_ns.set(at_ns).is_ok()
    }
}
