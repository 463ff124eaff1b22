//! Every schedule within small bounds.
//!
//! [`search`] goes through the states of a [`Model`] breadth first, so that the first violation it
//! meets has a shortest history. [`extension`] is the first model: the rule by which a lease is
//! extended, and the weaker wordings of it that are not safe. `docs/extension.md` has the results.

pub mod extension;
mod search;

pub use search::{Counterexample, Explored, Model, search};
