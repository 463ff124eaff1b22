//! Acquiring the lock.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::borrow::Cow;

use crate::client::Redlock;
use crate::environment::BoxFuture;
use crate::error::{AcquireError, AcquireErrorKind};
use crate::lease::Lease;
use crate::protocol::{BootInstant, Limit, LockConfig, LockId};

/// The longest name of a resource, in bytes: every command carries it to every node.
pub const RESOURCE_BYTES_MAX: usize = 4_096;

/// What is locked: the name of a key, any bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource<'a>(Cow<'a, [u8]>);

impl<'a> From<&'a str> for Resource<'a> {
    fn from(name: &'a str) -> Self {
        Self(Cow::Borrowed(name.as_bytes()))
    }
}

impl From<String> for Resource<'_> {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name.into_bytes()))
    }
}

impl<'a> From<&'a [u8]> for Resource<'a> {
    fn from(name: &'a [u8]) -> Self {
        Self(Cow::Borrowed(name))
    }
}

/// An acquisition that has not begun: add options, then `.await` it.
///
/// Dropping the future while it runs gives back whatever it may have acquired.
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct Acquire<'a> {
    redlock: &'a Redlock,
    resource: Resource<'a>,
    ttl: Duration,
    min_validity: Option<Duration>,
    stop: Stop,
}

#[derive(Clone, Copy, Debug)]
enum Stop {
    Attempts(u32),
    Wait(Duration),
    ByDefault,
}

impl<'a> Acquire<'a> {
    pub(crate) fn new(redlock: &'a Redlock, resource: Resource<'a>) -> Self {
        let ttl = redlock.settings().ttl;
        Self { redlock, resource, ttl, min_validity: None, stop: Stop::ByDefault }
    }

    /// How long the keys live, instead of the client's TTL.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// No attempt begins later than `wait` from the first poll on.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.stop = Stop::Wait(wait);
        self
    }

    /// At most `attempts` attempts, however long they take.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.stop = Stop::Attempts(attempts);
        self
    }

    /// A lease with no more than this left is not handed out.
    pub fn min_validity(mut self, validity: Duration) -> Self {
        self.min_validity = Some(validity);
        self
    }

    fn config(&self, now: BootInstant) -> LockConfig {
        let settings = self.redlock.settings();
        let limit = match self.stop {
            Stop::Attempts(most) => Limit::Attempts(most),
            Stop::Wait(wait) => Limit::Until(now.after(wait)),
            Stop::ByDefault => Limit::Until(now.after(settings.wait(self.ttl))),
        };
        LockConfig {
            nodes: settings.nodes,
            ttl: self.ttl,
            drift: settings.drift,
            min_validity: self.least_validity(),
            retry: settings.retry,
            limit,
            extensions_max: 0,
            keep_alive: None,
            plain_extensions: false,
        }
    }

    fn least_validity(&self) -> Duration {
        self.min_validity.unwrap_or_else(|| self.redlock.settings().min_validity(self.ttl))
    }

    /// Whether the options are safe and can be met.
    fn is_valid(&self) -> bool {
        self.resource.0.len() <= RESOURCE_BYTES_MAX
            && !matches!(self.stop, Stop::Attempts(0))
            && self.redlock.settings().validate(self.ttl, self.least_validity()).is_ok()
    }
}

impl<'a> IntoFuture for Acquire<'a> {
    type Output = Result<Lease, AcquireError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            if !self.is_valid() {
                return Err(AcquireError::new(AcquireErrorKind::Invalid));
            }
            let driver = self.redlock.driver();
            driver.start_tasks();
            let lock = driver.open(&self.resource.0, |now| self.config(now));
            Acquiring { redlock: self.redlock, lock: Some(lock) }.await
        })
    }
}

/// An acquisition under way.
struct Acquiring<'a> {
    redlock: &'a Redlock,
    /// `None` once the outcome is known.
    lock: Option<LockId>,
}

impl Future for Acquiring<'_> {
    type Output = Result<Lease, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let lock = self.lock.expect("polled after it was ready");
        let driver = self.redlock.driver();
        driver.start_tasks();
        let acquired = core::task::ready!(driver.poll_acquired(lock, context));
        self.lock = None;
        Poll::Ready(match acquired {
            Ok(grant) => Ok(Lease::new(self.redlock.clone(), lock, grant)),
            Err(kind) => Err(AcquireError::new(kind)),
        })
    }
}

impl Drop for Acquiring<'_> {
    fn drop(&mut self) {
        if let Some(lock) = self.lock {
            self.redlock.driver().abandon(lock);
        }
    }
}
