//! Destination of every event: the hash, the oracle, and a kept history.

use crate::history::{Event, EventKind, HistoryHash};
use crate::oracle::Oracle;

/// The recorder of one run.
#[derive(Debug)]
pub(in crate::engine) struct Recorder {
    pub(in crate::engine) hash: HistoryHash,
    pub(in crate::engine) oracle: Oracle,
    kept: Option<Vec<Event>>,
}

impl Recorder {
    pub(in crate::engine) fn new(oracle: Oracle) -> Self {
        Self { hash: HistoryHash::default(), oracle, kept: None }
    }

    pub(in crate::engine) fn reset(&mut self, keep: bool) {
        self.hash = HistoryHash::default();
        self.oracle.reset();
        self.kept = keep.then(Vec::new);
    }

    pub(in crate::engine) fn record(&mut self, at_ns: u64, kind: EventKind) {
        let event = Event { at_ns, kind };
        self.hash.add(&event);
        self.oracle.observe(&event);
        if let Some(kept) = &mut self.kept {
            kept.push(event);
        }
    }

    pub(in crate::engine) fn take_kept(&mut self) -> Vec<Event> {
        self.kept.take().unwrap_or_default()
    }
}
