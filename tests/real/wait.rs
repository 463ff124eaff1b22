//! Waits for a condition, with a limit. No function here waits for a fixed time.

use std::time::{Duration, Instant};

/// Interval between two checks of a condition.
const GLANCE: Duration = Duration::from_millis(2);

/// Blocks until `condition` holds.
pub(crate) fn until(what: &str, within: Duration, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + within;
    while !condition() {
        assert!(Instant::now() < end, "{what}: not within {within:?}");
        std::thread::sleep(GLANCE);
    }
}

/// Waits until `condition` holds; panics if it does not within `within`.
pub(crate) async fn eventually(what: &str, within: Duration, condition: impl FnMut() -> bool) {
    assert!(comes_true(within, condition).await, "{what}: not within {within:?}");
}

/// Returns true if `condition` holds in time.
pub(crate) async fn comes_true(within: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + within;
    while !condition() {
        if Instant::now() >= end {
            return false;
        }
        tokio::time::sleep(GLANCE).await;
    }
    true
}
