//! The clauses of the acquisition rule, and weaker forms of each clause.
//!
//! The client has no switch that weakens a rule: weaker wordings exist only here.

use super::Violation::{self, Deleted, Exclusion, LeftBehind, Unsound};
use super::{Bounds, QUORUM, Terms};

/// Time for which a node does not vote after it has restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligible {
    /// The TTL and the drift, counted from the introduction. Known across connections.
    AfterQuarantine,
    /// One tick, counted from the introduction.
    AfterOneTick,
    /// The quarantine, unless the client connects again meanwhile.
    AtNextConnection,
    /// At once.
    AtOnce,
}

/// Instant from which the validity is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// T1, before the first command is written.
    FromT1,
    /// The first answer.
    FromFirstAnswer,
    /// The grant.
    FromGrant,
}

/// Nodes that a release is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasedTo {
    /// Every node to which the SET may have been written.
    All,
    /// Nodes that have acknowledged the key.
    Voters,
}

/// Answers that count as votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Votes {
    /// One of each node, in the current attempt, within the node timeout.
    OfThisAttempt,
    /// One of each node, to any SET of this client.
    OfAnyAttempt,
    /// Every acknowledgement of any SET of this client.
    EveryAnswer,
}

/// Check of a release at the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The key is deleted if it holds the token.
    Token,
    /// The key is deleted.
    Nothing,
}

/// One wording of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wording {
    /// Time from which a restarted node votes.
    pub eligible: Eligible,
    /// Instant from which the validity is measured.
    pub measured: Measured,
    /// True if the validity is shortened by the drift.
    pub drift: bool,
    /// True if a lease is granted only before its deadline.
    pub in_time: bool,
    /// Votes needed.
    pub quorum: usize,
    /// Answers that count as votes.
    pub votes: Votes,
    /// True if each attempt has its own token.
    pub fresh_token: bool,
    /// Nodes that a release is sent to.
    pub released_to: ReleasedTo,
    /// Check of a release at the node.
    pub compared: Compared,
    /// True if a release on a lost connection is sent again on the next one.
    pub owed: bool,
}

/// Two clients, one attempt each, and no fault.
pub(super) const SMALL: Bounds = Bounds {
    terms: Terms { ttl: 2, drift: 1 },
    attempts: [1, 1],
    ticks: 1,
    losses: 0,
    restarts: 0,
};

impl Wording {
    /// The rule as built.
    pub const AS_BUILT: Self = Self {
        eligible: Eligible::AfterQuarantine,
        measured: Measured::FromT1,
        drift: true,
        in_time: true,
        quorum: QUORUM,
        votes: Votes::OfThisAttempt,
        fresh_token: true,
        released_to: ReleasedTo::All,
        compared: Compared::Token,
        owed: true,
    };

    /// The unsafe wordings, each with its name, the property that it violates, and bounds within
    /// which it does.
    pub const WEAKER: [(&'static str, Violation, Bounds, Self); 14] = [
        ("one vote of three is enough", Exclusion, SMALL, Self { quorum: 1, ..Self::AS_BUILT }),
        (
            "an answer to an earlier attempt counts",
            Exclusion,
            Bounds { attempts: [2, 1], ..SMALL },
            Self { votes: Votes::OfAnyAttempt, ..Self::AS_BUILT },
        ),
        (
            "answers are counted, not nodes",
            Exclusion,
            Bounds { attempts: [2, 1], ..SMALL },
            Self { votes: Votes::EveryAnswer, ..Self::AS_BUILT },
        ),
        (
            "the validity is measured from the first answer",
            Exclusion,
            SMALL,
            Self { measured: Measured::FromFirstAnswer, ..Self::AS_BUILT },
        ),
        (
            "the validity is measured from the grant",
            Exclusion,
            SMALL,
            Self { measured: Measured::FromGrant, ..Self::AS_BUILT },
        ),
        (
            "the validity is the whole TTL",
            Exclusion,
            SMALL,
            Self { drift: false, ..Self::AS_BUILT },
        ),
        (
            "a lease is granted after its deadline",
            Unsound,
            SMALL,
            Self { in_time: false, ..Self::AS_BUILT },
        ),
        (
            "a node that restarted votes at once",
            Exclusion,
            Bounds { terms: Terms { ttl: 3, drift: 1 }, restarts: 1, ..SMALL },
            Self { eligible: Eligible::AtOnce, ..Self::AS_BUILT },
        ),
        (
            "the quarantine is shorter than the TTL",
            Exclusion,
            Bounds { terms: Terms { ttl: 4, drift: 1 }, ticks: 2, restarts: 1, ..SMALL },
            Self { eligible: Eligible::AfterOneTick, ..Self::AS_BUILT },
        ),
        (
            "the quarantine is forgotten with the connection",
            Exclusion,
            Bounds { terms: Terms { ttl: 4, drift: 1 }, ticks: 2, losses: 1, restarts: 1, ..SMALL },
            Self { eligible: Eligible::AtNextConnection, ..Self::AS_BUILT },
        ),
        (
            "a release does not compare the token",
            Deleted,
            Bounds { attempts: [2, 1], ..SMALL },
            Self { compared: Compared::Nothing, ..Self::AS_BUILT },
        ),
        (
            "both attempts use the same token",
            Deleted,
            Bounds { attempts: [2, 0], losses: 1, ..SMALL },
            Self { fresh_token: false, ..Self::AS_BUILT },
        ),
        (
            "a release is sent only to nodes that acknowledged the key",
            LeftBehind,
            Bounds { attempts: [1, 0], ..SMALL },
            Self { released_to: ReleasedTo::Voters, ..Self::AS_BUILT },
        ),
        (
            "a release on a lost connection is not sent again",
            LeftBehind,
            Bounds { attempts: [1, 0], losses: 1, ..SMALL },
            Self { owed: false, ..Self::AS_BUILT },
        ),
    ];
}
