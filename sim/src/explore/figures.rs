//! Costs of plans, and their comparison with those of another build.
//!
//! Properties say what a client must not do. That it wakes late, reads too often or doubts nodes for
//! too long violates none of them; it shows if the same plans cost more than before. A run depends on
//! plan and build alone, so every difference is one of the builds.

use std::collections::BTreeMap;

use lock_judge::scenario::Quantity;
use serde::{Deserialize, Serialize};

use super::bound::at_most;
use crate::engine::Outcome;

/// Plans of one block.
pub const BLOCK: u64 = 64;

/// Probability below which a change is not put down to chance.
const CHANCE: f64 = 0.001;

/// A figure of a run of which less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// A quantity that the oracle measures; 0 where it is not measured.
    Quantity(Quantity),
    /// Simulated time from the beginning of the run to its end, in nanoseconds.
    Duration,
}

impl Cost {
    /// All costs, in the order of files and reports.
    pub const ALL: [Self; 7] = [
        Self::Quantity(Quantity::Commands),
        Self::Quantity(Quantity::WaitWithoutHolder),
        Self::Quantity(Quantity::Bypasses),
        Self::Quantity(Quantity::BeliefWithoutMajority),
        Self::Quantity(Quantity::LeasesLost),
        Self::Quantity(Quantity::VotesMisjudged),
        Self::Duration,
    ];

    /// Returns the name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quantity(quantity) => quantity.name(),
            Self::Duration => "duration",
        }
    }

    fn of(self, outcome: &Outcome) -> u64 {
        match self {
            Self::Quantity(quantity) => outcome.measured.of(quantity).unwrap_or(0),
            Self::Duration => outcome.ended_ns,
        }
    }
}

/// The sums of each [`Cost`] over the plans of a block.
type Sums = [u64; Cost::ALL.len()];

/// The costs of plans, by the number of the first plan of each block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<u64, Sums>);

impl Figures {
    /// Adds a run of the plan `number`.
    pub(super) fn add(&mut self, number: u64, outcome: &Outcome) {
        let sums = self.0.entry(number - number % BLOCK).or_default();
        for (sum, cost) in sums.iter_mut().zip(Cost::ALL) {
            *sum = sum.saturating_add(cost.of(outcome));
        }
    }

    /// Adds the costs of other plans.
    pub(super) fn merge(&mut self, other: Self) {
        for (first, added) in other.0 {
            let sums = self.0.entry(first).or_default();
            sums.iter_mut().zip(added).for_each(|(sum, added)| *sum = sum.saturating_add(added));
        }
    }

    /// Returns the blocks: the number of the first plan, and the sums in the order of [`Cost::ALL`].
    pub fn blocks(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.0.iter().map(|(first, sums)| (*first, sums.as_slice()))
    }

    /// Compares the costs with those of the same plans `before`, in the order of [`Cost::ALL`]. Blocks
    /// that only one of the two has do not count.
    #[must_use]
    pub fn compared_with(&self, before: &Self) -> Vec<Change> {
        let mut changes = Cost::ALL.map(Change::none);
        for (first, now) in &self.0 {
            let Some(before) = before.0.get(first) else { continue };
            for ((change, now), before) in changes.iter_mut().zip(now).zip(before) {
                change.add(*first, *before, *now);
            }
        }
        changes.to_vec()
    }
}

/// How a cost differs from what the same plans cost before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The cost.
    pub cost: Cost,
    /// Sum over all blocks before.
    pub before: u128,
    /// Sum over all blocks now.
    pub now: u128,
    /// Blocks that cost more now.
    pub dearer: u64,
    /// Blocks that cost less now.
    pub cheaper: u64,
    /// First plan of the block that has grown the most, and by how much; `None` if none has grown.
    pub worst: Option<(u64, u64)>,
}

impl Change {
    const fn none(cost: Cost) -> Self {
        Self { cost, before: 0, now: 0, dearer: 0, cheaper: 0, worst: None }
    }

    fn add(&mut self, first: u64, before: u64, now: u64) {
        self.before += u128::from(before);
        self.now += u128::from(now);
        self.dearer += u64::from(now > before);
        self.cheaper += u64::from(now < before);
        let grown = now.saturating_sub(before);
        if grown > self.worst.map_or(0, |(_, most)| most) {
            self.worst = Some((first, grown));
        }
    }

    /// Returns true if the cost has grown, and so many more blocks are dearer than cheaper that chance
    /// alone does not explain it (a sign test: each block that differs would be either with probability
    /// ½).
    #[must_use]
    pub fn is_dearer(&self) -> bool {
        let differ = self.dearer + self.cheaper;
        self.now > self.before
            && self.dearer > self.cheaper
            && at_most(self.cheaper, differ, 0.5) < CHANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(commands: impl IntoIterator<Item = u64>) -> Figures {
        let block = |(place, commands)| (place as u64 * BLOCK, [commands, 0, 0, 0, 0, 0, 7]);
        Figures(commands.into_iter().enumerate().map(block).collect())
    }

    fn commands(
        before: impl IntoIterator<Item = u64>,
        now: impl IntoIterator<Item = u64>,
    ) -> Change {
        figures(now).compared_with(&figures(before))[0]
    }

    #[test]
    fn equal_figures_are_not_dearer() {
        let change = commands([5, 6], [5, 6]);
        assert_eq!(change, Change { before: 11, now: 11, ..Change::none(Cost::ALL[0]) });
        assert!(!change.is_dearer());
    }

    #[test]
    fn nine_of_nine_blocks_may_be_chance_and_ten_of_ten_are_not() {
        assert!(!commands([1; 9], [2; 9]).is_dearer());
        assert!(commands([1; 10], [2; 10]).is_dearer());
    }

    #[test]
    fn cheaper_blocks_weigh_against_dearer_ones() {
        let now = |dearer| (0..40).map(move |place| if place < dearer { 9 } else { 4 });
        assert!(!commands([5; 40], now(28)).is_dearer());
        assert!(commands([5; 40], now(31)).is_dearer());
    }

    #[test]
    fn a_sum_that_falls_is_not_dearer() {
        let now = (0..40).map(|place| if place == 0 { 0 } else { 101 });
        let change = commands([100; 40], now);
        assert_eq!((change.dearer, change.cheaper), (39, 1));
        assert!(!change.is_dearer());
    }

    #[test]
    fn the_block_that_has_grown_the_most_is_named() {
        assert_eq!(commands([1, 1, 1], [2, 9, 9]).worst, Some((BLOCK, 8)));
        assert_eq!(commands([3, 3, 3], [2, 1, 1]).worst, None);
    }

    #[test]
    fn blocks_of_one_side_alone_do_not_count() {
        let change = commands([1], [1, 50]);
        assert_eq!((change.before, change.now, change.dearer), (1, 1, 0));
    }
}
