//! Random choices from a seed: the same stream of bits on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A seeded source of choices.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// Creates the source for stream `number` of `seed`.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(number);
        Self(rng)
    }

    /// Draws a number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let wide = u128::from(self.0.next_u64()) * limit as u128;
        (wide >> 64) as usize
    }

    /// Draws a number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// Returns true with a probability of 1 in `one_in`.
    pub(crate) fn once_in(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// Draws one of `choices`.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// Draws one of `choices`, with the given weights.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(usize, T)]) -> T {
        let mut left = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for &(weight, choice) in choices {
            if left < weight {
                return choice;
            }
            left -= weight;
        }
        unreachable!("the weights add up")
    }

    /// Shuffles `items`.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
