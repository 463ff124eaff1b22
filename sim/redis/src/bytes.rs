//! Byte strings that are nearly always short.

use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::Deref;
use std::sync::Arc;

/// Greatest length, in bytes, stored without allocation: longer than a token (20) and than any
/// integer in decimal (20).
pub const INLINE_MAX: usize = 22;

/// A byte string stored in place up to [`INLINE_MAX`] bytes. Copies of a longer one share its
/// bytes: a value of half a gigabyte is kept once, however many records and replies refer to it.
#[derive(Clone)]
pub struct SmallBytes(Repr);

#[derive(Clone)]
enum Repr {
    Inline { length: u8, bytes: [u8; INLINE_MAX] },
    Heap(Arc<[u8]>),
}

impl SmallBytes {
    /// Returns a copy of `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut inline = [0; INLINE_MAX];
        match inline.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Self(Repr::Inline { length: bytes.len() as u8, bytes: inline })
            }
            None => Self(Repr::Heap(bytes.into())),
        }
    }

    /// Returns the bytes for a reply. Long ones are not copied.
    #[must_use]
    pub fn share(&self) -> bytes::Bytes {
        match &self.0 {
            Repr::Inline { .. } => bytes::Bytes::copy_from_slice(self),
            Repr::Heap(bytes) => bytes::Bytes::from_owner(Arc::clone(bytes)),
        }
    }

    /// Returns `number` in decimal.
    #[must_use]
    pub fn decimal(number: i64) -> Self {
        let mut digits = [0; INLINE_MAX];
        let mut at = digits.len();
        let mut rest = number.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        Self::new(&digits[at..])
    }
}

impl Default for SmallBytes {
    fn default() -> Self {
        Self::new(b"")
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Repr::Heap(bytes) => bytes,
        }
    }
}

impl PartialEq for SmallBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SmallBytes {}

impl PartialOrd for SmallBytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SmallBytes {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

/// Equality, order and hash are those of the slice.
impl Borrow<[u8]> for SmallBytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl Hash for SmallBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for SmallBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "b\"{}\"", self.escape_ascii())
    }
}

/// Returns the bytes up to the first zero, as C sees the string.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_takes_no_more_room_than_a_string() {
        assert_eq!(size_of::<SmallBytes>(), size_of::<String>());
    }

    #[test]
    fn longest_inline_and_shortest_heap_string_are_kept_whole() {
        for length in [0, INLINE_MAX - 1, INLINE_MAX, INLINE_MAX + 1, 1_000] {
            let bytes = vec![b'x'; length];
            let small = SmallBytes::new(&bytes);
            assert_eq!(*small, *bytes);
            assert_eq!(matches!(small.0, Repr::Heap(_)), length > INLINE_MAX, "{length}");
        }
    }

    #[test]
    fn debug_shows_binary_escaped() {
        assert_eq!(format!("{:?}", SmallBytes::new(b"a\x00\"")), r#"b"a\x00\"""#);
    }

    proptest! {
        #[test]
        fn decimals_read_as_the_standard_library_prints_them(number: i64) {
            let expected = number.to_string();
            prop_assert_eq!(&*SmallBytes::decimal(number), expected.as_bytes());
        }

        #[test]
        fn equality_is_that_of_the_bytes(a: Vec<u8>, b: Vec<u8>) {
            prop_assert_eq!(SmallBytes::new(&a) == SmallBytes::new(&b), a == b);
        }
    }

    #[test]
    fn the_extreme_integers_have_decimals() {
        for number in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(&*SmallBytes::decimal(number), number.to_string().as_bytes());
        }
    }
}
