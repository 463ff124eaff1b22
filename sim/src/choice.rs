//! The only source of randomness.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use siphasher::sip::SipHasher13;

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
    hasher: SipHasher13,
}

impl Choices {
    /// Returns the choices of the run with the seed `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut stream = ChaCha8Rng::seed_from_u64(seed);
        Self { hasher: SipHasher13::new_with_keys(stream.next_u64(), stream.next_u64()) }
    }

    /// Returns 64 bits for `choice`.
    #[must_use]
    pub fn bits(&self, choice: Choice) -> u64 {
        let [first, second] = choice.packed();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..].copy_from_slice(&second.to_le_bytes());
        self.hasher.hash(&bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

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
