//! The random value that marks a key as set by one attempt.

use core::fmt;

/// 20 random bytes, drawn afresh for every attempt (specification, "correct implementation with a
/// single instance"; counterexample N3: with a reused token, a late release deletes another attempt's
/// vote).
///
/// It is not a fencing token: it has no order and no `Display`, and its `Debug` shows only a
/// prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token([u8; Token::LENGTH]);

impl Token {
    /// Length of a token in bytes.
    pub const LENGTH: usize = 20;

    /// Creates a token from `bytes`, which must come from a source that gives nobody else the same
    /// bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes as they are sent: binary, unencoded.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Token({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}
