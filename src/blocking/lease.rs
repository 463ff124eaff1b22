//! A lease that a thread holds.

use core::fmt;
use core::time::Duration;

use redlock_protocol::Token as OwnerToken;

use super::park::block_on;
use crate::deadline::Deadline;
use crate::error::{CheckError, ExtendError, LostReason, Released};
use crate::votes::Votes;

/// The lock on a resource until a deadline. Dropping it releases it, without waiting for any node.
///
/// A lease ends by itself. Work under a lease calls [`Lease::check`] before each effect.
#[must_use = "dropping a lease releases it"]
pub struct Lease {
    inner: crate::Lease,
}

impl Lease {
    pub(super) fn new(inner: crate::Lease) -> Self {
        Self { inner }
    }

    /// Returns the name of the locked resource; for a permit of a semaphore, that of its lock.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        self.inner.resource()
    }

    /// Returns the instant at which the lease is over.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.inner.deadline()
    }

    /// Returns the time left. The value is a snapshot: it is outdated as soon as it is returned.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.inner.remaining()
    }

    /// Returns true if the lease is alive at this instant.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// Checks that the lease has more than `need` left. Call it before each effect. Waits for
    /// nothing, and may be called from any number of threads.
    ///
    /// # Errors
    ///
    /// The reason why the lease is over or has too little time left.
    pub fn check(&self, need: Duration) -> Result<(), LostReason> {
        self.inner.check(need)
    }

    /// Returns the number of nodes that are known to have the key of this lease, and the number
    /// that may have it.
    #[must_use]
    pub fn votes(&self) -> Votes {
        self.inner.votes()
    }

    /// As [`Lease::check`], and checks that a majority of the nodes is known to have the key. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// The reason why the lease is over, has too little time left, or is in doubt.
    pub fn check_confirmed(&self, need: Duration) -> Result<(), CheckError> {
        self.inner.check_confirmed(need)
    }

    /// Returns a handle with which another thread can wait for the end of the lease.
    ///
    /// ```no_run
    /// # fn example(lease: redlock_client::blocking::Lease) {
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// let stop = AtomicBool::new(false);
    /// let lost = lease.lost();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         println!("the lease is over: {}", lost.wait()); // the release is an end, too
    ///         stop.store(true, Ordering::Relaxed);
    ///     });
    ///     while !stop.load(Ordering::Relaxed) && a_batch_is_left() {}
    ///     lease.release();
    /// });
    /// # fn a_batch_is_left() -> bool { false }
    /// # }
    /// ```
    pub fn lost(&self) -> Lost {
        Lost { inner: self.inner.lost() }
    }

    /// Extends the lease to `ttl` from now, less drift. Blocks until a majority has confirmed the
    /// extension, but no longer than until the deadline.
    ///
    /// # Errors
    ///
    /// If the lease was not extended. Its deadline is unchanged, unless the lease was lost
    /// meanwhile.
    pub fn extend(&self, ttl: Duration) -> Result<Deadline, ExtendError> {
        block_on(self.inner.extend(ttl))
    }

    /// Leaves the keys to expire instead of releasing them.
    pub fn leave_until_expiry(self) -> Deadline {
        self.inner.leave_until_expiry()
    }

    /// Returns the token that the nodes store for this lease.
    #[must_use]
    pub fn owner(&self) -> &OwnerToken {
        self.inner.owner()
    }

    /// Releases the lock and returns the outcome. Blocks for one node timeout at most.
    pub fn release(self) -> Released {
        block_on(self.inner.release())
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

/// The end of a lease, to wait for in any thread.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until `wait` is called"]
pub struct Lost {
    inner: crate::Lost,
}

impl Lost {
    /// Blocks until the lease is over, or released, and returns the reason.
    pub fn wait(self) -> LostReason {
        block_on(self.inner)
    }
}
