//! A Redlock client for Redis.
//!
//! The lock protocol is a value, not a task: `protocol` holds synchronous state machines that own
//! no socket, clock, randomness or task, and the rest of the crate drives them on tokio.

#![forbid(unsafe_code)]

#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod protocol;
#[cfg(not(feature = "simulation"))]
mod protocol;
