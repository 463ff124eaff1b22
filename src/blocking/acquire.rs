//! Acquisition of a lock by a thread.

use core::time::Duration;

use super::park::block_on;
use super::{Lease, LeaseSet};
use crate::acquire::KeepAlive;
use crate::error::{AcquireError, LostReason, ResourceError, WithError};
use crate::many::{Permits, Resources};
use crate::resource::Resource;
use crate::work::flat;

/// An acquisition that has not begun: add options, then call `block`.
///
/// The options are those of [`crate::Acquire`].
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing until `block` or `with` is called"]
pub struct Acquire<'a, W = Resource<'a>> {
    inner: crate::Acquire<'a, W>,
}

impl<'a, W> Acquire<'a, W> {
    pub(super) fn new(inner: crate::Acquire<'a, W>) -> Self {
        Self { inner }
    }

    /// Sets the time to live of the keys, instead of the client's TTL.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self::new(self.inner.ttl(ttl))
    }

    /// Limits the time for retries: no attempt begins later than `wait` after the call.
    pub fn wait(self, wait: Duration) -> Self {
        Self::new(self.inner.wait(wait))
    }

    /// Limits the number of attempts, however long they take.
    pub fn attempts(self, attempts: u32) -> Self {
        Self::new(self.inner.attempts(attempts))
    }

    /// Sets the minimum validity: a lease with no more than this left is not delivered.
    pub fn min_validity(self, validity: Duration) -> Self {
        Self::new(self.inner.min_validity(validity))
    }

    /// Extends the lease automatically, within the limit of `keep_alive`, on the client's own
    /// thread.
    pub fn keep_alive(self, keep_alive: KeepAlive) -> Self {
        Self::new(self.inner.keep_alive(keep_alive))
    }
}

impl Acquire<'_> {
    /// Blocks until the lock is acquired, or the wait is over.
    ///
    /// # Errors
    ///
    /// If the wait ended without a lease. The error distinguishes a taken lock from missing nodes,
    /// and has each node's answer.
    pub fn block(self) -> Result<Lease, AcquireError> {
        block_on(self.inner).map(Lease::new)
    }

    /// Acquires the lock, runs `work` under it, and releases it, also if the work panics.
    ///
    /// The work is not stopped when the lease is over: it calls [`Lease::check`] before each
    /// effect.
    ///
    /// ```no_run
    /// # fn example(redlock: redlock_client::blocking::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_client::WithError;
    ///
    /// match redlock.acquire("import").with(|lease| import(lease)) {
    ///     Ok(rows) => println!("imported {rows} rows"),
    ///     Err(WithError::Acquire(error)) => println!("not begun: {error}"),
    ///     Err(WithError::LostAfter(rows)) => println!("{rows} rows, the last ones too late"),
    ///     Err(other) => return Err(other.into()),
    /// }
    /// # fn import(_: &redlock_client::blocking::Lease) -> u64 { 1 }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the lock was not acquired, or the lease ended before the work did. The output of work
    /// that finished too late is returned in [`WithError::LostAfter`]; [`WithError::Lost`] is never
    /// returned.
    pub fn with<T>(self, work: impl FnOnce(&Lease) -> T) -> Result<T, WithError<T>> {
        hold(self.block(), work)
    }

    /// As `with`, for work that returns a `Result`.
    ///
    /// # Errors
    ///
    /// The work's own error; or, converted into its type, the error of `with`. A value that came too
    /// late is dropped.
    pub fn try_with<T, E>(self, work: impl FnOnce(&Lease) -> Result<T, E>) -> Result<T, E>
    where
        E: From<WithError<()>>,
    {
        flat(self.with(work))
    }
}

impl Acquire<'_, Permits<'_>> {
    /// Blocks until a permit is acquired, or the wait is over.
    ///
    /// # Errors
    ///
    /// If the wait ended without a permit.
    pub fn block(self) -> Result<Lease, AcquireError> {
        block_on(self.inner).map(Lease::new)
    }

    /// Acquires a permit, runs `work` under it, and releases it. The work is not stopped when the
    /// lease is over.
    ///
    /// # Errors
    ///
    /// If no permit was acquired, or its lease ended before the work did ([`WithError::LostAfter`]).
    pub fn with<T>(self, work: impl FnOnce(&Lease) -> T) -> Result<T, WithError<T>> {
        hold(self.block(), work)
    }

    /// As `with`, for work that returns a `Result`.
    ///
    /// # Errors
    ///
    /// The work's own error; or, converted into its type, the error of `with`. A value that came too
    /// late is dropped.
    pub fn try_with<T, E>(self, work: impl FnOnce(&Lease) -> Result<T, E>) -> Result<T, E>
    where
        E: From<WithError<()>>,
    {
        flat(self.with(work))
    }
}

fn hold<T>(
    acquired: Result<Lease, AcquireError>,
    work: impl FnOnce(&Lease) -> T,
) -> Result<T, WithError<T>> {
    let lease = acquired.map_err(WithError::Acquire)?;
    let value = work(&lease);
    let is_alive = lease.is_valid();
    lease.release();
    if is_alive { Ok(value) } else { Err(WithError::LostAfter(value)) }
}

impl Acquire<'_, Resources<'_>> {
    /// Blocks until all locks are acquired, or the wait is over.
    ///
    /// # Errors
    ///
    /// If the wait ended without all leases; then none is left.
    pub fn block(self) -> Result<LeaseSet, AcquireError> {
        block_on(self.inner).map(LeaseSet::new)
    }

    /// Acquires all locks, runs `work` under them, and releases them. The work is not stopped when
    /// a lease is over.
    ///
    /// # Errors
    ///
    /// If the locks were not acquired, or a lease ended before the work did
    /// ([`WithError::LostAfter`]).
    pub fn with<T>(
        self,
        work: impl FnOnce(&LeaseSet) -> T,
    ) -> Result<T, WithError<T, ResourceError<LostReason>>> {
        let leases = self.block().map_err(WithError::Acquire)?;
        let value = work(&leases);
        let are_alive = leases.is_valid();
        leases.release();
        if are_alive { Ok(value) } else { Err(WithError::LostAfter(value)) }
    }

    /// As `with`, for work that returns a `Result`.
    ///
    /// # Errors
    ///
    /// The work's own error; or, converted into its type, the error of `with`. A value that came too
    /// late is dropped.
    pub fn try_with<T, E>(self, work: impl FnOnce(&LeaseSet) -> Result<T, E>) -> Result<T, E>
    where
        E: From<WithError<(), ResourceError<LostReason>>>,
    {
        flat(self.with(work))
    }
}
