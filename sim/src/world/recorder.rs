//! Destination of every event: the hash, the oracle, and a kept history.

use lock_judge::history::{Event, EventKind, HistoryHash};
use lock_judge::oracle::Oracle;

/// The recorder of one run.
#[derive(Debug)]
pub(crate) struct Recorder {
    hash: HistoryHash,
    oracle: Oracle,
    kept: Option<Vec<Event>>,
}

impl Recorder {
    pub(super) fn new(oracle: Oracle) -> Self {
        Self { hash: HistoryHash::default(), oracle, kept: None }
    }

    /// Resets to the beginning of a run; keeps its events if `keeps`.
    pub(super) fn reset(&mut self, keeps: bool) {
        self.hash = HistoryHash::default();
        self.oracle.reset();
        self.kept = keeps.then(Vec::new);
    }

    pub(super) fn record(&mut self, at_ns: u64, kind: EventKind) {
        let event = Event { at_ns, kind };
        self.hash.add(&event);
        self.oracle.observe(&event);
        if let Some(kept) = &mut self.kept {
            kept.push(event);
        }
    }

    /// Returns the hash of the events so far.
    pub(crate) fn hash(&self) -> u64 {
        self.hash.value()
    }

    pub(crate) fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// Returns the oracle, to finish it.
    pub(crate) fn oracle_mut(&mut self) -> &mut Oracle {
        &mut self.oracle
    }

    pub(crate) fn take_kept(&mut self) -> Vec<Event> {
        self.kept.take().unwrap_or_default()
    }
}
