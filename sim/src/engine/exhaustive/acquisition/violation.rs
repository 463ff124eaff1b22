//! Properties that the search tries to violate.

/// A violation of a property. Each counterexample names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// Both clients believe that they hold the lock.
    Exclusion,
    /// A release has deleted a key whose acknowledgement counts for an attempt under way, or for a
    /// lease.
    Deleted,
    /// A lease was granted at its deadline or later, or without a majority of nodes that have
    /// acknowledged its key.
    Unsound,
    /// A node has a key of an attempt that is over, and no release of it is on its way or owed.
    LeftBehind,
}

impl Violation {
    /// All violations.
    pub const ALL: [Self; 4] = [Self::Exclusion, Self::Deleted, Self::Unsound, Self::LeftBehind];

    /// Returns the violation in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Exclusion => "both clients hold the lock",
            Self::Deleted => "a release deleted a key that counts",
            Self::Unsound => "a lease was granted without a majority, or after its deadline",
            Self::LeftBehind => "a key was left behind, and nothing will release it",
        }
    }
}
