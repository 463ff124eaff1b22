//! Where everything that happens is told: the hash, the oracle, and a kept history.

use crate::history::{Event, EventKind, HistoryHash};
use crate::oracle::Oracle;

/// The recorder of one run.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) hash: HistoryHash,
    pub(super) oracle: Oracle,
    kept: Option<Vec<Event>>,
}

impl Recorder {
    pub(super) fn new(oracle: Oracle) -> Self {
        Self { hash: HistoryHash::default(), oracle, kept: None }
    }

    pub(super) fn reset(&mut self, keep: bool) {
        self.hash = HistoryHash::default();
        self.oracle.reset();
        self.kept = keep.then(Vec::new);
    }

    pub(super) fn record(&mut self, at_ns: u64, kind: EventKind) {
        let event = Event { at_ns, kind };
        self.hash.add(&event);
        self.oracle.observe(&event);
        if let Some(kept) = &mut self.kept {
            kept.push(event);
        }
    }

    pub(super) fn take_kept(&mut self) -> Vec<Event> {
        self.kept.take().unwrap_or_default()
    }
}
