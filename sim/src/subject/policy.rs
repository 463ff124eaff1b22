//! Most other lock clients: one machine with a few knobs.

mod client;
#[cfg(test)]
mod tests;

pub use client::PolicyClient;

use core::time::Duration;

use redlock_client::protocol::RetryDelay;

use crate::history::ClockKind;

/// How a client locks. Each knob is a decision that some published client got wrong, or that the
/// next version of the lock improved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What T1, T2 and the deadline are read from.
    pub clock: Clock,
    /// Step 3: refuse a grant of which nothing is left at T2.
    pub checks_validity: bool,
    /// What makes a token.
    pub token: TokenFrom,
    /// Votes needed.
    pub quorum: Quorum,
    /// In what order nodes are asked.
    pub asking: Asking,
    /// When an attempt is decided.
    pub settling: Settling,
    /// What a broken connection or an error means for a vote that is awaited.
    pub errors: Errors,
    /// Whether a node that does not answer within the node timeout is given up.
    pub has_node_timeout: bool,
    /// Whom a failed attempt releases.
    pub release_after_failure: ReleaseTo,
    /// The same for an attempt with a majority but nothing left at T2.
    pub release_when_too_slow: ReleaseTo,
    /// How a key is deleted.
    pub unlock: Unlock,
    /// How a key gets its expiry.
    pub expiry: Expiry,
    /// What follows a SET.
    pub then: Then,
    /// Whether the lease ends before the TTL does.
    pub gives_up_drift: bool,
    /// In what form the caller gets the lease.
    pub lasting: Lasting,
    /// Whether the application asks the lease before it enters a section.
    pub looks_before_section: bool,
    /// A retry delay without randomness.
    pub fixed_retry: Option<Duration>,
    /// How it connects.
    pub connect: Connect,
    /// Whether it locks on the first node alone.
    pub one_node: bool,
    /// Where its fencing tokens come from.
    pub fencing: Fencing,
    /// How it extends a lease.
    pub extending: Extending,
}

/// A clock to measure leases with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Counts time asleep.
    Boot,
    /// Does not.
    Monotonic,
    /// Can be set.
    Wall,
}

impl Clock {
    /// As a history tells it.
    #[must_use]
    pub const fn kind(self) -> ClockKind {
        match self {
            Self::Boot => ClockKind::Boot,
            Self::Monotonic => ClockKind::Monotonic,
            Self::Wall => ClockKind::Wall,
        }
    }
}

/// What makes a token. Wall-clock tokens are for clients of [`Clock::Wall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFrom {
    /// Randomness, for every attempt.
    Attempt,
    /// Randomness, once for the life of the lock object.
    Client,
    /// T1 on the wall clock, in milliseconds.
    WallClock,
    /// The same, and the client's number behind it.
    WallClockAndClient,
}

/// How many votes are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// More than half of the nodes.
    Majority,
    /// So many.
    Of(usize),
    /// More than half of the nodes to which a connection is open when the attempt begins; nobody
    /// else is asked. All nodes if there is none.
    MajorityOfConnected,
}

/// In what order nodes are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// All at once.
    Parallel,
    /// Each when the one before it has answered, or was given up.
    Sequential,
}

/// When an attempt is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// As soon as enough nodes have agreed, or too many have not; nobody else is asked then.
    WhenCertain,
    /// When every node has answered or was given up.
    AfterAll,
}

/// What a broken connection means for a vote that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// The attempt fails at once, and nothing is released.
    AbortAttempt,
    /// The node has refused.
    CountAsNo,
    /// Nothing: the node may come back before it is given up.
    Unheard,
}

/// How a key gets its expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Not with the SET.
    Never,
    /// `PX`: the node adds the TTL to its own clock.
    Px,
    /// `PXAT`: the client adds it to its wall clock. For clients of [`Clock::Wall`].
    PxAt,
}

/// What follows a SET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing: the SET says it all.
    Nothing,
    /// `EXPIRE`, when the SET was answered yes; the vote is its answer.
    Expire,
    /// `EXPIRE`, written at once behind the SET.
    ExpirePipelined,
    /// `WAIT` for one replica when the SET was answered yes, on its connection.
    Wait {
        /// The key counts whatever the answer.
        ignored: bool,
    },
}

/// In what form the caller gets the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// An instant of the lease clock.
    Deadline,
    /// What was left at T2, counted by the caller from when it gets it.
    Duration,
}

/// Whom a failed attempt releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseTo {
    /// Nodes that said yes.
    Acknowledged,
    /// All nodes.
    Everyone,
    /// None.
    Nobody,
}

/// How a key is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlock {
    /// By a script, if it is the client's own.
    CompareAndDelete,
    /// Whosever it is.
    Delete,
    /// After a GET that showed it to be the client's own.
    GetThenDelete,
}

/// How a client uses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// A new one for every command.
    FreshPerCommand,
    /// One a node.
    Pooled,
    /// One a node; a proxy or a driver that has not heard at once sends every SET a second time, on
    /// a connection that it opens for that.
    Resending,
    /// One a node, and a second one for releases.
    SecondForRelease,
}

/// Where fencing tokens come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fencing {
    /// The subject has none.
    Nowhere,
    /// A counter on each node, counted together with the SET: the largest of the counted answers.
    Counters,
    /// T2 on the client's wall clock, in milliseconds. For clients of [`Clock::Wall`].
    WallClock,
}

/// How a client extends a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extending {
    /// One node that still had the key is enough.
    pub by_any: bool,
    /// A key that is gone is set again, and counts.
    pub recreates: bool,
    /// The new deadline is counted from the last answer, not from before the first command.
    pub from_reply: bool,
    /// None is sent once the old deadline has passed, and no answer after it counts.
    pub only_while_valid: bool,
    /// An extension of which nothing is left has failed.
    pub checks_validity: bool,
    /// After a failure every node is released, and the lease goes on.
    pub unlocks_after_failure: bool,
    /// One lease has so many extensions at most as the scenario says.
    pub is_bounded: bool,
}

/// What a policy client is configured with besides its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many nodes it locks.
    pub nodes: usize,
    /// How long keys live.
    pub ttl: Duration,
    /// What leases give up.
    pub drift: Duration,
    /// How long a node may take.
    pub node_timeout: Duration,
    /// The wait between attempts.
    pub retry: RetryDelay,
    /// How many extensions of one lease may succeed.
    pub extensions_max: u32,
    /// Whether extensions are asked for by plain SETs where nodes have them.
    pub plain_extensions: bool,
}

/// In nanoseconds; what is longer than they can say is the longest they can.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
