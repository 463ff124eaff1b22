//! Settings of a client.

use core::time::Duration;

use redlock_protocol::{Drift, MAX_NODES, NodeCount, RetryDelay};

use crate::error::{OptionError, TtlError};
use crate::restart_guard::RestartGuard;

/// Longest accepted duration: ten years. A longer one is taken for a mistake.
pub(crate) const TEN_YEARS: Duration = Duration::from_secs(3_653 * 86_400);

/// Settings that apply to every acquisition, unless the acquisition overrides them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) nodes: NodeCount,
    pub(crate) ttl: Duration,
    pub(crate) fleet_max_ttl: Duration,
    pub(crate) node_timeout: Duration,
    pub(crate) wait: Option<Duration>,
    pub(crate) min_validity: Option<Duration>,
    pub(crate) drift: Drift,
    pub(crate) retry: RetryDelay,
    pub(crate) extensions_max: u32,
    pub(crate) connect_timeout: Duration,
    pub(crate) guards: [RestartGuard; MAX_NODES],
}

impl Settings {
    /// Returns the default minimum validity of a lease with `ttl`.
    pub(crate) fn min_validity(&self, ttl: Duration) -> Duration {
        self.min_validity.unwrap_or(ttl / 4)
    }

    /// Returns the default time for which an acquisition with `ttl` tries.
    pub(crate) fn wait(&self, ttl: Duration) -> Duration {
        self.wait.unwrap_or(ttl.saturating_add(Duration::from_secs(1)))
    }

    /// Rejects settings that cannot be safe, or can never succeed.
    pub(crate) fn validate(
        &self,
        ttl: Duration,
        min_validity: Duration,
    ) -> Result<(), OptionError> {
        self.validate_ttl(ttl)?;
        let node_timeout = self.node_timeout;
        if node_timeout.is_zero() || node_timeout >= ttl / 4 {
            return Err(OptionError::NodeTimeout { node_timeout, ttl });
        }
        let worth_at_most = ttl.saturating_sub(self.drift.of(ttl));
        if min_validity >= worth_at_most {
            return Err(OptionError::MinValidity { min_validity, worth_at_most, ttl });
        }
        Ok(())
    }

    /// Rejects a `fleet_max_ttl` that no TTL can have.
    pub(crate) fn validate_fleet_max_ttl(&self) -> Result<(), OptionError> {
        let fleet_max_ttl = self.fleet_max_ttl;
        let why = if fleet_max_ttl.is_zero() {
            TtlError::Zero
        } else if fleet_max_ttl > TEN_YEARS {
            TtlError::Absurd
        } else if fleet_max_ttl <= self.drift.of(fleet_max_ttl) {
            TtlError::WithinDrift
        } else {
            return Ok(());
        };
        Err(OptionError::FleetMaxTtl { fleet_max_ttl, why })
    }

    /// Rejects a TTL that Redis or the fleet cannot keep.
    pub(crate) fn validate_ttl(&self, ttl: Duration) -> Result<(), OptionError> {
        let why = if ttl.is_zero() {
            TtlError::Zero
        } else if ttl > TEN_YEARS {
            TtlError::Absurd
        } else if !ttl.as_nanos().is_multiple_of(1_000_000) {
            TtlError::SubMillisecond
        } else if ttl > self.fleet_max_ttl {
            TtlError::BeyondFleet
        } else if ttl <= self.drift.of(ttl) {
            TtlError::WithinDrift
        } else {
            return Ok(());
        };
        Err(OptionError::Ttl { ttl, why })
    }
}
