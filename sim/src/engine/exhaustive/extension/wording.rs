//! The clauses of the extension rule, and weaker forms of each clause.
//!
//! The client has no switch that weakens a rule: weaker wordings exist only here.

/// Time at which a missing key is set again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// After the success of the round that found the key missing.
    AfterSuccess,
    /// As soon as the key is found missing.
    AtOnce,
}

/// Time from which a node counts if its key is younger than the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Young {
    /// After a round that began after the key's acknowledgement has succeeded without this node.
    AfterLaterRound,
    /// For a key that was set again: after any round has succeeded without this node, even the
    /// round that was under way at the acknowledgement.
    SetAgainAfterAnyRound,
    /// For a key that was set again: from the acknowledgement on.
    SetAgainAtOnce,
    /// For a key whose SET was answered after the grant: from the answer on.
    LateAtOnce,
}

/// One wording of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wording {
    /// Time at which a missing key is set again.
    pub repair: Repair,
    /// Time from which a young key counts.
    pub young: Young,
    /// True if a node without the key is sent a SET even while an earlier SET may be on its way.
    pub set_twice: bool,
    /// True if answers at or after the old deadline count too.
    pub late_answers: bool,
    /// True if the deadline is counted from the last answer, not from the beginning of the round.
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

    /// Keys are set again as soon as they are found missing, and count as strictly as in the rule
    /// as built.
    pub const SET_AGAIN_AT_ONCE: Self = Self { repair: Repair::AtOnce, ..Self::AS_BUILT };

    /// The unsafe wordings, each with its name.
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
