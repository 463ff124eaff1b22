//! The random source of plans: an ordered stream for each plan.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use lock_judge::scenario::Span;

/// Lengths are drawn in multiples of this.
const GRAIN_NS: u64 = 10_000;

/// Draws for one plan.
#[derive(Clone, Debug)]
pub(super) struct Dice(ChaCha8Rng);

impl Dice {
    /// Returns the draws for the plan `number` of `seed`. They depend on nothing else.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let mut stream = ChaCha8Rng::seed_from_u64(seed);
        stream.set_stream(number);
        Self(stream)
    }

    /// Returns a number below `count`, which is not 0.
    pub(super) fn below(&mut self, count: u64) -> u64 {
        debug_assert!(count > 0, "a choice among nothing");
        ((u128::from(self.0.next_u64()) * u128::from(count)) >> 64) as u64
    }

    /// Returns a number from `min` to `max`, both included.
    pub(super) fn between(&mut self, min: u64, max: u64) -> u64 {
        min + self.below(max - min + 1)
    }

    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `values`, each with the same probability.
    pub(super) fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize].clone()
    }

    /// Returns a value with a probability in proportion to its weight.
    pub(super) fn weighted<T: Clone>(&mut self, values: &[(u64, T)]) -> T {
        let mut left = self.below(values.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in values {
            if left < *weight {
                return value.clone();
            }
            left -= weight;
        }
        unreachable!("the number is below the sum of the weights")
    }

    /// Returns a nonempty subset of `values`, mostly a single value.
    pub(super) fn some<T: Clone>(&mut self, values: &[T]) -> Vec<T> {
        let count = if self.percent(60) { 1 } else { self.between(1, values.len() as u64) };
        self.several(values, count)
    }

    /// Returns `count` of the values, in any order.
    pub(super) fn several<T: Clone>(&mut self, values: &[T], count: u64) -> Vec<T> {
        let mut left = values.to_vec();
        (0..count).map(|_| left.remove(self.below(left.len() as u64) as usize)).collect()
    }

    /// Returns a length from `min` to `max`. Each order of magnitude has the same probability, so
    /// short lengths come up as often as long ones.
    pub(super) fn length(&mut self, min: Span, max: Span) -> Span {
        let (min, max) = (min.0.max(GRAIN_NS), max.0.max(min.0).max(GRAIN_NS));
        let magnitude = self.between(u64::from(min.ilog2()), u64::from(max.ilog2()));
        let low = (1_u64 << magnitude).clamp(min, max);
        let high = low.saturating_mul(2).clamp(low, max);
        Span((self.between(low, high) / GRAIN_NS * GRAIN_NS).max(GRAIN_NS))
    }

    /// Returns an instant from 0 to `end`.
    pub(super) fn instant(&mut self, end: Span) -> Span {
        Span(self.between(0, end.0 / GRAIN_NS) * GRAIN_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_draws_of_its_own() {
        let draws = |seed, number| {
            let mut dice = Dice::new(seed, number);
            (0..4).map(|_| dice.below(1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, 2), draws(1, 2));
        assert_ne!(draws(1, 2), draws(1, 3));
        assert_ne!(draws(1, 2), draws(2, 2));
    }

    #[test]
    fn lengths_stay_within_their_limits() {
        let mut dice = Dice::new(0, 0);
        let (min, max) = (Span::from_ms(1), Span::from_ms(700));
        let lengths: Vec<Span> = (0..2_000).map(|_| dice.length(min, max)).collect();
        assert!(lengths.iter().all(|it| (min..=max).contains(it)));
        let short = lengths.iter().filter(|it| **it < Span::from_ms(26)).count();
        assert!((800..1_200).contains(&short), "{short} of 2000 are in the lower half");
    }

    #[test]
    fn every_subset_is_within_its_set_and_without_duplicates() {
        let mut dice = Dice::new(0, 0);
        for _ in 0..500 {
            let mut some = dice.some(&[1, 2, 3, 4]);
            some.sort_unstable();
            let mut distinct = some.clone();
            distinct.dedup();
            assert_eq!(some, distinct);
            assert!((1..=4).contains(&some.len()));
        }
    }
}
