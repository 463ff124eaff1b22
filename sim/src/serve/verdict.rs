//! What comes of a run: its history, judged as any other.

use std::path::PathBuf;

use super::tale::JUDGED;
use crate::history::EventKind;
use crate::report::Played;
use crate::scenario::Property;

/// A run that is over, or its part so far.
#[derive(Debug)]
pub struct Verdict {
    /// What was found, and the history.
    pub played: Played,
    /// More happened than could be told: nothing is judged.
    pub is_cut_short: bool,
    /// Where the history is stored once the reports are written.
    pub history: PathBuf,
}

/// What the oracle cannot judge from outside.
#[must_use]
pub fn unjudged() -> Vec<Property> {
    Property::ALL.into_iter().filter(|property| !JUDGED.contains(property)).collect()
}

impl Verdict {
    /// Whether nobody asked for the lock, whatever workers may have said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let mut events = self.played.kept.iter().flat_map(|(_, events)| events);
        !events.any(|event| matches!(event.kind, EventKind::Written { .. }))
    }
}
