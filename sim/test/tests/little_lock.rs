//! The worked example `examples/little-lock`, without its package. `ci/full` plays it as its user
//! would, and with its first mistake.

#![allow(unexpected_cfgs, unreachable_pub, missing_docs, reason = "the file of another package")]
#![allow(clippy::disallowed_methods, reason = "the clock of a worker is simulated")]

#[path = "../../../examples/little-lock/src/lib.rs"]
mod little_lock;

include!("../../../examples/little-lock/tests/lock.rs");
