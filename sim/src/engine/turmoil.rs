//! Engine that runs the real client on tokio, including RESP bytes, over turmoil's simulated TCP.
//!
//! Turmoil only moves bytes. Masters, network, clocks, faults and the history belong to the world,
//! as in the engine `event`: the world decides when a message arrives, even if turmoil has already
//! carried it. Every client runs as one future behind one gate, so that a stop of the process stops
//! all of it. Clients act at whole milliseconds; everything else acts at its own time.

mod application;
mod client;
mod connection;
mod environment;
mod names;
mod observer;
mod server;
mod shared;
mod simulation;
mod support;
#[cfg(test)]
mod tests;

use lock_judge::scenario::Case;

use super::{Kept, Outcome, Unsupported};
use crate::choice::Choices;
use crate::plan::Plan;

const ENGINE: &str = "turmoil";

/// Returns `Ok` if this engine can run `case`.
///
/// # Errors
///
/// If the engine cannot run the case; the error names the unsupported feature.
pub fn check(case: &Case) -> Result<(), Unsupported> {
    plan(case).map(drop)
}

fn plan(case: &Case) -> Result<Plan, Unsupported> {
    let plan = Plan::new(case).map_err(|error| Unsupported::of(ENGINE, error))?;
    support::check(&plan)?;
    Ok(plan)
}

/// Runs `case` with the seed `seed`; writes the events to `kept` if it is given.
///
/// # Errors
///
/// If the case asks for something that this engine cannot do.
pub fn run(case: &Case, seed: u64, kept: Kept<'_>) -> Result<Outcome, Unsupported> {
    let mut plan = plan(case)?;
    plan.draw(&Choices::new(seed));
    Ok(simulation::Simulation::new(plan, seed, kept.is_some()).run(kept))
}
