//! Judges runs of Redis locks: when clients believed that they held the lock, whether two of them
//! did at once, and which assumption broke.
//!
//! A [`scenario`] says what the clients and the faults do, and which verdicts are expected. A run
//! on any engine is recorded as a [`history`]: a list of events with true times and clock readings.
//! The [`oracle`] reads a history and gives a verdict for each property. This crate does not depend
//! on an engine.

#![forbid(unsafe_code)]

pub mod history;
pub mod ids;
pub mod oracle;
pub mod scenario;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
