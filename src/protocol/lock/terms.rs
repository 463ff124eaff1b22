//! What a use of the lock is told, and what it tells its caller.

use core::time::Duration;

use crate::protocol::quorum::{NodeCount, NodeMask};
use crate::protocol::retry::RetryDelay;
use crate::protocol::time::BootInstant;
use crate::protocol::token::Token;
use crate::protocol::validity::Drift;

/// What one use of the lock is to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockConfig {
    /// How many nodes are configured.
    pub nodes: NodeCount,
    /// How long a key lives. Whole milliseconds, at least one.
    pub ttl: Duration,
    /// What the lease gives up for drift.
    pub drift: Drift,
    /// A grant with no more than this left is no grant.
    pub min_validity: Duration,
    /// The wait between attempts.
    pub retry: RetryDelay,
    /// When to stop trying.
    pub limit: Limit,
    /// How many extensions of one lease may succeed. Without a bound a holder that hangs keeps
    /// everybody out for ever (specification, "Making the algorithm more reliable"; catalogue E8).
    /// Those by which the machine itself keeps the lease alive do not count.
    pub extensions_max: u32,
    /// For how long from its grant on the machine keeps the lease alive by itself; `None`: not at
    /// all. No extension asks for more than this allows.
    pub keep_alive: Option<Duration>,
    /// Whether an extension may be asked for by a plain owner-checked SET where the node has one
    /// ([`Op::Extend`](crate::protocol::Op::Extend)).
    pub plain_extensions: bool,
}

/// When a use of the lock stops trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After this many attempts.
    Attempts(u32),
    /// No attempt begins at or after this instant.
    Until(BootInstant),
    /// After this many attempts, and before as soon as one fails for another reason than a split
    /// vote.
    WhileSplit(u32),
}

impl Limit {
    /// Without waiting for whoever has the lock. If three clients ask at the same time, few rounds
    /// are left without a winner by then.
    pub const AT_ONCE: Self = Self::WhileSplit(5);
}

/// The randomness of one attempt. The driver draws it; the machine never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fresh {
    /// The attempt's token.
    pub token: Token,
    /// Uniform over `u64`: decides the wait after the attempt, if it fails.
    pub jitter: u64,
}

/// A lease as it is handed to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The lease is over at this instant of the client's boot clock. Never a duration: a duration
    /// that is looked at late is too long (catalogue K6).
    pub deadline: BootInstant,
    /// What the nodes hold for the lease.
    pub token: Token,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptError {
    /// The caller gave up.
    Cancelled,
    /// A majority was not asked within the node timeout: other commands of this client were ahead.
    Overloaded,
    /// A majority could not be had without nodes that are in quarantine.
    Quarantined,
    /// Votes are split: no other attempt has keys on a majority of the nodes either.
    Split,
    /// Somebody else has the lock: a majority of the nodes showed keys of one other attempt, or
    /// another use of this client holds the lease.
    Taken,
    /// Too few nodes answered to know whether somebody else has the lock.
    TooFewNodes,
    /// A majority answered, too late for the lease to be worth anything.
    TooSlow,
}

/// Why a lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostReason {
    /// Its deadline has passed, or is about to.
    DeadlinePassed,
    /// So many nodes said that the key is not there, or somebody else's, that others can have a
    /// majority.
    KeysGone,
    /// Its deadline has passed, or is about to: it may be kept alive for no longer.
    KeepAliveEnded,
    /// Its deadline has passed, or is about to: it should have been kept alive, and too few nodes
    /// confirmed the last extension in time.
    KeepAliveFailed,
}

/// Why a lease was not extended. Its deadline stays what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendError {
    /// An extension is under way already.
    Busy,
    /// The caller released the lease meanwhile.
    Cancelled,
    /// There is no lease, or it is over.
    Lost(LostReason),
    /// A majority was not asked within the node timeout: other commands of this client were ahead.
    Overloaded,
    /// Too few nodes answered, or too few of them still had the key.
    TooFewNodes,
    /// A node that forgets the key would be quarantined for less than the TTL.
    TooLong,
    /// The lease has been extended as often as it may be.
    TooMany,
    /// The answers came too late: at the old deadline or after it.
    TooSlow,
    /// The lease would end before, or when, it does now.
    WouldShorten,
}

/// What became of a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReleaseOutcome {
    /// Nodes that deleted the key.
    pub deleted: NodeMask,
    /// Nodes that said that the key was not there, or was somebody else's.
    pub absent: NodeMask,
    /// Nodes that did not answer in time, or with an error. The link tries again.
    pub unconfirmed: NodeMask,
}
