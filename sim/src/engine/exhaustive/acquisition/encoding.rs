//! Packs small numbers into one word.

/// Numbers in one word, the last one lowest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Word {
    value: u128,
    bits: u32,
}

impl Word {
    /// Appends `value`, which has at most `bits` bits.
    pub(super) fn push(&mut self, value: u8, bits: u32) {
        assert!(u32::from(value) < 1 << bits, "{value} has more than {bits} bits");
        self.value = self.value << bits | u128::from(value);
        self.bits += bits;
        assert!(self.bits <= u128::BITS, "the bounds keep every queue short");
    }

    pub(super) fn value(self) -> u128 {
        self.value
    }
}
