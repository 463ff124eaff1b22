//! The real client on tokio, RESP bytes and all, over turmoil's simulated TCP.
//!
//! Turmoil moves bytes and nothing else. Masters, network, clocks, faults and the history are the
//! stage's, as in the engine `event`: a message is there when the stage says so, whatever turmoil has
//! carried already. Every client runs as one future beneath one gate, or a stop would stop only a part
//! of it. Clients act at whole milliseconds; everything else at its own time.

mod application;
mod client;
mod connection;
mod environment;
mod names;
mod observer;
mod server;
mod simulation;
mod support;
#[cfg(test)]
mod tests;
mod world;

use super::stage::plan::Plan;
use super::{Kept, Outcome, Unsupported};
use crate::scenario::Case;

const ENGINE: &str = "turmoil";

/// Whether this engine can do what `case` asks for.
///
/// # Errors
///
/// If it cannot: with what it cannot do.
pub fn check(case: &Case) -> Result<(), Unsupported> {
    plan(case).map(drop)
}

fn plan(case: &Case) -> Result<Plan, Unsupported> {
    let plan = Plan::new(case).map_err(|it| Unsupported { engine: ENGINE, ..it })?;
    support::check(&plan)?;
    Ok(plan)
}

/// Plays `case` by `seed`; the events go to `kept` if it is given.
///
/// # Errors
///
/// If the case asks for what this engine cannot do.
pub fn run(case: &Case, seed: u64, kept: Kept<'_>) -> Result<Outcome, Unsupported> {
    Ok(simulation::Simulation::new(plan(case)?, seed, kept.is_some()).run(kept))
}
