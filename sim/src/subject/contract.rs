//! What a lock client and its host say to each other: commands, answers, times, actions.

use redlock_client::protocol::{Introduction, NodeMask, Token};

use crate::history::{Answer, AttemptId, ClockKind, OpKind, Settlement};

/// What a node is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Delete the key if it holds the token.
    CompareAndDelete,
    /// Delete the key.
    Delete,
    /// Re-time the key, whosever it is.
    Expire {
        /// Time to live.
        ttl_ms: u64,
    },
    /// Re-time the key if it holds the token and lives longer thereby.
    Extend {
        /// Time to live.
        ttl_ms: u64,
    },
    /// The same by a plain SET where the node has one, which makes the key live for that long whether
    /// or not that is longer.
    ExtendPlainly {
        /// Time to live.
        ttl_ms: u64,
    },
    /// Say what the key holds.
    Get,
    /// Set the key, for ever, and say what it held.
    GetSet,
    /// Hear who speaks: what connections begin with where clients speak bytes.
    Greet,
    /// Say which process you are.
    Introduce,
    /// Set the key unless it is there; `None`: for ever.
    Set {
        /// Time to live.
        ttl_ms: Option<u64>,
    },
    /// The same, and say what the key holds if it is there (`NX … GET`).
    SetOrShow {
        /// Time to live.
        ttl_ms: u64,
    },
    /// [`Ask::Set`], and if it was set, count: the answer is the next number of the node's counter.
    SetAndCount {
        /// Time to live.
        ttl_ms: u64,
    },
    /// Set the key unless it is there, until this reading of the node's wall clock (`PXAT`).
    SetUntil {
        /// When it expires.
        wall_ms: u64,
    },
    /// Say how long the key lives (`PTTL`).
    TimeLeft,
    /// Wait until so many replicas have what this connection wrote, and say how many have.
    Wait {
        /// How many.
        replicas: u8,
        /// How long at most.
        timeout_ms: u32,
    },
}

// Requests are copied at every step of their way: what they ask for is two words.
const _: () = assert!(size_of::<Ask>() <= 16);

impl Ask {
    /// An extension, plainly or not.
    #[must_use]
    pub const fn extend(ttl_ms: u64, plain: bool) -> Self {
        if plain { Self::ExtendPlainly { ttl_ms } } else { Self::Extend { ttl_ms } }
    }

    /// As a history tells it.
    #[must_use]
    pub const fn op(self) -> OpKind {
        match self {
            Self::CompareAndDelete => OpKind::Release,
            Self::Delete => OpKind::Delete,
            Self::Expire { .. } => OpKind::Expire,
            Self::Extend { .. } | Self::ExtendPlainly { .. } => OpKind::Extend,
            Self::Get => OpKind::Get,
            Self::GetSet => OpKind::GetSet,
            Self::Greet | Self::Introduce => OpKind::Introduce,
            Self::Set { .. }
            | Self::SetAndCount { .. }
            | Self::SetOrShow { .. }
            | Self::SetUntil { .. } => OpKind::Set,
            Self::TimeLeft => OpKind::TimeLeft,
            Self::Wait { .. } => OpKind::Wait,
        }
    }
}

/// A command on its way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Numbered by the engine.
    pub command: u32,
    /// Whose it is.
    pub attempt: AttemptId,
    /// What to do.
    pub ask: Ask,
    /// The token to set or to compare with.
    pub token: Token,
}

/// What a node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// An error.
    Error,
    /// An integer.
    Integer(i64),
    /// To [`Ask::Introduce`].
    Introduction(Introduction),
    /// Nothing there.
    Nil,
    /// An error: the server is a replica, or loads its data.
    NotServing,
    /// Done.
    Ok,
    /// To [`Ask::Get`], [`Ask::GetSet`] and a refused [`Ask::SetOrShow`].
    Value {
        /// What the key holds, or held.
        token: Token,
        /// Whether that is the asker's token.
        own: bool,
    },
}

/// An answer on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The command that it answers.
    pub command: u32,
    /// Whose that was.
    pub attempt: AttemptId,
    /// What it was.
    pub op: OpKind,
    /// The answer.
    pub word: Word,
}

impl Response {
    /// As a history tells it.
    #[must_use]
    pub const fn answer(&self) -> Answer {
        match self.word {
            Word::Error | Word::NotServing => Answer::Error,
            Word::Integer(0) | Word::Nil | Word::Value { own: false, .. } => Answer::No,
            Word::Integer(_) | Word::Introduction(_) | Word::Ok | Word::Value { own: true, .. } => {
                Answer::Yes
            }
        }
    }
}

/// Names a connection of one client: to which node, which of several, and which after losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The node.
    pub node: u8,
    /// Which of the client's connections to it.
    pub lane: u16,
    /// Which one on that lane.
    pub epoch: u32,
}

/// Readings of the client's clocks, all taken at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The boot clock.
    pub boot_ns: u64,
    /// The clock that the subject measures leases with.
    pub lease_ns: u64,
}

/// What the host has to know of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// How many nodes it locks: the first ones of the cluster.
    pub nodes: usize,
    /// How many connections to each of them it keeps.
    pub lanes: u16,
    /// How many votes it wants.
    pub quorum: usize,
    /// Whether its keys have a TTL on the node.
    pub expires: bool,
    /// Whether its leases end before the TTL does.
    pub gives_up_drift: bool,
}

/// The randomness of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshAttempt {
    /// Which attempt it is.
    pub attempt: AttemptId,
    /// A token never drawn before.
    pub token: Token,
    /// Uniform over `u64`.
    pub jitter: u64,
}

/// How long to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// So many attempts.
    Attempts(u32),
    /// Until this reading of the boot clock.
    UntilBoot(u64),
    /// At once: again only after a split vote.
    AtOnce,
}

impl Patience {
    /// Whether another attempt may begin at `next_boot_ns`, after so many failures.
    #[must_use]
    pub const fn allows(self, failures: u32, next_boot_ns: u64) -> bool {
        match self {
            Self::Attempts(most) => failures < most,
            Self::UntilBoot(end_ns) => next_boot_ns < end_ns,
            // Who cannot tell a split vote tries once.
            Self::AtOnce => false,
        }
    }
}

/// A lease as the application gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Which attempt was granted.
    pub attempt: AttemptId,
    /// The clock of the deadline.
    pub clock: ClockKind,
    /// When the lease is over; `u64::MAX`: never.
    pub deadline_ns: u64,
    /// The subject's own fencing token, if it has a source of them.
    pub fencing_token: Option<u64>,
}

/// What a subject asks of its host, or tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw a [`FreshAttempt`] and begin.
    AttemptDue,
    /// An attempt will not be counted any more.
    AttemptSettled {
        /// Which.
        attempt: AttemptId,
        /// How; never `Granted`.
        outcome: Settlement,
    },
    /// An attempt is granted; deliver it.
    Decided {
        /// Which.
        attempt: AttemptId,
        /// Nodes whose votes were counted.
        counted: NodeMask,
        /// On the subject's lease clock.
        deadline_ns: u64,
    },
    /// Open a connection.
    Dial(Route),
    /// An extension is decided.
    ExtensionSettled {
        /// Whose.
        attempt: AttemptId,
        /// Nodes whose answers were counted, and the new deadline on the subject's lease clock;
        /// `None` if it failed, which leaves the lease as it was.
        extended: Option<(NodeMask, u64)>,
    },
    /// There will be no further attempt.
    GaveUp,
    /// The lease is over.
    Lost {
        /// Whose.
        attempt: AttemptId,
    },
    /// The subject has begun to extend the lease on its own account.
    Extending {
        /// Whose.
        attempt: AttemptId,
        /// T1, on the subject's lease clock.
        t1_ns: u64,
        /// What it asks for.
        ttl_ns: u64,
    },
    /// Drop a connection at once.
    Reset(Route),
    /// Write a command.
    Write {
        /// Where.
        route: Route,
        /// Whose it is.
        attempt: AttemptId,
        /// What.
        ask: Ask,
        /// With which token.
        token: Token,
    },
}
