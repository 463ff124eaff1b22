//! The engines that run the cases of a campaign.

use core::fmt;
use core::str::FromStr;

use lock_judge::oracle::Violation;
use lock_judge::scenario::{Case, SeedRange};
use serde::{Deserialize, Serialize};

use super::margin;
use crate::engine::{Unsupported, event, turmoil};

/// Engine that runs a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// The fast event-driven engine.
    #[default]
    Event,
    /// The real client over simulated TCP.
    Turmoil,
}

impl Engine {
    /// Returns the name of the engine.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Turmoil => "turmoil",
        }
    }

    /// Returns the seeds that `case` specifies for this engine.
    #[must_use]
    pub fn seeds(self, case: &Case) -> SeedRange {
        match self {
            Self::Event => case.scenario.run.seeds.clone(),
            Self::Turmoil => case.scenario.run.turmoil_seeds.clone(),
        }
    }

    /// Checks that this engine can run `case`, and that the case means the same on it as on the
    /// other engines.
    ///
    /// # Errors
    ///
    /// If this engine cannot; the error names the obstacle.
    pub fn check(self, case: &Case) -> Result<(), Unsupported> {
        match self {
            Self::Event => event::Engine::new(case).map(drop),
            Self::Turmoil => {
                turmoil::check(case)?;
                margin::check(case)
            }
        }
    }

    /// Returns true if `violation` is no effect of this engine's steps: on `turmoil` a client acts at
    /// whole milliseconds, so a timer may be late by less than one.
    #[must_use]
    pub const fn resolves(self, violation: &Violation) -> bool {
        let length_ns = violation.to_ns.saturating_sub(violation.from_ns);
        matches!(self, Self::Event) || length_ns == 0 || length_ns >= margin::TICK.0
    }

    /// Number of seeds that a thread runs between two looks at the stop flag.
    pub(super) const fn seeds_at_once(self) -> u64 {
        match self {
            Self::Event => 64,
            Self::Turmoil => 1,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = [Self::Event, Self::Turmoil].into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| format!("`{name}` is not an engine: expected `event` or `turmoil`"))
    }
}
