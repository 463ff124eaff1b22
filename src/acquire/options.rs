//! Options of an acquisition.

use core::time::Duration;

use redlock_protocol::{BootInstant, Limit, LockConfig};

use crate::error::OptionError;
use crate::settings::Settings;

/// Keeps a lease alive while its holder works: the client extends it whenever about a third of the
/// TTL has passed, and some 50 ms after a node has answered late, has lost the key, has been given it
/// again, or is connected again without having granted the lease. The key of such a node does not
/// count until an extension has succeeded without it. If a node that decided the grant is lost before
/// that, it can be that no extension succeeds, and the lease ends at its first deadline
/// ([`Lease::extend`](crate::Lease::extend)).
///
/// A limit is required: without one, a hung holder would block all others for ever (counterexample E8).
///
/// ```no_run
/// # use core::time::Duration;
/// # async fn import() -> u64 { 1 }
/// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_client::KeepAlive;
///
/// let keep_alive = KeepAlive::at_most(Duration::from_secs(60));
/// let lease = redlock.acquire("import").keep_alive(keep_alive).await?;
/// let rows = lease.guard(import()).await?; // dropped as soon as the lease is over
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    at_most: Duration,
}

impl KeepAlive {
    /// Keeps a lease alive for at most this long after its delivery. Then the lease ends with
    /// [`LostReason::KeepAliveEnded`](crate::LostReason::KeepAliveEnded), unless
    /// [`Lease::extend`](crate::Lease::extend) has given it a later deadline: the limit is one of the
    /// client's own extensions, and a lease that the caller extends lives on to that deadline. If too few nodes confirm
    /// the extensions, the lease ends earlier, with
    /// [`LostReason::KeepAliveFailed`](crate::LostReason::KeepAliveFailed).
    #[must_use]
    pub const fn at_most(at_most: Duration) -> Self {
        Self { at_most }
    }
}

/// Options of an acquisition, whatever it acquires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(super) ttl: Duration,
    pub(super) min_validity: Option<Duration>,
    pub(super) stop: Stop,
    pub(super) keep_alive: Option<KeepAlive>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    Attempts(u32),
    AtOnce,
    Wait(Duration),
    ByDefault,
    /// Decided already: the acquisition is part of another one.
    At(Limit),
}

impl Options {
    pub(super) fn new(settings: &Settings) -> Self {
        let ttl = settings.ttl;
        Self { ttl, min_validity: None, stop: Stop::ByDefault, keep_alive: None }
    }

    /// Returns the limit of an acquisition that begins at `now`.
    pub(crate) fn limit(&self, settings: &Settings, now: BootInstant) -> Limit {
        match self.stop {
            Stop::Attempts(most) => Limit::Attempts(most),
            Stop::AtOnce => Limit::AT_ONCE,
            Stop::Wait(wait) => Limit::Until(now.after(wait)),
            Stop::ByDefault => Limit::Until(now.after(settings.wait(self.ttl))),
            Stop::At(limit) => limit,
        }
    }

    /// Returns the configuration of a use of a lock that begins at `now`.
    pub(super) fn config(&self, settings: &Settings, now: BootInstant) -> LockConfig {
        LockConfig {
            nodes: settings.nodes,
            ttl: self.ttl,
            drift: settings.drift,
            min_validity: self.least_validity(settings),
            retry: settings.retry,
            limit: self.limit(settings, now),
            extensions_max: settings.extensions_max,
            keep_alive: self.keep_alive.map(|it| it.at_most),
            plain_extensions: true,
            watched: true,
        }
    }

    pub(crate) fn least_validity(&self, settings: &Settings) -> Duration {
        self.min_validity.unwrap_or_else(|| settings.min_validity(self.ttl))
    }

    /// Rejects options that are not safe or cannot be met.
    pub(super) fn validate(&self, settings: &Settings) -> Result<(), OptionError> {
        if matches!(self.stop, Stop::Attempts(0)) {
            return Err(OptionError::NoAttempts);
        }
        let ttl = self.ttl;
        settings.validate(ttl, self.least_validity(settings))?;
        match self.keep_alive {
            Some(KeepAlive { at_most }) if at_most <= ttl => {
                Err(OptionError::KeepAlive { at_most, ttl })
            }
            _ => Ok(()),
        }
    }
}
