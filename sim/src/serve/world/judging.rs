//! Judges the history of a run like any other.

use lock_judge::history::HistoryHash;
use lock_judge::oracle::Oracle;

use super::World;
use crate::engine::Outcome;
use crate::search::{self, Played};
use crate::serve::history_builder::{self, BuiltHistory};
use crate::serve::support::ENGINE;
use crate::serve::verdict::{Verdict, from_outside, unjudged};

impl World {
    /// Judges the run so far.
    pub(in crate::serve) fn verdict(&self) -> Verdict {
        let log = self.recorder.copy();
        let origin_ns = self.clock.origin_ns();
        let now_ns = origin_ns.map_or(0, |origin_ns| self.clock.now_ns() - origin_ns);
        let walls_ns = self.walls_at_start_ns();
        let BuiltHistory { case, events, is_cut_short } =
            history_builder::build(&self.case, &log, &walls_ns, now_ns);
        let mut hash = HistoryHash::default();
        let mut oracle = Oracle::new(&case.scenario, &unjudged());
        for event in &events {
            hash.add(event);
            oracle.observe(event);
        }
        let verdicts = oracle.finish();
        let (counters, faults_begun) = (oracle.counters(), oracle.faults_begun());
        let (seed, hash) = (self.seed, hash.value());
        let measured = from_outside(oracle.measured());
        let ended_ns = now_ns;
        let outcome = Outcome { seed, hash, verdicts, counters, faults_begun, measured, ended_ns };
        let result = search::judge_one(&case, ENGINE, &outcome);
        let history = self.out.join(result.history_file(seed));
        let played = Played::new(result, vec![(seed, events)]);
        Verdict { played, is_cut_short, history }
    }
}
