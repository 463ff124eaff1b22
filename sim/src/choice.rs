//! The only source of randomness.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Subject of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Label {
    /// Delay of a message.
    Delay,
    /// Wait after a failed attempt.
    Jitter,
    /// Phase of a host's wall clock within its first millisecond.
    Phase,
    /// Time of the retransmission of a held message.
    Retransmission,
    /// Bytes of a token.
    Token,
    /// Phase within a second at which a node begins its syncs.
    SyncPhase,
    /// Share of the unsynced data that survives a torn write.
    TornTail,
    /// Number of bytes of a stream that pass at once.
    Part,
    /// Value of a fault that the scenario gives as a range.
    Fault,
    /// Value of a step that the scenario gives as a range.
    Step,
}

/// The *meaning* of one decision. Two runs that make the same decision ask for the same choice,
/// however many other decisions come before it. Removal of a fault re-rolls nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Subject of the decision.
    pub label: Label,
    /// The client, or another host.
    pub host: u8,
    /// The client's attempt, or a count of the host's own decisions.
    pub attempt: u16,
    /// Kind of the command.
    pub operation: u8,
    /// The node.
    pub node: u8,
    /// Direction of the message.
    pub direction: u8,
    /// Distinguishes repetitions of the same decision.
    pub repeat: u32,
}

impl Choice {
    /// Returns a decision of `host` in which only the label matters.
    #[must_use]
    pub const fn of(label: Label, host: u8) -> Self {
        Self { label, host, attempt: 0, operation: 0, node: 0, direction: 0, repeat: 0 }
    }

    const fn packed(self) -> [u64; 2] {
        let first = self.label as u64
            | (self.host as u64) << 8
            | (self.attempt as u64) << 16
            | (self.operation as u64) << 32
            | (self.node as u64) << 40
            | (self.direction as u64) << 48;
        [first, self.repeat as u64]
    }
}

/// All choices of one run: a keyed hash of each decision's meaning. The hash is stateless, so the
/// order of the questions changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    keys: [u64; 2],
}

impl Choices {
    /// Returns the choices of the run with the seed `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut stream = ChaCha8Rng::seed_from_u64(seed);
        Self { keys: [stream.next_u64(), stream.next_u64()] }
    }

    /// Returns 64 bits for `choice`.
    #[must_use]
    pub fn bits(&self, choice: Choice) -> u64 {
        sip_hash(self.keys, choice.packed())
    }

    /// Returns a number below `count` for `choice`.
    ///
    /// # Panics
    ///
    /// If `count` is zero.
    #[must_use]
    pub fn below(&self, choice: Choice, count: u64) -> u64 {
        assert!(count > 0, "a choice among nothing");
        ((u128::from(self.bits(choice)) * u128::from(count)) >> 64) as u64
    }

    /// Returns a number from `min` to `max`, both included. Computes no hash if they are equal.
    #[must_use]
    pub fn between(&self, choice: Choice, min: u64, max: u64) -> u64 {
        if min == max { min } else { min + self.below(choice, max - min + 1) }
    }
}

/// Returns the SipHash-1-3 of the 16 bytes of `words`, in little-endian order. For this one length
/// it takes two thirds of the instructions of a hasher for any bytes.
fn sip_hash([one, other]: [u64; 2], words: [u64; 2]) -> u64 {
    const LENGTH: u64 = 16 << 56;
    let mut state = [
        one ^ 0x736f_6d65_7073_6575,
        other ^ 0x646f_7261_6e64_6f6d,
        one ^ 0x6c79_6765_6e65_7261,
        other ^ 0x7465_6462_7974_6573,
    ];
    for word in [words[0], words[1], LENGTH] {
        state[3] ^= word;
        state = sip_round(state);
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    let [a, b, c, d] = sip_round(sip_round(sip_round(state)));
    a ^ b ^ c ^ d
}

#[inline(always)]
fn sip_round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use siphasher::sip::SipHasher13;

    use super::*;

    #[test]
    fn the_hash_is_that_of_the_library() {
        for seed in 0..100 {
            let Choices { keys } = Choices::new(seed);
            let words = Choices::new(!seed).keys;
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let expected = SipHasher13::new_with_keys(keys[0], keys[1]).hash(&bytes);
            assert_eq!(sip_hash(keys, words), expected, "{seed}");
        }
    }

    #[test]
    fn a_choice_depends_on_seed_and_meaning_alone() {
        let choices = Choices::new(7);
        let jitter = Choice::of(Label::Jitter, 1);
        let _ = choices.bits(Choice::of(Label::Delay, 9));
        assert_eq!(choices.bits(jitter), Choices::new(7).bits(jitter));
        assert_ne!(choices.bits(jitter), Choices::new(8).bits(jitter));
        assert_ne!(choices.bits(jitter), choices.bits(Choice { attempt: 1, ..jitter }));
        assert_ne!(choices.bits(jitter), choices.bits(Choice { repeat: 1, ..jitter }));
    }

    /// Recorded seeds become worthless if these values change.
    #[test]
    fn golden_vectors() {
        let choices = Choices::new(42);
        let draws: Vec<u64> =
            (0..4).map(|host| choices.below(Choice::of(Label::Delay, host), 1_000_000)).collect();
        insta::assert_compact_debug_snapshot!(draws);
    }

    #[test]
    fn every_value_of_a_small_range_comes_up() {
        let choices = Choices::new(1);
        let mut seen = [false; 5];
        for repeat in 0..200 {
            let choice = Choice { repeat, ..Choice::of(Label::Delay, 0) };
            seen[choices.between(choice, 10, 14) as usize - 10] = true;
        }
        assert_eq!(seen, [true; 5]);
    }
}
