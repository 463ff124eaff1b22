//! What a client tells of itself while it works.

use core::time::Duration;

use crate::protocol::{
    AttemptError, BootInstant, ExtendError, NodeIndex, NodeMask, ReleaseOutcome, Token,
};

/// Sees everything that a client does, in the order in which its protocol machines see it.
///
/// It is called while the client's state is locked: it must neither block nor call back into the
/// client.
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

/// What can happen. Instants are readings of the client's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variant's documentation names its fields")]
pub enum Event<'a> {
    /// An attempt read `t1`; nothing of it has been written.
    AttemptBegan { owner: Token, resource: &'a [u8], t1: BootInstant, ttl: Duration },
    /// An attempt failed; whatever it may have set is being released.
    AttemptFailed { owner: Token, reason: AttemptError },
    /// A command was handed to the connection to `node`. `owner` is whose it is, if anybody's.
    Written { node: NodeIndex, operation: Operation, owner: Option<Token> },
    /// The answer to the oldest unanswered command on the connection to `node` came.
    Answered { node: NodeIndex, operation: Operation, owner: Option<Token>, answer: Answer },
    /// The votes of `node` count for attempts that begin at `from` or later; `None`: for none.
    Eligible { node: NodeIndex, from: Option<BootInstant> },
    /// The connection to `node` is gone. Commands unanswered on it stay unanswered.
    Disconnected { node: NodeIndex },
    /// The attempt was granted at `t2` by the nodes `counted`.
    Decided { owner: Token, counted: NodeMask, t2: BootInstant, deadline: BootInstant },
    /// The caller has the lease.
    Delivered { owner: Token, deadline: BootInstant },
    /// The lease was extended by the nodes `counted`.
    Extended { owner: Token, counted: NodeMask, deadline: BootInstant },
    /// The lease was not extended; it is what it was.
    ExtensionFailed { owner: Token, reason: ExtendError },
    /// The caller let the lease end by itself.
    LeftToExpire { owner: Token },
    /// The lease is over by itself.
    Lost { owner: Token },
    /// The caller gave the lease back, or dropped it.
    ReleaseCalled { owner: Token },
    /// What the nodes answered to the release.
    Released { owner: Token, outcome: ReleaseOutcome },
}

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Lets a key live for longer if it is the owner's.
    Extend,
    /// Asks a node who it is.
    Introduce,
    /// Deletes a key if it is the owner's.
    Release,
    /// Sets a key if there is none: asks for a vote.
    Set,
}

/// What a node answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An error.
    Error,
    /// The key is there already, or is not the owner's.
    No,
    /// Set, deleted, or introduced.
    Yes,
}
