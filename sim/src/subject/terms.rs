//! Conversions from a scenario's lock settings to the protocol's own types.

use redlock_client::protocol::{self, RetryDelay};

use crate::scenario::{Drift, RestartGuard, Retry};

impl From<Drift> for protocol::Drift {
    fn from(told: Drift) -> Self {
        Self { share_ppm: told.share_ppm, constant: told.constant.duration() }
    }
}

impl From<RestartGuard> for protocol::RestartGuard {
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
        let (first, longest) = (told.first.duration(), told.longest.duration());
        Self { first, longest, ..Self::default() }
    }
}
