//! `run`: plays many cases with many seeds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use indicatif::ProgressBar;
use redlock_sim::engine::Unsupported;
use redlock_sim::search::{self, Campaign, CaseResult, Played};

use super::arguments::{Amount, Run};
use super::exit::{Exit, Stop};
use super::in_order::in_order;
use super::lines::{self, say};
use super::progress;
use super::select::{self, Selected};
use super::stop_signal;
use crate::report;

/// Plays the selected cases. Reads and checks all of them before the first is played.
pub(super) fn run(arguments: &Run) -> Result<Exit, Stop> {
    let (cases, origin) = select::select(&arguments.which, &arguments.settings.overrides)?;
    if cases.is_empty() {
        let message = format!("nothing to play: no scenario is selected ({origin})");
        return Err(Stop { exit: Exit::Nothing, message });
    }
    let out = &arguments.out.out;
    report::check_writable(out).map_err(|error| Stop::unwritable(out, &error))?;
    if let Some(jobs) = arguments.jobs {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(jobs));
        pool.build_global().map_err(Stop::internal)?;
    }
    let stop = stop_signal::install()?;
    if !arguments.amount.quiet {
        say(format_args!("scenarios: {origin}, {} cases", cases.len()));
    }
    let mut session = Session::new(arguments, &cases, stop);
    let player = Player { arguments, stop, bar: session.bar.clone() };
    in_order(
        &cases,
        |selected| player.play(selected),
        |selected, outcome| outcome.into_iter().for_each(|it| session.take(selected, it)),
    );
    session.finish()
}

/// Result of a case; an error if the simulator panicked.
type Outcome = thread::Result<Result<Played, Unsupported>>;

/// The means to play a case, shared by all threads.
struct Player<'a> {
    arguments: &'a Run,
    stop: &'a AtomicBool,
    bar: ProgressBar,
}

impl Player<'_> {
    /// Plays one case; `None` if the run was stopped before.
    fn play(&self, selected: &Selected) -> Option<Outcome> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.bar.set_message(selected.case.full_name());
        let campaign = Campaign {
            case: &selected.case,
            engine: self.arguments.engine,
            seeds: seeds(self.arguments, selected),
            is_checked: false,
            stop: self.stop,
            progress: &|done| self.bar.inc(done),
        };
        // A panic in one case must not keep the other cases from being played.
        let results_only = self.arguments.results_only;
        Some(catch_unwind(AssertUnwindSafe(|| {
            let result = campaign.play()?;
            // What failed is explained in the terminal in any case.
            if results_only && result.is_met() {
                return Ok(Played { result, kept: Vec::new(), family: String::new() });
            }
            with_histories(&campaign, result)
        })))
    }
}

/// State of a `run`: the results so far.
struct Session<'a> {
    arguments: &'a Run,
    stop: &'a AtomicBool,
    bar: ProgressBar,
    played: Vec<Played>,
    unsupported: usize,
    exit: Exit,
}

impl<'a> Session<'a> {
    fn new(arguments: &'a Run, cases: &[Selected], stop: &'a AtomicBool) -> Self {
        let seeds = |selected: &Selected| {
            let seeds = seeds(arguments, selected);
            seeds.end - seeds.start
        };
        let total = cases.iter().map(seeds).fold(0, u64::saturating_add);
        let template = "{wide_bar} {human_pos}/{human_len} {msg}";
        let bar = progress::bar(Some(total), arguments.amount.quiet, template);
        Self { arguments, stop, bar, played: Vec::new(), unsupported: 0, exit: Exit::Met }
    }

    /// Keeps the worse of the exit code so far and `exit`.
    fn exit(&mut self, exit: Exit) {
        self.exit = self.exit.max(exit);
    }

    fn say(&self, text: &str) {
        self.bar.suspend(|| say(text));
    }

    /// Takes the result of one case.
    fn take(&mut self, selected: &Selected, outcome: Outcome) {
        let name = selected.case.full_name();
        match outcome {
            Ok(Ok(played)) => {
                self.add(Played { family: selected.family.clone(), ..played }, &selected.which)
            }
            Ok(Err(unsupported)) => {
                self.unsupported += 1;
                if selected.by_name {
                    self.exit(Exit::Inconclusive);
                }
                if selected.by_name || !self.arguments.amount.quiet {
                    self.say(&format!("skipped {name}  {unsupported}"));
                }
            }
            Err(_) => {
                self.exit(Exit::Internal);
                self.say(&format!(
                    "BROKEN  {name}  the simulator has a defect: see the panic above"
                ));
            }
        }
    }

    fn add(&mut self, played: Played, which: &str) {
        let result = &played.result;
        if result.runs == 0 && result.failures.is_empty() {
            return;
        }
        self.exit(Exit::of(result));
        let Amount { quiet, verbose } = self.arguments.amount;
        if verbose {
            self.say(&lines::told_in_full(&played, which, &self.arguments.out.out));
        } else if !quiet || Exit::of(result) != Exit::Met {
            self.say(&lines::told(&played, which));
        }
        self.played.push(played);
    }

    fn finish(mut self) -> Result<Exit, Stop> {
        self.bar.finish_and_clear();
        let is_stopped = self.stop.load(Ordering::Relaxed);
        if is_stopped {
            self.exit(Exit::Inconclusive);
        }
        if self.played.is_empty() {
            let nothing = if self.exit == Exit::Met { Exit::Nothing } else { self.exit };
            say("nothing was played");
            return Ok(nothing);
        }
        let out = &self.arguments.out.out;
        let results_only = self.arguments.results_only;
        let write = if results_only { report::write_results } else { report::write };
        write(out, &self.played).map_err(|error| Stop::unwritable(out, &error))?;
        let met = self.played.iter().filter(|played| played.result.is_met()).count();
        let runs: u64 = self.played.iter().map(|played| played.result.runs).sum();
        let failed = self.played.len() - met;
        let mut summary = format!("\n{met} cases met, {failed} failed");
        if self.unsupported > 0 {
            summary += &format!(", {} skipped", self.unsupported);
        }
        if is_stopped {
            summary += ", stopped before the end";
        }
        let granted: u64 = self.played.iter().map(|it| it.result.counters.granted).sum();
        summary += &format!("; {runs} runs, {granted} leases");
        summary += &format!(" in {:.1} s", self.bar.elapsed().as_secs_f64());
        if !self.arguments.amount.quiet || self.exit != Exit::Met {
            let first = out.join(if results_only { "results.json" } else { "index.html" });
            say(format_args!("{summary}; reports: {}", first.display()));
        }
        Ok(self.exit)
    }
}

fn seeds(arguments: &Run, selected: &Selected) -> core::ops::Range<u64> {
    let own = || arguments.engine.seeds(&selected.case);
    arguments.seeds.clone().unwrap_or_else(own).0
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
    Ok(Played { result, kept, family: String::new() })
}
