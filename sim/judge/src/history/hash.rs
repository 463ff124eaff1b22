//! Rolling hash that distinguishes histories.

use core::hash::{Hash, Hasher};

use super::event::Event;

/// A 64-bit hash over the events of a run, in order.
///
/// It costs one multiplication per word. It is not collision-resistant against an adversary: it
/// detects runs that differ by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryHash(u64);

impl Default for HistoryHash {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl HistoryHash {
    /// Adds the next event.
    pub fn add(&mut self, event: &Event) {
        event.hash(self);
    }

    /// Returns the hash of the events added so far.
    #[must_use]
    pub fn value(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
}

impl Hasher for HistoryHash {
    fn finish(&self) -> u64 {
        self.value()
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.word(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.word(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.word(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.word(value);
    }

    fn write_i32(&mut self, value: i32) {
        self.word(value as u32 as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.word(value as u64);
    }
}
