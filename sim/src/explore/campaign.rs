//! Plays many plans on all cores.

use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use lock_judge::scenario::Scenario;
use rayon::prelude::*;

use super::case;
use super::contract::{Finding, findings};
use super::draw::{Frame, plan};
use super::figures::BLOCK;
use super::situations;
use super::tally::Tally;
use crate::engine::Unsupported;
use crate::part::Part;
use crate::search::Player;

/// Plans that a thread plays between two looks at the stop flag.
const AT_ONCE: u64 = BLOCK;

/// One plan in this many is played twice, to detect nondeterminism.
const TWICE_EVERY: u64 = 64;

/// One plan in this many is watched for situations: its events are kept, which takes longer.
const WATCHED_EVERY: u64 = 16;

/// A finding and the plan that showed it first.
#[derive(Clone, Debug)]
pub struct Found {
    /// Number of the plan: the smallest that shows the finding.
    pub number: u64,
    /// The plan.
    pub plan: Scenario,
}

/// An exploration: what plans are drawn from, which plans, and how to stop and watch it.
#[derive(Clone)]
pub struct Exploration<'a> {
    /// Subject and engine of all plans, and the assumptions that they may break.
    pub frame: Frame,
    /// Seed from which plans are drawn.
    pub seed: u64,
    /// Numbers of the plans.
    pub plans: Range<u64>,
    /// The part of the plans that is played.
    pub part: Part,
    /// True if the costs of the plans are kept: 48 bytes for each block.
    pub keeps_figures: bool,
    /// Stop flag: once it is set, no further plans are begun.
    pub stop: &'a AtomicBool,
    /// Called with the number of newly played plans.
    pub progress: &'a (dyn Fn(u64) + Sync),
    /// Called with the first plan that shows a finding, in the order of playing.
    pub found: &'a (dyn Fn(&Finding, &Found) + Sync),
}

impl fmt::Debug for Exploration<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frame, seed, plans, .. } = self;
        write!(formatter, "Exploration({frame:?}, seed {seed}, {plans:?})")
    }
}

impl Exploration<'_> {
    /// Plays the plans on all threads of the current pool. Unless the exploration is stopped, the
    /// result is the same on any number of threads.
    #[must_use]
    pub fn explore(&self) -> (Tally, BTreeMap<Finding, Found>) {
        let known = Mutex::new(BTreeMap::new());
        let chunks = (self.plans.end - self.plans.start).div_ceil(AT_ONCE);
        // Threads take the chunks one after the other, so a stopped exploration has played the first.
        let tally = (0..chunks)
            .take_while(|_| !self.stop.load(Ordering::Relaxed))
            .par_bridge()
            .map(|chunk| self.chunk(chunk * AT_ONCE, &known))
            .reduce(Tally::default, Tally::merge);
        (tally, known.into_inner().expect("no thread panicked with the lock"))
    }

    fn chunk(&self, offset: u64, known: &Mutex<BTreeMap<Finding, Found>>) -> Tally {
        let mut tally = Tally::default();
        let begin = self.plans.start + offset;
        let end = self.plans.end.min(begin.saturating_add(AT_ONCE));
        let mut played_plans = 0;
        for number in (begin..end).filter(|&number| self.part.has("plan", number)) {
            played_plans += 1;
            let plan = plan(&self.frame, self.seed, number);
            let played = catch_unwind(AssertUnwindSafe(|| self.play(&plan, number, &mut tally)));
            tally.panicked += u64::from(played.is_err());
            let found = match played {
                Ok(Ok(found)) => found,
                Ok(Err(unsupported)) => {
                    *tally.unsupported.entry(unsupported.what).or_default() += 1;
                    Vec::new()
                }
                Err(_) => vec![Finding::Panicked],
            };
            for finding in found {
                self.keep(finding, Found { number, plan: plan.clone() }, known);
            }
        }
        (self.progress)(played_plans);
        tally
    }

    /// Plays one plan and returns what its contract rules out.
    fn play(
        &self,
        plan: &Scenario,
        number: u64,
        tally: &mut Tally,
    ) -> Result<Vec<Finding>, Unsupported> {
        let (case, engine) = (case(plan), self.frame.engine);
        let mut player = Player::new(&case, engine)?;
        let mut events = Vec::new();
        let is_watched = number.is_multiple_of(WATCHED_EVERY);
        let outcome = player.play(number, is_watched.then_some(&mut events))?;
        let mut findings = findings(plan, engine, &outcome);
        tally.add(plan, engine, &outcome, &findings);
        if self.keeps_figures {
            tally.figures.add(number, &outcome);
        }
        if is_watched {
            tally.watched(situations::seen(&events));
        }
        if number.is_multiple_of(TWICE_EVERY) && player.play(number, None)? != outcome {
            findings.push(Finding::Differed);
        }
        Ok(findings)
    }

    fn keep(&self, finding: Finding, found: Found, known: &Mutex<BTreeMap<Finding, Found>>) {
        let mut known = known.lock().expect("no thread panicked with the lock");
        match known.get_mut(&finding) {
            None => {
                (self.found)(&finding, &found);
                known.insert(finding, found);
            }
            Some(first) if found.number < first.number => *first = found,
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Engine;

    fn explore(frame: Frame, plans: Range<u64>, threads: usize) -> (Tally, Vec<(Finding, u64)>) {
        let stop = AtomicBool::new(false);
        let (seed, progress, found) = (5, &|_| {}, &|_: &Finding, _: &Found| {});
        let (part, stop) = (Part::WHOLE, &stop);
        let keeps_figures = true;
        let exploration =
            Exploration { frame, seed, plans, part, keeps_figures, stop, progress, found };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (tally, found) = pool.install(|| exploration.explore());
        (tally, found.into_iter().map(|(finding, it)| (finding, it.number)).collect())
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let frame = Frame { subject: String::from("redlock-no-release"), ..Frame::default() };
        let alone = explore(frame.clone(), 0..600, 1);
        assert_eq!(alone, explore(frame, 0..600, 3));
        assert_eq!(alone.0.plans, 600);
        assert!(alone.0.distinct_histories() > 550);
    }

    #[test]
    fn the_production_client_keeps_its_promises() {
        let (tally, found) = explore(Frame::default(), 0..2_000, 2);
        assert_eq!(found, []);
        assert_eq!((tally.plans, tally.unsupported), (2_000, BTreeMap::new()));
    }

    #[test]
    fn the_production_client_keeps_its_promises_over_tcp() {
        let frame = Frame { engine: Engine::Turmoil, ..Frame::default() };
        let (tally, found) = explore(frame, 0..24, 2);
        assert_eq!(found, []);
        let unplayed: u64 = tally.unsupported.values().sum();
        assert_eq!(tally.plans + unplayed, 24);
        assert!(unplayed < 6, "{:?}", tally.unsupported);
    }

    #[test]
    fn a_stopped_exploration_has_played_the_first_plans() {
        for threads in [1, 2] {
            let stop = AtomicBool::new(false);
            let progress = |_| stop.store(true, Ordering::Relaxed);
            let latest = Mutex::new(0);
            let found = |_: &Finding, found: &Found| {
                let mut latest = latest.lock().unwrap();
                *latest = found.number.max(*latest);
            };
            let exploration = Exploration {
                frame: Frame { subject: String::from("redlock-no-release"), ..Frame::default() },
                seed: 0,
                plans: 0..u64::MAX,
                part: Part::WHOLE,
                keeps_figures: false,
                stop: &stop,
                progress: &progress,
                found: &found,
            };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (tally, known) = pool.install(|| exploration.explore());
            assert!(!known.is_empty());
            assert!((AT_ONCE..=2 * AT_ONCE * threads as u64).contains(&tally.plans));
            assert!(latest.into_inner().unwrap() < tally.plans);
        }
    }
}
