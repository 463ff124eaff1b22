//! Identity of the value that was in an attempt's way.

/// A digest of a key's value: equal for equal values, on every node and in every run.
///
/// Only equality is asked of it: whether several nodes hold keys of one attempt. The value itself is
/// not kept, for it may be of any length, and whoever reads somebody's token can release their
/// lease. Two attempts whose digests collide would be taken for one, and a split vote for a lock
/// that is held; no grant depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder(u64);

impl Holder {
    /// The identity of `value`: all of it, as the comparison of a release is with all of it. FNV-1a,
    /// 64 bits.
    #[must_use]
    pub fn of(value: &[u8]) -> Self {
        let hash = value.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_known_by_its_whole_value() {
        // The authors' own test vectors.
        assert_eq!(Holder::of(b""), Holder(0xcbf2_9ce4_8422_2325));
        assert_eq!(Holder::of(b"foobar"), Holder(0x8594_4171_f739_67e8));
        assert_ne!(Holder::of(b"worker-1"), Holder::of(b"worker-2"));
    }
}
