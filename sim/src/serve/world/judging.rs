//! What comes of a run: its history, judged as any other.

use super::World;
use crate::engine::Outcome;
use crate::history::HistoryHash;
use crate::oracle::Oracle;
use crate::report::Played;
use crate::search;
use crate::serve::support::ENGINE;
use crate::serve::tale::{self, Tale};
use crate::serve::verdict::{Verdict, unjudged};

impl World {
    /// Judges what happened so far .
    pub(in crate::serve) fn verdict(&self) -> Verdict {
        let log = self.chronicle.copy();
        let origin_ns = self.hours.origin_ns();
        let now_ns = origin_ns.map_or(0, |origin_ns| self.hours.now_ns() - origin_ns);
        let walls_ns = self.walls_at_start_ns();
        let Tale { case, events, is_cut_short } = tale::tell(&self.case, &log, &walls_ns, now_ns);
        let mut hash = HistoryHash::default();
        let mut oracle = Oracle::new(&case.scenario, &unjudged());
        for event in &events {
            hash.add(event);
            oracle.observe(event);
        }
        let verdicts = oracle.finish();
        let (counters, faults_begun) = (oracle.counters(), oracle.faults_begun());
        let (seed, hash) = (self.seed, hash.value());
        let outcome = Outcome { seed, hash, verdicts, counters, faults_begun };
        let result = search::judge_one(&case, ENGINE, &outcome);
        let played = Played { result, kept: vec![(seed, events)] };
        let history = self.out.join(played.history_file(seed));
        Verdict { played, is_cut_short, history }
    }
}
