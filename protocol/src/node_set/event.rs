//! Events about the locks, for the driver.

use core::time::Duration;

use crate::command::LockId;
use crate::lock::{AttemptError, Ballot, ExtendError, LostReason, ReleaseOutcome};
use crate::quorum::NodeMask;
use crate::time::BootInstant;
use crate::token::Token;

/// An event that the driver must handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The driver must draw randomness and call [`NodeSet::begin`](super::NodeSet::begin).
    AttemptDue(LockId),
    /// An attempt failed; everything that it may have set is being released.
    AttemptFailed {
        /// The use of the lock.
        lock: LockId,
        /// The attempt's token.
        token: Token,
        /// Reason for the failure.
        reason: AttemptError,
        /// The nodes' verdicts.
        ballot: Ballot,
    },
    /// An attempt was granted; the driver must call [`NodeSet::deliver`](super::NodeSet::deliver)
    /// when it hands the lease to the caller.
    Decided {
        /// The use of the lock.
        lock: LockId,
        /// The attempt's token.
        token: Token,
        /// The nodes whose votes were counted.
        counted: NodeMask,
        /// Deadline of the lease.
        deadline: BootInstant,
    },
    /// No further attempt follows, and no further event about this use of the lock.
    GaveUp {
        /// The use of the lock.
        lock: LockId,
        /// Reason why the last attempt failed.
        reason: AttemptError,
        /// Time after which a majority of the nodes holds no blocking key if no key is released or
        /// extended before; `None` unless another owner has the lock and the time is known.
        taken_for: Option<Duration>,
    },
    /// The machine began an extension to keep the lease alive
    /// ([`LockConfig::keep_alive`](crate::LockConfig::keep_alive)). Its result follows.
    ExtensionBegan {
        /// The use of the lock.
        lock: LockId,
        /// The lease's token.
        token: Token,
        /// Instant from which the TTL counts, before any command of the extension.
        t1: BootInstant,
        /// TTL that the extension asks for.
        ttl: Duration,
    },
    /// The lease was extended.
    Extended {
        /// The use of the lock.
        lock: LockId,
        /// The lease's token.
        token: Token,
        /// The nodes whose answers were counted.
        counted: NodeMask,
        /// New deadline of the lease.
        deadline: BootInstant,
    },
    /// An extension failed. The lease is unchanged.
    ExtensionFailed {
        /// The use of the lock.
        lock: LockId,
        /// The lease's token.
        token: Token,
        /// Reason for the failure.
        reason: ExtendError,
    },
    /// The lease is over, whether or not the caller has noticed it.
    Lost {
        /// The use of the lock.
        lock: LockId,
        /// Reason for the loss.
        reason: LostReason,
    },
    /// The lease was released. No further event about this use of the lock follows.
    Released {
        /// The use of the lock.
        lock: LockId,
        /// The nodes' answers.
        outcome: ReleaseOutcome,
    },
}
