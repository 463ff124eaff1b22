//! Members of a sorted set.

use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use std::collections::{BTreeMap, BTreeSet};

use crate::SmallBytes;

/// Greatest number of members of a short sorted set (`zset-max-listpack-entries`).
const SHORT_MEMBERS_MAX: usize = 128;

/// Greatest length of a member of a short sorted set, in bytes (`zset-max-listpack-value`).
const SHORT_BYTES_MAX: usize = 64;

/// Score of a member: a number other than NaN. There is one zero only, so that equal scores have
/// equal bits.
#[derive(Clone, Copy, Debug)]
pub struct Score(f64);

impl Score {
    /// Returns the score; `None` for NaN.
    #[must_use]
    pub fn new(number: f64) -> Option<Self> {
        // The sum of the negative zero and zero is zero.
        (!number.is_nan()).then_some(Self(number + 0.0))
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Score {}

impl Hash for Score {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// The members of a sorted set, in order of their scores, then of their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Members {
    scores: BTreeMap<SmallBytes, Score>,
    order: BTreeSet<(Score, SmallBytes)>,
    /// True if the set has ever had many members, or a long one; `OBJECT ENCODING` shows it.
    is_long: bool,
}

impl Members {
    /// Returns the number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Returns true if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// Returns true if the set is stored as short sets are.
    pub(crate) fn is_short(&self) -> bool {
        !self.is_long
    }

    /// Returns the score of a member.
    #[must_use]
    pub fn score(&self, member: &[u8]) -> Option<Score> {
        self.scores.get(member).copied()
    }

    /// Iterates over the members and their scores, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &(Score, SmallBytes)> {
        self.order.iter()
    }

    /// Adds a member or changes its score.
    pub(crate) fn set(&mut self, member: &[u8], score: Score) {
        let member = SmallBytes::new(member);
        self.is_long |= member.len() > SHORT_BYTES_MAX;
        if let Some(old) = self.scores.insert(member.clone(), score) {
            self.order.remove(&(old, member.clone()));
        }
        self.order.insert((score, member));
        self.is_long |= self.len() > SHORT_MEMBERS_MAX;
    }

    /// Removes a member; returns false if there is no such member.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let Some((member, score)) = self.scores.remove_entry(member) else { return false };
        self.order.remove(&(score, member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(pairs: &[(&str, f64)]) -> Members {
        let mut members = Members::default();
        for (member, score) in pairs {
            members.set(member.as_bytes(), Score::new(*score).expect("a number"));
        }
        members
    }

    #[test]
    fn members_are_in_order_of_scores_then_of_bytes() {
        let mut set = members(&[("b", 1.0), ("a", 1.0), ("c", f64::NEG_INFINITY), ("a", 0.5)]);
        let names: Vec<&[u8]> = set.iter().map(|(_, member)| &**member).collect();
        assert_eq!(names, [b"c", b"a", b"b"]);
        assert!(set.remove(b"a") && !set.remove(b"a"));
        assert_eq!((set.len(), set.iter().count()), (2, 2));
        assert_eq!(set, members(&[("c", f64::NEG_INFINITY), ("b", 1.0)]));
    }

    #[test]
    fn there_is_one_zero_and_no_nan() {
        assert_eq!(Score::new(-0.0), Score::new(0.0));
        assert!(Score::new(f64::NAN).is_none());
        assert!(Score::new(-1.0) < Score::new(-0.0));
    }

    #[test]
    fn many_members_or_a_long_one_end_the_short_form() {
        let mut set = members(&[(&"x".repeat(SHORT_BYTES_MAX), 1.0)]);
        assert!(set.is_short());
        assert!(!members(&[(&"x".repeat(SHORT_BYTES_MAX + 1), 1.0)]).is_short());
        for number in 1..SHORT_MEMBERS_MAX {
            set.set(&number.to_be_bytes(), Score(1.0));
        }
        assert!(set.is_short());
        set.set(b"last", Score(1.0));
        set.remove(b"last");
        assert!(!set.is_short());
    }
}
