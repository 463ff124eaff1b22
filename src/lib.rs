//! A Redlock client for Redis and Valkey. A lock is granted by a majority of independent servers
//! and expires by itself.
//!
//! ```no_run
//! # use core::time::Duration;
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use redlock_client::Redlock;
//!
//! let redlock = Redlock::builder()
//!     .nodes(["redis://a:6379", "redis://b:6379", "redis://c:6379"])
//!     .ttl(Duration::from_secs(10))
//!     .fleet_max_ttl(Duration::from_secs(30)) // longest TTL that any client of these nodes uses
//!     .build()?;
//! let lease = redlock.acquire("invoice/42").wait(Duration::from_secs(5)).await?;
//! lease.check(Duration::from_secs(1))?; // fails unless more than 1 s is left; call before each effect
//! println!("invoice 42 is being sent");
//! lease.release().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`Redlock::builder`] configures a client. [`Redlock::acquire`] acquires a lock and returns a
//! [`Lease`]. [`Acquire::keep_alive`] keeps a lease for longer than its TTL. [`Acquire::with`] and
//! [`Lease::guard`] drop work as soon as its lease is over. [`Redlock::inspect`] checks the servers
//! before an application relies on them. [`Redlock::acquire_all`] and [`Redlock::semaphore`] acquire
//! all or one of several locks (module [`many`]). The directory `examples` has example programs;
//! the module [`guide`] has guides for developers and operators.
//!
//! Print errors with `{error}`: the text says what is wrong; that of an acquisition has each node's
//! answer, too. A `main` that returns a `Result` prints the fields of the error instead; the examples
//! show a `main` that prints the text.
//!
//! # What it guarantees
//!
//! Codes such as K5 name counterexamples (`docs/counterexamples.md`). The name beside a code is a scenario that the project's
//! simulator runs with this client's own protocol code, and with weaker variants of it
//! (`redlock-sim run pause-in-flight`, in the project's repository). The first two guarantees hold
//! only under the assumptions in the next table.
//!
//! | guarantee | shown by |
//! | --- | --- |
//! | At no instant do two clients believe, each by its own clock, that they hold the same lock. | K5 `pause-in-flight`, K6 `late-delivery` |
//! | Between a grant and a successful extension no other client had the lock. | E1 `minority-extension`, E3 `recreated-key`, E4 `timed-from-the-replies` |
//! | The client deletes and extends only the keys of its own attempt, however late a command arrives. | S3 `release-without-owner-check`, N3 `token-reused`, E10 `late-commands` |
//! | An attempt that fails or is dropped releases every key that it may have set, including on nodes whose reply was lost. | N1 `reply-lost`, N2 `late-set`, L3 `failed-attempts-not-released` |
//! | A lease ends at a deadline on a clock that counts sleep. Noticing the end needs no network. | C1 `client-wall-clock-set-back`, C8 `suspend-defeats-step-3` |
//! | A restarted node cannot vote until every lease that it may have forgotten is over (*quarantine*), unless you promise that it forgets nothing or that it restarts late ([`RestartGuard`]). | K3 `restart-without-persistence`, D2 `appendfsync-everysec` |
//! | The same holds for a node whose data was deleted, or that was demoted and promoted again: a key on the node, the canary, identifies its data set. Clients that knew the node quarantine it whatever you promise. Clients that start afterwards do so only under [`RestartGuard::Quarantine`]. A failover to a replica counts as a restart. | D14 `operator-deletes`, D12 `replica-within-redlock` |
//! | A majority is a majority of the configured nodes, not of those that answer. | Q2 `two-of-five`, Q4 `connected-quorum` |
//! | A failed extension leaves the lease unchanged. The number of extensions is limited. | E6 `failed-extension-unlocks`, E8 `unlimited-extension` |
//! | A minority of nodes that hang, refuse or are unreachable delays no attempt on a free lock, and no extension but the first of a lease, which needs the nodes that decided the grant ([`Lease::extend`]). An acquisition that waits for a held lock, and the error of a failed attempt, can be delayed by one node timeout. [`Lease::release`] waits for their confirmation for one node timeout at most. | N10 `silent-node`, N11 `one-refused-connection` |
//! | Clients that collide retry after random delays, so one of them soon gets the lock. | L1 `split-vote`, L2 `lock-step` |
//! | An acquisition that waits for another client sends nothing until a server pushes that the lock's key has changed, or the key expires. A push is only a hint: no grant depends on it, and without one the acquisition asks again after [`RetryDelay::silence`]. | `waiters-and-a-crash`, `nobody-wakes-a-waiter` |
//! | Once a lease has been held for 50 ms or a twentieth of its TTL, whichever is longer, the nodes push the loss of its keys. The lease ends as soon as so many keys are known to be gone that another client can get a majority ([`Lease::lost`]). Silent nodes do not end a lease. | `lost-keys-are-heard` |
//! | The lock of a crashed holder can be acquired once the TTL is over. | S1 `setnx-without-ttl`, L7 `majority-crash` |
//!
//! The client assumes that
//!
//! | assumption | what breaks without it |
//! | --- | --- |
//! | clocks of clients and nodes do not drift apart by more than 1 % (half a per cent each), or what [`Builder::drift`] allows for | C5 `drift-on-both-sides`, K8 `ten-percent` |
//! | no node's wall clock is stepped forward | K2 `node-clock-jump` |
//! | nodes neither delete single live keys nor restore old ones: no eviction, no `DEL` by an operator, no disk that loses acknowledged writes | D13 `eviction`, D14 `operator-deletes`, D6 `lying-disk` |
//! | your promise in [`RestartGuard`] is true, and no client exceeds `fleet_max_ttl` | K3 `restart-without-persistence`, D8 `delayed-restart` |
//! | the nodes allow the client to have a canary ([`Builder::canary_key`]), and nobody else writes it; `repl-backlog-ttl` is 0 or at least a quarantine (`fleet_max_ttl` + 1 % + 2 ms). Otherwise data losses without a restart go unnoticed; [`Redlock::inspect`] warns of that | D12 `replica-within-redlock` |
//! | within a second after a node has identified itself, no proxy redirects a connection to another server, nobody swaps its database for another (`SWAPDB`), and nobody deletes the data of a node that pushes nothing to the client (RESP2, a user without `client\|tracking`), unless every vote is verified ([`Builder::verify_every_vote`]) | K3 `restart-without-persistence` |
//! | all clients have the same list of nodes | Q4 `connected-quorum`, `two-lists-of-nodes` |
//! | no server has two names in a list | Q6 `one-server-twice` |
//! | no two clients draw the same random bytes, as on copies of one virtual machine | T1 `copied-machine` |
//!
//! # What it does not guarantee
//!
//! | no promise | shown by |
//! | --- | --- |
//! | That only one process is *at work*. A process can be paused after its last check of the lease, and continue when another process has the lock. Every lock that expires by itself has this gap, even a perfect lock service. | K1 `pause-after-the-check`, K10 `ideal-lease-service` |
//! | That a holder learns at once that its keys are gone. A node notices an expiry up to 0.1 s late, and the push and the check take about a round trip; another client may have the lock by then. A node that does not push or cannot be reached reports nothing, and a key that may be on an unreachable node counts as present. | K2 `node-clock-jump`, D13 `eviction` |
//! | That no write arrives late. A write sent under the lease may be applied after the lease has ended. | K7 `delayed-write` |
//! | A fencing token. [`Lease::owner`] has no order, and counters on the nodes are not a sound source of tokens. | F4 `counter-on-one-redis`, F5 `counter-on-every-node` |
//! | That a pause is noticed if no clock of the process advances during it: a virtual machine that was frozen or restored. | C8 `suspend-defeats-step-3` |
//! | That a released lock is free at once on every node: a release may be lost with the node's data, or reach the node late. The key then expires with its TTL. | D10 `phantom-lock` |
//! | That nodes whose clocks were set back expire keys in time. | C4 `node-clocks-set-back` |
//! | That nested acquisitions do not block each other. Two clients that each hold the lock that the other one waits for wait until a `wait` or a lease is over. Acquire such locks together ([`Redlock::acquire_all`]). | – |
//! | Order among clients. Tasks that share one [`Redlock`] queue, first in, first out, except acquisitions with a limit of attempts ([`Acquire::attempts`], [`Redlock::try_acquire`]), which do not queue; separate clients compete. | L1 `split-vote` |
//!
//! If two simultaneous holders would be a disaster, let the *resource* check: a version, a
//! compare-and-set, or a token of its own (F1 `monotonic-token`). `examples/fenced_sqlite.rs` uses
//! a version column. The lock then saves work, and the resource keeps the data correct.
//!
//! # Features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `tls` | `rediss://`, by rustls. No option turns verification off. |
//! | `metrics` | counters, gauges and histograms on the `metrics` facade; `docs/metrics.md` has the names |
//! | `serde` | deserialization of [`Config`], the settings that an operator chooses |
//! | `testing` | the module `testing`: nodes in memory, for unit tests of code that locks |
//!
//! No feature is on by default. Every build logs to `tracing` under the target `redlock_client`.
//! Logs never contain a user, a password or the query of a URL, and at most the first four of a
//! token's twenty bytes, too few to release a lock. The module [`observe`] has a hook for the same
//! events.
//!
//! | level | events |
//! | --- | --- |
//! | `warn` | a node that is unreachable or whose votes do not count, two nodes that are one server, an extension that fails if the one before did not, a lease that is lost; at [`Builder::build`], an even number of nodes and a `fleet_max_ttl` of an hour or more |
//! | `info` | a node that can be reached again or whose votes count again, a lease that is extended again |
//! | `debug` | attempts, leases, extensions, releases |
//! | `trace` | commands and their replies |
//!
//! # Testing
//!
//! With the feature `testing`, you can test code that locks without servers and without waiting.
//! The module `testing` has nodes in memory that stop, hang and forget when a test calls a method,
//! on a clock that the test pauses. [`Lease`] gets a method `lose`, and tests can construct errors.
//! See the documentation of the module, which is also `docs/testing.md`.
//!
//! # Runtime
//!
//! The client needs tokio with its network enabled, on Linux, Android or an Apple system. It
//! measures leases with a clock that counts time asleep, and supports no such clock on other
//! systems ([`guide::systems`]). [`Builder::build`] opens no connection and starts no task, so a
//! client may be a `static`. Dropping a lease or a future never blocks and needs no runtime.
//!
//! | activity | runs on | consequence |
//! | --- | --- | --- |
//! | ends of leases and of waits, due attempts and extensions | a timer thread shared by all clients of the process | [`Lease::lost`], [`Lease::guard`] and ends of waits depend only on the runtime that polls them; no other task or runtime of yours delays them |
//! | connections | the runtime that used the client first; after its end, the next one that uses the client | while that runtime is blocked or not polled, nothing is sent: leases are neither extended nor released, attempts on other runtimes fail, and held leases end at their deadlines |
//! | both | with [`Builder::background_thread`], a thread of the client's own | no task of the application delays them, and callers need no tokio runtime |
//!
//! A call that finds no runtime for its connections fails with [`AcquireErrorKind::NoRuntime`]. A
//! later call may succeed.
//!
//! When the runtime of the connections ends, the next call of the client or of a lease from within
//! another runtime opens them there; even [`Lease::check`] and [`Redlock::health`] do. Waiting
//! callers are woken and do so at once. Dropping a handle does not, nor does any call from outside a
//! runtime. Until such a call nothing is sent: leases that are kept alive end with
//! [`LostReason::KeepAliveFailed`], and releases wait. If the holder of a lease may make no call for
//! half of the TTL, let a task await [`Lease::lost`], or use [`Builder::background_thread`].
//!
//! A node with a name is looked up by the system's resolver, on a thread of the runtime. While the
//! resolver is silent, dropping the runtime waits for it, and so does the end of a `main` with
//! `#[tokio::main]`, often for 10 s: build the runtime yourself and end it with
//! `Runtime::shutdown_background`.
//!
//! For code without `async` (scripts, rayon, diesel) there is the module [`blocking`].
//!
//! After `fork` without `exec`, build a new client in the child, on a new runtime. A client that
//! was used before the fork, and its leases, stay the parent's: the child has none of the threads
//! that run them. In the child they behave as after [`Redlock::close`]: [`Lease::check`] fails with
//! [`LostReason::Closed`], an acquisition with [`AcquireErrorKind::Closed`], and dropping a lease
//! sends nothing and leaves the lock to the parent. Do not run an inherited tokio runtime in the
//! child: it hangs or crashes there, and disturbs the parent, because both poll one set of sockets.
//! A client that was not used before the fork may be used in either process, or in both.
//!
//! On Apple systems the clock is `CLOCK_MONOTONIC`. It counts sleep, but its rate follows
//! corrections of the wall clock; these count as drift. `CLOCK_MONOTONIC_RAW` is not corrected, but
//! this crate could not read it there without unsafe code.

#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
compile_error!(
    "redlock-client does not support this system: it lacks a known clock that counts time asleep and can \
     be read without unsafe code, and a timer on that clock. Linux, Android and Apple systems have both; \
     docs/guide/systems.md says what each other system would need. All further errors follow from this one."
);

mod acquire;
mod attend;
pub mod blocking;
mod builder;
mod client;
pub mod config;
mod credentials;
mod deadline;
mod dial;
mod driver;
mod endpoint;
pub mod environment;
mod error;
pub mod guide;
mod health;
mod inspect;
mod introduction;
mod lease;
pub mod many;
pub mod observe;
mod panics;
mod printable;
mod resource;
mod resp;
mod restart_guard;
pub mod scripts;
mod settings;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "tls")]
mod tls;
mod votes;
mod work;

pub use acquire::{Acquire, Acquiring, KeepAlive};
pub use builder::Builder;
pub use client::Redlock;
pub use config::Config;
pub use credentials::{Credentials, NodeName};
pub use deadline::Deadline;
pub use error::{
    AcquireError, AcquireErrorKind, BuildError, CheckError, Closed, EndpointError, ExtendError,
    ExtendErrorKind, LostReason, NodeAnswer, NodeVerdict, OptionError, Released, ResourceError,
    TtlError, WithError,
};
pub use health::{Health, NodeHealth, Standing};
pub use inspect::{
    Finding, Holding, Inspection, LockInspection, NodeInspection, NodeLock, NodeReport, Severity,
    StoredKey,
};
pub use lease::{Lease, Lost};
pub use redlock_protocol::{RetryDelay, Token as OwnerToken};
pub use resource::{RESOURCE_BYTES_MAX, Resource};
pub use restart_guard::RestartGuard;
#[cfg(feature = "tls")]
pub use tls::{TlsConfig, TlsError};
pub use votes::Votes;
