//! Judges runs of Redis locks: who believed that the lock was theirs, whether two did at once, and
//! which assumption broke.
//!
//! A [`scenario`] says what the clients and the faults do, and which verdicts are expected. A run of
//! it, by whatever engine, is a [`history`]: a list of events, with readings of clocks beside true
//! time. The [`oracle`] reads a history and gives a verdict for each property. This crate knows no
//! engine, and runs nothing.

#![forbid(unsafe_code)]

pub mod history;
pub mod ids;
pub mod oracle;
pub mod scenario;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
