//! The command `redlock-sim`, and the reports that it writes.
//!
//! The library is for the command's own tests; nothing else should depend on it.

#![forbid(unsafe_code)]

mod build;
pub mod command;
mod gate;
pub mod report;
mod shard;
