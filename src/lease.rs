//! A granted lock.

use core::fmt;
use core::future::{Future, IntoFuture, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use redlock_protocol::{BootInstant, Grant, LockId, ReleaseOutcome, Token as OwnerToken};

use crate::attend::attend;
use crate::client::Redlock;
use crate::deadline::Deadline;
use crate::driver::{Caller, Driver};
use crate::error::{CheckError, ExtendError, LostReason, Released};
use crate::votes::Votes;

/// The lock on a resource until a deadline. Dropping it releases it.
///
/// A lease ends by itself. Work under a lease must call [`Lease::check`] before each effect, or
/// stop when [`Lease::lost`] is ready. No lease can protect a resource from an effect that was
/// already under way when the lease ended.
#[must_use = "dropping a lease releases it"]
pub struct Lease {
    redlock: Redlock,
    lock: LockId,
    grant: Grant,
    resource: Arc<[u8]>,
}

impl Lease {
    pub(crate) fn new(redlock: Redlock, lock: LockId, grant: Grant, resource: Arc<[u8]>) -> Self {
        Self { redlock, lock, grant, resource }
    }

    /// Returns the name of the locked resource; for a permit of a semaphore, that of its lock.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    pub(crate) fn name(&self) -> &Arc<[u8]> {
        &self.resource
    }

    /// Returns the instant at which the lease is over.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        Deadline(self.driver().deadline(self.lock).unwrap_or(self.grant.deadline))
    }

    /// Returns the instant at which the lease is over on tokio's clock, for `timeout_at` and
    /// `sleep_until`. If the lease is over, returns the present instant.
    ///
    /// The conversion loses the clock. A [`Deadline`] is on a clock that counts time asleep; tokio's
    /// is monotonic and stops while the machine is suspended. After a suspend the returned instant is
    /// too late by the time asleep. It is also a snapshot: a later extension, or a loss of the lease,
    /// does not move it. So it limits a wait, but does not prove that the lease is alive: for that
    /// use [`Lease::check`], [`Lease::lost`] or [`Lease::guard`].
    ///
    /// ```no_run
    /// # async fn example(lease: redlock_client::Lease) -> Result<(), Box<dyn std::error::Error>> {
    /// let reply = tokio::time::timeout_at(lease.tokio_deadline(), ask()).await?;
    /// lease.check(core::time::Duration::from_secs(1))?; // the machine may have been asleep
    /// println!("{reply}");
    /// # async fn ask() -> u64 { 1 }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tokio_deadline(&self) -> tokio::time::Instant {
        // Read before the lease's own clock: a pause between the two makes the result earlier.
        let now = tokio::time::Instant::now();
        now.checked_add(self.remaining()).unwrap_or(now)
    }

    /// Returns the time left. The value is a snapshot: it is outdated as soon as it is returned.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if !self.is_valid() {
            return Duration::ZERO;
        }
        let deadline = self.deadline().0;
        deadline.since(self.driver().environment().now())
    }

    /// Returns true if the lease is alive at this instant.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check(Duration::ZERO).is_ok()
    }

    /// Checks that the lease has more than `need` left. Call it before each effect.
    ///
    /// ```no_run
    /// # use core::time::Duration;
    /// # async fn example(lease: redlock_client::Lease) -> Result<(), Box<dyn std::error::Error>> {
    /// lease.check(Duration::from_secs(1))?; // the effect takes less than a second
    /// println!("invoice 42 is being sent");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the lease is over or has too little time left.
    pub fn check(&self, need: Duration) -> Result<(), LostReason> {
        self.driver().check(self.lock, need)
    }

    /// Returns the number of nodes that are known to have the key of this lease, and the number
    /// that may have it.
    #[must_use]
    pub fn votes(&self) -> Votes {
        self.driver().votes(self.lock)
    }

    /// As [`Lease::check`], and checks that a majority of the nodes is known to have the key. Uses
    /// only what the client knows already; sends nothing.
    ///
    /// Use it before effects that should not happen while the lease is in doubt. It fails while too
    /// many connections are lost, although the lease is usually still alive. If a majority of the
    /// servers cannot push, it always fails once the lease is watched (see [`Votes`]).
    ///
    /// # Errors
    ///
    /// The reason why the lease is over, has too little time left, or is in doubt.
    pub fn check_confirmed(&self, need: Duration) -> Result<(), CheckError> {
        self.driver().check_confirmed(self.lock, need)
    }

    /// Returns a future that is ready when the lease is over or released.
    ///
    /// - The deadline needs no network. While this process runs, the future is ready before any key
    ///   of a counted vote can expire; after a pause, it is ready at the next poll.
    /// - A loss of keys is pushed by the nodes. When so many nodes have lost the key that another
    ///   client can get a majority, the future is ready about a round trip after the nodes have
    ///   noticed. Nodes that are silent or do not push do not end a lease.
    ///
    /// ```no_run
    /// # async fn example(lease: redlock_client::Lease) -> Result<(), Box<dyn std::error::Error>> {
    /// let lost = lease.lost(); // may be cloned, and awaited in another task
    /// println!("the lease is over: {}", lost.await);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lost(&self) -> Lost {
        Lost { driver: Arc::clone(self.driver()), lock: self.lock, watch: None }
    }

    /// Runs `work` while the lease is alive, and drops it when the lease is over. Dropping the
    /// future drops the work, but keeps the lease.
    ///
    /// ```no_run
    /// # async fn example(lease: redlock_client::Lease) -> Result<(), Box<dyn std::error::Error>> {
    /// let rows = lease.guard(import()).await?;
    /// println!("imported {rows} rows under one lease");
    /// lease.release().await;
    /// # async fn import() -> u64 { 1 }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the lease was over before the work finished.
    pub async fn guard<F: IntoFuture>(&self, work: F) -> Result<F::Output, LostReason> {
        let check = || self.check(Duration::ZERO);
        let (value, alive) = attend(self.lost(), check, work.into_future()).await?;
        alive.map(|()| value)
    }

    /// Extends the lease to `ttl` from now, less drift. Succeeds if a majority has had the key all
    /// the time, and confirms that before the lease is over. Never shortens the lease.
    ///
    /// A node that answered only after a majority had granted the lease counts once an extension has
    /// succeeded without it: until then, nobody can tell since when it has had the key. So the first
    /// extension needs a majority of all nodes, but only nodes that decided the grant count, and
    /// these are often no more than a majority. If one of them is then lost before the first
    /// extension, no extension succeeds. Extend soon after the grant if you will need more than one
    /// TTL; keep-alive does ([`KeepAlive`](crate::KeepAlive)).
    ///
    /// If another extension is under way, this one begins after it. If the future is dropped, an
    /// extension that has begun continues: keys may live longer, and the deadline moves if the
    /// answers arrive in time.
    ///
    /// ```no_run
    /// # use core::time::Duration;
    /// # async fn example(lease: redlock_client::Lease) -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_client::ExtendErrorKind;
    ///
    /// match lease.extend(Duration::from_secs(10)).await {
    ///     Ok(_deadline) => println!("extended, {:.1?} left", lease.remaining()),
    ///     Err(error) if matches!(error.kind(), ExtendErrorKind::Lost(_)) => return Err(error.into()),
    ///     Err(error) => println!("{error}; {:.1?} left, as before", lease.remaining()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the lease was not extended. Its deadline is unchanged, unless the lease was lost
    /// meanwhile.
    pub async fn extend(&self, ttl: Duration) -> Result<Deadline, ExtendError> {
        self.redlock.settings().validate_ttl(ttl)?;
        let mut extending = Extending { lease: self, ttl, extender: None };
        let extended = poll_fn(|context| extending.poll(context)).await;
        extended.map(Deadline).map_err(|reason| {
            let lost = self.check(Duration::ZERO).err();
            lost.map_or_else(|| ExtendError::new(reason, ttl), ExtendError::lost)
        })
    }

    /// Ends the lease as if it were lost for `reason`, and releases its keys, so that another
    /// client can acquire the lock. Does nothing if the lease is over. For tests; needs the feature
    /// `testing`.
    #[cfg(feature = "testing")]
    pub fn lose(&self, reason: LostReason) {
        self.driver().lose(self.lock, reason);
    }

    /// Leaves the keys to expire instead of releasing them. Use it for work that must not be
    /// repeated before that time, whether it succeeded or not.
    ///
    /// ```no_run
    /// # use core::time::Duration;
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_client::AcquireErrorKind;
    ///
    /// // On every machine, every night.
    /// match redlock.acquire("nightly-report").wait(Duration::from_secs(1)).await {
    ///     Ok(lease) => {
    ///         lease.guard(report()).await?;
    ///         lease.leave_until_expiry(); // a machine whose clock is behind does not do it again
    ///     }
    ///     Err(error) if error.kind() == AcquireErrorKind::Taken => {} // another machine has it
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # async fn report() {}
    /// # Ok(())
    /// # }
    /// ```
    pub fn leave_until_expiry(self) -> Deadline {
        let deadline = self.deadline();
        self.driver().leave(self.lock);
        deadline
    }

    /// Returns the token that the nodes store for this lease.
    #[must_use]
    pub fn owner(&self) -> &OwnerToken {
        &self.grant.token
    }

    /// Releases the lock and returns the outcome. If the future is dropped before it is ready, the
    /// release continues in the background.
    ///
    /// The releases are written at once. The future is ready when every node that can have the key
    /// has answered, and after one node timeout at the latest. [`Released::Unconfirmed`] names the
    /// nodes that were silent for that long. Dropping the lease releases it without waiting for any
    /// node.
    ///
    /// ```no_run
    /// # async fn example(lease: redlock_client::Lease) -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_client::Released;
    ///
    /// if let Released::Unconfirmed(nodes) = lease.release().await {
    ///     // Not a fault of ours: the key is there until it expires.
    ///     nodes.iter().for_each(|node| println!("released, but not confirmed by {node}"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(self) -> Released {
        let outcome = poll_fn(|context| {
            self.driver().serve(|driver| driver.poll_release(self.lock, context))
        });
        let outcome = outcome.await;
        released(outcome, self.driver())
    }

    fn driver(&self) -> &Arc<Driver> {
        self.redlock.driver()
    }
}

fn released(outcome: ReleaseOutcome, driver: &Driver) -> Released {
    if !outcome.unconfirmed.is_empty() {
        return Released::Unconfirmed(driver.unconfirmed(outcome));
    }
    if outcome.deleted.is_empty() { Released::AlreadyExpired } else { Released::Confirmed }
}

impl fmt::Debug for Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("Lease");
        fields.field("resource", &format_args!("{}", self.resource.escape_ascii()));
        fields.field("owner", self.owner()).field("remaining", &self.remaining());
        fields.finish_non_exhaustive()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.driver().abandon(self.lock);
    }
}

/// An extension that was requested, or waits for its turn.
struct Extending<'a> {
    lease: &'a Lease,
    ttl: Duration,
    extender: Option<Caller>,
}

impl Extending<'_> {
    fn poll(
        &mut self,
        context: &Context<'_>,
    ) -> Poll<Result<BootInstant, redlock_protocol::ExtendError>> {
        let Self { lease, ttl, extender } = self;
        lease.driver().serve(|it| it.poll_extended(lease.lock, *ttl, extender, context))
    }
}

impl Drop for Extending<'_> {
    fn drop(&mut self) {
        if let Some(extender) = self.extender {
            self.lease.driver().forget_extender(self.lease.lock, extender);
        }
    }
}

/// Future that is ready when a lease is over. May be polled again after that.
#[must_use = "futures do nothing unless polled"]
pub struct Lost {
    driver: Arc<Driver>,
    lock: LockId,
    watch: Option<Caller>,
}

impl Future for Lost {
    type Output = LostReason;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<LostReason> {
        let Self { driver, lock, watch } = self.get_mut();
        driver.serve(|it| it.poll_lost(*lock, watch, context))
    }
}

impl Clone for Lost {
    fn clone(&self) -> Self {
        Self { driver: Arc::clone(&self.driver), lock: self.lock, watch: None }
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Lost").finish_non_exhaustive()
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        if let Some(watch) = self.watch {
            self.driver.unwatch(self.lock, watch);
        }
    }
}
