//! The client for threads without `async`: scripts, rayon, diesel.
//!
//! This is the same client with the same guarantees. It runs on a thread of its own, which extends
//! leases, detects losses and sends releases independently of the caller's threads.
//!
//! ```no_run
//! # use core::time::Duration;
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use redlock_client::Redlock;
//!
//! let redlock = Redlock::builder()
//!     .nodes(["redis://a:6379", "redis://b:6379", "redis://c:6379"])
//!     .ttl(Duration::from_secs(10))
//!     .fleet_max_ttl(Duration::from_secs(30))
//!     .build_blocking()?;
//! let lease = redlock.acquire("invoice/42").wait(Duration::from_secs(5)).block()?;
//! lease.check(Duration::from_secs(1))?; // fails unless more than 1 s is left; call before each effect
//! println!("invoice 42 is being sent");
//! lease.release();
//! # Ok(())
//! # }
//! ```
//!
//! Names and defaults are those of the asynchronous client. These things differ:
//!
//! - Call [`Acquire::block`] where asynchronous code uses `.await`.
//! - **Nothing can drop a thread's work when its lease is over.** There is no `guard`, and
//!   [`Acquire::with`] does not stop its work: the work must call [`Lease::check`] before each
//!   effect. Another thread can wait for the end of the lease with [`Lost::wait`].
//! - Every function that waits parks its thread. In asynchronous code use [`crate::Redlock`]: a
//!   parked executor runs no other task. (The lease itself is not affected.)
//! - There is no `tokio_deadline`, and a [`LeaseSet`] has no `iter`.
//!
//! The client's thread ends with the process. Call [`Lease::release`] or [`Redlock::close`] before
//! the process ends; otherwise the keys of a dropped lease may stay until they expire.

mod acquire;
mod lease;
mod many;
mod park;

use core::time::Duration;

pub use self::acquire::Acquire;
pub use self::lease::{Lease, Lost};
pub use self::many::{LeaseSet, LostAny, Semaphore};
use self::park::block_on;
use crate::builder::Builder;
use crate::error::{AcquireError, BuildError, Closed};
use crate::health::Health;
use crate::inspect::{Inspection, LockInspection};
use crate::many::Resources;
use crate::resource::Resource;

/// A client whose calls block the calling thread. Clones share connections.
///
/// Built by [`Builder::build_blocking`].
#[derive(Clone, Debug)]
pub struct Redlock {
    inner: crate::Redlock,
}

impl Builder {
    /// Builds a client for threads without `async`, on a [background
    /// thread](Builder::background_thread) that starts with its first use. See
    /// [`blocking`](crate::blocking).
    ///
    /// # Errors
    ///
    /// Same as for [`Builder::build`].
    pub fn build_blocking(self) -> Result<Redlock, BuildError> {
        let builder = if self.has_environment() { self } else { self.background_thread() };
        builder.build().map(|inner| Redlock { inner })
    }
}

impl Redlock {
    /// Acquires the lock on `resource`, retrying until the configured wait is over. Add options,
    /// then call `block()`.
    pub fn acquire<'a>(&'a self, resource: impl Into<Resource<'a>>) -> Acquire<'a> {
        Acquire::new(self.inner.acquire(resource))
    }

    /// Acquires the lock on `resource` without waiting for its current holder. See
    /// [`Redlock::try_acquire`](crate::Redlock::try_acquire) of the asynchronous client.
    pub fn try_acquire<'a>(&'a self, resource: impl Into<Resource<'a>>) -> Acquire<'a> {
        Acquire::new(self.inner.try_acquire(resource))
    }

    /// Acquires the locks on all of `resources`, or none. See
    /// [`Redlock::acquire_all`](crate::Redlock::acquire_all) of the asynchronous client.
    pub fn acquire_all<'a, R: Into<Resource<'a>>>(
        &'a self,
        resources: impl IntoIterator<Item = R>,
    ) -> Acquire<'a, Resources<'a>> {
        Acquire::new(self.inner.acquire_all(resources))
    }

    /// Acquires the locks on all of `resources`, or none, in one pass that waits for no holder.
    pub fn try_acquire_all<'a, R: Into<Resource<'a>>>(
        &'a self,
        resources: impl IntoIterator<Item = R>,
    ) -> Acquire<'a, Resources<'a>> {
        Acquire::new(self.inner.try_acquire_all(resources))
    }

    /// Returns the semaphore `name`. See [`Redlock::semaphore`](crate::Redlock::semaphore) of the
    /// asynchronous client.
    #[must_use]
    pub fn semaphore<'a>(&self, name: impl Into<Resource<'a>>, permits: usize) -> Semaphore {
        Semaphore::new(self.inner.semaphore(name, permits))
    }

    /// Opens all connections, and blocks until a lock can be acquired.
    ///
    /// # Errors
    ///
    /// If no lock can be acquired `within` that time. See [`Redlock::ready`](crate::Redlock::ready)
    /// of the asynchronous client.
    pub fn ready(&self, within: Duration) -> Result<(), AcquireError> {
        block_on(self.inner.ready(within))
    }

    /// Returns the known state of the nodes. Sends nothing and never waits.
    #[must_use]
    pub fn health(&self) -> Health {
        self.inner.health()
    }

    /// Checks every node for problems that an operator should know before relying on it. See
    /// [`Redlock::inspect`](crate::Redlock::inspect) of the asynchronous client.
    #[must_use]
    pub fn inspect(&self) -> Inspection {
        block_on(self.inner.inspect())
    }

    /// Reads the key of `resource` on every node, to show people who holds the lock. See
    /// [`Redlock::inspect_lock`](crate::Redlock::inspect_lock) of the asynchronous client.
    #[must_use]
    pub fn inspect_lock<'a>(&self, resource: impl Into<Resource<'a>>) -> LockInspection {
        block_on(self.inner.inspect_lock(resource))
    }

    /// Deletes the keys in `seen`, each only if it still has the same value. Returns the state of
    /// the lock afterwards. **It takes the lock away from a holder that may be at work**: see
    /// [`Redlock::break_lock`](crate::Redlock::break_lock) of the asynchronous client.
    pub fn break_lock(&self, seen: &LockInspection) -> LockInspection {
        block_on(self.inner.break_lock(seen))
    }

    /// Ends every lease and acquisition of this client and all its clones, and blocks until every
    /// node has confirmed, but no longer than `within`.
    pub fn close(&self, within: Duration) -> Closed {
        block_on(self.inner.close(within))
    }
}
