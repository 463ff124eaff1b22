//! Digests for values that are only compared for equality.

/// A 64-bit FNV-1a digest: equal bytes have equal digests, on every node and in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(u64);

impl Digest {
    /// Returns the digest of all of `bytes`.
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
        // The test vectors of FNV's authors.
        assert_eq!(Digest::of(b""), Digest(0xcbf2_9ce4_8422_2325));
        assert_eq!(Digest::of(b"foobar"), Digest(0x8594_4171_f739_67e8));
        assert_ne!(Digest::of(b"worker-1"), Digest::of(b"worker-2"));
    }
}
