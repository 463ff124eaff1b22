//! Identity of the value that was in an attempt's way.

use super::digest::Digest;

/// A digest of a key's value.
///
/// Only equality is asked of it: whether several nodes hold keys of one attempt. The value itself is
/// not kept, for it may be of any length, and whoever reads somebody's token can release their
/// lease. Two attempts whose digests collide would be taken for one, and a split vote for a lock
/// that is held; no grant depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder(Digest);

impl Holder {
    /// The identity of `value`: all of it, as the comparison of a release is with all of it.
    #[must_use]
    pub fn of(value: &[u8]) -> Self {
        Self(Digest::of(value))
    }
}
