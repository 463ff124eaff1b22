//! A Redlock client for Redis and Valkey: a lock that a majority of independent servers grants, and
//! that ends by itself.
//!
//! ```no_run
//! # use core::time::Duration;
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use redlock_client::Redlock;
//!
//! let redlock = Redlock::builder()
//!     .nodes(["redis://a:6379", "redis://b:6379", "redis://c:6379"])
//!     .ttl(Duration::from_secs(10))
//!     .fleet_max_ttl(Duration::from_secs(30))
//!     .build()?;
//! let lease = redlock.acquire("invoice/42").wait(Duration::from_secs(5)).await?;
//! lease.check(Duration::from_secs(1))?; // still a second left? asked before each effect
//! println!("invoice 42 is being sent");
//! lease.release().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`Redlock::builder`] configures a client, [`Redlock::acquire`] acquires, [`Lease`] is the lock
//! while it is held. [`Acquire::keep_alive`] keeps a lease for longer than its TTL,
//! [`Acquire::with`] and [`Lease::guard`] drop work as soon as its lease is over,
//! [`Redlock::inspect`] looks for what is wrong with the servers before anybody relies on them.
//! The directory `examples` has programs; `docs/operations.md` is for those who run the servers.
//!
//! # What it guarantees
//!
//! Numbers name entries of the catalogue of counterexamples; the names behind them are scenarios that
//! the project's simulator plays with this client's own protocol code, and with weaker ones. The
//! first two promises hold as long as the assumptions do that are listed below them.
//!
//! | promise | shown by |
//! | --- | --- |
//! | At no instant do two clients believe, each by its own clock, that they hold the same lock. | K5 `pause-in-flight`, K6 `late-delivery` |
//! | Between a grant and a successful extension nobody else had the lock. | E1 `minority-extension`, E3 `recreated-key`, E4 `timed-from-the-replies` |
//! | Only keys of one's own attempt are deleted or extended, however late a command arrives. | S3 `release-without-owner-check`, N3 `token-reused`, E10 `late-commands` |
//! | An attempt that fails, or is dropped, gives back what it may have, also what it was not told of. | N1 `reply-lost`, N2 `late-set`, L3 `failed-attempts-not-released` |
//! | A lease ends at a deadline on a clock that counts sleep. No network is needed to notice. | C1 `client-wall-clock-set-back`, C8 `suspend-defeats-step-3` |
//! | A node that was restarted does not vote until every lease that it may have forgotten is over, unless you promise that it forgets nothing. | K3 `restart-without-persistence`, D2 `appendfsync-everysec` |
//! | Neither does a node that was emptied, or whose place a replica has taken, whatever was promised: it is known by a key in its memory. Clients that start afterwards know it, too. | D14 `operator-deletes`, D12 `replica-within-redlock` |
//! | A majority counts the configured nodes, not those that answer. | Q2 `two-of-five`, Q4 `connected-quorum` |
//! | A failed extension leaves the lease as it was. Extensions have a limit. | E6 `failed-extension-unlocks`, E8 `unlimited-extension` |
//! | Nodes of a minority that hang, refuse or are away delay no acquisition and no extension. [`Lease::release`] asks them to confirm, for one node timeout at most. | N10 `silent-node`, N11 `one-refused-connection` |
//! | Clients that collide try again after random waits, so one of them wins soon. | L1 `split-vote`, L2 `lock-step` |
//! | After a holder has crashed, its lock can be had once the TTL is over. | S1 `setnx-without-ttl`, L7 `majority-crash` |
//!
//! It assumes that
//!
//! | assumption | what breaks without it |
//! | --- | --- |
//! | clocks of clients and nodes do not drift apart by more than 1 % (half a per cent each) | C5 `drift-on-both-sides`, K8 `ten-percent` |
//! | no node's wall clock is stepped forward | K2 `node-clock-jump` |
//! | nodes delete no single keys that are alive, and bring no old ones back: no eviction, no `DEL` by an operator, no disk that lies | D13 `eviction`, D14 `operator-deletes`, D6 `lying-disk` |
//! | what you promise with [`RestartGuard`] is true, and `fleet_max_ttl` is not exceeded by anybody | K3 `restart-without-persistence`, D8 `delayed-restart` |
//! | nodes let the client keep its canary ([`Builder::canary_key`]), and nobody else writes it; `repl-backlog-ttl` is 0 or above `fleet_max_ttl`. Otherwise losses without a restart go unnoticed; [`Redlock::inspect`] says so | D12 `replica-within-redlock` |
//! | a proxy does not lead a connection to another server within a second of its last introduction, unless every vote is verified ([`Builder::verify_every_vote`]) | K3 `restart-without-persistence` |
//! | all clients are given the same nodes | Q4 `connected-quorum` |
//!
//! # What it does not guarantee
//!
//! | no promise | shown by |
//! | --- | --- |
//! | That only one process is *at work*. It can be stopped after its last look at the lease, and go on when another one has the lock. Every lock that ends by itself has this hole, a perfect lock service too. | K1 `pause-after-the-check`, K10 `ideal-lease-service` |
//! | That no write arrives late. What was sent under the lease may be applied after it. | K7 `delayed-write` |
//! | A fencing token. [`Lease::owner`] has no order, and counters on the nodes are no sound source of one. | F4 `counter-on-one-redis`, F5 `counter-on-every-node` |
//! | Noticing a pause in which no clock of the process moves: a virtual machine that was frozen or restored. | C8 `suspend-defeats-step-3` |
//! | That a released lock is free at once on every node: a release may be lost with the node's memory, or reach it late. The key ends with its TTL. | D10 `phantom-lock` |
//! | That nodes whose clocks were set back let go of keys in time. | C4 `node-clocks-set-back` |
//! | Order among clients. Tasks that share one [`Redlock`] queue, first in, first out; separate clients compete. | L1 `split-vote` |
//!
//! If two holders at once would be a disaster, let the *resource* check: a version, a compare-and-set,
//! a token of its own (F1 `monotonic-token`). `examples/fenced_sqlite.rs` does it with a column. Then
//! the lock saves work, and the resource keeps the data right.
//!
//! # Features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `tls` | `rediss://`, by rustls. There is no switch that turns verification off. |
//! | `metrics` | counters, gauges and histograms on the `metrics` facade; `docs/metrics.md` has the names |
//! | `simulation` | makes internals public for the simulator; outside semver, not for you |
//!
//! None is on by default. What the client does is written to `tracing` in every build, under the target
//! `redlock_client`, never with a token, a user, a password or a query of a URL. [`observe`] has the
//! hook.
//!
//! | level | what |
//! | --- | --- |
//! | `warn` | a node that cannot be reached or does not count, the first extension that fails, a lease that is lost |
//! | `info` | the end of such trouble |
//! | `debug` | attempts, leases, extensions, releases |
//! | `trace` | commands and their answers |
//!
//! # Runtime
//!
//! Tokio, with its network enabled, on Linux, Android or an Apple system: a lease is measured with a
//! clock that counts the time asleep, and no such clock is known for others. [`Builder::build`] opens
//! no connection and starts no task, so a client may be a `static`. Dropping a lease or a future never
//! blocks and needs no runtime.
//!
//! | what | runs where | so |
//! | --- | --- | --- |
//! | ends of leases and of waits, due attempts and extensions | a thread that keeps time for all clients of the process | no task of yours, and no other runtime, holds up [`Lease::lost`], [`Lease::guard`] or the end of a wait: they are noticed on the runtime that polls them |
//! | connections | the runtime that used the client first; when it has ended, the next one that does | while that runtime is blocked or not polled nothing is sent: leases are not extended and not released, attempts on other runtimes fail, and what is held ends in time |
//! | both | with [`Builder::background_thread`], a thread of the client's own | nothing of yours holds it up, and callers need no tokio runtime |
//!
//! A call that finds no runtime to open connections on fails with [`AcquireErrorKind::NoRuntime`]; the
//! next one may succeed.
//!
//! A client does not survive `fork` without `exec`: the child has none of the threads that ran the
//! client, and its connections are the parent's. Build a client in the child.
//!
//! On Apple's systems the clock is `CLOCK_MONOTONIC`. It counts sleep, and follows corrections of the wall
//! clock's rate: they are part of the drift that is allowed. The clock that follows none,
//! `CLOCK_MONOTONIC_RAW`, cannot be read there without unsafe code of this crate's own.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod acquire;
mod builder;
mod client;
mod deadline;
mod dial;
mod driver;
#[cfg_attr(
    not(feature = "simulation"),
    allow(dead_code, unreachable_pub, reason = "public to the simulator alone")
)]
mod endpoint;
mod error;
mod health;
mod inspect;
mod introduction;
mod lease;
pub mod observe;
mod printable;
mod resp;
mod settings;
mod stream;
#[cfg(feature = "tls")]
mod tls;

#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod environment;
#[cfg(not(feature = "simulation"))]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "public to the simulator alone")]
mod environment;

#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod protocol;
/// The texts of the scripts that the owner of a key sends.
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod scripts {
    /// Deletes the key if it holds the token.
    pub const RELEASE: &[u8] = crate::resp::RELEASE.text;
    /// Makes the key live for longer if it holds the token.
    pub const EXTEND: &[u8] = crate::resp::EXTEND.text;
    /// Says what the server says of itself, and what its canary says.
    pub const INTRODUCE: &[u8] = crate::resp::INTRODUCE.text;
}
#[cfg(not(feature = "simulation"))]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "public to the simulator alone")]
mod protocol;

pub use acquire::{Acquire, Acquiring, KeepAlive, RESOURCE_BYTES_MAX, Resource};
pub use builder::Builder;
pub use client::Redlock;
pub use deadline::Deadline;
pub use error::{
    AcquireError, AcquireErrorKind, BuildError, Closed, EndpointError, ExtendError,
    ExtendErrorKind, LostReason, NodeAnswer, OptionError, Released, TtlError, WithError,
};
pub use health::{Health, NodeHealth, Standing};
pub use inspect::{Finding, Inspection, NodeInspection, NodeReport, Severity};
pub use lease::{Lease, Lost};
pub use protocol::{NodeVerdict, RestartGuard, Token as OwnerToken};
#[cfg(feature = "tls")]
pub use tls::{TlsConfig, TlsError};
