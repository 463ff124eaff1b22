//! What a driver is told: what to do to the transports, and what became of the locks.

use core::time::Duration;

use crate::protocol::command::{CommandId, LockId, Op};
use crate::protocol::link::GivenUp;
use crate::protocol::lock::{AttemptError, Ballot, ExtendError, LostReason, ReleaseOutcome};
use crate::protocol::quorum::{NodeIndex, NodeMask};
use crate::protocol::time::BootInstant;
use crate::protocol::token::Token;

/// What the driver is to do to a node's transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Open a connection, and say how it went under this epoch.
    Dial {
        /// The node.
        node: NodeIndex,
        /// Names the connection.
        epoch: u32,
    },
    /// Drop the connection at once, unsent bytes and all. Nothing of it is to be reported any more.
    Reset {
        /// The node.
        node: NodeIndex,
        /// Names the connection.
        epoch: u32,
        /// Why it is given up.
        why: GivenUp,
    },
    /// Write the command. It counts as written for good.
    Write {
        /// The node.
        node: NodeIndex,
        /// Names the connection.
        epoch: u32,
        /// Names the command.
        id: CommandId,
        /// What to write.
        op: Op,
    },
}

/// What the driver is to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The driver is to draw randomness and call [`NodeSet::begin`](super::NodeSet::begin).
    AttemptDue(LockId),
    /// An attempt failed; whatever it may have set is being released.
    AttemptFailed {
        /// The use of the lock.
        lock: LockId,
        /// The attempt's token.
        token: Token,
        /// Why.
        reason: AttemptError,
        /// What the nodes had said.
        ballot: Ballot,
    },
    /// An attempt was granted; the driver is to call
    /// [`NodeSet::deliver`](super::NodeSet::deliver) when it hands the lease to the caller.
    Decided {
        /// The use of the lock.
        lock: LockId,
        /// The attempt's token.
        token: Token,
        /// The nodes whose votes were counted.
        counted: NodeMask,
        /// When the lease will be over.
        deadline: BootInstant,
    },
    /// There will be no further attempt, and nothing more is said of this use of the lock.
    GaveUp {
        /// The use of the lock.
        lock: LockId,
        /// Why the last attempt failed.
        reason: AttemptError,
        /// In how long a majority of the nodes has no key in the way any more if nobody releases or
        /// extends it; `None` unless somebody has the lock and that is known.
        taken_for: Option<Duration>,
    },
    /// The lease was extended.
    Extended {
        /// The use of the lock.
        lock: LockId,
        /// The lease's token.
        token: Token,
        /// The nodes whose answers were counted.
        counted: NodeMask,
        /// When the lease will be over now.
        deadline: BootInstant,
    },
    /// An extension failed. The lease is what it was.
    ExtensionFailed {
        /// The use of the lock.
        lock: LockId,
        /// The lease's token.
        token: Token,
        /// Why.
        reason: ExtendError,
    },
    /// The lease is over, whether or not the caller has noticed.
    Lost {
        /// The use of the lock.
        lock: LockId,
        /// Why.
        reason: LostReason,
    },
    /// The lease was released, and nothing more is said of this use of the lock.
    Released {
        /// The use of the lock.
        lock: LockId,
        /// What the nodes answered.
        outcome: ReleaseOutcome,
    },
}
