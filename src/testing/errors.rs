//! Errors that a test constructs.

use core::time::Duration;

use crate::error::{
    AcquireError, AcquireErrorKind, Closed, ExtendError, ExtendErrorKind, NodeAnswer, NodeVerdict,
    ResourceError,
};
use crate::health::Standing;

/// For tests; with the feature `testing`.
impl AcquireError {
    /// Returns an error of this kind, after no attempt.
    #[must_use]
    pub fn of(kind: AcquireErrorKind) -> Self {
        Self::new(kind)
    }

    /// Sets the time after which another attempt can succeed.
    #[must_use]
    pub fn with_retry_after(self, left: Duration) -> Self {
        self.until(Some(left))
    }

    /// Sets the name of the lock, as an acquisition of more than one does.
    #[must_use]
    pub fn with_resource(self, resource: impl AsRef<[u8]>) -> Self {
        self.on(resource.as_ref())
    }

    /// Sets the number of attempts, and each node's answer to the last one.
    #[must_use]
    pub fn with_answers(self, attempts: u32, nodes: Vec<NodeAnswer>) -> Self {
        self.after_attempts(attempts, nodes)
    }
}

/// For tests; with the feature `testing`.
impl ExtendError {
    /// Returns an error of this kind.
    #[must_use]
    pub fn of(kind: ExtendErrorKind) -> Self {
        Self::plain(kind)
    }
}

/// For tests; with the feature `testing`.
impl NodeAnswer {
    /// Returns an answer without a time and without an error; both are fields.
    #[must_use]
    pub fn of(place: usize, node: impl Into<String>, verdict: NodeVerdict) -> Self {
        let (after, error, standing) = (Duration::ZERO, None, Standing::NotKnown);
        Self { place, node: node.into(), verdict, after, error, standing }
    }
}

/// For tests; with the feature `testing`.
impl Closed {
    /// Returns the outcome of a `close` that leaves these nodes.
    pub fn of(left: Vec<NodeAnswer>) -> Self {
        Self { left }
    }
}

/// For tests; with the feature `testing`.
impl<E> ResourceError<E> {
    /// Returns an error of the lock `resource`.
    #[must_use]
    pub fn of(resource: impl AsRef<[u8]>, error: E) -> Self {
        Self::new(&resource.as_ref().into(), error)
    }
}
