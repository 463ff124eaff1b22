//! The judge: reads a history, knows the scenario, and knows nothing else.
//!
//! An [`Oracle`] is an online fold over the events of one run. Each property is a file of its own.

mod counters;
mod verdict;

pub use counters::Counters;
pub use verdict::{Blame, Blamed, Judgement, Verdicts, Violation};

use crate::history::Event;
use crate::scenario::{Property, Scenario};

/// The fold over one run.
#[derive(Debug)]
pub struct Oracle {
    counters: Counters,
}

impl Oracle {
    /// A judge of runs of `scenario`. An engine that cannot record what some properties speak of
    /// names them in `unjudged`.
    #[must_use]
    pub fn new(scenario: &Scenario, unjudged: &[Property]) -> Self {
        let _ = (scenario, unjudged);
        Self { counters: Counters::default() }
    }

    /// Ready for another run, keeping what is allocated.
    pub fn reset(&mut self) {
        self.counters = Counters::default();
    }

    /// Takes in the next event.
    pub fn observe(&mut self, event: &Event) {
        self.counters.observe(event);
    }

    /// What was found. The last event was [`EventKind::Ended`](crate::history::EventKind::Ended).
    #[must_use]
    pub fn finish(&mut self) -> Verdicts {
        Verdicts::default()
    }

    /// What happened how often.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
