//! Acquisition of several locks: all or none.

use core::future::IntoFuture;
use core::time::Duration;

use redlock_protocol::{BootInstant, Limit};

use super::lease_set::LeaseSet;
use super::passes::Passes;
use crate::acquire::Acquire;
use crate::attend::{attend, outcome};
use crate::client::Redlock;
use crate::environment::BoxFuture;
use crate::error::{
    AcquireError, AcquireErrorKind, LostReason, OptionError, ResourceError, WithError,
};
use crate::lease::Lease;
use crate::resource::Resource;
use crate::work::flat;

/// Largest number of locks that are acquired together: a pass takes about a round trip for each.
pub const RESOURCES_MAX: usize = 64;

/// Names of several locks that are acquired together, in the order of their bytes.
#[derive(Clone, Debug)]
pub struct Resources<'a>(Result<Vec<Resource<'a>>, OptionError>);

impl<'a> Resources<'a> {
    fn new<R: Into<Resource<'a>>>(resources: impl IntoIterator<Item = R>) -> Self {
        let named = resources.into_iter().map(Into::into).take(RESOURCES_MAX + 1);
        Self(sort(named.collect()))
    }
}

/// Returns the names in the order of their bytes, which is the same in all clients.
fn sort(named: Vec<Resource<'_>>) -> Result<Vec<Resource<'_>>, OptionError> {
    if named.is_empty() {
        return Err(OptionError::NoResources);
    }
    if named.len() > RESOURCES_MAX {
        return Err(OptionError::TooManyResources { most: RESOURCES_MAX });
    }
    let mut placed: Vec<_> = named.into_iter().enumerate().collect();
    placed.sort_by(|(_, one), (_, other)| one.cmp(other)); // stable: equal names keep their places
    let twice = placed.windows(2).find(|pair| pair[0].1 == pair[1].1);
    if let Some(&[(first, _), (second, _)]) = twice {
        return Err(OptionError::DuplicateResource { first, second });
    }
    Ok(placed.into_iter().map(|(_, resource)| resource).collect())
}

impl Redlock {
    /// Acquires the locks on all of `resources`, or none: 1 to [`RESOURCES_MAX`] different names.
    /// Retries until the configured wait is over, and waits only while it holds none of them.
    ///
    /// ```no_run
    /// # use core::time::Duration;
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// let both = redlock.acquire_all(["account/7", "account/3"]).await?;
    /// both.check(Duration::from_secs(1))?;
    /// println!("money moves from 7 to 3");
    /// both.release().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The awaited acquisition fails with an [`AcquireError`] if the wait ended without all leases.
    /// [`AcquireError::resource`] names the lock that was missing in the last pass.
    pub fn acquire_all<'a, R: Into<Resource<'a>>>(
        &'a self,
        resources: impl IntoIterator<Item = R>,
    ) -> Acquire<'a, Resources<'a>> {
        Acquire::new(self, Resources::new(resources))
    }

    /// Acquires the locks on all of `resources`, or none, in one pass that waits for no holder.
    ///
    /// # Errors
    ///
    /// Same as for [`Redlock::acquire_all`].
    pub fn try_acquire_all<'a, R: Into<Resource<'a>>>(
        &'a self,
        resources: impl IntoIterator<Item = R>,
    ) -> Acquire<'a, Resources<'a>> {
        self.acquire_all(resources).at_once()
    }
}

impl Acquire<'_, Resources<'_>> {
    /// Acquires all locks, runs `work` under them, and releases them. The work is dropped as soon as
    /// one of the leases is over. Dropping the future drops the work and releases the leases; so
    /// does a panic in the work.
    ///
    /// # Errors
    ///
    /// If the locks were not acquired, or a lease ended before the work did. The output of work that
    /// finished too late is returned in [`WithError::LostAfter`].
    pub async fn with<T>(
        self,
        work: impl AsyncFnOnce(&LeaseSet) -> T,
    ) -> Result<T, WithError<T, ResourceError<LostReason>>> {
        let leases = self.await.map_err(WithError::Acquire)?;
        let attended = attend(leases.lost(), || leases.check(Duration::ZERO), work(&leases)).await;
        leases.release().await;
        outcome(attended)
    }

    /// As `with`, for work that returns a `Result`.
    ///
    /// # Errors
    ///
    /// The work's own error; or, converted into its type, the error of `with`. A value that came too
    /// late is dropped.
    pub async fn try_with<T, E>(
        self,
        work: impl AsyncFnOnce(&LeaseSet) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<WithError<(), ResourceError<LostReason>>>,
    {
        flat(self.with(work).await)
    }
}

impl<'a> IntoFuture for Acquire<'a, Resources<'a>> {
    type Output = Result<LeaseSet, AcquireError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { acquire_all(&self, self.resources()?).await })
    }
}

impl<'a> Acquire<'a, Resources<'a>> {
    /// Returns the names, if neither they nor the options are invalid.
    fn resources(&self) -> Result<&[Resource<'a>], AcquireError> {
        let resources = self.what().0.as_ref().map_err(|&why| AcquireError::from(why))?;
        let canary_key = self.redlock().driver().canary_key();
        for resource in resources {
            let valid = resource.validate(canary_key);
            valid.map_err(|why| AcquireError::from(why).on(resource.as_bytes()))?;
        }
        self.validate_options()?;
        Ok(resources)
    }
}

/// Plays passes until one has all locks. A pass begins with the lock that was missing in the one
/// before: it waits for that one while it holds none.
async fn acquire_all(
    acquire: &Acquire<'_, Resources<'_>>,
    resources: &[Resource<'_>],
) -> Result<LeaseSet, AcquireError> {
    let mut passes = Passes::new(acquire);
    let mut first = 0;
    loop {
        match pass(acquire, resources, first, &passes).await {
            Ok(leases) => return Ok(leases),
            Err(missing) => {
                passes.next(missing.since, missing.error).await?;
                first = missing.place;
            }
        }
    }
}

/// Lock that a pass did not get.
struct Missing {
    place: usize,
    error: AcquireError,
    /// Instant since which the pass has not waited.
    since: BootInstant,
}

/// Acquires the lock at `first`, then the others in order. What a failed pass holds is released
/// when it returns.
async fn pass(
    acquire: &Acquire<'_, Resources<'_>>,
    resources: &[Resource<'_>],
    first: usize,
    passes: &Passes<'_>,
) -> Result<LeaseSet, Missing> {
    let mut since = passes.now();
    let missing = |place: usize, error: AcquireError, since| {
        let error = error.on(resources[place].as_bytes());
        Missing { place, error, since }
    };
    let mut leases: Vec<(usize, Lease)> = Vec::with_capacity(resources.len());
    let others = (0..resources.len()).filter(|&place| place != first);
    for place in core::iter::once(first).chain(others) {
        let limit = if leases.is_empty() { passes.empty_handed() } else { Limit::AT_ONCE };
        let acquired = acquire.of_one(Resource::from(resources[place].as_bytes()), limit).await;
        let lease = acquired.map_err(|error| missing(place, error, since))?;
        if leases.is_empty() {
            since = passes.now();
        }
        leases.push((place, lease));
    }
    // The first leases have aged while the others were acquired.
    let validity = acquire.options().least_validity(acquire.redlock().settings());
    for (place, lease) in &leases {
        let aged = lease.check(validity).map_err(|reason| AcquireError::new(too_late(reason)));
        aged.map_err(|error| missing(*place, error, since))?;
    }
    leases.sort_by_key(|&(place, _)| place);
    Ok(LeaseSet::new(leases.into_iter().map(|(_, lease)| lease).collect()))
}

fn too_late(reason: LostReason) -> AcquireErrorKind {
    match reason {
        LostReason::Closed => AcquireErrorKind::Closed,
        _ => AcquireErrorKind::TooSlow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(names: &[&'static str]) -> Result<Vec<Vec<u8>>, OptionError> {
        let sorted = Resources::new(names.iter().copied()).0?;
        Ok(sorted.iter().map(|it| it.as_bytes().to_vec()).collect())
    }

    #[test]
    fn names_are_sorted_by_their_bytes() {
        let sorted = sorted(&["b", "a/10", "a/9", "B", "ä"]).unwrap();
        assert_eq!(sorted, ["B", "a/10", "a/9", "b", "ä"].map(|name| name.as_bytes().to_vec()));
    }

    #[test]
    fn names_that_cannot_be_locked_together_are_refused() {
        assert_eq!(sorted(&[]), Err(OptionError::NoResources));
        let twice = OptionError::DuplicateResource { first: 1, second: 3 };
        assert_eq!(sorted(&["a", "c", "b", "c"]), Err(twice));
        let numbered = |most: usize| Resources::new((0..most).map(|it| it.to_string())).0;
        assert!(numbered(RESOURCES_MAX).is_ok());
        let most = RESOURCES_MAX;
        assert_eq!(numbered(most + 1).unwrap_err(), OptionError::TooManyResources { most });
        assert!(numbered(usize::MAX).is_err(), "no more names are taken than are needed");
    }
}
