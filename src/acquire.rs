//! Acquisition of a lock.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::borrow::Cow;

use redlock_protocol::{BootInstant, Limit, LockConfig, LockId};

use crate::client::Redlock;
use crate::error::{AcquireError, OptionError, WithError};
use crate::lease::Lease;

/// Longest name of a resource, in bytes: every command carries it to every node.
pub const RESOURCE_BYTES_MAX: usize = 4_096;

/// Name of a resource to lock: the name of its key, any bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource<'a>(Cow<'a, [u8]>);

impl Resource<'_> {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

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

/// Keeps a lease alive while its holder works: the client extends it whenever about a third of the
/// TTL has passed. The first extension begins after about a twelfth of the TTL if a node had not
/// answered when the lease was granted.
///
/// A limit is required: without one, a hung holder would block all others for ever (catalogue E8).
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
    /// Keeps a lease alive for at most this long after the grant. Then the lease ends with
    /// [`LostReason::KeepAliveEnded`](crate::LostReason::KeepAliveEnded). If too few nodes confirm
    /// the extensions, the lease ends earlier, with
    /// [`LostReason::KeepAliveFailed`](crate::LostReason::KeepAliveFailed).
    #[must_use]
    pub const fn at_most(at_most: Duration) -> Self {
        Self { at_most }
    }
}

/// An acquisition that has not begun: add options, then `.await` it.
///
/// Dropping the future while it runs releases every key that it may have set.
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct Acquire<'a> {
    redlock: &'a Redlock,
    resource: Resource<'a>,
    ttl: Duration,
    min_validity: Option<Duration>,
    stop: Stop,
    keep_alive: Option<KeepAlive>,
}

#[derive(Clone, Copy, Debug)]
enum Stop {
    Attempts(u32),
    AtOnce,
    Wait(Duration),
    ByDefault,
}

impl Redlock {
    /// Acquires the lock on `resource`, retrying until the configured wait is over.
    ///
    /// ```no_run
    /// # use core::time::Duration;
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// let lease = redlock.acquire("invoice/42").wait(Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The awaited acquisition fails with an [`AcquireError`](crate::AcquireError) if the wait
    /// ended without a lease. The error distinguishes a taken lock from missing nodes, and has each
    /// node's answer.
    pub fn acquire<'a>(&'a self, resource: impl Into<Resource<'a>>) -> Acquire<'a> {
        Acquire::new(self, resource.into())
    }

    /// Acquires the lock on `resource` without waiting for its current holder.
    ///
    /// Makes one attempt. If clients that attempt at the same time split the votes, nobody has the
    /// lock; then up to four more attempts follow, each after a random delay of a few milliseconds.
    /// [`Acquire::attempts`] never exceeds the given number of attempts.
    ///
    /// ```no_run
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_client::AcquireErrorKind;
    ///
    /// match redlock.try_acquire("invoice/42").await {
    ///     Ok(lease) => drop(lease.release().await),
    ///     Err(error) if error.kind() == AcquireErrorKind::Taken => println!("somebody has it"),
    ///     Err(error) => return Err(error.into()), // it is unknown whether the lock is held
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Same as for [`Redlock::acquire`].
    pub fn try_acquire<'a>(&'a self, resource: impl Into<Resource<'a>>) -> Acquire<'a> {
        self.acquire(resource).at_once()
    }
}

impl<'a> Acquire<'a> {
    pub(crate) fn new(redlock: &'a Redlock, resource: Resource<'a>) -> Self {
        let ttl = redlock.settings().ttl;
        Self { redlock, resource, ttl, min_validity: None, stop: Stop::ByDefault, keep_alive: None }
    }

    /// Sets the time to live of the keys, instead of the client's TTL.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Limits the time for retries: no attempt begins later than `wait` after the first poll.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.stop = Stop::Wait(wait);
        self
    }

    /// Stops at the first attempt that fails for a reason other than a split vote.
    pub(crate) fn at_once(mut self) -> Self {
        self.stop = Stop::AtOnce;
        self
    }

    /// Limits the number of attempts, however long they take.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.stop = Stop::Attempts(attempts);
        self
    }

    /// Sets the minimum validity: a lease with no more than this left is not delivered. It must be
    /// less than the TTL minus 1 % and 2 ms for drift.
    pub fn min_validity(mut self, validity: Duration) -> Self {
        self.min_validity = Some(validity);
        self
    }

    /// Extends the lease automatically, within the limit of `keep_alive`.
    ///
    /// The runtime of the connections sends the extensions (see [the crate's
    /// documentation](crate#runtime)). While that runtime is blocked, or after it has ended, no
    /// extension is sent, and the lease ends at its deadline. With
    /// [`Builder::background_thread`](crate::Builder::background_thread) extensions do not depend
    /// on a runtime of the application.
    pub fn keep_alive(mut self, keep_alive: KeepAlive) -> Self {
        self.keep_alive = Some(keep_alive);
        self
    }

    /// Acquires the lock, runs `work` under it, and releases it.
    ///
    /// The work is dropped as soon as the lease is over. Dropping the future drops the work and
    /// releases the lease; so does a panic in the work.
    ///
    /// ```no_run
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_client::{Lease, WithError};
    ///
    /// let acquire = redlock.acquire("import");
    /// match acquire.with(async |_: &Lease| import().await).await {
    ///     Ok(rows) => println!("imported {rows} rows"),
    ///     Err(WithError::Acquire(error)) => println!("not begun: {error}"),
    ///     Err(WithError::Lost(reason)) => println!("dropped half-way: {reason}"),
    ///     Err(WithError::LostAfter(rows)) => println!("{rows} rows, the last ones too late"),
    ///     Err(other) => return Err(other.into()),
    /// }
    /// # async fn import() -> u64 { 1 }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the lock was not acquired, or the lease ended before the work did. The output of work
    /// that finished too late is returned in [`WithError::LostAfter`].
    pub async fn with<T>(self, work: impl AsyncFnOnce(&Lease) -> T) -> Result<T, WithError<T>> {
        let lease = self.await.map_err(WithError::Acquire)?;
        let attended = lease.attend(work(&lease)).await;
        lease.release().await;
        match attended {
            Ok((value, Ok(()))) => Ok(value),
            Ok((value, Err(_))) => Err(WithError::LostAfter(value)),
            Err(reason) => Err(WithError::Lost(reason)),
        }
    }

    fn config(&self, now: BootInstant) -> LockConfig {
        let settings = self.redlock.settings();
        let limit = match self.stop {
            Stop::Attempts(most) => Limit::Attempts(most),
            Stop::AtOnce => Limit::AT_ONCE,
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
            extensions_max: settings.extensions_max,
            keep_alive: self.keep_alive.map(|it| it.at_most),
            plain_extensions: true,
            watched: true,
        }
    }

    fn least_validity(&self) -> Duration {
        self.min_validity.unwrap_or_else(|| self.redlock.settings().min_validity(self.ttl))
    }

    /// Rejects options that are not safe or cannot be met.
    fn validate(&self) -> Result<(), OptionError> {
        let (ttl, bytes) = (self.ttl, self.resource.0.len());
        if bytes == 0 {
            return Err(OptionError::EmptyResource);
        }
        if bytes > RESOURCE_BYTES_MAX {
            return Err(OptionError::ResourceTooLong { bytes, most: RESOURCE_BYTES_MAX });
        }
        if *self.resource.0 == *self.redlock.driver().canary_key() {
            return Err(OptionError::ResourceIsCanary);
        }
        if matches!(self.stop, Stop::Attempts(0)) {
            return Err(OptionError::NoAttempts);
        }
        self.redlock.settings().validate(ttl, self.least_validity())?;
        match self.keep_alive {
            Some(KeepAlive { at_most }) if at_most <= ttl => {
                Err(OptionError::KeepAlive { at_most, ttl })
            }
            _ => Ok(()),
        }
    }
}

impl<'a> IntoFuture for Acquire<'a> {
    type Output = Result<Lease, AcquireError>;
    type IntoFuture = Acquiring<'a>;

    fn into_future(self) -> Acquiring<'a> {
        Acquiring { acquire: self, polled: Polled::Never }
    }
}

/// An acquisition in progress. Dropping it releases every key that it may have set.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Acquiring<'a> {
    acquire: Acquire<'a>,
    polled: Polled,
}

/// How far polling the future has come.
#[derive(Clone, Copy, Debug)]
enum Polled {
    Never,
    UnderWay(LockId),
    /// The outcome was returned to the caller.
    Done,
}

impl Acquiring<'_> {
    fn begin(&self, context: &Context<'_>) -> Result<LockId, AcquireError> {
        let acquire = &self.acquire;
        acquire.validate()?;
        let driver = acquire.redlock.driver();
        driver.open(&acquire.resource.0, |now| acquire.config(now), context)
    }
}

impl Future for Acquiring<'_> {
    type Output = Result<Lease, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let lock = match self.polled {
            Polled::Never => {
                let begun = self.begin(context);
                self.polled = begun.as_ref().map_or(Polled::Done, |&lock| Polled::UnderWay(lock));
                return begun.map_or_else(|error| Poll::Ready(Err(error)), |_| Poll::Pending);
            }
            Polled::UnderWay(lock) => lock,
            Polled::Done => panic!("polled after it was ready"),
        };
        let redlock = self.acquire.redlock;
        let acquired = redlock.driver().serve(|it| it.poll_acquired(lock, context));
        let acquired = core::task::ready!(acquired);
        self.polled = Polled::Done;
        Poll::Ready(acquired.map(|grant| Lease::new(redlock.clone(), lock, grant)))
    }
}

impl Drop for Acquiring<'_> {
    fn drop(&mut self) {
        if let Polled::UnderWay(lock) = self.polled {
            self.acquire.redlock.driver().abandon(lock);
        }
    }
}
