//! `drive`: runs scenarios against a lock client in any language, from beginning to end.
//!
//! For each case and seed it serves the masters in this process, starts a worker process for each
//! client, applies the faults to masters, network and workers, and judges.

mod leftovers;
mod part;
mod play;
mod watchdog;
mod words;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;

use indicatif::ProgressBar;
use lock_judge::text;
use redlock_sim::part::Part;
use redlock_sim::search::Played;
use redlock_sim::serve::{self, Refusal};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(super) use part::merge;
pub(super) use watchdog::watchdog;

use self::part::PartSums;
use self::play::{Drive, Driven};
use self::watchdog::Watchdog;
use self::words::Words;
use super::arguments::{self, Amount};
use super::exit::{Exit, Stop};
use super::in_order::in_order;
use super::lines;
use super::progress;
use super::say::{emit, emit_case, say};
use super::select::{self, Selected};
use super::serve::refused;
use super::stop_signal;
use crate::report;

/// A run that is to be played.
struct Job {
    /// Place among all jobs.
    number: usize,
    /// Place of the case among all cases.
    place: usize,
    selected: Selected,
    seed: u64,
}

impl Job {
    /// Returns the path of the run's logs, without seed, client and extension.
    fn log_stem(&self, out: &Path) -> PathBuf {
        let case = &self.selected.case;
        out.join(&case.scenario.name).join(case.slug.as_deref().unwrap_or("base"))
    }
}

/// Drives the workers through the selected cases. Reads and checks all of them before the first run.
pub(super) fn drive(arguments: &arguments::Drive) -> Result<Exit, Stop> {
    let words = Words::parse(&arguments.worker)?;
    let part = arguments.shard.part()?;
    let Cases { played: cases, skipped } = cases(arguments)?;
    let jobs = jobs(&cases, arguments, part.unwrap_or(Part::WHOLE))?;
    let out = &arguments.out.out;
    report::check_writable(out, cases.iter().map(Selected::scenario))
        .map_err(|error| Stop::unwritable(out, &error))?;
    let _claim = report::Claim::unless_shared(out, part.is_some())
        .map_err(|error| Stop::unwritable(out, &error))?;
    let stop = stop_signal::install()?;
    let mark = leftovers::new_mark();
    let watchdog = Watchdog::start(&mark).map_err(Stop::internal)?;
    let drive = Drive {
        words,
        watchdog: &watchdog,
        mark,
        stop,
        limit: arguments.limit.map(|limit| limit.duration()),
        patience: arguments.timeout.duration(),
        profile: arguments.profile,
        out,
    };
    let template = "{wide_bar} {human_pos}/{human_len}";
    let bar = progress::bar(Some(jobs.len() as u64), arguments.amount.quiet, template);
    let mut session = Session::new(out, arguments.amount, bar);
    skipped.iter().for_each(|it| session.skip(it));
    let mut sums = PartSums::default();
    let threads = arguments.jobs.map_or_else(cores, usize::from).min(jobs.len()).max(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let mut error = None;
    let play = |job: &Job| {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // The other runs end, too.
        drive.play(job).inspect_err(|_| stop_signal::request())
    };
    let take = |job: &Job, driven: Result<Option<Driven>, Stop>| match driven {
        Ok(Some(driven)) => {
            sums.add(job, &driven);
            session.take(job, driven);
        }
        Ok(None) => {}
        Err(stop) => error = error.take().or(Some(stop)),
    };
    pool.map_err(Stop::internal)?.install(|| in_order(&jobs, play, take));
    if let Some(error) = error {
        return Err(error);
    }
    let is_stopped = stop.load(Ordering::Relaxed);
    let Some(part) = part else { return session.finish(is_stopped) };
    session.finish_part(is_stopped, || {
        part::store(arguments, (part, Cases { played: cases, skipped }), &sums, !is_stopped)
    })
}

/// The selected cases: those that `serve` can play, and the others.
struct Cases {
    played: Vec<Selected>,
    skipped: Vec<Skipped>,
}

/// A selected case that `serve` cannot play.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Skipped {
    case: String,
    reason: String,
}

/// Returns the selected cases.
fn cases(arguments: &arguments::Drive) -> Result<Cases, Stop> {
    let (cases, origin) = select::select(&arguments.which, &arguments.settings.overrides)?;
    if cases.is_empty() {
        let message = format!("nothing to drive: no scenario is selected ({origin})");
        return Err(Stop { exit: Exit::Nothing, message });
    }
    let (mut played, mut skipped) = (Vec::new(), Vec::new());
    for selected in cases {
        let case = selected.case.full_name();
        if selected.case.scenario.clients.is_empty() {
            return Err(Stop::usage(format!(
                "error: `{case}` has no client that a worker could be"
            )));
        }
        match serve::check(&selected.case) {
            Ok(()) => played.push(selected),
            Err(Refusal::Unsupported(reason)) => {
                skipped.push(Skipped { case, reason: reason.to_string() });
            }
            Err(other) => return Err(refused(other)),
        }
    }
    Ok(Cases { played, skipped })
}

/// Most runs of one command: days of real time.
const RUNS_MAX: usize = 100_000;

/// Returns a job for each case and seed of `part`.
fn jobs(cases: &[Selected], arguments: &arguments::Drive, part: Part) -> Result<Vec<Job>, Stop> {
    let mut jobs = Vec::new();
    for (place, selected) in cases.iter().enumerate() {
        let name = selected.case.full_name();
        for seed in arguments.seeds.0.clone().filter(|&seed| part.has(&name, seed)) {
            if jobs.len() == RUNS_MAX {
                return Err(Stop::usage(format!(
                    "error: more than {RUNS_MAX} runs\n  = help: choose fewer `--seeds`, or \
                     divide them with `--shard`"
                )));
            }
            jobs.push(Job { number: jobs.len(), place, selected: selected.clone(), seed });
        }
    }
    Ok(jobs)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The results so far.
struct Session<'a> {
    amount: Amount,
    out: &'a Path,
    bar: ProgressBar,
    played: Vec<Played>,
    skipped: usize,
    exit: Exit,
}

impl<'a> Session<'a> {
    fn new(out: &'a Path, amount: Amount, bar: ProgressBar) -> Self {
        Self { amount, out, bar, played: Vec::new(), skipped: 0, exit: Exit::Met }
    }

    /// Takes a case that cannot be played. Without it the result is inconclusive.
    fn skip(&mut self, Skipped { case, reason }: &Skipped) {
        self.skipped += 1;
        self.exit = self.exit.max(Exit::Inconclusive);
        emit("skipped", || json!({ "case": case, "reason": reason }));
        self.bar.suspend(|| say(format_args!("skipped {case}  {reason}")));
    }

    fn take(&mut self, job: &Job, driven: Driven) {
        let Driven { played, notes, .. } = driven;
        let played = job.selected.adopt(played);
        self.bar.inc(1);
        let exit = Exit::of(&played.result);
        self.exit = self.exit.max(exit);
        emit_case(&played, exit);
        let Amount { quiet, verbose } = self.amount;
        if !quiet || exit != Exit::Met {
            let told = match verbose {
                true => lines::told_in_full(&played, self.out),
                false => lines::told_with(&played, self.out),
            };
            let unjudged = serve::unjudged_expectations(&job.selected.case.scenario);
            let unjudged = (!unjudged.is_empty())
                .then(|| format!("not judged from outside: {}", unjudged.join(", ")));
            let notes = notes.iter().chain(&unjudged);
            let notes: String = notes.map(|it| format!("\n        note: {it}")).collect();
            self.bar.suspend(|| say(format_args!("{told}{notes}")));
        }
        self.played.push(played);
    }

    /// Writes the reports, if there was a run.
    fn finish(mut self, is_stopped: bool) -> Result<Exit, Stop> {
        self.end(is_stopped);
        if self.played.is_empty() {
            say(if is_stopped { "stopped before the end of a run" } else { "nothing was played" });
            return Ok(self.exit);
        }
        report::write(self.out, &self.played)
            .map_err(|error| Stop::unwritable(self.out, &error))?;
        let index = self.out.join("index.html");
        self.sum_up(is_stopped, &format!("reports: {}", index.display()), Some(&index));
        Ok(self.exit)
    }

    /// Writes the histories of a part, and then the part itself. Other parts of the runs may have the same
    /// directory, so it has no reports before `merge`.
    fn finish_part(
        mut self,
        is_stopped: bool,
        store: impl FnOnce() -> Result<PathBuf, Stop>,
    ) -> Result<Exit, Stop> {
        self.end(is_stopped);
        report::write_histories(self.out, &self.played)
            .map_err(|error| Stop::unwritable(self.out, &error))?;
        let path = store()?;
        self.sum_up(is_stopped, &format!("stored in {}", path.display()), None);
        Ok(self.exit)
    }

    fn end(&mut self, is_stopped: bool) {
        self.bar.finish_and_clear();
        if is_stopped {
            self.exit = self.exit.max(Exit::Inconclusive);
        }
    }

    /// Prints the counts, and where the results are.
    fn sum_up(&self, is_stopped: bool, place: &str, reports: Option<&Path>) {
        emit("summary", || json!({ "exit-code": self.exit.code(), "reports": reports }));
        if self.amount.quiet && self.exit == Exit::Met {
            return;
        }
        let count = |exit| self.played.iter().filter(|it| Exit::of(&it.result) == exit).count();
        let (met, unclear) = (count(Exit::Met), count(Exit::Inconclusive));
        let failed = self.played.len() - met - unclear;
        let met = text::count(met as u64, "run");
        let mut summary = format!("\n{met} met, {failed} failed, {unclear} inconclusive");
        if self.skipped > 0 {
            summary += &format!(", {} skipped", text::count(self.skipped as u64, "case"));
        }
        if is_stopped {
            summary += ", stopped before the end";
        }
        say(format_args!("{summary}; {place}"));
    }
}
