//! Identity of the value that blocked an attempt.

use super::digest::Digest;

/// A digest of a key's value.
///
/// Digests are only compared for equality, to find out whether several nodes hold keys of one
/// attempt. The value itself is not kept: it may be of any length, and anybody who reads a client's
/// token can release that client's lease. If the digests of two attempts collide, the two are taken
/// for one attempt, and a split vote is reported as a held lock; no grant depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder(Digest);

impl Holder {
    /// Returns the identity of `value`. The digest covers the whole value, as the comparison in a
    /// release does.
    #[must_use]
    pub fn of(value: &[u8]) -> Self {
        Self(Digest::of(value))
    }
}
