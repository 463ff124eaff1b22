//! True time: real time since the masters began.

#![expect(clippy::disallowed_methods, reason = "real time is what `serve` is about")]
#![expect(clippy::disallowed_types, reason = "real time is what `serve` is about")]

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::world::{HostClocks, WALL_AT_START_MS};

/// Real time as the world's true time, and when the scenario began.
#[derive(Debug)]
pub(super) struct Hours {
    begun: Instant,
    wall_at_begin_ns: u64,
    /// The scenario's time 0.
    origin_ns: OnceLock<u64>,
}

impl Hours {
    pub(super) fn begin() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_at_begin_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        Self { begun: Instant::now(), wall_at_begin_ns, origin_ns: OnceLock::new() }
    }

    /// True time since the masters began.
    pub(super) fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Waits until true time reads `at_ns`.
    pub(super) async fn sleep_until(&self, at_ns: u64) {
        match self.begun.checked_add(Duration::from_nanos(at_ns)) {
            Some(at) => tokio::time::sleep_until(at.into()).await,
            None => core::future::pending().await,
        }
    }

    /// Clocks as the masters begin, the wall clock `offset_ns` ahead of the machine's.
    pub(super) fn clocks(&self, offset_ns: i64) -> HostClocks {
        let usual_ns = WALL_AT_START_MS * 1_000_000;
        let ahead_ns = (self.wall_at_begin_ns as i64).saturating_sub(usual_ns as i64);
        HostClocks::new(ahead_ns.saturating_add(offset_ns), 0)
    }

    /// The scenario's time 0, in true time; `None` while it waits.
    pub(super) fn origin_ns(&self) -> Option<u64> {
        self.origin_ns.get().copied()
    }

    /// The scenario begins at `at_ns`, unless it has begun. Whether it begins thereby.
    pub(super) fn start(&self, at_ns: u64) -> bool {
        self.origin_ns.set(at_ns).is_ok()
    }
}
