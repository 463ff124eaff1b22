//! A search of every schedule within small bounds.
//!
//! [`search`] visits the states of a [`Model`] breadth first, so the first violation that it finds
//! has a shortest history. [`extension`] is the first model: the rule by which a lease is extended,
//! and weaker wordings of the rule that are not safe. `docs/extension.md` has the results.

pub mod extension;
mod search;

pub use search::{Counterexample, Explored, Model, search};
