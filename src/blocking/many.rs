//! Leases on several locks, and semaphores, of a thread.

use core::fmt;
use core::time::Duration;

use super::Acquire;
use super::park::block_on;
use crate::deadline::Deadline;
use crate::error::{CheckError, ExtendError, LostReason, Released, ResourceError};
use crate::many::{self, Permits};

/// The locks on several resources until the first of their deadlines. Dropping it releases them,
/// without waiting for any node.
///
/// Each method means the same as that of [`many::LeaseSet`].
#[must_use = "dropping the leases releases them"]
pub struct LeaseSet {
    inner: many::LeaseSet,
}

impl LeaseSet {
    pub(super) fn new(inner: many::LeaseSet) -> Self {
        Self { inner }
    }

    /// Returns the instant at which the first of the leases is over.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.inner.deadline()
    }

    /// Returns the time left to all leases: a snapshot.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.inner.remaining()
    }

    /// Returns true if all leases are alive at this instant.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// Checks that each lease has more than `need` left. Call it before each effect.
    ///
    /// # Errors
    ///
    /// The first lock whose lease is over or has too little time left, with the reason.
    pub fn check(&self, need: Duration) -> Result<(), ResourceError<LostReason>> {
        self.inner.check(need)
    }

    /// As [`LeaseSet::check`], and checks that a majority of the nodes is known to have each key.
    ///
    /// # Errors
    ///
    /// The first lock whose lease is over, has too little time left, or is in doubt.
    pub fn check_confirmed(&self, need: Duration) -> Result<(), ResourceError<CheckError>> {
        self.inner.check_confirmed(need)
    }

    /// Returns a handle by which another thread can wait for the end of the first lease.
    pub fn lost(&self) -> LostAny {
        LostAny { inner: self.inner.lost() }
    }

    /// Extends all leases to `ttl` from now, less drift. Blocks until majorities have confirmed it,
    /// but no longer than the leases live.
    ///
    /// # Errors
    ///
    /// The first lock whose lease was not extended; the others may have been.
    pub fn extend(&self, ttl: Duration) -> Result<Deadline, ResourceError<ExtendError>> {
        block_on(self.inner.extend(ttl))
    }

    /// Keeps all keys until they expire, without releasing them.
    pub fn leave_until_expiry(self) -> Deadline {
        self.inner.leave_until_expiry()
    }

    /// Releases all locks and returns the nodes' answers. Blocks for one node timeout at most.
    pub fn release(self) -> Released {
        block_on(self.inner.release())
    }
}

impl fmt::Debug for LeaseSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

/// The end of the first of several leases, to wait for in any thread.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until `wait` is called"]
pub struct LostAny {
    inner: many::LostAny,
}

impl LostAny {
    /// Blocks until a lease is over, or released, and returns its lock and the reason.
    pub fn wait(self) -> ResourceError<LostReason> {
        block_on(self.inner)
    }
}

/// A lock that up to a fixed number of clients hold at once. See [`many::Semaphore`].
#[derive(Clone, Debug)]
pub struct Semaphore {
    inner: many::Semaphore,
}

impl Semaphore {
    pub(super) fn new(inner: many::Semaphore) -> Self {
        Self { inner }
    }

    /// Acquires a permit, retrying until the configured wait is over.
    pub fn acquire(&self) -> Acquire<'_, Permits<'_>> {
        Acquire::new(self.inner.acquire())
    }

    /// Acquires a permit without waiting for a holder.
    pub fn try_acquire(&self) -> Acquire<'_, Permits<'_>> {
        Acquire::new(self.inner.try_acquire())
    }
}
