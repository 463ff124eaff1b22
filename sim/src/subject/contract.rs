//! The interface between a lock client and its host: requests, replies, clock readings, actions.

use redlock_protocol::{Introduction, NodeMask, Token};

use lock_judge::history::{
    Answer, AttemptId, ClockKind, CommandId, FencingToken, LostReason, NodeId, OpKind, Settlement,
};
use lock_judge::ids::ResourceId;

/// A command that a client sends to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Delete the key if it holds the token.
    CompareAndDelete,
    /// Delete the key.
    Delete,
    /// Set a new TTL on the key, regardless of its owner.
    Expire {
        /// Time to live.
        ttl_ms: u64,
    },
    /// Set a new TTL on the key if the key holds the token and the new TTL is longer.
    Extend {
        /// Time to live.
        ttl_ms: u64,
    },
    /// [`CommandKind::Extend`] as a plain SET, if the node supports one. The SET also sets a TTL
    /// that is shorter than the present one.
    ExtendPlainly {
        /// Time to live.
        ttl_ms: u64,
    },
    /// Return the key's value.
    Get,
    /// Set the key without a TTL and return its old value.
    GetSet,
    /// A handshake request at the start of a connection; used if clients speak bytes.
    Greet,
    /// Return the node's introduction.
    Introduce,
    /// Return the key's remaining time to live, and push the key's next change to this connection.
    Look,
    /// Return 1 if the key holds the token, otherwise 0, and push the key's next change to this
    /// connection.
    Read,
    /// Set the key unless it exists; with a `ttl_ms` of `None` the key never expires.
    Set {
        /// Time to live.
        ttl_ms: Option<u64>,
    },
    /// Set the key unless it exists; if it exists, return its value (`NX … GET`).
    SetOrShow {
        /// Time to live.
        ttl_ms: u64,
    },
    /// [`CommandKind::Set`]; if the key was set, increment the node's counter and return the new
    /// count.
    SetAndCount {
        /// Time to live.
        ttl_ms: u64,
    },
    /// Set the key unless it exists, with an expiry at a reading of the node's wall clock (`PXAT`).
    SetUntil {
        /// Expiry on the node's wall clock.
        wall_ms: u64,
    },
    /// Return the key's remaining time to live (`PTTL`).
    TimeLeft,
    /// Wait until the given number of replicas has this connection's writes; return how many
    /// replicas have them.
    Wait {
        /// Number of replicas.
        replicas: u8,
        /// Longest wait.
        timeout_ms: u32,
    },
}

// Requests are copied at every step of their way, so `CommandKind` stays within two words.
const _: () = assert!(size_of::<CommandKind>() <= 16);

impl CommandKind {
    /// Returns an extension, as a plain SET if `plain` is true.
    #[must_use]
    pub const fn extend(ttl_ms: u64, plain: bool) -> Self {
        if plain { Self::ExtendPlainly { ttl_ms } } else { Self::Extend { ttl_ms } }
    }

    /// Returns the command's kind in a history.
    #[must_use]
    pub const fn op(self) -> OpKind {
        match self {
            Self::CompareAndDelete => OpKind::Release,
            Self::Delete => OpKind::Delete,
            Self::Expire { .. } => OpKind::Expire,
            Self::Extend { .. } | Self::ExtendPlainly { .. } => OpKind::Extend,
            Self::Get => OpKind::Get,
            Self::GetSet => OpKind::GetSet,
            Self::Greet | Self::Introduce => OpKind::Introduce,
            Self::Set { .. }
            | Self::SetAndCount { .. }
            | Self::SetOrShow { .. }
            | Self::SetUntil { .. } => OpKind::Set,
            Self::Look => OpKind::Look,
            Self::Read => OpKind::Read,
            Self::TimeLeft => OpKind::TimeLeft,
            Self::Wait { .. } => OpKind::Wait,
        }
    }
}

/// A command that has no number in the history: part of a handshake, or not written yet.
pub const UNNUMBERED: CommandId = CommandId(u32::MAX);

/// A request on its way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The command, numbered by the engine; [`UNNUMBERED`] before that.
    pub command: CommandId,
    /// The attempt that sent the request.
    pub attempt: AttemptId,
    /// The resource whose key the command is about; the first for commands without a key.
    pub resource: ResourceId,
    /// The command.
    pub kind: CommandKind,
    /// The token to set or to compare with.
    pub token: Token,
}

/// Value of a node's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyValue {
    /// An error.
    Error,
    /// An integer.
    Integer(i64),
    /// Reply to [`CommandKind::Introduce`].
    Introduction(Introduction),
    /// No value: for example, the key does not exist or was not set.
    Nil,
    /// An error: the server is a replica, or is loading its data.
    NotServing,
    /// OK.
    Ok,
    /// Reply to [`CommandKind::Look`] or [`CommandKind::Read`] if the node will push the key's next
    /// change.
    Registered(i64),
    /// Reply to [`CommandKind::Get`] and [`CommandKind::GetSet`], and to a
    /// [`CommandKind::SetOrShow`] that did not set the key.
    Value {
        /// Present or previous value of the key.
        token: Token,
        /// True if `token` is the token of the request.
        own: bool,
    },
}

/// A reply on its way to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The command that this reply answers.
    pub command: CommandId,
    /// The attempt that sent the command.
    pub attempt: AttemptId,
    /// Kind of the command.
    pub op: OpKind,
    /// The reply's value.
    pub value: ReplyValue,
}

impl Reply {
    /// Returns the reply's meaning in a history.
    #[must_use]
    pub const fn answer(&self) -> Answer {
        match self.value {
            ReplyValue::Error | ReplyValue::NotServing => Answer::Error,
            ReplyValue::Integer(0)
            | ReplyValue::Nil
            | ReplyValue::Registered(0)
            | ReplyValue::Value { own: false, .. } => Answer::No,
            ReplyValue::Integer(_)
            | ReplyValue::Registered(_)
            | ReplyValue::Introduction(_)
            | ReplyValue::Ok
            | ReplyValue::Value { own: true, .. } => Answer::Yes,
        }
    }
}

/// Identifies one connection of a client: the node, the lane to that node, and the epoch on that
/// lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The node.
    pub node: NodeId,
    /// Number of the lane; a client may keep several lanes to one node.
    pub lane: u16,
    /// Number of the connection on the lane; it grows with each new connection.
    pub epoch: u32,
}

/// Readings of the client's clocks, all taken at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The boot clock.
    pub boot_ns: u64,
    /// The clock that the subject measures leases with.
    pub lease_ns: u64,
}

/// The facts that the host needs about a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Number of nodes that the subject locks: the first ones of the client's own list.
    pub nodes: usize,
    /// Number of connections that the subject keeps to each node.
    pub lanes: u16,
    /// Number of votes that the subject needs.
    pub quorum: usize,
    /// True if the subject's keys have a TTL on the node.
    pub expires: bool,
    /// True if a lease ends before the TTL by the drift allowance.
    pub gives_up_drift: bool,
}

/// Identity and randomness of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshAttempt {
    /// Identifies the attempt.
    pub attempt: AttemptId,
    /// A token that was never drawn before.
    pub token: Token,
    /// Random value, uniform over `u64`.
    pub jitter: u64,
}

/// An acquisition as the application asks for it: how long to try, and for what lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Limit on the attempts.
    pub patience: Patience,
    /// Time for which the lease is kept alive; `None` if it is not. Only some subjects can.
    pub keep_alive_ns: Option<u64>,
    /// TTL of the lease; `None` for the client's. Only some subjects can.
    pub ttl_ns: Option<u64>,
}

/// Limit on the attempts of one acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// At most this number of attempts.
    Attempts(u32),
    /// Until this reading of the boot clock.
    UntilBoot(u64),
    /// No waiting: another attempt follows only a split vote.
    AtOnce,
}

impl Patience {
    /// Returns true if another attempt may begin at `next_boot_ns` after `failures` failed
    /// attempts.
    #[must_use]
    pub const fn allows(self, failures: u32, next_boot_ns: u64) -> bool {
        match self {
            Self::Attempts(most) => failures < most,
            Self::UntilBoot(end_ns) => next_boot_ns < end_ns,
            // A subject that cannot recognise a split vote tries once.
            Self::AtOnce => false,
        }
    }
}

/// A lease as the application receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The granted attempt.
    pub attempt: AttemptId,
    /// Clock of the deadline.
    pub clock: ClockKind,
    /// Deadline of the lease; `u64::MAX` means never.
    pub deadline_ns: u64,
    /// The subject's own fencing token, if it has a source of them.
    pub fencing_token: Option<FencingToken>,
}

/// An action that a subject requests from its host, or a decision that it reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw a [`FreshAttempt`] and begin the attempt.
    AttemptDue,
    /// An attempt ended without a grant.
    AttemptSettled {
        /// The attempt.
        attempt: AttemptId,
        /// Outcome of the attempt; never `Granted`.
        outcome: Settlement,
    },
    /// An attempt is granted; deliver its lease.
    Decided {
        /// The attempt.
        attempt: AttemptId,
        /// Nodes whose votes counted.
        counted: NodeMask,
        /// Deadline on the subject's lease clock.
        deadline_ns: u64,
    },
    /// Open a connection.
    Dial(Route),
    /// An extension is decided.
    ExtensionSettled {
        /// The attempt that holds the lease.
        attempt: AttemptId,
        /// Nodes whose votes counted, and the new deadline on the subject's lease clock; `None` if
        /// the extension failed, which leaves the lease unchanged.
        extended: Option<(NodeMask, u64)>,
    },
    /// No further attempt will follow.
    GaveUp,
    /// The lease is lost.
    Lost {
        /// The attempt that held the lease.
        attempt: AttemptId,
        /// Why it is lost.
        reason: LostReason,
    },
    /// The subject has begun to extend the lease by itself.
    Extending {
        /// The attempt that holds the lease.
        attempt: AttemptId,
        /// T1, on the subject's lease clock.
        t1_ns: u64,
        /// Requested TTL.
        ttl_ns: u64,
    },
    /// Close a connection: the kernel goes on until what was written has got through.
    Close(Route),
    /// Reset a connection: the kernel sends nothing more, but what is on the wire still arrives.
    Reset(Route),
    /// Send a command.
    Write {
        /// Connection to use.
        route: Route,
        /// The attempt that sends the command.
        attempt: AttemptId,
        /// The resource whose key the command is about; the first for commands without a key.
        resource: ResourceId,
        /// The command.
        kind: CommandKind,
        /// Token of the command.
        token: Token,
    },
}
