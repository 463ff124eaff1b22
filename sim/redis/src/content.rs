//! Typed values of keys.

mod fields;
mod members;

use std::collections::VecDeque;
use std::sync::Arc;

pub use fields::Fields;
pub use members::{Members, Score};

use crate::SmallBytes;

/// Value of a key, of one of the types that a server knows. Copies of a value that is not a string
/// share its parts until one of them changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// A byte string.
    String(SmallBytes),
    /// Fields and their values. Never empty.
    Hash(Arc<Fields>),
    /// A sequence of byte strings. Never empty.
    List(Arc<VecDeque<SmallBytes>>),
    /// Members with a score each. Never empty.
    SortedSet(Arc<Members>),
}

impl Content {
    /// Returns the bytes of a string; `None` for any other type.
    #[must_use]
    pub const fn as_string(&self) -> Option<&SmallBytes> {
        match self {
            Self::String(value) => Some(value),
            Self::Hash(_) | Self::List(_) | Self::SortedSet(_) => None,
        }
    }

    /// Returns the name of the type, as `TYPE` does.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::SortedSet(_) => "zset",
        }
    }
}

impl From<SmallBytes> for Content {
    fn from(value: SmallBytes) -> Self {
        Self::String(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_no_more_room_than_a_string() {
        assert_eq!(size_of::<Content>(), size_of::<SmallBytes>());
    }
}
