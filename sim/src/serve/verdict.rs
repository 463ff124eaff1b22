//! What comes of a run: its history, judged as any other.

use std::path::PathBuf;

use super::support::ENGINE;
use super::tale::{self, JUDGED, Tale};
use super::world::World;
use crate::engine::Outcome;
use crate::history::{EventKind, HistoryHash};
use crate::oracle::Oracle;
use crate::report::Played;
use crate::scenario::Property;
use crate::search;

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
    /// Judges what happened so far in `world`.
    pub(super) fn of(world: &World) -> Self {
        let log = world.chronicle.copy();
        let origin_ns = world.hours.origin_ns();
        let now_ns = origin_ns.map_or(0, |origin_ns| world.hours.now_ns() - origin_ns);
        let walls_ns = world.walls_at_start_ns();
        let Tale { case, events, is_cut_short } = tale::tell(&world.case, &log, &walls_ns, now_ns);
        let mut hash = HistoryHash::default();
        let mut oracle = Oracle::new(&case.scenario, &unjudged());
        for event in &events {
            hash.add(event);
            oracle.observe(event);
        }
        let verdicts = oracle.finish();
        let (counters, faults_begun) = (oracle.counters(), oracle.faults_begun());
        let (seed, hash) = (world.seed, hash.value());
        let outcome = Outcome { seed, hash, verdicts, counters, faults_begun };
        let result = search::judge_one(&case, ENGINE, &outcome);
        let played = Played { result, kept: vec![(seed, events)] };
        let history = world.out.join(played.history_file(seed));
        Self { played, is_cut_short, history }
    }

    /// Whether nobody asked for the lock, whatever workers may have said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let mut events = self.played.kept.iter().flat_map(|(_, events)| events);
        !events.any(|event| matches!(event.kind, EventKind::Written { .. }))
    }
}
