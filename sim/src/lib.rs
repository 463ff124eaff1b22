//! Deterministic simulation and safety verification of Redis locks.
//!
//! A [`scenario`] describes the actions and the faults. An [`engine`] runs it with a seed and
//! writes a [`history`]. The [`oracle`] judges the history and names the assumption that broke.
//! Imports run one way: `docs/architecture.md` has the map.

#![forbid(unsafe_code)]

pub use redis_sim as master;

pub mod command;
pub mod engine;
pub mod explore;
pub mod history;
pub mod ids;
mod keys;
mod native;
pub mod oracle;
mod plan;
pub mod report;
pub mod resource;
pub mod scenario;
pub mod search;
pub mod serve;
pub mod subject;
mod text;
pub mod world;
