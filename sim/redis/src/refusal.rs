//! Errors with which commands reply.

use bytes::Bytes;

use crate::resp::Value;

/// Text of an error, beginning with its error code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) Bytes);

impl Refusal {
    /// Returns a refusal with a constant text.
    pub(crate) const fn new(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// Returns a refusal with a text built at run time.
    pub(crate) fn of(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }
}

impl From<Refusal> for Value {
    fn from(Refusal(text): Refusal) -> Self {
        Self::Error(text)
    }
}
