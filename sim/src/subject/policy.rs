//! Most other lock clients: one machine with a few settings.

mod client;
#[cfg(test)]
mod tests;

pub use client::PolicyClient;

use core::time::Duration;

use redlock_protocol::{Drift, RetryDelay};

use lock_judge::history::ClockKind;

/// The rules by which a client locks. Each field is a decision that some published client got
/// wrong, or that the next version of the lock improved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Clock from which T1, T2 and the deadline are read.
    pub clock: Clock,
    /// Step 3: rejects a grant that has no validity left at T2.
    pub checks_validity: bool,
    /// Source of the token.
    pub token: TokenFrom,
    /// Number of votes needed.
    pub quorum: Quorum,
    /// Order in which the nodes are asked.
    pub asking: Asking,
    /// Point at which an attempt is decided.
    pub settling: DecisionPoint,
    /// Effect of a closed connection or an error on a pending vote.
    pub errors: Errors,
    /// True if the client gives up a node that does not reply within the node timeout.
    pub has_node_timeout: bool,
    /// Nodes that a failed attempt releases.
    pub release_after_failure: ReleaseTo,
    /// Nodes that an attempt with a majority but no validity at T2 releases.
    pub release_when_too_slow: ReleaseTo,
    /// Command that deletes a key.
    pub unlock: Unlock,
    /// Way in which a key gets its expiry.
    pub expiry: Expiry,
    /// Command that follows a SET.
    pub then: AfterSet,
    /// True if the lease ends before the TTL by the drift allowance.
    pub gives_up_drift: bool,
    /// Form in which the caller receives the lease.
    pub lasting: LeaseForm,
    /// True if the application checks the lease before it enters a section.
    pub checks_before_section: bool,
    /// Fixed delay before a retry, without randomness.
    pub fixed_retry: Option<Duration>,
    /// Use of connections.
    pub connect: Connect,
    /// True if the client locks only on the first node.
    pub one_node: bool,
    /// True if the first node is a perfect lock server: exact clock, perfect memory.
    pub ideal_server: bool,
    /// Source of the fencing tokens.
    pub fencing: Fencing,
    /// Rules for extending a lease.
    pub extending: Extending,
}

/// A clock with which a client measures leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Counts the time that the host sleeps.
    Boot,
    /// Does not count the time that the host sleeps.
    Monotonic,
    /// Can be set forward and back.
    Wall,
}

impl Clock {
    /// Returns the clock's kind in a history.
    #[must_use]
    pub const fn kind(self) -> ClockKind {
        match self {
            Self::Boot => ClockKind::Boot,
            Self::Monotonic => ClockKind::Monotonic,
            Self::Wall => ClockKind::Wall,
        }
    }
}

/// Source of the token. Wall-clock tokens are for clients of [`Clock::Wall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFrom {
    /// Random, new for every attempt.
    Attempt,
    /// Random, drawn once in the life of the lock object.
    Client,
    /// T1 on the wall clock, in milliseconds.
    WallClock,
    /// T1 on the wall clock, in milliseconds, followed by the client's number.
    WallClockAndClient,
}

/// Number of votes that grant the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// More than half of the nodes.
    Majority,
    /// A fixed number.
    Of(usize),
    /// More than half of the nodes with an open connection when the attempt begins; only these
    /// nodes are asked. If no connection is open, all nodes are asked and counted.
    MajorityOfConnected,
}

/// Order in which the nodes are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// All at once.
    Parallel,
    /// Each node after the one before it has replied or was given up.
    Sequential,
}

/// Point at which an attempt is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionPoint {
    /// As soon as the votes decide the outcome; the client asks no further node then.
    WhenCertain,
    /// When every node has replied or was given up.
    AfterAll,
}

/// Effect of a closed connection or an error on a pending vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// The attempt fails at once and releases nothing.
    AbortAttempt,
    /// The node has no vote.
    CountAsNo,
    /// None: the node may still reply before the client gives it up.
    Unheard,
}

/// Way in which a key gets its expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The SET sets no expiry.
    Never,
    /// `PX`: the node adds the TTL to its own clock.
    Px,
    /// `PXAT`: the client adds the TTL to its own wall clock. For clients of [`Clock::Wall`].
    PxAt,
}

/// Command that follows a SET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterSet {
    /// None: the SET is complete.
    Nothing,
    /// `EXPIRE` after the SET succeeded; the reply to `EXPIRE` is the vote.
    Expire,
    /// `EXPIRE`, written directly after the SET without waiting for its reply.
    ExpirePipelined,
    /// `WAIT` for one replica on the same connection, after the SET succeeded.
    Wait {
        /// True if the vote counts whatever `WAIT` replies.
        ignored: bool,
    },
}

/// Form in which the caller receives the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseForm {
    /// An instant of the lease clock.
    Deadline,
    /// The validity left at T2; the caller counts it from when it receives the lease.
    Duration,
}

/// Nodes that a client releases after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseTo {
    /// Nodes that acknowledged the SET.
    Acknowledged,
    /// All nodes.
    Everyone,
    /// No node.
    Nobody,
}

/// Command that deletes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlock {
    /// A script that deletes the key only if it holds the client's token.
    CompareAndDelete,
    /// `DEL`, regardless of its owner.
    Delete,
    /// `DEL` after a GET that returned the client's token.
    GetThenDelete,
}

/// Use of connections by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// A new connection for every command.
    FreshPerCommand,
    /// One connection to each node.
    Pooled,
    /// One connection to each node, and a spare one. A proxy or a driver sends every SET a second
    /// time on the spare connection.
    Resending,
    /// One connection to each node, and a second one for releases.
    SecondForRelease,
}

/// Source of the fencing tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fencing {
    /// None: the subject has no fencing tokens.
    Nowhere,
    /// A counter on each node, incremented with the SET; the token is the largest of the counted
    /// replies.
    Counters,
    /// T2 on the client's wall clock, in milliseconds. For clients of [`Clock::Wall`].
    WallClock,
}

/// Rules for extending a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extending {
    /// One node that still had the key is enough.
    pub by_any: bool,
    /// A missing key is set again, and its SET counts as a vote.
    pub recreates: bool,
    /// The new deadline is counted from the last reply, not from T1.
    pub from_reply: bool,
    /// No extension begins after the old deadline, and no reply after it counts.
    pub only_while_valid: bool,
    /// An extension without validity left fails.
    pub checks_validity: bool,
    /// After a failure the client releases every node but keeps the lease.
    pub unlocks_after_failure: bool,
    /// The number of extensions of one lease is bounded by the scenario's limit.
    pub is_bounded: bool,
}

/// Configuration of a policy client besides its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of nodes that the client locks.
    pub nodes: usize,
    /// Time to live of the keys.
    pub ttl: Duration,
    /// Drift allowance that is subtracted from a lease.
    pub drift: Drift,
    /// Longest wait for one node.
    pub node_timeout: Duration,
    /// Delay between attempts.
    pub retry: RetryDelay,
    /// Largest number of successful extensions of one lease.
    pub extensions_max: u32,
    /// True if extensions use a plain SET on nodes that support it.
    pub plain_extensions: bool,
}

/// Returns the duration in nanoseconds; saturates at `u64::MAX`.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
