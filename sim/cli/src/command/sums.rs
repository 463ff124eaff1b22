//! The plan and the sums of a part of a `run`, and the error for a part that cannot be read.

use core::ops::Range;

use redlock_sim::search::Tally;
use serde::{Deserialize, Serialize};

use super::exit::Stop;
use super::select::Selected;
use crate::shard::{Shard, ShardError};

/// What all parts of a `run` play together.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Plan {
    /// Name of the engine.
    pub(super) engine: String,
    pub(super) cases: Vec<Selected>,
    /// Seeds of each case.
    pub(super) seeds: Vec<Range<u64>>,
}

/// What a part of the runs of one case found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CaseSums {
    Played(Box<Tally>),
    /// The engine cannot play the case, which has this.
    Unsupported(String),
    /// The simulator panicked outside a run.
    Broken,
}

impl CaseSums {
    pub(super) const fn runs(&self) -> u64 {
        match self {
            Self::Played(tally) => tally.runs(),
            Self::Unsupported(_) | Self::Broken => 0,
        }
    }

    /// Returns the sums of two parts.
    pub(super) fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::Broken, _) | (_, Self::Broken) => Self::Broken,
            (Self::Unsupported(one), Self::Unsupported(other)) => Self::Unsupported(one.min(other)),
            (unsupported @ Self::Unsupported(_), _) | (_, unsupported @ Self::Unsupported(_)) => {
                unsupported
            }
            (Self::Played(one), Self::Played(other)) => Self::Played(Box::new(one.merge(*other))),
        }
    }
}

/// An error for a shard that cannot be read after its header could.
pub(super) fn unreadable(shard: &Shard, error: &ShardError) -> Stop {
    Stop::usage(format!("error: {}: {error}", shard.path.display()))
}
