//! Work under one lease.

use core::time::Duration;

use crate::attend::{attend, outcome};
use crate::error::{AcquireError, WithError};
use crate::lease::Lease;

/// Runs `work` under a lease that was acquired, and releases it.
pub(crate) async fn hold<T>(
    acquired: Result<Lease, AcquireError>,
    work: impl AsyncFnOnce(&Lease) -> T,
) -> Result<T, WithError<T>> {
    let lease = acquired.map_err(WithError::Acquire)?;
    let attended = attend(lease.lost(), || lease.check(Duration::ZERO), work(&lease)).await;
    lease.release().await;
    outcome(attended)
}
