//! Random bytes of clients under test: the same in every run.

use std::sync::{Mutex, PoisonError};

/// A sequence of bytes (SplitMix64). The clients of one set of nodes share it, so that no two of
/// their tokens are equal.
#[derive(Default)]
pub(super) struct Entropy(Mutex<u64>);

impl Entropy {
    pub(super) fn fill(&self, bytes: &mut [u8]) {
        // A number is whole, whatever panicked while it was locked.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in bytes.chunks_mut(size_of::<u64>()) {
            *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let mixed = (mixed ^ (mixed >> 31)).to_le_bytes();
            chunk.copy_from_slice(&mixed[..chunk.len()]);
        }
    }
}
