//! Everything that can play a scenario.

pub mod event;
pub mod exhaustive;
pub(crate) mod stage;
#[cfg(test)]
mod tests;
pub mod turmoil;

use core::fmt;

use crate::history::Event;
use crate::oracle::{Counters, Verdicts};

/// One run, judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The seed it was played by.
    pub seed: u64,
    /// The hash of its history.
    pub hash: u64,
    /// What the oracle found.
    pub verdicts: Verdicts,
    /// What happened how often.
    pub counters: Counters,
    /// The faults that began, by their place in the scenario, bit by bit.
    pub faults_begun: u64,
}

/// A scenario asks for something that the engine cannot do: never silently something easier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unsupported {
    /// The engine's name.
    pub engine: &'static str,
    /// What it cannot do, in the words of the scenario file.
    pub what: String,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the engine `{}` cannot do {}", self.engine, self.what)
    }
}

/// Where the events of a run that is kept go.
pub type Kept<'a> = Option<&'a mut Vec<Event>>;
