//! Errors with which commands reply.

use bytes::Bytes;

use super::resp::Value;

/// Text of an error, beginning with its error code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::master) struct Refusal(pub(in crate::master) Bytes);

impl Refusal {
    /// Returns a refusal with a constant text.
    pub(in crate::master) const fn new(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// Returns a refusal with a text built at run time.
    pub(in crate::master) fn of(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }
}

impl From<Refusal> for Value {
    fn from(Refusal(text): Refusal) -> Self {
        Self::Error(text)
    }
}
