//! The command `redlock-sim`, and the reports that it writes.
//!
//! The library is for the command's own tests and for `redlock-sim-test`; nothing else should depend
//! on it.

#![forbid(unsafe_code)]

mod build;
pub mod command;
mod gate;
pub mod report;
mod shard;
mod text_file;
