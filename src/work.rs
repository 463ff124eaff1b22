//! Work under one lease.

use core::time::Duration;

use crate::attend::{attend, outcome};
use crate::error::{AcquireError, WithError};
use crate::lease::Lease;

/// Returns the outcome of work that returns a `Result`, with all errors as the work's own. Its own
/// error comes first: if it came too late, no output is at stake.
pub(crate) fn flat<T, E, L>(done: Result<Result<T, E>, WithError<Result<T, E>, L>>) -> Result<T, E>
where
    E: From<WithError<(), L>>,
{
    match done {
        Ok(outcome) | Err(WithError::LostAfter(outcome @ Err(_))) => outcome,
        Err(error) => Err(error.map(drop).into()),
    }
}

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
