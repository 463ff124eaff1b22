//! Errors that commands answer.

use bytes::Bytes;

use super::resp::Value;

/// An error, its kind first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::master) struct Refusal(pub(in crate::master) Bytes);

impl Refusal {
    /// A refusal in words that are always the same.
    pub(in crate::master) const fn new(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// A refusal in other words.
    pub(in crate::master) fn of(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }
}

impl From<Refusal> for Value {
    fn from(Refusal(text): Refusal) -> Self {
        Self::Error(text)
    }
}
