//! The engines that run a scenario.

pub mod event;
pub mod exhaustive;
mod run;
#[cfg(test)]
mod tests;
pub mod turmoil;

use core::fmt;

use lock_judge::history::{Event, FaultIds};
use lock_judge::oracle::{Counters, Measured, Verdicts};

use crate::plan::Unplannable;

/// The judged result of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Seed of the run.
    pub seed: u64,
    /// Hash of the run's history.
    pub hash: u64,
    /// The oracle's verdicts.
    pub verdicts: Verdicts,
    /// Number of occurrences of each counted event.
    pub counters: Counters,
    /// The faults that began.
    pub faults_begun: FaultIds,
    /// The quantities of the run.
    pub measured: Measured,
    /// True time at the end of the run.
    pub ended_ns: u64,
}

/// Error: the scenario asks for something that the engine cannot do. An engine never runs an easier
/// scenario silently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unsupported {
    /// Name of the engine.
    pub engine: &'static str,
    /// The unsupported feature, in the words of the scenario file.
    pub what: String,
}

impl Unsupported {
    /// Returns the error that `engine` reports for a case that cannot be planned.
    pub(crate) fn of(engine: &'static str, error: Unplannable) -> Self {
        Self { engine, what: error.0 }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the engine `{}` does not support {}", self.engine, self.what)
    }
}

/// Destination of the events of a run; `None` if the caller does not keep the events.
pub type Kept<'a> = Option<&'a mut Vec<Event>>;
