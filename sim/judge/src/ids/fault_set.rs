//! A set of faults, larger than a machine word.

use core::ops::BitOrAssign;

use serde::{Deserialize, Serialize};

use super::{FAULTS_MAX, FaultId, Id};

const WORDS: usize = FAULTS_MAX.div_ceil(u64::BITS as usize);

/// A set of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct FaultIds([u64; WORDS]);

impl FaultIds {
    /// The set of nothing.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// Returns the set of `fault` alone; the empty set if there can be no such fault.
    #[must_use]
    pub fn just(fault: FaultId) -> Self {
        let mut set = Self::EMPTY;
        set.insert(fault);
        set
    }

    /// Adds `fault`, if there can be such a fault.
    pub fn insert(&mut self, fault: FaultId) {
        let (word, bit) = place(fault);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }

    /// Returns true if `fault` is in the set.
    #[must_use]
    pub fn contains(&self, fault: FaultId) -> bool {
        let (word, bit) = place(fault);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Iterates over the set, the smallest identity first.
    pub fn iter(self) -> impl Iterator<Item = FaultId> {
        FaultId::first(FAULTS_MAX).filter(move |fault| self.contains(*fault))
    }
}

impl BitOrAssign for FaultIds {
    fn bitor_assign(&mut self, other: Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own |= other;
        }
    }
}

/// Returns the index of the word of a fault, and its bit there.
const fn place(fault: FaultId) -> (usize, u64) {
    let bits = u64::BITS as usize;
    (fault.0 as usize / bits, 1 << (fault.0 as usize % bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let mut set = FaultIds::just(FaultId(255));
        set |= FaultIds::just(FaultId(63));
        set.insert(FaultId(64));
        set.insert(FaultId(256));
        assert_eq!(set.iter().collect::<Vec<_>>(), [63, 64, 255].map(FaultId));
        assert!(!set.contains(FaultId(256)) && !set.contains(FaultId(0)));
    }
}
