//! Values of which only equality matters.

/// A digest of some bytes: equal for equal bytes, on every node and in every run. FNV-1a, 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(u64);

impl Digest {
    /// The digest of all of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_all_bytes() {
        // The authors' own test vectors.
        assert_eq!(Digest::of(b""), Digest(0xcbf2_9ce4_8422_2325));
        assert_eq!(Digest::of(b"foobar"), Digest(0x8594_4171_f739_67e8));
        assert_ne!(Digest::of(b"worker-1"), Digest::of(b"worker-2"));
    }
}
