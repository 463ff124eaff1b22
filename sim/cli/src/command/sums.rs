//! The plan and the sums of a part of a `run`; storage and errors of the parts of any command.

use core::ops::Range;
use std::path::{Path, PathBuf};

use redlock_sim::part::Part;
use redlock_sim::search::Tally;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::exit::Stop;
use super::say::emit;
use super::select::Selected;
use crate::shard::{self, Kind, Shard, ShardError};

/// Work that all parts of a `run` share.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Plan {
    /// Name of the engine.
    pub(super) engine: String,
    pub(super) cases: Vec<Selected>,
    /// Seeds of each case.
    pub(super) seeds: Vec<Range<u64>>,
}

/// Sums over a part of the runs of one case.
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

/// Stores a part in the directory `out`, for `merge`. Returns the path.
pub(super) fn store(
    out: &Path,
    (kind, part): (Kind, Part),
    plan: &impl Serialize,
    sums: &impl Serialize,
    (runs, is_complete): (u64, bool),
) -> Result<PathBuf, Stop> {
    let path = shard::write(out, (kind, part), plan, sums, (runs, is_complete))
        .map_err(|error| Stop::unwritable(out, &error))?;
    emit("shard", || json!({ "shard": part, "runs": runs, "file": path }));
    Ok(path)
}

/// An error for a shard that cannot be read after its header could.
pub(super) fn unreadable(shard: &Shard, error: &ShardError) -> Stop {
    Stop::usage(format!("error: {}: {error}", shard.path.display()))
}
