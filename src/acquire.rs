//! Acquisition of a lock.

mod options;

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use redlock_protocol::{Limit, LockId};

pub use self::options::KeepAlive;
use self::options::{Options, Stop};
use crate::client::Redlock;
use crate::error::{AcquireError, OptionError, WithError};
use crate::lease::Lease;
use crate::resource::Resource;
use crate::work::{flat, hold};

/// An acquisition that has not begun: add options, then `.await` it.
///
/// Dropping the future while it runs releases every key that it may have set. `W` is what is
/// acquired: one lock by default, or more than one (module [`many`](crate::many)).
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct Acquire<'a, W = Resource<'a>> {
    redlock: &'a Redlock,
    what: W,
    options: Options,
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

impl<'a, W> Acquire<'a, W> {
    pub(crate) fn new(redlock: &'a Redlock, what: W) -> Self {
        Self { redlock, what, options: Options::new(redlock.settings()) }
    }

    /// Sets the time to live of the keys, instead of the client's TTL: more than four node timeouts,
    /// and at most `fleet_max_ttl`.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// Limits the time for retries: no attempt begins later than `wait` after the first poll, and only
    /// a first one that does not queue behind another task begins as late as that. With
    /// several locks, or a semaphore, no pass over the locks begins later. A pass that has begun is
    /// completed, which takes up to two round trips for each lock. Replaces [`Acquire::attempts`].
    pub fn wait(mut self, wait: Duration) -> Self {
        self.options.stop = Stop::Wait(wait);
        self
    }

    /// Stops at the first attempt that fails for a reason other than a split vote.
    pub(crate) fn at_once(mut self) -> Self {
        self.options.stop = Stop::AtOnce;
        self
    }

    /// Limits the number of attempts, however long they take. Replaces [`Acquire::wait`].
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.options.stop = Stop::Attempts(attempts);
        self
    }

    /// Sets the minimum validity: a lease with no more than this left is not delivered. It must be
    /// less than the TTL minus the allowance for drift (1 % and 2 ms by default).
    pub fn min_validity(mut self, validity: Duration) -> Self {
        self.options.min_validity = Some(validity);
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
        self.options.keep_alive = Some(keep_alive);
        self
    }

    pub(crate) fn redlock(&self) -> &'a Redlock {
        self.redlock
    }

    pub(crate) fn what(&self) -> &W {
        &self.what
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Rejects options that are not safe or cannot be met.
    pub(crate) fn validate_options(&self) -> Result<(), OptionError> {
        self.options.validate(self.redlock.settings())
    }

    /// Returns the acquisition of one lock, as part of this one, that stops at `limit`.
    pub(crate) fn of_one<'b>(&'b self, resource: Resource<'b>, limit: Limit) -> Acquiring<'b> {
        let options = Options { stop: Stop::At(limit), ..self.options };
        Acquire { redlock: self.redlock, what: resource, options }.into_future()
    }
}

impl Acquire<'_> {
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
        hold(self.await, work).await
    }

    /// As [`Acquire::with`], for work that returns a `Result`: one `?` is enough.
    ///
    /// ```no_run
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_client::Lease;
    ///
    /// let acquire = redlock.acquire("import");
    /// let rows = acquire.try_with(async |_: &Lease| import().await).await?;
    /// println!("imported {rows} rows");
    /// # async fn import() -> Result<u64, Box<dyn std::error::Error>> { Ok(1) }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The work's own error; or, converted into its type, a [`WithError`] if the lock was not
    /// acquired or the lease ended before the work did. A value that came too late is dropped;
    /// [`Acquire::with`] returns it.
    pub async fn try_with<T, E>(
        self,
        work: impl AsyncFnOnce(&Lease) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<WithError<()>>,
    {
        flat(self.with(work).await)
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
///
/// From the first poll to the end of its wait its attempts go on, whether or not it is polled again. If
/// nobody polls it, it gets the lock, gives it up when the validity is over, and gets it again: do not
/// keep a future that you no longer poll, for example beside a `select!`.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Acquiring<'a> {
    acquire: Acquire<'a>,
    polled: Polled,
}

/// Progress of the future.
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
        let (driver, settings) = (acquire.redlock.driver(), acquire.redlock.settings());
        acquire.what.validate(driver.canary_key())?;
        acquire.validate_options()?;
        let config = |now| acquire.options.config(settings, now);
        driver.open(acquire.what.as_bytes(), config, context)
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
        Poll::Ready(acquired.map(|(grant, name)| Lease::new(redlock.clone(), lock, grant, name)))
    }
}

impl Drop for Acquiring<'_> {
    fn drop(&mut self) {
        if let Polled::UnderWay(lock) = self.polled {
            self.acquire.redlock.driver().abandon(lock);
        }
    }
}
