//! The lock, while it is held.

use core::fmt;
use core::future::{Future, IntoFuture, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use crate::client::Redlock;
use crate::deadline::Deadline;
use crate::driver::{Driver, Extender, Watch};
use crate::error::{ExtendError, LostReason, Released};
use crate::protocol::{self, BootInstant, Grant, LockId, ReleaseOutcome, Token as OwnerToken};

/// The lock on a resource until a deadline. Dropping it releases it.
///
/// It ends by itself: whoever works under it asks [`Lease::check`] before each effect, or stops
/// when [`Lease::lost`] is ready. It cannot protect a resource from an effect that was under way
/// when it ended: no lease can.
#[must_use = "dropping a lease releases it"]
pub struct Lease {
    redlock: Redlock,
    lock: LockId,
    grant: Grant,
}

impl Lease {
    pub(crate) fn new(redlock: Redlock, lock: LockId, grant: Grant) -> Self {
        Self { redlock, lock, grant }
    }

    /// When the lease is over.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        Deadline(self.driver().deadline(self.lock).unwrap_or(self.grant.deadline))
    }

    /// How much is left of the lease: a snapshot that is too long as soon as it is looked at.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if !self.is_valid() {
            return Duration::ZERO;
        }
        let deadline = self.deadline().0;
        deadline.since(self.driver().environment().now())
    }

    /// Whether the lease is alive at this instant.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check(Duration::ZERO).is_ok()
    }

    /// Whether the lease has more than `need` left. To be asked before each effect.
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
    /// Says why not.
    pub fn check(&self, need: Duration) -> Result<(), LostReason> {
        self.driver().check(self.lock, need)
    }

    /// Ready when the lease is over. Needs no network: while this process runs, that is before
    /// any counted key can expire; after a pause, at the next poll.
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

    /// Does `work` as long as the lease is alive; the work is dropped when the lease is over. Dropping
    /// the future drops the work and keeps the lease.
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
    /// If the lease was over before the work was done.
    pub async fn guard<F: IntoFuture>(&self, work: F) -> Result<F::Output, LostReason> {
        let (value, alive) = self.attend(work.into_future()).await?;
        alive.map(|()| value)
    }

    /// Does `work` until the lease is over, and says whether it still was alive behind the work.
    pub(crate) async fn attend<F: Future>(
        &self,
        work: F,
    ) -> Result<(F::Output, Result<(), LostReason>), LostReason> {
        let (mut lost, mut work) = (self.lost(), pin!(work));
        poll_fn(|context| {
            if let Poll::Ready(reason) = Pin::new(&mut lost).poll(context) {
                return Poll::Ready(Err(reason));
            }
            let value = core::task::ready!(work.as_mut().poll(context));
            Poll::Ready(Ok((value, self.check(Duration::ZERO))))
        })
        .await
    }

    /// Makes the lease end `ttl` from now, less drift. It succeeds if a majority has had the key all
    /// the time and says so before the lease is over; it never shortens the lease.
    ///
    /// If another extension is under way, this one begins after it. Dropped half-way, keys may live
    /// longer; the deadline moves only if the nodes' answers come in time.
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
    /// The lease is then what it was: its deadline has not moved, unless it was lost meanwhile.
    pub async fn extend(&self, ttl: Duration) -> Result<Deadline, ExtendError> {
        self.redlock.settings().validate_ttl(ttl)?;
        let mut extending = Extending { lease: self, ttl, extender: None };
        let extended = poll_fn(|context| extending.poll(context)).await;
        extended.map(Deadline).map_err(|reason| {
            let lost = self.check(Duration::ZERO).err();
            lost.map_or_else(|| ExtendError::new(reason, ttl), ExtendError::lost)
        })
    }

    /// Lets the lease end by itself: its keys live until they expire. For work that must not be done
    /// again before its time, done or not.
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

    /// What the nodes hold for this lease.
    #[must_use]
    pub fn owner(&self) -> &OwnerToken {
        &self.grant.token
    }

    /// Gives the lock back, and says what the nodes answered. Dropped half-way it goes on in the
    /// background.
    ///
    /// The releases are written at once. Ready when every node that can have the key has answered,
    /// and after one node timeout at the latest: a node that has been silent for so long is named in
    /// [`Released::Unconfirmed`]. Dropping the lease releases it without waiting for anybody.
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
    let ReleaseOutcome { deleted, unconfirmed, .. } = outcome;
    if !unconfirmed.is_empty() {
        return Released::Unconfirmed(driver.unconfirmed(unconfirmed));
    }
    if deleted.is_empty() { Released::AlreadyExpired } else { Released::Confirmed }
}

impl fmt::Debug for Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("Lease");
        fields.field("owner", self.owner()).field("remaining", &self.remaining());
        fields.finish_non_exhaustive()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.driver().abandon(self.lock);
    }
}

/// An extension that is asked for, or waits for its turn.
struct Extending<'a> {
    lease: &'a Lease,
    ttl: Duration,
    extender: Option<Extender>,
}

impl Extending<'_> {
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<BootInstant, protocol::ExtendError>> {
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

/// The end of a lease. May be polled again after it was ready.
#[must_use = "futures do nothing unless polled"]
pub struct Lost {
    driver: Arc<Driver>,
    lock: LockId,
    watch: Option<Watch>,
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
