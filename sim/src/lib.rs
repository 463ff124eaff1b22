//! Deterministic simulation and safety verification of Redis locks.
//!
//! A [`scenario`](lock_judge::scenario) describes the actions and the faults. An [`engine`] runs it
//! with a seed and writes a [`history`](lock_judge::history). The [`oracle`](lock_judge::oracle)
//! judges the history and names the assumption that broke. Imports run one way:
//! `docs/architecture.md` has the map.

#![forbid(unsafe_code)]

pub mod choice;
pub mod engine;
pub mod explore;
mod keys;
pub mod library;
mod native;
pub mod part;
mod plan;
pub mod resource;
pub mod search;
pub mod serve;
pub mod subject;
mod terms;
pub mod world;
