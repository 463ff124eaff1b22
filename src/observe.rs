//! Events that a client reports while it works.
//!
//! An [`Observer`] is the client's only hook. The logs to `tracing` and, with the feature
//! `metrics`, the metrics are written by two observers of the same events.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use redlock_client::observe::{Event, Observer};
//!
//! /// Counts the leases that ended while somebody relied on them.
//! #[derive(Default)]
//! struct Losses(AtomicU64);
//!
//! impl Observer for Losses {
//!     fn event(&self, event: &Event<'_>) {
//!         if let Event::Lost { .. } = event {
//!             self.0.fetch_add(1, Ordering::Relaxed);
//!         }
//!     }
//! }
//!
//! let losses = Arc::new(Losses::default());
//! let builder = redlock_client::Redlock::builder().observer(losses.clone());
//! ```

#[cfg(feature = "metrics")]
mod metrics;
mod terms;
mod tracing;

use core::time::Duration;
use std::sync::Arc;

use redlock_protocol::Token as OwnerToken;

pub use self::terms::{AttemptError, Instant, Nodes};
pub(crate) use self::tracing::{TracingObserver, warn_of};
use crate::deadline::Deadline;
use crate::environment::Endpoint;
use crate::error::{AcquireErrorKind, ExtendErrorKind, LostReason};
use crate::health::Standing;
use crate::panics::contain;

/// Receives every event of a client, in the order in which its protocol machines process them.
///
/// An observer is called while the client's state is locked, on the thread where the event
/// happened, often the timer thread shared by all clients of the process. The observer must neither
/// block nor call back into the client or one of its leases. A panic of the observer does not
/// affect the client.
pub trait Observer: Send + Sync + 'static {
    /// Called with each event.
    fn event(&self, event: &Event<'_>);
}

/// An event. Instants are readings of the client's own clock.
///
/// `node` is a place in the configured list. `owner` names one attempt and the lease that it
/// becomes. `resource` is the name of the locked resource. It is empty if no handle of the
/// acquisition or lease exists any more, or if the command concerns no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variant's documentation names its fields")]
pub enum Event<'a> {
    /// An acquisition ended without a lease, `waited` after it had begun and after `attempts`
    /// attempts that failed.
    #[non_exhaustive]
    AcquireFailed { resource: &'a [u8], kind: AcquireErrorKind, attempts: u32, waited: Duration },
    /// An acquisition was dropped before it had an outcome.
    #[non_exhaustive]
    AcquireCancelled { resource: &'a [u8], attempts: u32, waited: Duration },
    /// The oldest unanswered command on the connection to `node` was answered.
    #[non_exhaustive]
    Answered {
        node: usize,
        operation: Operation,
        owner: Option<OwnerToken>,
        resource: &'a [u8],
        answer: Answer,
        at: Instant,
    },
    /// An attempt read its start time `t1`; none of its commands has been written.
    #[non_exhaustive]
    AttemptBegan { owner: OwnerToken, resource: &'a [u8], t1: Instant, ttl: Duration },
    /// An attempt failed; every key that it may have set is being released.
    #[non_exhaustive]
    AttemptFailed { owner: OwnerToken, resource: &'a [u8], reason: AttemptError },
    /// A connection to `node` could not be opened; `error` is the reason from the system or the
    /// server.
    #[non_exhaustive]
    ConnectFailed { node: usize, error: &'a str },
    /// A connection to `node` was opened.
    #[non_exhaustive]
    Connected { node: usize },
    /// The attempt was granted at `t2` by the votes of the nodes `counted`.
    #[non_exhaustive]
    Decided {
        owner: OwnerToken,
        resource: &'a [u8],
        counted: Nodes,
        t2: Instant,
        deadline: Deadline,
    },
    /// The caller received the lease, `waited` after the acquisition had begun and after `attempts`
    /// attempts that failed.
    #[non_exhaustive]
    Delivered {
        owner: OwnerToken,
        resource: &'a [u8],
        deadline: Deadline,
        attempts: u32,
        waited: Duration,
    },
    /// The connection to `node` was lost. `error` is the reason from the system or the server;
    /// `None` if the client or its runtime has ended. Commands unanswered on the connection stay
    /// unanswered.
    #[non_exhaustive]
    Disconnected { node: usize, error: Option<&'a str> },
    /// The votes of `node` count for attempts that begin at `from` or later; for none if `from` is
    /// `None`. `standing` is the resulting standing of the node now.
    #[non_exhaustive]
    Eligible { node: usize, from: Option<Instant>, standing: Standing },
    /// The lease was extended by the votes of the nodes `counted`, after `failures` failures in a
    /// row.
    #[non_exhaustive]
    Extended {
        owner: OwnerToken,
        resource: &'a [u8],
        counted: Nodes,
        deadline: Deadline,
        failures: u32,
    },
    /// An extension, of the caller or of keep-alive, read its start time `t1`; none of its commands
    /// has been written. It requests `ttl` from `t1` on.
    #[non_exhaustive]
    ExtensionBegan { owner: OwnerToken, resource: &'a [u8], t1: Instant, ttl: Duration },
    /// An extension failed; the lease is unchanged, unless it is over. `failures` in a row, including
    /// this one.
    #[non_exhaustive]
    ExtensionFailed {
        owner: OwnerToken,
        resource: &'a [u8],
        reason: ExtendErrorKind,
        failures: u32,
    },
    /// The caller left the lease to expire, after `held`. `lost` is the reason if it had ended
    /// before.
    #[non_exhaustive]
    LeftToExpire { owner: OwnerToken, resource: &'a [u8], held: Duration, lost: Option<LostReason> },
    /// The lease ended without a release, `held` after it was delivered.
    #[non_exhaustive]
    Lost { owner: OwnerToken, resource: &'a [u8], reason: LostReason, held: Duration },
    /// The quarantine of `node` is over: its votes count. Reported when it ends, by a client in use or
    /// not.
    #[non_exhaustive]
    QuarantineEnded { node: usize },
    /// The caller released or dropped the lease, after `held`. `lost` is the reason if it had ended
    /// before.
    #[non_exhaustive]
    ReleaseCalled {
        owner: OwnerToken,
        resource: &'a [u8],
        held: Duration,
        lost: Option<LostReason>,
    },
    /// The nodes `deleted` had the key and deleted it, `absent` had none, `unconfirmed` did not
    /// answer in time or answered with an error. The client keeps trying to release the key there.
    #[non_exhaustive]
    Released {
        owner: OwnerToken,
        resource: &'a [u8],
        deleted: Nodes,
        absent: Nodes,
        unconfirmed: Nodes,
    },
    /// The connections to `node` and to `other` lead to the same server: its vote counts twice.
    #[non_exhaustive]
    SameServer { node: usize, other: usize },
    /// A command was handed to the connection to `node`. `owner` is the owner of the command, if
    /// any.
    #[non_exhaustive]
    Written {
        node: usize,
        operation: Operation,
        owner: Option<OwnerToken>,
        resource: &'a [u8],
        at: Instant,
    },
}

/// Purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Extends a key's time to live if the key is the owner's.
    Extend,
    /// Asks a node to identify itself.
    Introduce,
    /// Asks for the remaining time to live of a blocking key, and for a push of its next change.
    Look,
    /// Asks whether the key of a lease is still the owner's, and for a push of its next change.
    Read,
    /// Deletes a key if the key is the owner's.
    Release,
    /// Sets a key if there is none: requests a vote.
    Set,
    /// Asks for the remaining time to live of a blocking key.
    TimeLeft,
}

impl Operation {
    /// Returns the purpose as one word, for logs and metrics. The words are stable, like the names
    /// of the variants.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Extend => "extend",
            Self::Introduce => "introduce",
            Self::Look => "look",
            Self::Read => "read",
            Self::Release => "release",
            Self::Set => "set",
            Self::TimeLeft => "time_left",
        }
    }
}

/// A node's answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// An error.
    Error,
    /// Negative: the key exists already, is missing, is not the owner's, or never expires.
    No,
    /// Positive: set, extended, deleted, or introduced; or the key has time left, or is still the
    /// owner's.
    Yes,
}

impl Answer {
    /// Returns the answer as one word, for logs and metrics. The words are stable, like the names
    /// of the variants.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::No => "no",
            Self::Yes => "yes",
        }
    }
}

/// All observers of one client.
pub(crate) struct Observers {
    tracing: TracingObserver,
    others: Vec<Arc<dyn Observer>>,
}

impl Observers {
    /// Combines `others` with the `tracing` observer and, with that feature, the `metrics`
    /// observer.
    pub(crate) fn new(others: Vec<Arc<dyn Observer>>, endpoints: &[Endpoint]) -> Self {
        let tracing = TracingObserver::new(endpoints);
        #[cfg(feature = "metrics")]
        let others = {
            let metrics = metrics::MetricsObserver::new(endpoints.len());
            others.into_iter().chain([Arc::new(metrics) as Arc<dyn Observer>]).collect()
        };
        Self { tracing, others }
    }

    /// Passes the event to all observers. Without any observer the event is not even built. The
    /// client's state is locked: a panic of an observer must not poison it.
    pub(crate) fn tell<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        let is_traced = TracingObserver::is_heard();
        if !is_traced && self.others.is_empty() {
            return;
        }
        let event = event();
        if is_traced {
            contain(|| self.tracing.event(&event));
        }
        for observer in &self.others {
            contain(|| observer.event(&event));
        }
    }
}
