//! What a client tells of itself while it works.
//!
//! An [`Observer`] is the client's one hook. What it writes to `tracing` and, with the feature
//! `metrics`, to the `metrics` facade are two observers of the same events.
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

use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic;
use std::sync::Arc;

pub use self::terms::{Instant, Nodes};
pub(crate) use self::tracing::TracingObserver;
use crate::deadline::Deadline;
use crate::environment::Endpoint;
use crate::error::{AcquireErrorKind, ExtendErrorKind, LostReason};
use crate::health::Standing;
pub use crate::protocol::AttemptError;
use crate::protocol::Token as OwnerToken;

/// Sees everything that a client does, in the order in which its protocol machines see it.
///
/// It is called while the client's state is locked, on whatever thread something happened, often on
/// the one that keeps time for every client of the process: it must neither block nor call back into
/// the client or a lease of it. If it panics, the client goes on.
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

/// What can happen. Instants are readings of the client's own clock.
///
/// `node` is a place in the configured list. `owner` names one attempt and the lease that it becomes;
/// `resource` is the name of what is locked, and empty where nobody holds a handle of the use any
/// more, or where the command is about no key.
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
    /// The answer to the oldest unanswered command on the connection to `node` came.
    #[non_exhaustive]
    Answered {
        node: usize,
        operation: Operation,
        owner: Option<OwnerToken>,
        resource: &'a [u8],
        answer: Answer,
        at: Instant,
    },
    /// An attempt read `t1`; nothing of it has been written.
    #[non_exhaustive]
    AttemptBegan { owner: OwnerToken, resource: &'a [u8], t1: Instant, ttl: Duration },
    /// An attempt failed; whatever it may have set is being released.
    #[non_exhaustive]
    AttemptFailed { owner: OwnerToken, resource: &'a [u8], reason: AttemptError },
    /// A connection to `node` could not be had, for the reason that the system or the server gave.
    #[non_exhaustive]
    ConnectFailed { node: usize, error: &'a str },
    /// There is a connection to `node`.
    #[non_exhaustive]
    Connected { node: usize },
    /// The attempt was granted at `t2` by the nodes `counted`.
    #[non_exhaustive]
    Decided {
        owner: OwnerToken,
        resource: &'a [u8],
        counted: Nodes,
        t2: Instant,
        deadline: Deadline,
    },
    /// The caller has the lease, `waited` after the acquisition had begun and after `attempts`
    /// attempts that failed.
    #[non_exhaustive]
    Delivered {
        owner: OwnerToken,
        resource: &'a [u8],
        deadline: Deadline,
        attempts: u32,
        waited: Duration,
    },
    /// The connection to `node` is gone, for the reason that the system or the server gave; `None`:
    /// the client has ended, or its runtime. Commands unanswered on it stay unanswered.
    #[non_exhaustive]
    Disconnected { node: usize, error: Option<&'a str> },
    /// The votes of `node` count for attempts that begin at `from` or later; `None`: for none.
    /// `standing` says what that means now.
    #[non_exhaustive]
    Eligible { node: usize, from: Option<Instant>, standing: Standing },
    /// The lease was extended by the nodes `counted`, after as many `failures` in a row.
    #[non_exhaustive]
    Extended {
        owner: OwnerToken,
        resource: &'a [u8],
        counted: Nodes,
        deadline: Deadline,
        failures: u32,
    },
    /// An extension read `t1`, the caller's or one that keeps the lease alive; nothing of it has been
    /// written. It asks for `ttl` from then on.
    #[non_exhaustive]
    ExtensionBegan { owner: OwnerToken, resource: &'a [u8], t1: Instant, ttl: Duration },
    /// The lease was not extended; it is what it was. `failures`: so many in a row, with this one.
    #[non_exhaustive]
    ExtensionFailed {
        owner: OwnerToken,
        resource: &'a [u8],
        reason: ExtendErrorKind,
        failures: u32,
    },
    /// The caller let the lease end by itself, after `held`. `lost`: it had ended before.
    #[non_exhaustive]
    LeftToExpire { owner: OwnerToken, resource: &'a [u8], held: Duration, lost: Option<LostReason> },
    /// The lease is over by itself, `held` after it was delivered.
    #[non_exhaustive]
    Lost { owner: OwnerToken, resource: &'a [u8], reason: LostReason, held: Duration },
    /// The quarantine of `node` is over: its votes count. Told at the client's first step after
    /// that.
    #[non_exhaustive]
    QuarantineEnded { node: usize },
    /// The caller gave the lease back, or dropped it, after `held`. `lost`: it had ended before.
    #[non_exhaustive]
    ReleaseCalled {
        owner: OwnerToken,
        resource: &'a [u8],
        held: Duration,
        lost: Option<LostReason>,
    },
    /// The nodes `deleted` had the key and deleted it, `absent` had none, `unconfirmed` did not
    /// answer in time, or by an error: the client goes on trying.
    #[non_exhaustive]
    Released {
        owner: OwnerToken,
        resource: &'a [u8],
        deleted: Nodes,
        absent: Nodes,
        unconfirmed: Nodes,
    },
    /// A command was handed to the connection to `node`. `owner` is whose it is, if anybody's.
    #[non_exhaustive]
    Written {
        node: usize,
        operation: Operation,
        owner: Option<OwnerToken>,
        resource: &'a [u8],
        at: Instant,
    },
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
    /// Asks how long a key lives that is in the way.
    TimeLeft,
}

/// What a node answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// An error.
    Error,
    /// The key is there already, or is not the owner's.
    No,
    /// Set, deleted, or introduced.
    Yes,
}

/// Everybody who is told what one client does.
pub(crate) struct Observers {
    tracing: TracingObserver,
    others: Vec<Arc<dyn Observer>>,
}

impl Observers {
    /// `others`, and what every client writes to `tracing` and, if it was built so, to `metrics`.
    pub(crate) fn new(others: Vec<Arc<dyn Observer>>, endpoints: &[Endpoint]) -> Self {
        let tracing = TracingObserver::new(endpoints);
        #[cfg(feature = "metrics")]
        let others = {
            let metrics = metrics::MetricsObserver::new(endpoints.len());
            others.into_iter().chain([Arc::new(metrics) as Arc<dyn Observer>]).collect()
        };
        Self { tracing, others }
    }

    /// Tells everybody. Where nobody listens the event is not even made.
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

/// Runs code of the application while the client's state is locked: its panic must not cost the
/// client that state. The panic hook has reported it.
fn contain(act: impl FnOnce()) {
    let _ = panic::catch_unwind(AssertUnwindSafe(act));
}
