//! The result of a run: its history, judged like any other.

use std::path::PathBuf;

use lock_judge::history::EventKind;
use lock_judge::oracle::Measured;
use lock_judge::scenario::Property;

use super::history_builder::{MEASURED, is_judged};
use crate::search::Played;

/// The judged history of a run, complete or so far.
#[derive(Debug)]
pub struct Verdict {
    /// The verdicts and the history.
    pub played: Played,
    /// True if not everything could be recorded; then nothing is judged.
    pub is_cut_short: bool,
    /// File of the history, once the reports are written.
    pub history: PathBuf,
}

/// Returns the properties that cannot be judged from outside.
#[must_use]
pub fn unjudged() -> Vec<Property> {
    Property::ALL.into_iter().filter(|&property| !is_judged(property)).collect()
}

/// Returns those of the quantities that can be measured from outside.
#[must_use]
pub fn from_outside(measured: Measured) -> Measured {
    measured.only(&MEASURED)
}

impl Verdict {
    /// Returns true if no master received a request about the lock, whatever workers reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let mut events = self.played.kept.iter().flat_map(|(_, events)| events);
        !events.any(|event| matches!(event.kind, EventKind::Written { .. }))
    }
}
