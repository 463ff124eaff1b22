//! Runs one case with many seeds, on all cores.

use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_judge::history::Event;
use lock_judge::scenario::Case;
use rayon::prelude::*;

use super::compare;
use super::engine::Engine;
use super::player::Player;
use super::result::CaseResult;
use super::tally::Tally;
use crate::engine::{Outcome, Unsupported};
use crate::part::Part;

/// One seed in this many is run twice, to detect nondeterminism.
const TWICE_EVERY: u64 = 20;

/// Describes a campaign: the case, the engine, the seeds, and how to stop and watch it.
#[derive(Clone)]
pub struct Campaign<'a> {
    /// The case to run.
    pub case: &'a Case,
    /// The engine to run it on.
    pub engine: Engine,
    /// The seeds. Each is run once, and some once more to check that the run is deterministic.
    pub seeds: Range<u64>,
    /// The part of the seeds that is run.
    pub part: Part,
    /// True if [`Engine::check`] has already accepted the case; the check takes much longer than a
    /// run.
    pub is_checked: bool,
    /// Stop flag: once it is set, no further chunk of seeds is begun.
    pub stop: &'a AtomicBool,
    /// Called with the number of newly finished seeds.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl fmt::Debug for Campaign<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, engine, seeds, .. } = self;
        write!(formatter, "Campaign({} on {engine}, {seeds:?})", case.full_name())
    }
}

impl<'a> Campaign<'a> {
    /// Runs the seeds on all threads of the current pool. Unless the campaign is stopped, the
    /// result is the same on any number of threads.
    ///
    /// # Errors
    ///
    /// If the case needs something that the engine cannot do.
    pub fn play(&self) -> Result<CaseResult, Unsupported> {
        Ok(self.result(&self.tally()?))
    }

    /// Runs the seeds like [`Campaign::play`], and returns the sums.
    ///
    /// # Errors
    ///
    /// Same as for [`Campaign::play`].
    pub fn tally(&self) -> Result<Tally, Unsupported> {
        let Self { case, engine, ref seeds, .. } = *self;
        if !self.is_checked {
            engine.check(case)?;
        }
        let size = engine.seeds_at_once();
        let chunks = (seeds.end - seeds.start).div_ceil(size);
        let mut tally = (0..chunks)
            .into_par_iter()
            .take_any_while(|_| !self.stop.load(Ordering::Relaxed))
            .map_init(
                || Player::new(case, engine),
                |player, chunk| {
                    let player = player.as_mut().map_err(|unsupported| unsupported.clone())?;
                    self.play_chunk(player, chunk * size)
                },
            )
            .try_reduce(Tally::default, |one, other| Ok(one.merge(other)))?;
        self.play_firsts_again(&mut tally)?;
        Ok(tally)
    }

    /// Compares the sums with the expectations of the case.
    #[must_use]
    pub fn result(&self, tally: &Tally) -> CaseResult {
        compare::result(self.case, self.engine.name(), self.seeds.clone(), tally)
    }

    /// Runs one chunk of seeds, which begins `offset` after the first seed.
    fn play_chunk(&self, player: &mut Player<'a>, offset: u64) -> Result<Tally, Unsupported> {
        let mut tally = Tally::default();
        let start = self.seeds.start + offset;
        let end = self.seeds.end.min(start.saturating_add(self.engine.seeds_at_once()));
        let mut played = 0;
        let name = self.case.full_name();
        for seed in (start..end).filter(|&seed| self.part.has(&name, seed)) {
            played += 1;
            let outcome = match catch_unwind(AssertUnwindSafe(|| player.play(seed, None))) {
                Ok(outcome) => outcome?,
                Err(panic) => {
                    tally.panicked(seed, message_of(&*panic));
                    *player = Player::new(self.case, self.engine)?;
                    continue;
                }
            };
            if seed.is_multiple_of(TWICE_EVERY) && player.play(seed, None)? != outcome {
                tally.differs(seed);
            }
            tally.add(&outcome);
        }
        (self.progress)(played);
        Ok(tally)
    }

    /// Repeats the first seed and the first violating seed of every property on a fresh engine, to
    /// detect state that leaks from one run into the next.
    fn play_firsts_again(&self, tally: &mut Tally) -> Result<(), Unsupported> {
        let violating = tally.properties.iter().filter_map(|it| it.first);
        let firsts = violating.map(|first| (first.seed, first.hash)).chain(tally.first);
        let firsts: BTreeSet<(u64, u64)> = firsts.collect();
        for (seed, hash) in firsts {
            // `turmoil` builds a new world for every run, so a seed that was run twice needs no
            // third run.
            let is_known = self.engine == Engine::Turmoil && seed.is_multiple_of(TWICE_EVERY);
            if !is_known && Player::new(self.case, self.engine)?.play(seed, None)?.hash != hash {
                tally.differs(seed);
            }
        }
        Ok(())
    }
}

/// Runs `case` with `seed` and returns the outcome and the events.
///
/// # Errors
///
/// If the case needs something that the engine cannot do.
pub fn replay(
    case: &Case,
    engine: Engine,
    seed: u64,
) -> Result<(Outcome, Vec<Event>), Unsupported> {
    engine.check(case)?;
    replay_checked(case, engine, seed)
}

/// Runs `case` like [`replay`], without [`Engine::check`]; the caller has done the check.
///
/// # Errors
///
/// If the engine cannot run the case after all.
pub fn replay_checked(
    case: &Case,
    engine: Engine,
    seed: u64,
) -> Result<(Outcome, Vec<Event>), Unsupported> {
    let mut events = Vec::new();
    let outcome = Player::new(case, engine)?.play(seed, Some(&mut events))?;
    Ok((outcome, events))
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    String::from(text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU64;

    use super::super::testing::{clock_jump, play};
    use super::super::{Failure, Observed};
    use super::*;
    use lock_judge::history::{FaultId, FaultIds};
    use lock_judge::scenario::{File, Property};

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        for case in clock_jump(&[]) {
            let alone = play(&case, 3..500, 1);
            assert_eq!(alone, play(&case, 3..500, 4));
            assert_eq!(alone.runs, 497);
            assert!(alone.distinct_histories > 100);
        }
    }

    #[test]
    fn a_run_that_panics_fails_its_case() {
        let panic = catch_unwind(|| assert_eq!(1 + 1, 3, "so it is")).unwrap_err();
        let message = message_of(&*panic);
        assert!(message.contains("so it is"), "{message}");
        let mut tally = Tally::default();
        tally.panicked(8, String::from("later"));
        tally.panicked(3, message.clone());
        let [case, ..] = &clock_jump(&[])[..] else { panic!("it has cases") };
        let result = compare::result(case, "event", 3..9, &tally.merge(Tally::default()));
        assert_eq!(result.failures, [Failure::Panicked { seed: 3, message }]);
        assert!(result.kept_seeds().is_empty());
    }

    #[test]
    fn a_jump_of_the_clock_is_found_and_blamed() {
        let result = play(&clock_jump(&[])[0], 0..100, 2);
        let found = &result.properties[Property::MutualExclusion as usize];
        assert_eq!((found.observed, found.violating_seeds), (Observed::Violated, 100));
        assert_eq!(found.blames, ["clock(C)"]);
        assert!(found.failures.is_empty() && result.failures.is_empty());
    }

    #[test]
    fn every_departure_from_the_expectation_is_reported() {
        let told = |settings: &[&str]| {
            let result = play(&clock_jump(settings)[0], 0..40, 2);
            result.properties[Property::MutualExclusion as usize].failures.join("; ")
        };
        let mutual = "expect.mutual-exclusion";
        assert_eq!(
            told(&[&format!("{mutual}=holds")]),
            "expected to hold, violated by 40 of 40 seeds"
        );
        assert_eq!(
            told(&["fault.jump.clock-jump.by=1ms"]),
            "expected to be violated by every seed, violated by 0 of 40, not by seed 0"
        );
        let table = |more: &str| format!("{mutual}={{ verdict = \"violated\", {more} }}");
        assert_eq!(
            told(&[&table("blame = [\"pause\", \"clock(C)\"]")]),
            "expected to be blamed on pause + clock(C), seed 0 is blamed on clock(C)"
        );
        assert_eq!(told(&[&table("blame = { any-of = [\"clock(*)\", \"pause\"] }")]), "");
        assert_eq!(
            told(&[&table("blame = { any-of = [\"pause\", \"clock(A)\"] }")]),
            "expected to be blamed on any of pause, clock(A), seed 0 is blamed on clock(C)"
        );
        let overlap = told(&[&table("overlap-at-least = \"100s\"")]);
        assert!(overlap.starts_with("expected an overlap of at least 100s, seed "));
    }

    #[test]
    fn a_case_in_which_nobody_asks_for_a_lease_is_an_error() {
        let head = "schema = 1\nname = \"x\"\ntitle = \"x\"\n[[client]]\nid = \"c1\"";
        let text = format!("{head}\nsteps = [{{ sleep = \"1s\" }}]\n");
        let cases = File::parse("x.toml", &text).unwrap().cases(&[]).unwrap();
        assert_eq!(play(&cases[0], 0..1, 1).failures, [Failure::NothingHappened]);
    }

    #[test]
    fn a_fault_that_begins_in_no_seed_is_an_error() {
        // The first attempt of c1 is granted.
        let second = "fault.jump.at={ client = \"c1\", before = \"t2\", attempt = 2 }";
        let case = &clock_jump(&[second])[0];
        assert_eq!(play(case, 0..2, 1).failures, [Failure::FaultNeverBegan { fault: FaultId(1) }]);
        assert_eq!(play(case, 0..0, 1).failures, []);
        let disabled = &clock_jump(&[second, "fault.jump.enabled=false"])[0];
        assert_eq!(play(disabled, 0..2, 1).failures, []);
        let any = "fault.jump.at={ client = \"c1\", before = \"t2\", attempt = \"any\" }";
        assert_eq!(play(&clock_jump(&[any])[0], 0..2, 1).failures, []);
    }

    #[test]
    fn a_campaign_that_was_stopped_blames_no_fault() {
        let case = &clock_jump(&[])[0];
        let (outcome, _) = replay(case, Engine::Event, 0).unwrap();
        let mut tally = Tally::default();
        tally.add(&Outcome { faults_begun: FaultIds::just(FaultId(0)), ..outcome });
        let never = [Failure::FaultNeverBegan { fault: FaultId(1) }];
        assert_eq!(compare::result(case, "event", 0..1, &tally).failures, never);
        assert_eq!(compare::result(case, "event", 0..2, &tally).failures, []);
    }

    #[test]
    fn many_seeds_with_one_history_are_an_error() {
        let case = &clock_jump(&[])[0];
        let (outcome, _) = replay(case, Engine::Event, 0).unwrap();
        let mut tally = Tally::default();
        tally.add(&outcome);
        assert_eq!(compare::result(case, "event", 0..2, &tally).failures, []);
        tally.add(&Outcome { seed: 1, ..outcome });
        let failures = compare::result(case, "event", 0..2, &tally).failures;
        assert_eq!(failures, [Failure::OneHistory]);
    }

    #[test]
    fn a_stopped_campaign_reports_its_runs() {
        let (stop, told) = (AtomicBool::new(false), AtomicU64::new(0));
        let case = &clock_jump(&[])[1];
        let progress = |done| {
            told.fetch_add(done, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
        };
        let engine = Engine::Event;
        let campaign = Campaign {
            case,
            engine,
            seeds: 0..u64::MAX,
            part: Part::WHOLE,
            is_checked: false,
            stop: &stop,
            progress: &progress,
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let result = pool.install(|| campaign.play()).unwrap();
        assert_eq!((result.runs, told.load(Ordering::Relaxed)), (64, 64));
        assert_eq!(result.seeds, 0..u64::MAX);
    }
}
