//! Configuration of a use of the lock, and its results for the caller.

use core::time::Duration;

use crate::quorum::{NodeCount, NodeMask};
use crate::retry::RetryDelay;
use crate::time::BootInstant;
use crate::token::Token;
use crate::validity::Drift;

/// Configuration of one use of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockConfig {
    /// Number of configured nodes.
    pub nodes: NodeCount,
    /// Time to live of a key, in whole milliseconds, at least one.
    pub ttl: Duration,
    /// Safety margin of the lease for clock drift.
    pub drift: Drift,
    /// A grant is refused if no more than this is left of its lease.
    pub min_validity: Duration,
    /// The wait between attempts.
    pub retry: RetryDelay,
    /// Limit after which no further attempt begins.
    pub limit: Limit,
    /// Most extensions of one lease that may succeed. Without a bound, a holder that hangs would
    /// block all others for ever (specification, "Making the algorithm more reliable";
    /// counterexample E8). Extensions by which the machine itself keeps the lease alive do not count.
    pub extensions_max: u32,
    /// Time after the delivery for which the machine keeps the lease alive; `None`: not at all. No
    /// extension that the machine begins asks for more than this allows.
    pub keep_alive: Option<Duration>,
    /// Permits plain owner-checked SETs as extensions on nodes that support them
    /// ([`Op::Extend`](crate::Op::Extend)).
    pub plain_extensions: bool,
    /// Watches a lease that is held for more than a moment: the client reads the lease's key on the
    /// nodes, and the nodes push the key's changes, so that a loss of keys is noticed.
    pub watched: bool,
}

/// Condition on which a use of the lock stops trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After this many attempts.
    Attempts(u32),
    /// No attempt begins at or after this instant, except a first attempt that does not queue: it
    /// begins at this instant at the latest.
    Until(BootInstant),
    /// After this many attempts, or as soon as one fails for a reason other than a split vote.
    WhileSplit(u32),
}

impl Limit {
    /// Tries without waiting for the lock's owner. With three clients asking at the same time, five
    /// attempts rarely leave all of them without the lock.
    pub const AT_ONCE: Self = Self::WhileSplit(5);

    /// Returns the end of the wait; `None` if the limit is a number of attempts.
    #[must_use]
    pub const fn end(self) -> Option<BootInstant> {
        match self {
            Self::Until(end) => Some(end),
            Self::Attempts(_) | Self::WhileSplit(_) => None,
        }
    }

    /// Returns true if no attempt may begin at `now` any more, for lack of time.
    pub(super) fn is_over(self, now: BootInstant) -> bool {
        self.end().is_some_and(|end| end <= now)
    }
}

/// Randomness of one attempt. The driver draws it; the machine never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fresh {
    /// The attempt's token.
    pub token: Token,
    /// Uniform over `u64`: determines the wait after the attempt, if it fails.
    pub jitter: u64,
}

/// A lease as handed to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Instant of the client's boot clock at which the lease is over. Never a duration: a duration
    /// that is read late is too long (counterexample K6).
    pub deadline: BootInstant,
    /// Value that the nodes hold for the lease.
    pub token: Token,
}

/// Reason why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptError {
    /// The caller cancelled.
    Cancelled,
    /// A majority was not asked within the node timeout, because other commands of this client were
    /// ahead; or the wait was over before the first attempt, because other attempts were.
    Overloaded,
    /// No majority was possible without nodes that are in quarantine.
    Quarantined,
    /// Votes are split: no other attempt has keys on a majority of the nodes either.
    Split,
    /// Another owner has the lock: a majority of the nodes showed keys of one other attempt, or
    /// another use of this client holds the lease.
    Taken,
    /// Too few nodes answered to know whether another owner has the lock.
    TooFewNodes,
    /// A majority answered, but too late for the lease to have enough time left.
    TooSlow,
}

/// Reason why a lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostReason {
    /// Its deadline has passed, or is about to.
    DeadlinePassed,
    /// So many nodes reported the key as missing, or as another owner's, that others can have a
    /// majority.
    KeysGone,
    /// Its deadline has passed, or is about to: the limit for keeping it alive is reached.
    KeepAliveEnded,
    /// Its deadline has passed, or is about to: keep-alive failed because too few nodes confirmed
    /// the last extension in time.
    KeepAliveFailed,
}

/// Reason why a lease was not extended. Its deadline is unchanged.
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
    /// Too few nodes answered, or too few of those that answered still had the key.
    TooFewNodes,
    /// The TTL is too long: a node that forgets the key would be quarantined for less than this
    /// TTL.
    TooLong,
    /// The lease has been extended as often as the limit allows.
    TooMany,
    /// The answers came too late: at or after the old deadline.
    TooSlow,
    /// The new deadline would not be later than the present one.
    WouldShorten,
}

/// Nodes that have the key of a lease, by what they have said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    /// Nodes that last reported the key and would have pushed its loss since: the connection is the
    /// same, and pushes changes. A lease that is not watched yet was granted a moment ago; every
    /// vote for it counts as confirmed.
    pub confirmed: NodeMask,
    /// All nodes but those that are known to lack the key. Some of these may have reported the key
    /// but do not push.
    pub possible: NodeMask,
}

/// Result of a release, by node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseOutcome {
    /// Nodes that deleted the key.
    pub deleted: NodeMask,
    /// Nodes that reported that the key was missing, or was another owner's.
    pub absent: NodeMask,
    /// Nodes that did not answer in time, or answered with an error. The link tries again.
    pub unconfirmed: NodeMask,
    /// Those of the unconfirmed nodes that answered with an error.
    pub failed: NodeMask,
}
