//! How a lease can end.

use core::fmt;

use super::NodeAnswer;
use crate::protocol;

/// Why a lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// The client was closed.
    Closed,
    /// Its deadline has passed, or is about to.
    DeadlinePassed,
    /// Its deadline has passed, or is about to: it may be kept alive for no longer.
    KeepAliveEnded,
    /// Its deadline has passed, or is about to: it should have been kept alive, and too few nodes
    /// confirmed the last extension in time.
    KeepAliveFailed,
    /// So many nodes lost the key that others can have a majority.
    KeysGone,
    /// It was released.
    Released,
}

impl fmt::Display for LostReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Closed => "the client was closed",
            Self::DeadlinePassed => "the lease's deadline has passed",
            Self::KeepAliveEnded => "the lease may be kept alive for no longer",
            Self::KeepAliveFailed => "too few nodes confirmed that the lease is kept alive",
            Self::KeysGone => "so many nodes lost the key that others can have a majority",
            Self::Released => "the lease was released",
        })
    }
}

impl std::error::Error for LostReason {}

impl From<protocol::LostReason> for LostReason {
    fn from(reason: protocol::LostReason) -> Self {
        match reason {
            protocol::LostReason::DeadlinePassed => Self::DeadlinePassed,
            protocol::LostReason::KeepAliveEnded => Self::KeepAliveEnded,
            protocol::LostReason::KeepAliveFailed => Self::KeepAliveFailed,
            protocol::LostReason::KeysGone => Self::KeysGone,
        }
    }
}

/// What became of a release. In every case the lease is over and the client goes on trying.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Released {
    /// Every node that can have had the key answered, and none had it any more.
    AlreadyExpired,
    /// Every node that can have had the key answered, and none has it now. A node to which none was
    /// sent, because it was away when the lock was acquired, has nothing to confirm.
    Confirmed,
    /// These nodes may have the key and have not confirmed that it is gone: they may keep it until it
    /// expires.
    Unconfirmed(Vec<NodeAnswer>),
}

/// What became of the closing of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "nodes may still be owed releases"]
pub struct Closed {
    pub(crate) left: Vec<NodeAnswer>,
}

impl Closed {
    /// The nodes that have not answered everything that they were sent, or are owed releases: they
    /// may keep keys until those expire. The client goes on trying as long as its runtime does.
    #[must_use]
    pub fn left(&self) -> &[NodeAnswer] {
        &self.left
    }

    /// Whether nothing is left to be done.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left.is_empty()
    }
}
