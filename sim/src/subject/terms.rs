//! Conversions from a scenario's lock settings to the protocol's own types.

use redlock_protocol::RetryDelay;

use crate::scenario::{Drift, RestartGuard, Retry};

impl From<Drift> for redlock_protocol::Drift {
    fn from(told: Drift) -> Self {
        Self { share_ppm: told.share_ppm, constant: told.constant.duration() }
    }
}

impl From<RestartGuard> for redlock_protocol::RestartGuard {
    fn from(told: RestartGuard) -> Self {
        match told {
            RestartGuard::DelayedRestart => Self::DelayedRestart,
            RestartGuard::Durable => Self::Durable,
            RestartGuard::Quarantine => Self::Quarantine,
        }
    }
}

impl From<Retry> for RetryDelay {
    fn from(told: Retry) -> Self {
        Self { first: told.first.duration(), longest: told.longest.duration() }
    }
}
