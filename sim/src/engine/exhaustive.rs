//! A search of every schedule within small bounds.
//!
//! [`search`] visits the states of a [`Model`] breadth first, so the first violation that it finds
//! has a shortest history. There are two models, each with weaker wordings of its rule that are not
//! safe: [`acquisition`], how a lock is acquired and released (`docs/acquisition.md` has the results),
//! and [`extension`], how a lease is extended (`docs/extension.md`).

pub mod acquisition;
pub mod extension;
mod keys;
mod search;

pub use search::{Counterexample, Explored, Model, search};
