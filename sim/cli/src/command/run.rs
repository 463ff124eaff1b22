//! `run`: plays many cases with many seeds.

use core::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use indicatif::ProgressBar;
use lock_judge::text;
use redlock_sim::engine::Unsupported;
use redlock_sim::part::Part;
use redlock_sim::search::{self, Campaign, CaseResult, Played};

use super::arguments::Run;
use super::exit::{Exit, Stop};
use super::in_order::in_order;
use super::progress;
use super::say::say;
use super::select::{self, Selected};
use super::session::Session;
use super::stop_signal;
use super::sums::{CaseSums, Plan, store};
use crate::report;
use crate::shard::Kind;

/// Plays the selected cases. Reads and checks all of them before the first is played.
pub(super) fn run(arguments: &Run) -> Result<Exit, Stop> {
    let shard = arguments.shard.part()?;
    let part = shard.unwrap_or(Part::WHOLE);
    let (cases, origin) = select::select(&arguments.which, &arguments.settings.overrides)?;
    if cases.is_empty() {
        let message = format!("nothing to play: no scenario is selected ({origin})");
        return Err(Stop { exit: Exit::Nothing, message });
    }
    let out = &arguments.out.out;
    let has_pages = shard.is_none() && !arguments.results_only;
    let pages = cases.iter().filter(|_| has_pages).map(Selected::scenario);
    report::check_writable(out, pages).map_err(|error| Stop::unwritable(out, &error))?;
    let _claim = report::Claim::unless_shared(out, shard.is_some())
        .map_err(|error| Stop::unwritable(out, &error))?;
    if let Some(jobs) = arguments.jobs {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(jobs));
        pool.build_global().map_err(Stop::internal)?;
    }
    let stop = stop_signal::install()?;
    if !arguments.amount.quiet {
        let of = shard.map_or_else(String::new, |part| format!(", shard {part}"));
        let count = text::count(cases.len() as u64, "case");
        say(format_args!("scenarios: {origin}, {count}{of}"));
    }
    let bar = bar(arguments, &cases, part);
    let player = Player { arguments, part, stop, bar: bar.clone() };
    if shard.is_some() {
        return play_part(&player, cases);
    }
    let mut session = Session::new(out, arguments.results_only, arguments.amount, bar);
    in_order(
        &cases,
        |selected| player.play(selected),
        |selected, outcome| outcome.into_iter().for_each(|it| session.take(selected, it)),
    );
    session.finish(stop.load(Ordering::Relaxed))
}

fn bar(arguments: &Run, cases: &[Selected], part: Part) -> ProgressBar {
    let seeds = |selected: &Selected| {
        let seeds = seeds(arguments, selected);
        seeds.end - seeds.start
    };
    let total = cases.iter().map(seeds).fold(0, u64::saturating_add) / u64::from(part.of());
    let template = "{wide_bar} {human_pos}/{human_len} {msg}";
    progress::bar(Some(total), arguments.amount.quiet, template)
}

/// Plays one part of the cases, and stores its sums for `merge`.
fn play_part(player: &Player<'_>, cases: Vec<Selected>) -> Result<Exit, Stop> {
    let (arguments, part) = (player.arguments, player.part);
    let mut sums = Vec::new();
    let take = |_: &Selected, outcome| sums.push(outcome);
    in_order(&cases, |selected| player.sums(selected), take);
    player.bar.finish_and_clear();
    let is_complete = !player.stop.load(Ordering::Relaxed);
    let is_broken = sums.contains(&CaseSums::Broken);
    let runs = sums.iter().map(CaseSums::runs).sum();
    let seeds: Vec<Range<u64>> = cases.iter().map(|it| seeds(arguments, it)).collect();
    let plan = Plan { engine: arguments.engine.name().to_owned(), cases, seeds };
    let (out, what) = (&arguments.out.out, (Kind::Run, part));
    let path = store(out, what, &plan, &sums, (runs, is_complete))?;
    if !arguments.amount.quiet {
        say(format_args!("shard {part}: {runs} runs, stored in {}", path.display()));
    }
    Ok(match (is_broken, is_complete) {
        (true, _) => Exit::Internal,
        (false, true) => Exit::Met,
        (false, false) => Exit::Inconclusive,
    })
}

/// The means to play a case, shared by all threads.
struct Player<'a> {
    arguments: &'a Run,
    part: Part,
    stop: &'a AtomicBool,
    bar: ProgressBar,
}

impl Player<'_> {
    /// Plays one case; `None` if the run was stopped before. A panic in one case must not keep the
    /// other cases from being played.
    fn play(&self, selected: &Selected) -> Option<thread::Result<Result<Played, Unsupported>>> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.bar.set_message(selected.case.full_name());
        let progress = |done| self.bar.inc(done);
        let campaign = self.campaign(selected, &progress);
        Some(catch_unwind(AssertUnwindSafe(|| {
            report(&campaign, campaign.play()?, self.arguments.results_only)
        })))
    }

    /// Plays this part of one case, and returns the sums.
    fn sums(&self, selected: &Selected) -> CaseSums {
        if self.stop.load(Ordering::Relaxed) {
            return CaseSums::Played(Box::default());
        }
        let progress = |done| self.bar.inc(done);
        let campaign = self.campaign(selected, &progress);
        match catch_unwind(AssertUnwindSafe(|| campaign.tally())) {
            Ok(Ok(tally)) => CaseSums::Played(Box::new(tally)),
            Ok(Err(unsupported)) => CaseSums::Unsupported(unsupported.what),
            Err(_) => CaseSums::Broken,
        }
    }

    fn campaign<'c>(
        &'c self,
        selected: &'c Selected,
        progress: &'c (dyn Fn(u64) + Sync),
    ) -> Campaign<'c> {
        Campaign {
            case: &selected.case,
            engine: self.arguments.engine,
            seeds: seeds(self.arguments, selected),
            part: self.part,
            is_checked: false,
            stop: self.stop,
            progress,
        }
    }
}

fn seeds(arguments: &Run, selected: &Selected) -> Range<u64> {
    let own = || arguments.engine.seeds(&selected.case);
    arguments.seeds.clone().unwrap_or_else(own).0
}

/// Replays the seeds of `result` that are worth keeping. With `results_only`, those of a case that
/// met its expectations are not: what failed is explained in the terminal in any case.
pub(super) fn report(
    campaign: &Campaign<'_>,
    result: CaseResult,
    results_only: bool,
) -> Result<Played, Unsupported> {
    if results_only && result.is_met() {
        return Ok(Played::new(result, Vec::new()));
    }
    with_histories(campaign, result)
}

/// Plays a campaign, then replays the seeds worth keeping to record their histories.
///
/// # Errors
///
/// If the engine does not support the case.
pub fn keep(campaign: &Campaign<'_>) -> Result<Played, Unsupported> {
    with_histories(campaign, campaign.play()?)
}

fn with_histories(campaign: &Campaign<'_>, result: CaseResult) -> Result<Played, Unsupported> {
    let mut kept = Vec::new();
    if result.runs > 0 {
        for seed in result.kept_seeds() {
            kept.push((seed, search::replay_checked(campaign.case, campaign.engine, seed)?.1));
        }
    }
    Ok(Played::new(result, kept))
}
