//! Names of locks.

use core::fmt;
use std::borrow::Cow;

use bytes::Bytes;

use crate::error::OptionError;
use crate::inspect::PROBE_KEY;

/// Longest name of a resource, in bytes: every command carries it to every node.
pub const RESOURCE_BYTES_MAX: usize = 4_096;

/// Name of a resource to lock: the name of its key, any bytes.
///
/// Converts from `&str`, `String`, `&String` and `Cow<str>`, and from `&[u8]`, `Vec<u8>`, `&Vec<u8>`,
/// byte strings (`b"name"`), `Cow<[u8]>` and [`Bytes`]. Displays bytes that are not printable ASCII as
/// escapes.
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
        if *self.0 == *PROBE_KEY {
            return Err(OptionError::ResourceIsProbe);
        }
        Ok(())
    }
}

impl fmt::Display for Resource<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.escape_ascii())
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

impl<'a> From<&'a String> for Resource<'a> {
    fn from(name: &'a String) -> Self {
        name.as_str().into()
    }
}

impl<'a> From<Cow<'a, str>> for Resource<'a> {
    fn from(name: Cow<'a, str>) -> Self {
        match name {
            Cow::Borrowed(name) => name.into(),
            Cow::Owned(name) => name.into(),
        }
    }
}

impl<'a> From<&'a Vec<u8>> for Resource<'a> {
    fn from(name: &'a Vec<u8>) -> Self {
        name.as_slice().into()
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Resource<'a> {
    fn from(name: &'a [u8; N]) -> Self {
        name.as_slice().into()
    }
}

impl<'a> From<Cow<'a, [u8]>> for Resource<'a> {
    fn from(name: Cow<'a, [u8]>) -> Self {
        Self(name)
    }
}

impl From<Bytes> for Resource<'_> {
    fn from(name: Bytes) -> Self {
        Self(Cow::Owned(name.into()))
    }
}

impl<'a> From<&'a Bytes> for Resource<'a> {
    fn from(name: &'a Bytes) -> Self {
        Self(Cow::Borrowed(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_any_type_of_text_or_bytes() {
        let (text, bytes) = (String::from("a\u{ff}"), b"a\xff".to_vec());
        let shared = Bytes::from(bytes.clone());
        let names: [Resource<'_>; 10] = [
            b"a\xff".into(),
            bytes.as_slice().into(),
            (&bytes).into(),
            bytes.clone().into(),
            Cow::Borrowed(bytes.as_slice()).into(),
            Cow::<[u8]>::Owned(bytes.clone()).into(),
            (&shared).into(),
            shared.clone().into(),
            shared.slice(..).into(),
            Bytes::from_static(b"a\xff").into(),
        ];
        assert!(names.iter().all(|name| name.as_bytes() == b"a\xff"), "{names:?}");
        let text: [Resource<'_>; 4] = [
            (&text).into(),
            Cow::Borrowed(text.as_str()).into(),
            Cow::<str>::Owned(text.clone()).into(),
            text.clone().into(),
        ];
        assert!(text.iter().all(|name| name.as_bytes() == "a\u{ff}".as_bytes()), "{text:?}");
    }

    #[test]
    fn a_name_is_displayed_in_printable_characters() {
        assert_eq!(Resource::from(b"in\x1bvoice\xff").to_string(), r"in\x1bvoice\xff");
    }
}
