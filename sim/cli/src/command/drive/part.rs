//! A part of the runs of `drive`, and the union of all parts.

use core::ops::Range;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lock_judge::history::file;
use redlock_sim::part::Part;
use redlock_sim::search::{Failure, Played};
use redlock_sim::serve::note;
use serde::{Deserialize, Serialize};

use super::play::Driven;
use super::{Cases, Job, Session, Skipped};
use crate::command::arguments::{Drive, Merge};
use crate::command::exit::{Exit, Stop};
use crate::command::progress;
use crate::command::replay::{self, judged};
use crate::command::select::Selected;
use crate::command::sums::{self, unreadable};
use crate::shard::{Kind, Shard};

/// Work that all parts share.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Plan {
    worker: String,
    /// Limits of a run, in nanoseconds.
    limit_ns: Option<u64>,
    timeout_ns: u64,
    profile: Option<String>,
    cases: Vec<Selected>,
    skipped: Vec<Skipped>,
    seeds: Range<u64>,
}

/// The runs of a part. Their histories and logs are files beside the shard.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartSums {
    runs: Vec<Run>,
}

/// Data of a run besides its history.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Run {
    /// Place of the case in the plan.
    case: usize,
    seed: u64,
    /// File of the history, relative to that of the shard.
    history: String,
    is_cut_short: bool,
    incomplete: Vec<String>,
    notes: Vec<String>,
}

impl PartSums {
    pub(super) fn add(&mut self, job: &Job, driven: &Driven) {
        let why = |failure: &Failure| match failure {
            Failure::Incomplete { why } => Some(why.clone()),
            _ => None,
        };
        self.runs.push(Run {
            case: job.place,
            seed: job.seed,
            history: driven.played.result.history_file(job.seed),
            is_cut_short: driven.is_cut_short,
            incomplete: driven.played.result.failures.iter().filter_map(why).collect(),
            notes: driven.notes.clone(),
        });
    }
}

/// Stores a part for `merge`.
pub(super) fn store(
    arguments: &Drive,
    (part, cases): (Part, Cases),
    part_sums: &PartSums,
    is_complete: bool,
) -> Result<PathBuf, Stop> {
    let plan = Plan {
        worker: arguments.worker.clone(),
        limit_ns: arguments.limit.map(|limit| limit.0),
        timeout_ns: arguments.timeout.0,
        profile: arguments.profile.map(|profile| profile.name.to_owned()),
        cases: cases.played,
        skipped: cases.skipped,
        seeds: arguments.seeds.0.clone(),
    };
    let (out, runs) = (&arguments.out.out, part_sums.runs.len() as u64);
    sums::store(out, (Kind::Drive, part), &plan, part_sums, (runs, is_complete))
}

/// Judges the histories of all parts again, and reports them as one. The exit code is `least` or
/// worse.
pub(in crate::command) fn merge(
    arguments: &Merge,
    shards: &[Shard],
    least: Exit,
) -> Result<Exit, Stop> {
    let plan: Plan = shards[0].plan().map_err(|error| unreadable(&shards[0], &error))?;
    let mut runs = Vec::new();
    for shard in shards {
        let sums: PartSums = shard.sums().map_err(|error| unreadable(shard, &error))?;
        let from = shard.path.parent().unwrap_or(Path::new(""));
        runs.extend(sums.runs.into_iter().map(|run| (run, from)));
    }
    runs.sort_by_key(|(run, _)| (run.case, run.seed));
    let bar = progress::bar(Some(runs.len() as u64), arguments.amount.quiet, "{wide_bar}");
    let mut session = Session::new(&arguments.out.out, arguments.amount, bar);
    session.exit = least;
    plan.skipped.iter().for_each(|it| session.skip(it));
    for (number, (run, from)) in runs.into_iter().enumerate() {
        let Some(selected) = plan.cases.get(run.case) else { continue };
        let job = Job { number, place: run.case, selected: selected.clone(), seed: run.seed };
        session.take(&job, driven(&job, run, (from, &arguments.out.out))?);
    }
    session.finish(false)
}

/// Judges the history of a run that is stored in `from`, and copies its logs to `out`.
fn driven(job: &Job, run: Run, (from, out): (&Path, &Path)) -> Result<Driven, Stop> {
    let case = &job.selected.case;
    let Run { seed, history, is_cut_short, incomplete, notes, .. } = run;
    let path = from.join(history);
    let stored = file::read_path(&path).map_err(|error| replay::unreadable(&path, &error))?;
    let mut result = judged(&path, &stored)?;
    note(&mut result, is_cut_short, incomplete);
    for client in &case.scenario.clients {
        let extension = format!("{seed}.{}.log", client.id);
        let log = |folder| job.log_stem(folder).with_extension(&extension);
        copy(&log(from), &log(out)).map_err(|error| Stop::unwritable(out, &error))?;
    }
    let played = Played::new(result, vec![(seed, stored.events)]);
    Ok(Driven { played, is_cut_short, notes })
}

/// Copies a file if there is one, unless both paths lead to the same file.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let is_same = || from.canonicalize().ok().is_some_and(|it| to.canonicalize().ok() == Some(it));
    if !from.exists() || is_same() {
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::copy(from, to).map(drop)
}
