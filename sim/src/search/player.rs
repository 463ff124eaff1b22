//! Plays one case on an engine, run after run.

use lock_judge::scenario::Case;

use super::engine::Engine;
use crate::engine::{Kept, Outcome, Unsupported, event, turmoil};

/// An engine with the case that it plays.
pub(crate) enum Player<'c> {
    Event(Box<event::Engine>),
    Turmoil(&'c Case),
}

impl<'c> Player<'c> {
    /// Prepares `engine` to play runs of `case`.
    ///
    /// # Errors
    ///
    /// If the engine cannot play the case.
    pub(crate) fn new(case: &'c Case, engine: Engine) -> Result<Self, Unsupported> {
        match engine {
            Engine::Event => Ok(Self::Event(Box::new(event::Engine::new(case)?))),
            Engine::Turmoil => Ok(Self::Turmoil(case)),
        }
    }

    /// Plays one run; writes the events to `kept` if it is given.
    ///
    /// # Errors
    ///
    /// If the engine cannot play the case.
    pub(crate) fn play(&mut self, seed: u64, kept: Kept<'_>) -> Result<Outcome, Unsupported> {
        match self {
            Self::Event(engine) => Ok(engine.run(seed, kept)),
            Self::Turmoil(case) => turmoil::run(case, seed, kept),
        }
    }
}
