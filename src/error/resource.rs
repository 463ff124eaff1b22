//! Errors of one of several locks.

use core::fmt;
use core::ops::Deref;
use std::error::Error;
use std::sync::Arc;

/// Name of a lock; `Debug` shows it as text.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Name<T>(pub(super) T);

impl<T: Deref<Target: AsRef<[u8]>>> fmt::Debug for Name<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.as_ref().escape_ascii())
    }
}

/// An error or a loss of one of several locks, with the name of the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceError<E> {
    resource: Name<Arc<[u8]>>,
    error: E,
}

impl<E> ResourceError<E> {
    pub(crate) fn new(resource: &Arc<[u8]>, error: E) -> Self {
        Self { resource: Name(Arc::clone(resource)), error }
    }

    /// Returns the name of the lock.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.resource.0
    }

    /// Returns what is wrong with the lock.
    #[must_use]
    pub fn error(&self) -> &E {
        &self.error
    }
}

impl<E: fmt::Display> fmt::Display for ResourceError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "lock `{}`: {}", self.resource().escape_ascii(), self.error)
    }
}

impl<E: Error + 'static> Error for ResourceError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use crate::error::{AcquireError, AcquireErrorKind, LostReason};

    use super::*;

    #[test]
    fn debug_shows_the_name_of_a_lock_as_text() {
        let name: Arc<[u8]> = Arc::from(&b"a\"\xff"[..]);
        let lost = ResourceError::new(&name, LostReason::KeysGone);
        assert_eq!(
            format!("{lost:?}"),
            r#"ResourceError { resource: "a\"\xff", error: KeysGone }"#
        );
        let taken = AcquireError::new(AcquireErrorKind::Taken).on(b"invoice/42");
        assert!(format!("{taken:?}").contains(r#"resource: Some("invoice/42")"#), "{taken:?}");
    }
}
