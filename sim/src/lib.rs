//! Deterministic simulation and safety verification of Redis locks.
//!
//! A [`scenario`] says who does what and what goes wrong, an [`engine`] plays it by seed and writes
//! a [`history`], and the [`oracle`] judges the history and names the assumption that broke.
//! Imports run one way: `docs/architecture.md` has the map.

#![forbid(unsafe_code)]

pub mod command;
pub mod engine;
pub mod history;
mod ids;
pub mod master;
pub mod oracle;
pub mod report;
pub mod resource;
pub mod scenario;
pub mod search;
pub mod serve;
pub mod subject;
mod text;
pub mod world;
