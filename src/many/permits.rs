//! Semaphore: any one of several locks.

use core::future::{Future, IntoFuture, poll_fn};
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;

use redlock_protocol::Limit;

use super::passes::Passes;
use crate::acquire::{Acquire, Acquiring};
use crate::client::Redlock;
use crate::environment::BoxFuture;
use crate::error::{AcquireError, AcquireErrorKind, OptionError, WithError};
use crate::lease::Lease;
use crate::resource::Resource;
use crate::work::{flat, hold};

/// Largest number of permits of a semaphore: an acquisition may ask for each of them.
pub const PERMITS_MAX: usize = 64;

/// A lock that up to a fixed number of clients hold at once. A permit is a [`Lease`] on one of the
/// locks `NAME#0`, `NAME#1` and so on.
#[derive(Clone, Debug)]
pub struct Semaphore {
    redlock: Redlock,
    name: Box<[u8]>,
    permits: usize,
}

/// Locks of a semaphore, of which one is acquired.
#[derive(Clone, Copy, Debug)]
pub struct Permits<'a> {
    name: &'a [u8],
    permits: usize,
}

impl Redlock {
    /// Returns the semaphore `name` with 1 to [`PERMITS_MAX`] permits. Sends nothing. All clients of
    /// a semaphore must be given the same number; otherwise the largest one counts.
    ///
    /// ```no_run
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// let exports = redlock.semaphore("exports", 3);
    /// let permit = exports.acquire().await?;
    /// println!("at most three exports run in the whole fleet");
    /// permit.release().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn semaphore<'a>(&self, name: impl Into<Resource<'a>>, permits: usize) -> Semaphore {
        let name = name.into();
        Semaphore { redlock: self.clone(), name: name.as_bytes().into(), permits }
    }
}

impl Semaphore {
    /// Acquires a permit, retrying until the configured wait is over.
    ///
    /// # Errors
    ///
    /// The awaited acquisition fails with an [`AcquireError`] if the wait ended without a permit:
    /// with [`AcquireErrorKind::Taken`] if all were taken. [`AcquireError::resource`] then names the
    /// permit that is free first, as far as is known.
    pub fn acquire(&self) -> Acquire<'_, Permits<'_>> {
        let Self { redlock, name, permits } = self;
        Acquire::new(redlock, Permits { name, permits: *permits })
    }

    /// Acquires a permit without waiting for a holder: asks for each permit once.
    ///
    /// # Errors
    ///
    /// Same as for [`Semaphore::acquire`].
    pub fn try_acquire(&self) -> Acquire<'_, Permits<'_>> {
        self.acquire().at_once()
    }
}

impl Permits<'_> {
    /// Returns the names of the locks.
    fn names(self) -> Result<Vec<Vec<u8>>, OptionError> {
        let Self { name, permits } = self;
        if name.is_empty() {
            return Err(OptionError::EmptyResource);
        }
        if !(1..=PERMITS_MAX).contains(&permits) {
            return Err(OptionError::Permits { permits, most: PERMITS_MAX });
        }
        Ok((0..permits).map(|number| [name, format!("#{number}").as_bytes()].concat()).collect())
    }
}

impl Acquire<'_, Permits<'_>> {
    /// Acquires a permit, runs `work` under it, and releases it. The work is dropped as soon as the
    /// lease is over. Dropping the future drops the work and releases the permit; so does a panic
    /// in the work.
    ///
    /// # Errors
    ///
    /// If no permit was acquired, or its lease ended before the work did. The output of work that
    /// finished too late is returned in [`WithError::LostAfter`].
    pub async fn with<T>(self, work: impl AsyncFnOnce(&Lease) -> T) -> Result<T, WithError<T>> {
        hold(self.await, work).await
    }

    /// As `with`, for work that returns a `Result`.
    ///
    /// # Errors
    ///
    /// The work's own error; or, converted into its type, the error of `with`. A value that came too
    /// late is dropped.
    pub async fn try_with<T, E>(
        self,
        work: impl AsyncFnOnce(&Lease) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<WithError<()>>,
    {
        flat(self.with(work).await)
    }

    /// Returns the names of the locks, if neither they nor the options are invalid.
    fn names(&self) -> Result<Vec<Vec<u8>>, OptionError> {
        let names = self.what().names()?;
        let canary_key = self.redlock().driver().canary_key();
        for name in &names {
            Resource::from(&**name).validate(canary_key)?;
        }
        self.validate_options()?;
        Ok(names)
    }
}

impl<'a> IntoFuture for Acquire<'a, Permits<'a>> {
    type Output = Result<Lease, AcquireError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let names = self.names()?;
            acquire_one(&self, &names).await
        })
    }
}

/// Asks for each permit in turn, in a random order, except for those that others have next. If all are
/// taken, waits for all of them at once.
async fn acquire_one(
    acquire: &Acquire<'_, Permits<'_>>,
    names: &[Vec<u8>],
) -> Result<Lease, AcquireError> {
    let mut passes = Passes::new(acquire);
    loop {
        let names = shuffled(names, &passes)?;
        let error = match try_each(acquire, &names, &passes).await {
            Ok(lease) => return Ok(lease),
            Err(Some(error)) => error,
            Err(None) => return wait_for_any(acquire, &names, &passes).await,
        };
        let all_are_taken = error.is_contention();
        passes.next(passes.now(), error).await?;
        match passes.wait_ends() {
            Some(_) if all_are_taken => return wait_for_any(acquire, &names, &passes).await,
            // Waiting for each of them would take all of them as soon as the nodes are back.
            Some(end) => passes.ready(end).await?,
            None => {}
        }
    }
}

/// Returns `names` in a random order, so that clients spread over the permits.
fn shuffled<'a>(names: &'a [Vec<u8>], passes: &Passes<'_>) -> Result<Vec<&'a [u8]>, AcquireError> {
    let mut drawn = vec![0; names.len() * size_of::<u64>()];
    passes.draw(&mut drawn)?;
    let (drawn, _) = drawn.as_chunks::<{ size_of::<u64>() }>();
    let mut drawn: Vec<_> = drawn.iter().zip(names).collect();
    drawn.sort();
    Ok(drawn.into_iter().map(|(_, name)| &**name).collect())
}

/// Asks for each of the locks until one is granted.
///
/// # Errors
///
/// The reason why none was granted; nothing if others have each of them next.
async fn try_each(
    acquire: &Acquire<'_, Permits<'_>>,
    names: &[&[u8]],
    passes: &Passes<'_>,
) -> Result<Lease, Option<AcquireError>> {
    let mut refused = None;
    for name in names {
        if passes.lets_others_go_first(name) {
            continue;
        }
        match acquire.of_one(Resource::from(*name), Limit::AT_ONCE).await {
            Ok(lease) => return Ok(lease),
            Err(error) if error.is_contention() => {
                refused = Some(soonest(refused, error.on(name)));
            }
            Err(error) => return Err(Some(error.on(name))),
        }
    }
    Err(refused)
}

/// Waits for all of the locks at once, until one is granted. The other acquisitions are dropped:
/// they hold nothing as a rule, and release what they may have set.
async fn wait_for_any(
    acquire: &Acquire<'_, Permits<'_>>,
    names: &[&[u8]],
    passes: &Passes<'_>,
) -> Result<Lease, AcquireError> {
    let wait = |&name| (name, acquire.of_one(Resource::from(name), passes.empty_handed()));
    let mut waiting: Vec<(&[u8], Acquiring<'_>)> = names.iter().map(wait).collect();
    let mut refused = None;
    poll_fn(|context| {
        let mut place = 0;
        while let Some((name, acquiring)) = waiting.get_mut(place) {
            match Pin::new(acquiring).poll(context) {
                Poll::Pending => place += 1,
                Poll::Ready(Ok(lease)) => return Poll::Ready(Ok(lease)),
                Poll::Ready(Err(error)) => {
                    refused = Some(soonest(refused.take(), error.on(name)));
                    drop(waiting.remove(place));
                }
            }
        }
        if waiting.is_empty() { Poll::Ready(Err(refused.take())) } else { Poll::Pending }
    })
    .await
    .map_err(|refused| passes.last(refused.expect("a semaphore has at least one permit")))
}

/// Returns the more useful of two errors: that of a permit that is not taken, or is free sooner.
fn soonest(one: Option<AcquireError>, other: AcquireError) -> AcquireError {
    let Some(one) = one else { return other };
    let rank = |error: &AcquireError| match error.kind() {
        AcquireErrorKind::Taken => error.retry_after().unwrap_or(Duration::MAX),
        _ => Duration::ZERO,
    };
    if rank(&other) < rank(&one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &[u8], permits: usize) -> Result<Vec<Vec<u8>>, OptionError> {
        Permits { name, permits }.names()
    }

    #[test]
    fn permits_are_numbered() {
        assert_eq!(names(b"pool", 2).unwrap(), [b"pool#0", b"pool#1"]);
        assert_eq!(names(b"pool#0", 1).unwrap(), [b"pool#0#0"], "no permit of another semaphore");
        assert_eq!(names(b"pool", PERMITS_MAX).unwrap().len(), PERMITS_MAX);
    }

    #[test]
    fn numbers_of_permits_that_make_no_sense_are_refused() {
        for permits in [0, PERMITS_MAX + 1, usize::MAX] {
            let refused = OptionError::Permits { permits, most: PERMITS_MAX };
            assert_eq!(names(b"pool", permits), Err(refused));
        }
        assert_eq!(names(b"", 1), Err(OptionError::EmptyResource));
    }

    #[test]
    fn error_of_the_permit_that_is_free_first_is_returned() {
        let taken = |name: &[u8], left| {
            let left = Duration::from_secs(left);
            AcquireError::new(AcquireErrorKind::Taken).until(Some(left)).on(name)
        };
        let unknown = AcquireError::new(AcquireErrorKind::Taken).on(b"unknown");
        let split = AcquireError::new(AcquireErrorKind::Split).on(b"split");
        let first = |errors: [AcquireError; 2]| {
            let first = errors.into_iter().fold(None, |one, other| Some(soonest(one, other)));
            first.unwrap().resource().map(<[u8]>::to_vec).unwrap()
        };
        assert_eq!(first([taken(b"late", 3), taken(b"soon", 1)]), b"soon");
        assert_eq!(first([taken(b"soon", 1), unknown.clone()]), b"soon");
        assert_eq!(first([unknown, taken(b"late", 3)]), b"late");
        assert_eq!(first([taken(b"soon", 1), split]), b"split");
    }
}
