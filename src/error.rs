//! What can go wrong, and how a lease can end.

use core::fmt;
use core::time::Duration;

use crate::protocol::{self, AttemptError, MAX_NODES};

/// Why a client cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variant's message names its fields")]
pub enum BuildError {
    #[error("node {place} (`{endpoint}`) is configured twice: its vote would count twice")]
    DuplicateNode { place: usize, endpoint: String },
    #[error("the node `{url}`: {why}")]
    Endpoint { url: String, why: EndpointError },
    #[error("no `{0}` was given, and it has no default")]
    Missing(&'static str),
    #[error("a min_validity of {min_validity:?} leaves nothing of a TTL of {ttl:?}")]
    MinValidity { min_validity: Duration, ttl: Duration },
    #[error("no node was given")]
    NoNodes,
    #[error(
        "a node timeout of {node_timeout:?} is not between zero and a quarter of the TTL {ttl:?}"
    )]
    NodeTimeout { node_timeout: Duration, ttl: Duration },
    #[error("{0} nodes were given, at most {MAX_NODES} are supported")]
    TooManyNodes(usize),
    #[error("a TTL of {ttl:?}: {why}")]
    Ttl { ttl: Duration, why: TtlError },
}

/// What is wrong with a node's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// There is a user or a password.
    #[error("credentials are not supported yet")]
    Credentials,
    /// The host is missing or has characters that no host has.
    #[error("expected a host name, an IPv4 address, or an IPv6 address in brackets")]
    Host,
    /// There is something behind the port.
    #[error("nothing may follow the port: databases and options are not supported yet")]
    Path,
    /// The port is no number from 1 to 65535.
    #[error("expected a port from 1 to 65535")]
    Port,
    /// It does not begin with `redis://`.
    #[error("expected `redis://host:port`")]
    Scheme,
}

/// What is wrong with a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TtlError {
    /// Other clients' quarantine of a restarted node would end before such a lease does.
    #[error("longer than fleet_max_ttl, by which the whole fleet waits after a restart")]
    BeyondFleet,
    /// Redis keeps whole milliseconds.
    #[error("not a whole number of milliseconds")]
    SubMillisecond,
    /// A key that never lives protects nothing.
    #[error("zero")]
    Zero,
}

/// Why the lock was not acquired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireError {
    kind: AcquireErrorKind,
}

/// The kinds of [`AcquireError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireErrorKind {
    /// The acquisition was asked for with options that contradict each other or the client.
    Invalid,
    /// The operating system had no randomness for a token.
    NoEntropy,
    /// A majority could not be had without nodes that are in quarantine after a restart.
    Quarantined,
    /// Other holders' keys are in the way.
    Taken,
    /// Too few nodes answered.
    TooFewNodes,
    /// A majority answered, too late for the lease to be worth anything.
    TooSlow,
}

impl AcquireError {
    pub(crate) fn new(kind: AcquireErrorKind) -> Self {
        Self { kind }
    }

    /// What went wrong, at the last attempt if there were several.
    #[must_use]
    pub fn kind(&self) -> AcquireErrorKind {
        self.kind
    }
}

impl From<AttemptError> for AcquireErrorKind {
    fn from(reason: AttemptError) -> Self {
        match reason {
            // The caller who cancels is not there to be told.
            AttemptError::Cancelled | AttemptError::Taken => Self::Taken,
            AttemptError::Quarantined => Self::Quarantined,
            AttemptError::TooFewNodes => Self::TooFewNodes,
            AttemptError::TooSlow => Self::TooSlow,
        }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.kind {
            AcquireErrorKind::Invalid => "the options of the acquisition contradict each other",
            AcquireErrorKind::NoEntropy => "the operating system has no randomness for a token",
            AcquireErrorKind::Quarantined => "too many nodes are in quarantine after a restart",
            AcquireErrorKind::Taken => "the lock is taken",
            AcquireErrorKind::TooFewNodes => "too few nodes answered",
            AcquireErrorKind::TooSlow => "a majority answered too late",
        })
    }
}

impl std::error::Error for AcquireError {}

/// Why a lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// Its deadline has passed, or is about to.
    DeadlinePassed,
    /// Its deadline has passed, or is about to: it may be kept alive for no longer.
    KeepAliveEnded,
    /// So many nodes lost the key that others can have a majority.
    KeysGone,
    /// It was released.
    Released,
}

impl fmt::Display for LostReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::DeadlinePassed => "the lease's deadline has passed",
            Self::KeepAliveEnded => "the lease may be kept alive for no longer",
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
            protocol::LostReason::KeysGone => Self::KeysGone,
            protocol::LostReason::KeepAliveEnded => Self::KeepAliveEnded,
        }
    }
}

/// What became of a release. In every case the lease is over and the client goes on trying.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Released {
    /// Every node answered, and none had the key any more.
    AlreadyExpired,
    /// Every node answered, and none has the key now.
    Confirmed,
    /// These nodes have not answered: they may keep the key until it expires.
    Unconfirmed(Vec<NodeAnswer>),
}

/// A node that owes an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeAnswer {
    /// Its place in the configured list.
    pub place: usize,
    /// Its address.
    pub node: String,
}
