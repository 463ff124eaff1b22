//! Errors of one of several locks.

use core::fmt;
use std::error::Error;
use std::sync::Arc;

/// An error or a loss of one of several locks, with the name of the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceError<E> {
    resource: Arc<[u8]>,
    error: E,
}

impl<E> ResourceError<E> {
    pub(crate) fn new(resource: &Arc<[u8]>, error: E) -> Self {
        Self { resource: Arc::clone(resource), error }
    }

    /// Returns the name of the lock.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// Returns what is wrong with the lock.
    #[must_use]
    pub fn error(&self) -> &E {
        &self.error
    }
}

impl<E: fmt::Display> fmt::Display for ResourceError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "lock `{}`: {}", self.resource.escape_ascii(), self.error)
    }
}

impl<E: Error + 'static> Error for ResourceError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}
