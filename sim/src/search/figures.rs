//! The values of one quantity over many runs.

use core::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::smallest::{insert_smallest, smaller};

/// Maximum number of runs whose values are kept, for the median.
const SAMPLE_MAX: usize = 1024;

/// Values of one quantity over the runs that measured it, in the quantity's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Smallest value.
    pub min: u64,
    /// First seed with the smallest value.
    pub min_seed: u64,
    /// Median of the first 1024 measured seeds; of an even number of values the smaller of the two
    /// in the middle.
    pub median: u64,
    /// Largest value.
    pub max: u64,
    /// First seed with the largest value.
    pub max_seed: u64,
}

/// Values of one quantity, summed up like everything in a [`Tally`](super::tally::Tally).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct QuantityTally {
    /// Number of runs that measured the quantity.
    pub(super) measured: u64,
    /// Smallest seed whose run did not measure the quantity.
    pub(super) unmeasured: Option<u64>,
    /// Smallest value and largest value, each with its smallest seed.
    min: Option<(u64, u64)>,
    max: Option<(u64, Reverse<u64>)>,
    /// The smallest seeds with their values, sorted; at most [`SAMPLE_MAX`].
    sample: Vec<(u64, u64)>,
}

impl QuantityTally {
    pub(super) fn add(&mut self, seed: u64, value: Option<u64>) {
        let Some(value) = value else {
            self.unmeasured = smaller(self.unmeasured, Some(seed));
            return;
        };
        self.measured += 1;
        self.min = smaller(self.min, Some((value, seed)));
        self.max = self.max.max(Some((value, Reverse(seed))));
        insert_smallest(&mut self.sample, (seed, value), SAMPLE_MAX, Ord::cmp);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.measured += other.measured;
        self.unmeasured = smaller(self.unmeasured, other.unmeasured);
        self.min = smaller(self.min, other.min);
        self.max = self.max.max(other.max);
        self.sample.extend(other.sample);
        // Stable, because it is fast on two sorted parts.
        self.sample.sort();
        self.sample.truncate(SAMPLE_MAX);
    }

    /// Returns the figures; `None` if no run measured the quantity.
    pub(super) fn figures(&self) -> Option<Figures> {
        let ((min, min_seed), (max, Reverse(max_seed))) = (self.min?, self.max?);
        let mut values: Vec<u64> = self.sample.iter().map(|(_, value)| *value).collect();
        values.sort_unstable();
        let median = *values.get(values.len().checked_sub(1)? / 2)?;
        Some(Figures { min, min_seed, median, max, max_seed })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn tally(values: &[Option<u64>], first_seed: u64) -> QuantityTally {
        let mut tally = QuantityTally::default();
        for (seed, value) in (first_seed..).zip(values) {
            tally.add(seed, *value);
        }
        tally
    }

    #[test]
    fn figures_name_the_first_seeds_of_the_extremes() {
        let values = [Some(5), None, Some(2), Some(9), Some(2), Some(9), Some(7)];
        let tally = tally(&values, 10);
        let figures = Figures { min: 2, min_seed: 12, median: 5, max: 9, max_seed: 13 };
        assert_eq!(tally.figures(), Some(figures));
        assert_eq!((tally.measured, tally.unmeasured), (6, Some(11)));
        assert_eq!(QuantityTally::default().figures(), None);
    }

    #[test]
    fn the_median_is_that_of_the_first_seeds() {
        let values: Vec<Option<u64>> = (0..3_000).map(|it| Some(it.min(1_024))).collect();
        assert_eq!(tally(&values, 0).figures().unwrap().median, 511);
    }

    proptest! {
        #[test]
        fn the_order_of_merging_does_not_matter(
            values in vec(option::of(0_u64..50), 0..60),
            cut in 0_usize..60,
        ) {
            let cut = cut.min(values.len());
            let (one, other) = (tally(&values[..cut], 0), tally(&values[cut..], cut as u64));
            let (mut forwards, mut backwards) = (one.clone(), other.clone());
            forwards.merge(other);
            backwards.merge(one);
            let whole = tally(&values, 0);
            for merged in [forwards, backwards] {
                prop_assert_eq!(merged.figures(), whole.figures());
                prop_assert_eq!(merged.unmeasured, whole.unmeasured);
                prop_assert_eq!(merged.measured, whole.measured);
            }
        }
    }
}
