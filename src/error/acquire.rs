//! Errors of an acquisition.

use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use redlock_protocol::AttemptError;

use super::resource::Name;
use super::{LostReason, NodeAnswer, OptionError};

/// Reason why the lock was not acquired, with each node's answer to the last attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireError {
    kind: AcquireErrorKind,
    attempts: u32,
    nodes: Vec<NodeAnswer>,
    retry_after: Option<Duration>,
    /// True if a grant that came in time was fetched too late.
    fetched_late: bool,
    refused: Option<OptionError>,
    /// Name of the lock, if the caller has not named it alone. One pointer: callers move the error.
    resource: Option<Name<Arc<Vec<u8>>>>,
    /// Further reason, in words: an error of the system or of tokio when a task was to be started,
    /// or why the client is closed.
    why: Option<Arc<str>>,
}

/// Text of [`AcquireErrorKind::TooSlow`] if the nodes were not at fault.
const FETCHED_LATE: &str = "the lock was granted in time, but the caller took the lease too late (do not \
                            block its runtime, and poll the acquisition until it is ready)";

/// The kinds of [`AcquireError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireErrorKind {
    /// The client was closed. Also returned in a child process, forked without `exec`, of the
    /// process that uses the client: build a new client in the child.
    Closed,
    /// The name of a lock or an option is invalid, or options contradict each other or the client's
    /// configuration.
    Invalid,
    /// The operating system provided no randomness for a token.
    NoEntropy,
    /// No task could be started to serve the connections: the call was polled outside of a tokio
    /// runtime with its network enabled, or the system could not create a thread. Nothing was sent
    /// to the nodes.
    NoRuntime,
    /// This client had more to send than its connections accept: the wait was over before the first
    /// attempt, because other attempts of the client were ahead, or a majority was not asked within
    /// the node timeout. Run fewer tasks at once, or wait longer.
    Overloaded,
    /// No majority was possible without nodes that are in quarantine, because they may have
    /// forgotten leases.
    Quarantined,
    /// The votes are split between clients that asked at the same time: nobody has the lock. A
    /// retry after a random delay helps.
    Split,
    /// Another holder has the lock: a majority of the nodes showed keys of one other attempt, or
    /// another task of this client holds the lease.
    Taken,
    /// Too few nodes answered without an error: it is unknown whether the lock is held.
    TooFewNodes,
    /// The lock was granted too late for a useful lease. The text of the error says which of these
    /// happened:
    ///
    /// - The answers of a majority came too late, or the runtime of the connections read them too
    ///   late. A larger TTL, a faster network or a runtime that is not blocked helps.
    /// - The answers came in time, but the caller fetched the grant too late: its runtime was
    ///   blocked, or the future was not polled. A larger TTL helps, a faster network does not.
    ///
    /// With several locks also: the first leases became too old while the others were acquired.
    TooSlow,
}

impl AcquireError {
    pub(crate) fn new(kind: AcquireErrorKind) -> Self {
        let (retry_after, refused, resource, why) = (None, None, None, None);
        let (attempts, nodes, fetched_late) = (0, Vec::new(), false);
        Self { kind, attempts, nodes, retry_after, fetched_late, refused, resource, why }
    }

    pub(crate) fn not_started(why: &io::Error) -> Self {
        Self::new(AcquireErrorKind::NoRuntime).because(&why.to_string())
    }

    /// Adds a further reason.
    pub(crate) fn because(mut self, why: &str) -> Self {
        self.why = Some(Arc::from(why));
        self
    }

    pub(crate) fn after_attempts(mut self, attempts: u32, nodes: Vec<NodeAnswer>) -> Self {
        (self.attempts, self.nodes) = (attempts, nodes);
        self
    }

    pub(crate) fn until(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    pub(crate) fn fetched_late(mut self, fetched_late: bool) -> Self {
        self.fetched_late = fetched_late;
        self
    }

    /// Adds the name of the lock.
    pub(crate) fn on(mut self, resource: &[u8]) -> Self {
        self.resource = Some(Name(Arc::new(resource.to_vec())));
        self
    }

    pub(crate) fn after_passes(mut self, passes: u32) -> Self {
        self.attempts = passes;
        self
    }

    /// Returns true if another client's use of the lock is the reason: its lease or its attempt.
    pub(crate) fn is_contention(&self) -> bool {
        matches!(self.kind, AcquireErrorKind::Split | AcquireErrorKind::Taken)
    }

    /// Returns true if no later attempt of the same call can succeed.
    pub(crate) fn is_final(&self) -> bool {
        use AcquireErrorKind::{Closed, Invalid, NoEntropy, NoRuntime};
        matches!(self.kind, Closed | Invalid | NoEntropy | NoRuntime)
    }

    /// Returns the kind of failure; after several attempts, that of the last one.
    #[must_use]
    pub fn kind(&self) -> AcquireErrorKind {
        self.kind
    }

    /// With several locks or a semaphore: returns the name of the lock that was not acquired. `None`
    /// with a single lock, and if no lock is at fault.
    #[must_use]
    pub fn resource(&self) -> Option<&[u8]> {
        self.resource.as_ref().map(|name| &**name.0)
    }

    /// Returns the number of attempts; with more than one lock, that of passes over them.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns each node's answer to the last attempt; empty if there was none.
    #[must_use]
    pub fn nodes(&self) -> &[NodeAnswer] {
        &self.nodes
    }

    /// Returns the time until another attempt can succeed, if nothing else changes.
    ///
    /// - [`AcquireErrorKind::Quarantined`]: when the votes of a majority of the nodes count again.
    /// - [`AcquireErrorKind::Taken`]: when the blocking keys have expired on a majority of the
    ///   nodes, unless their owner releases them earlier or extends them. Known if a majority of
    ///   the nodes reported it (`PTTL`, sent after the last attempt), or if another task of this
    ///   client holds the lease.
    ///
    /// `None` for any other kind.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl From<OptionError> for AcquireError {
    fn from(refused: OptionError) -> Self {
        Self { refused: Some(refused), ..Self::new(AcquireErrorKind::Invalid) }
    }
}

impl From<AttemptError> for AcquireErrorKind {
    fn from(reason: AttemptError) -> Self {
        match reason {
            // A caller that cancels never sees this kind.
            AttemptError::Cancelled | AttemptError::Taken => Self::Taken,
            AttemptError::Overloaded => Self::Overloaded,
            AttemptError::Split => Self::Split,
            AttemptError::Quarantined => Self::Quarantined,
            AttemptError::TooFewNodes => Self::TooFewNodes,
            AttemptError::TooSlow => Self::TooSlow,
        }
    }
}

impl AcquireErrorKind {
    /// Returns the kind as one word, for logs and metrics. The words are stable, like the names
    /// of the variants.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Invalid => "invalid",
            Self::NoEntropy => "no_entropy",
            Self::NoRuntime => "no_runtime",
            Self::Overloaded => "overloaded",
            Self::Quarantined => "quarantined",
            Self::Split => "split",
            Self::Taken => "taken",
            Self::TooFewNodes => "too_few_nodes",
            Self::TooSlow => "too_slow",
        }
    }
}

impl fmt::Display for AcquireErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Closed => "the client was closed",
            Self::Invalid => "an option of the acquisition is invalid",
            Self::NoEntropy => "the operating system provided no random bytes for a token",
            Self::NoRuntime => {
                "no task can be started for the connections (poll within a tokio runtime, or build the \
                 client with `background_thread`)"
            }
            Self::Overloaded => {
                "this client sends more than its connections accept (run fewer tasks at once, or wait \
                 longer)"
            }
            Self::Quarantined => "too many nodes may have forgotten leases and are in quarantine",
            Self::Split => "nobody has the lock: the votes are split (retry after a random delay)",
            Self::Taken => "the lock is taken",
            Self::TooFewNodes => "too few nodes answered without an error",
            Self::TooSlow => "a majority answered too late for a useful lease",
        })
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(resource) = self.resource() {
            write!(formatter, "lock `{}`: ", resource.escape_ascii())?;
        }
        if let Some(refused) = &self.refused {
            return write!(formatter, "{refused}");
        }
        if self.kind == AcquireErrorKind::TooSlow && self.fetched_late {
            formatter.write_str(FETCHED_LATE)?;
        } else {
            write!(formatter, "{}", self.kind)?;
        }
        if let Some(why) = &self.why {
            write!(formatter, ": {why}")?;
        }
        if let Some(left) = self.retry_after.filter(|left| !left.is_zero()) {
            write!(formatter, ", for another {left:.1?}")?;
        }
        if self.attempts > 1 {
            write!(formatter, ", after {} attempts", self.attempts)?;
        }
        for (place, answer) in self.nodes.iter().enumerate() {
            write!(formatter, "{} {answer}", if place == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl std::error::Error for AcquireError {}

/// Reason why work under the lock was not done, or was done partly without the lock. `L` is the reason
/// for the loss; with several locks it names the lock.
///
/// Implements `Error` whatever `T` is. `?` converts it into `Box<dyn Error>` if `T` borrows nothing;
/// [`WithError::map`] replaces a value that borrows.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithError<T, L = LostReason> {
    /// The lock was not acquired; the work was not started.
    Acquire(AcquireError),
    /// The lease ended while the work was under way; the work was dropped.
    Lost(L),
    /// The work finished, but not before the lease ended.
    LostAfter(T),
}

impl<T, L> WithError<T, L> {
    /// Converts the output of work that finished too late. `map(drop)` drops it.
    #[must_use]
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> WithError<U, L> {
        match self {
            Self::Acquire(error) => WithError::Acquire(error),
            Self::Lost(reason) => WithError::Lost(reason),
            Self::LostAfter(value) => WithError::LostAfter(convert(value)),
        }
    }
}

/// Shows no output of work: an error has to be displayed whatever `T` is.
impl<T, L: fmt::Debug> fmt::Debug for WithError<T, L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(error) => formatter.debug_tuple("Acquire").field(error).finish(),
            Self::Lost(reason) => formatter.debug_tuple("Lost").field(reason).finish(),
            Self::LostAfter(_) => formatter.debug_tuple("LostAfter").finish_non_exhaustive(),
        }
    }
}

impl<T, L: fmt::Display> fmt::Display for WithError<T, L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(error) => write!(formatter, "{error}"),
            Self::Lost(reason) => write!(formatter, "{reason}; the work was dropped"),
            Self::LostAfter(_) => formatter.write_str("the lease ended before the work did"),
        }
    }
}

impl<T, L: std::error::Error + 'static> std::error::Error for WithError<T, L> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Acquire(error) => Some(error),
            Self::Lost(reason) => Some(reason),
            Self::LostAfter(_) => None,
        }
    }
}
