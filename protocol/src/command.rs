//! Commands and replies exchanged between the machines, and between a machine and a node.

use core::time::Duration;

use super::holder::Holder;
use super::quorum::NodeIndex;
use super::restart::Introduction;
use super::time::BootInstant;
use super::token::Token;

/// Number that the driver has assigned to a resource name. The machines never see names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub u32);

/// One use of the lock: its attempts and, if one succeeds, its lease. An id is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl LockId {
    /// The first id in their order.
    pub(crate) const FIRST: Self = Self { slot: 0, generation: 0 };
}

/// Names one command for the life of a [`NodeSet`](super::NodeSet).
///
/// Answers are matched by this id, so that a late answer to an earlier attempt can never count for
/// a later attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    /// The lock that sent the command; `None` for a command that a link sends on its own account.
    pub lock: Option<LockId>,
    pub(crate) serial: u32,
}

/// A command to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sets the key's time to live to `ttl`, counted from execution, if the key still holds the
    /// token and does not already live longer: a late extension never shortens a lease (counterexample
    /// E6).
    Extend {
        /// The key.
        resource: ResourceId,
        /// Value that the key must hold.
        token: Token,
        /// Time to live, in whole milliseconds.
        ttl: Duration,
        /// If true, a node that supports it may be sent a plain owner-checked SET. A plain SET that
        /// is executed late shortens the key's life, so the lease counts no node at which one may
        /// be late.
        plain: bool,
    },
    /// Asks the node for its run id and its canary; a canary that does not fit is written anew.
    /// Always the first command of a connection, and sent again when the last answer is too old.
    Introduce,
    /// `PTTL key`, which registers the connection for a push at the key's next change, where the
    /// node pushes.
    Look {
        /// The key.
        resource: ResourceId,
        /// Token of the last attempt that the key blocked.
        token: Token,
    },
    /// `GET key`, which registers the connection for a push at the key's next change, where the node
    /// pushes.
    Read {
        /// The key.
        resource: ResourceId,
        /// Value to compare with: the reply is 1 if the key holds it, otherwise 0.
        token: Token,
    },
    /// Deletes the key if it still holds the token (the specification's release script).
    Release {
        /// The key.
        resource: ResourceId,
        /// Value that the key must hold.
        token: Token,
    },
    /// `SET key token NX PX ttl`.
    Set {
        /// The key.
        resource: ResourceId,
        /// The value to store.
        token: Token,
        /// Time to live, in whole milliseconds.
        ttl: Duration,
    },
    /// `PTTL key`: the key's remaining time to live, regardless of its owner.
    TimeLeft {
        /// The key.
        resource: ResourceId,
        /// Token of the attempt that the key blocks.
        token: Token,
    },
}

impl Op {
    /// Returns the command's key; `None` for an introduction.
    #[must_use]
    #[inline]
    pub fn resource(&self) -> Option<ResourceId> {
        match *self {
            Self::Extend { resource, .. }
            | Self::Look { resource, .. }
            | Self::Read { resource, .. }
            | Self::Release { resource, .. }
            | Self::Set { resource, .. }
            | Self::TimeLeft { resource, .. } => Some(resource),
            Self::Introduce => None,
        }
    }

    /// Returns true if `reply` says that the command has changed its key.
    pub(crate) fn has_changed_key(&self, reply: Reply) -> bool {
        match self {
            Self::Extend { .. } | Self::Release { .. } => matches!(reply, Reply::Integer(1..)),
            Self::Set { .. } => reply == Reply::Ok,
            Self::Introduce | Self::Look { .. } | Self::Read { .. } | Self::TimeLeft { .. } => {
                false
            }
        }
    }

    /// Returns the token of the attempt that sent the command; `None` for an introduction.
    #[must_use]
    #[inline]
    pub fn token(&self) -> Option<Token> {
        match *self {
            Self::Extend { token, .. }
            | Self::Look { token, .. }
            | Self::Read { token, .. }
            | Self::Release { token, .. }
            | Self::Set { token, .. }
            | Self::TimeLeft { token, .. } => Some(token),
            Self::Introduce => None,
        }
    }
}

/// A lock's order to send a command to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Send {
    pub(crate) node: NodeIndex,
    pub(crate) id: CommandId,
    pub(crate) op: Op,
    /// The SET that this release must not overtake, if the answer to that SET is outstanding.
    pub(crate) after: Option<CommandId>,
    /// The command must not be written at or after this instant: the lease it belongs to is over
    /// then.
    pub(crate) write_before: Option<BootInstant>,
    /// Longest time that the key lives, hence the longest time for which a release may be owed.
    pub(crate) key_ttl: Duration,
}

/// A node's reply, as far as the protocol distinguishes replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Any error reply.
    Error,
    /// A SET was refused, but the key was gone when the node was then asked for the key's value.
    Gone,
    /// A SET was refused because the key holds this value.
    Held(Holder),
    /// An integer.
    Integer(i64),
    /// The parsed answer to [`Op::Introduce`].
    Introduction(Introduction),
    /// A SET was refused, and the node does not say what the key holds.
    Nil,
    /// The node serves no requests for now: it is a replica, or it is loading its data.
    NotServing,
    /// `+OK`.
    Ok,
    /// The integer reply to an [`Op::Look`] or [`Op::Read`] of a node that will push the key's next
    /// change.
    Registered(i64),
}

/// Reason why a command has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The command was not written within the node timeout because other commands of this client
    /// were ahead: the node cannot execute it.
    Crowded,
    /// The command was never written: the node cannot execute it.
    NotSent,
    /// The command was written: the node may have executed it, or may yet execute it.
    Unknown,
    /// The node has set the key, but its identity was not confirmed in time: the vote does not count.
    Unconfirmed,
}
