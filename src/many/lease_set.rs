//! Leases that were granted together.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use super::together::all;
use crate::attend::attend;
use crate::deadline::Deadline;
use crate::error::{CheckError, ExtendError, LostReason, NodeAnswer, Released, ResourceError};
use crate::lease::{Lease, Lost};

/// The locks on several resources until the first of their deadlines. Dropping it releases them.
///
/// Each method does to all leases what the method of [`Lease`] with the same name does to one. An
/// error names the lock.
#[must_use = "dropping the leases releases them"]
pub struct LeaseSet {
    /// At least one, in the order of the names.
    leases: Vec<Lease>,
}

impl LeaseSet {
    pub(super) fn new(leases: Vec<Lease>) -> Self {
        debug_assert!(!leases.is_empty(), "an acquisition has at least one resource");
        Self { leases }
    }

    /// Returns the leases with the names of their locks, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Lease)> {
        self.leases.iter().map(|lease| (lease.resource(), lease))
    }

    /// Returns the instant at which the first of the leases is over.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        let deadlines = self.leases.iter().map(Lease::deadline);
        deadlines.min().expect("a set has at least one lease")
    }

    /// Returns the time left to all leases. The value is a snapshot: it is outdated as soon as it is
    /// returned.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.leases.iter().map(Lease::remaining).min().unwrap_or_default()
    }

    /// Returns the instant at which the first of the leases is over on tokio's clock. As for
    /// [`Lease::tokio_deadline`], the conversion loses time asleep.
    #[must_use]
    pub fn tokio_deadline(&self) -> tokio::time::Instant {
        let deadlines = self.leases.iter().map(Lease::tokio_deadline);
        deadlines.min().expect("a set has at least one lease")
    }

    /// Returns true if all leases are alive at this instant.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check(Duration::ZERO).is_ok()
    }

    /// Checks that each lease has more than `need` left. Call it before each effect.
    ///
    /// # Errors
    ///
    /// The first lock whose lease is over or has too little time left, with the reason.
    pub fn check(&self, need: Duration) -> Result<(), ResourceError<LostReason>> {
        self.each(|lease| lease.check(need))
    }

    /// As [`LeaseSet::check`], and checks that a majority of the nodes is known to have each key.
    ///
    /// # Errors
    ///
    /// The first lock whose lease is over, has too little time left, or is in doubt.
    pub fn check_confirmed(&self, need: Duration) -> Result<(), ResourceError<CheckError>> {
        self.each(|lease| lease.check_confirmed(need))
    }

    fn each<E>(&self, check: impl Fn(&Lease) -> Result<(), E>) -> Result<(), ResourceError<E>> {
        let mut leases = self.leases.iter();
        leases.try_for_each(|lease| {
            check(lease).map_err(|error| ResourceError::new(lease.name(), error))
        })
    }

    /// Returns a future that is ready when one of the leases is over. The others go on until the set
    /// is released or dropped.
    pub fn lost(&self) -> LostAny {
        let lost = |lease: &Lease| (Arc::clone(lease.name()), lease.lost());
        LostAny { leases: self.leases.iter().map(lost).collect() }
    }

    /// Runs `work` as long as all leases are alive; the work is dropped when one is over. Dropping
    /// the future drops the work and keeps the leases.
    ///
    /// # Errors
    ///
    /// If a lease was over before the work finished.
    pub async fn guard<F: IntoFuture>(
        &self,
        work: F,
    ) -> Result<F::Output, ResourceError<LostReason>> {
        let check = || self.check(Duration::ZERO);
        let (value, alive) = attend(self.lost(), check, work.into_future()).await?;
        alive.map(|()| value)
    }

    /// Extends all leases to `ttl` from now, less drift, at the same time. Returns the first of
    /// their deadlines.
    ///
    /// # Errors
    ///
    /// The first lock whose lease was not extended. The others may have been extended; the set ends
    /// at the first deadline, as before.
    pub async fn extend(&self, ttl: Duration) -> Result<Deadline, ResourceError<ExtendError>> {
        let extended = all(self.leases.iter().map(|lease| lease.extend(ttl))).await;
        for (lease, extended) in self.leases.iter().zip(extended) {
            extended.map_err(|error| ResourceError::new(lease.name(), error))?;
        }
        Ok(self.deadline())
    }

    /// Keeps all keys until they expire, without releasing them. Returns the first deadline.
    pub fn leave_until_expiry(self) -> Deadline {
        let deadlines = self.leases.into_iter().map(Lease::leave_until_expiry);
        deadlines.min().expect("a set has at least one lease")
    }

    /// Releases all locks at the same time and returns the nodes' answers: each node that is silent
    /// on one of the locks is named once. If the future is dropped half-way, the releases go on in
    /// the background.
    pub async fn release(self) -> Released {
        let released = all(self.leases.into_iter().map(Lease::release)).await;
        released.into_iter().reduce(both).expect("a set has at least one lease")
    }
}

/// Returns the outcome of two releases.
fn both(one: Released, other: Released) -> Released {
    match (one, other) {
        (Released::Unconfirmed(mut nodes), Released::Unconfirmed(others)) => {
            nodes.extend(others);
            nodes.sort_by_key(|node| node.place);
            nodes.dedup_by_key(|node: &mut NodeAnswer| node.place);
            Released::Unconfirmed(nodes)
        }
        (Released::Unconfirmed(nodes), _) | (_, Released::Unconfirmed(nodes)) => {
            Released::Unconfirmed(nodes)
        }
        (Released::AlreadyExpired, Released::AlreadyExpired) => Released::AlreadyExpired,
        _ => Released::Confirmed,
    }
}

impl fmt::Debug for LeaseSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leases = self.iter().map(|(resource, lease)| (resource.escape_ascii(), lease));
        let named = leases.map(|(resource, lease)| (resource.to_string(), lease));
        formatter.debug_map().entries(named).finish()
    }
}

/// Future of the end of the first of several leases. May be polled again after it was ready.
#[derive(Clone, Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct LostAny {
    /// Once one is lost, only that one.
    leases: Vec<(Arc<[u8]>, Lost)>,
}

impl Future for LostAny {
    type Output = ResourceError<LostReason>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        for place in 0..self.leases.len() {
            let (resource, lost) = &mut self.leases[place];
            if let Poll::Ready(reason) = Pin::new(lost).poll(context) {
                let loss = ResourceError::new(resource, reason);
                self.leases.swap(0, place);
                self.leases.truncate(1);
                return Poll::Ready(loss);
            }
        }
        Poll::Pending
    }
}
