//! The clauses of the rule of extension, and what each could say less.
//!
//! There is no switch in the client that weakens a rule: weaker wordings live here alone.

/// When a key that was found missing is set again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// When the round that found it missing has succeeded.
    AfterSuccess,
    /// When it is found missing.
    AtOnce,
}

/// From when on a node counts whose key is younger than the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Young {
    /// When a round that began after the key was acknowledged has succeeded without it.
    AfterLaterRound,
    /// A key that was set again: when a round has succeeded without it, be it the one that was under
    /// way at the acknowledgement.
    SetAgainAfterAnyRound,
    /// A key that was set again: from the acknowledgement on.
    SetAgainAtOnce,
    /// A key whose SET was answered after the grant: from the answer on.
    LateAtOnce,
}

/// One wording of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wording {
    /// When a missing key is set again.
    pub repair: Repair,
    /// When a young key counts.
    pub young: Young,
    /// A node that lacks the key is sent it even if an earlier SET may be on its way.
    pub set_twice: bool,
    /// Answers that come at the old deadline or later count too.
    pub late_answers: bool,
    /// The deadline is counted from the last answer, not from the round's beginning.
    pub from_return: bool,
}

impl Wording {
    /// The rule as built.
    pub const AS_BUILT: Self = Self {
        repair: Repair::AfterSuccess,
        young: Young::AfterLaterRound,
        set_twice: false,
        late_answers: false,
        from_return: false,
    };

    /// Keys are set again when they are found missing, and count as strictly as in the rule as built.
    pub const SET_AGAIN_AT_ONCE: Self = Self { repair: Repair::AtOnce, ..Self::AS_BUILT };

    /// The wordings that are not safe, each under its name.
    pub const WEAKER: [(&str, Self); 7] = [
        (
            "a key that was set again counts at once",
            Self { young: Young::SetAgainAtOnce, ..Self::AS_BUILT },
        ),
        (
            "a key is set again before a success, and counts after it",
            Self { repair: Repair::AtOnce, young: Young::SetAgainAfterAnyRound, ..Self::AS_BUILT },
        ),
        (
            "a key that was set again counts after the round under way",
            Self { young: Young::SetAgainAfterAnyRound, ..Self::AS_BUILT },
        ),
        (
            "a key whose SET was answered after the grant counts at once",
            Self { young: Young::LateAtOnce, ..Self::AS_BUILT },
        ),
        (
            "a key is set again although an earlier SET may be on its way",
            Self { set_twice: true, ..Self::AS_BUILT },
        ),
        (
            "answers count at the old deadline and after it",
            Self { late_answers: true, ..Self::AS_BUILT },
        ),
        ("the deadline is measured from the return", Self { from_return: true, ..Self::AS_BUILT }),
    ];
}
