//! A stored key's value, expiry and writer.

use crate::{Content, Writer};

/// State of a stored key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Value of the key.
    pub value: Content,
    /// Expiry on the node's wall clock; `None` if the key never expires.
    pub expires_wall_ms: Option<u64>,
    /// Writer of the command that set the value, whatever the value says.
    pub writer: Writer,
}

impl Entry {
    /// Returns true if the key counts as absent when the node's wall clock reads `wall_ms`.
    #[must_use]
    pub fn is_expired(&self, wall_ms: u64) -> bool {
        self.expires_wall_ms.is_some_and(|when| wall_ms > when)
    }
}
