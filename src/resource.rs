//! Names of locks.

use std::borrow::Cow;

use crate::error::OptionError;

/// Longest name of a resource, in bytes: every command carries it to every node.
pub const RESOURCE_BYTES_MAX: usize = 4_096;

/// Name of a resource to lock: the name of its key, any bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource<'a>(Cow<'a, [u8]>);

impl Resource<'_> {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Rejects a name that no lock can have. `canary_key` is the client's own key.
    pub(crate) fn validate(&self, canary_key: &[u8]) -> Result<(), OptionError> {
        let bytes = self.0.len();
        if bytes == 0 {
            return Err(OptionError::EmptyResource);
        }
        if bytes > RESOURCE_BYTES_MAX {
            return Err(OptionError::ResourceTooLong { bytes, most: RESOURCE_BYTES_MAX });
        }
        if *self.0 == *canary_key {
            return Err(OptionError::ResourceIsCanary);
        }
        Ok(())
    }
}

impl<'a> From<&'a str> for Resource<'a> {
    fn from(name: &'a str) -> Self {
        Self(Cow::Borrowed(name.as_bytes()))
    }
}

impl From<String> for Resource<'_> {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name.into_bytes()))
    }
}

impl<'a> From<&'a [u8]> for Resource<'a> {
    fn from(name: &'a [u8]) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl From<Vec<u8>> for Resource<'_> {
    fn from(name: Vec<u8>) -> Self {
        Self(Cow::Owned(name))
    }
}
