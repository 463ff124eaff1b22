//! A key and what it holds.

use super::bytes::SmallBytes;
use crate::history::Writer;

/// What a key is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// What it holds.
    pub value: SmallBytes,
    /// When it expires by the node's wall clock; `None`: never.
    pub expires_wall_ms: Option<u64>,
    /// Whose command gave it its value, whatever the value says.
    pub writer: Writer,
}

impl Entry {
    /// Whether the key counts as absent when the node's wall clock reads `wall_ms`.
    #[must_use]
    pub fn is_expired(&self, wall_ms: u64) -> bool {
        self.expires_wall_ms.is_some_and(|when| wall_ms > when)
    }
}
