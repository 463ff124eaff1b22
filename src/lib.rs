//! A Redlock client for Redis.
//!
//! The lock protocol is a value, not a task: `protocol` holds synchronous state machines that own
//! no socket, clock, randomness or task, and the rest of the crate drives them on tokio.
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
//! lease.release().await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod acquire;
mod builder;
mod client;
mod dial;
mod driver;
#[cfg_attr(
    not(feature = "simulation"),
    allow(dead_code, unreachable_pub, reason = "public to the simulator alone")
)]
mod endpoint;
mod error;
mod handshake;
mod health;
mod inspect;
mod introduction;
mod lease;
mod node;
pub mod observe;
mod printable;
mod resp;
mod timer;
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
#[cfg(not(feature = "simulation"))]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "public to the simulator alone")]
mod protocol;

pub use acquire::{Acquire, Acquiring, KeepAlive, RESOURCE_BYTES_MAX, Resource};
pub use builder::Builder;
pub use client::Redlock;
pub use error::{
    AcquireError, AcquireErrorKind, BuildError, Closed, EndpointError, ExtendError,
    ExtendErrorKind, LostReason, NodeAnswer, OptionError, Released, TtlError, WithError,
};
pub use health::{Health, NodeHealth, Standing};
pub use inspect::{Finding, Inspection, NodeInspection, NodeReport, Severity};
pub use lease::{Deadline, Lease, Lost, OwnerToken};
pub use protocol::{NodeVerdict, RestartGuard};
#[cfg(feature = "tls")]
pub use tls::{TlsConfig, TlsError};
