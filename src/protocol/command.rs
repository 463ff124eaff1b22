//! What travels between the machines, and between them and a node.

use core::time::Duration;

use super::holder::Holder;
use super::quorum::NodeIndex;
use super::restart::Introduction;
use super::time::BootInstant;
use super::token::Token;

/// A resource name that the driver has interned. The machines never see names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub u32);

/// One use of the lock: its attempts and, if one succeeds, its lease. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Names one command for the life of a [`NodeSet`](super::NodeSet).
///
/// An answer is matched by this name, so that a late answer to an earlier attempt can never count
/// for a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    /// The lock that sent it; `None` for what a link sends on its own account.
    pub(crate) lock: Option<LockId>,
    pub(crate) serial: u32,
}

/// What a node is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Make the key live for `ttl` from its execution on if it still holds the token and does not
    /// live for longer already: an extension that comes late never shortens (catalogue E6).
    Extend {
        /// The key.
        resource: ResourceId,
        /// What the key must hold.
        token: Token,
        /// The time to live, whole milliseconds.
        ttl: Duration,
        /// A node that can may be asked by a plain owner-checked SET, which does shorten if it is
        /// executed late: the lease counts no node then that one could be late at.
        plain: bool,
    },
    /// Say which process you are, and what your canary says, which is written anew if it does not
    /// fit. Always the first command of a connection, and asked again when that answer is old.
    Introduce,
    /// Delete the key if it still holds the token (the specification's release script).
    Release {
        /// The key.
        resource: ResourceId,
        /// What the key must hold.
        token: Token,
    },
    /// `SET key token NX PX ttl`.
    Set {
        /// The key.
        resource: ResourceId,
        /// The value.
        token: Token,
        /// The time to live, whole milliseconds.
        ttl: Duration,
    },
    /// `PTTL key`: how long the key lives, whosever it is.
    TimeLeft {
        /// The key.
        resource: ResourceId,
        /// The attempt that the key is in the way of.
        token: Token,
    },
}

impl Op {
    /// The key that it is about.
    #[must_use]
    pub fn resource(&self) -> Option<ResourceId> {
        match *self {
            Self::Extend { resource, .. }
            | Self::Release { resource, .. }
            | Self::Set { resource, .. }
            | Self::TimeLeft { resource, .. } => Some(resource),
            Self::Introduce => None,
        }
    }

    /// The token of the attempt that it is for.
    #[must_use]
    pub fn token(&self) -> Option<Token> {
        match *self {
            Self::Extend { token, .. }
            | Self::Release { token, .. }
            | Self::Set { token, .. }
            | Self::TimeLeft { token, .. } => Some(token),
            Self::Introduce => None,
        }
    }
}

/// A lock's wish that a node be sent a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Send {
    pub(crate) node: NodeIndex,
    pub(crate) id: CommandId,
    pub(crate) op: Op,
    /// The SET that this release must not overtake, if that SET's answer is outstanding.
    pub(crate) after: Option<CommandId>,
    /// It must not be written at this instant or later: the lease that it belongs to is over.
    pub(crate) write_before: Option<BootInstant>,
    /// How long the key lives at most, hence how long a release may be owed.
    pub(crate) key_ttl: Duration,
}

/// What a node answered, as far as the protocol tells answers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Any error reply.
    Error,
    /// A SET was refused, and the key was gone when the node was asked whose it was.
    Gone,
    /// A SET was refused: the key holds this.
    Held(Holder),
    /// An integer.
    Integer(i64),
    /// The parsed answer to [`Op::Introduce`].
    Introduction(Introduction),
    /// A SET was refused, and the node does not say whose the key is.
    Nil,
    /// The node serves nobody for now: it is a replica, or loads its data.
    NotServing,
    /// `+OK`.
    Ok,
}

/// Why a command has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// Not written within the node timeout, for other commands of this client were ahead: the node
    /// cannot execute it.
    Crowded,
    /// It was never written: the node cannot execute it.
    NotSent,
    /// It was written and may have been executed, or may be yet.
    Unknown,
}
