//! Draws random scenarios, judges each by a contract, and shrinks those that break it.
//!
//! A *plan* is a [`Scenario`] drawn from a seed and a number: a cluster, clients with workloads,
//! and a random subset of the fault kinds. A run of a plan is a run of its scenario with the number
//! as its seed, so a finding is a scenario file that `run` and `replay` accept like any other.
//!
//! - [`draw`] draws plans that break chosen [`Assumptions`] at most;
//! - [`Assumptions::broken_by`] returns the assumptions that any scenario breaks, drawn or not;
//! - [`findings`] compares the verdicts of a run with the contract that follows from that;
//! - [`shrink`] makes the scenario of a finding as small as possible;
//! - [`Exploration`] runs many plans on all cores and sums up the results;
//! - [`Figures`] are what the plans cost, to be compared with another build.

mod assumptions;
mod bound;
mod campaign;
mod contract;
mod dice;
pub mod draw;
mod figures;
mod file;
mod length;
mod limits;
mod shrink;
mod situations;
mod tally;
#[cfg(test)]
mod weaker;

pub use assumptions::{Assumption, Assumptions};
pub use bound::upper_bound_95;
pub use campaign::{Exploration, Found};
pub use contract::{Finding, explained, findings};
pub use draw::Frame;
pub use figures::{BLOCK, Change, Cost, Figures};
pub use file::text;
pub use length::events_up_to;
pub use shrink::{Shrunk, shrink};
pub use situations::Situation;
pub use tally::{PropertySum, Tally};

use lock_judge::scenario::{Case, Scenario};

/// Returns the one case that is `scenario`.
#[must_use]
pub fn case(scenario: &Scenario) -> Case {
    let (slug, name, overrides) = (None, None, Vec::new());
    Case { slug, name, scenario: scenario.clone(), overrides }
}
