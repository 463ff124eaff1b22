//! `merge`: reports the parts of a campaign as one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use redlock_sim::engine::Unsupported;
use redlock_sim::part::Part;
use redlock_sim::search::{Campaign, Engine, Failure};
use serde_json::json;

use super::arguments::Merge;
use super::drive;
use super::exit::{Exit, Stop};
use super::explore;
use super::in_order::in_order;
use super::progress;
use super::run;
use super::say::{emit, say};
use super::select::Selected;
use super::session::{Outcome, Session};
use super::sums::{CaseSums, Plan, unreadable};
use crate::report;
use crate::shard::{self, Gathered, Kind, Shard};

/// Gathers the parts, adds them up and reports the whole.
pub(super) fn merge(arguments: &Merge) -> Result<Exit, Stop> {
    let out = &arguments.out.out;
    let gathered = shard::gather(files(&arguments.from)?)
        .map_err(|problems| Stop::usage(format!("error: {}", problems.join("\n       "))))?;
    report::check_writable(out, []).map_err(|error| Stop::unwritable(out, &error))?;
    for problem in &gathered.problems {
        emit("incomplete", || json!({ "problem": problem }));
        say(format_args!("incomplete: {problem}"));
    }
    let least = match &gathered {
        Gathered { differs: true, .. } => Exit::Nondeterminism,
        Gathered { problems, .. } if problems.is_empty() => Exit::Met,
        Gathered { .. } => Exit::Inconclusive,
    };
    let shards = &gathered.shards;
    match shards[0].header.kind {
        Kind::Run => merge_runs(arguments, shards, least),
        Kind::Explore => explore::merge(out, shards, least),
        Kind::Drive => drive::merge(arguments, shards, least),
    }
}

/// Returns the shards among `from`: files, and the files in directories.
fn files(from: &[PathBuf]) -> Result<Vec<PathBuf>, Stop> {
    let unreadable = |path: &Path, error: std::io::Error| {
        Stop::usage(format!("error: {} cannot be read: {error}", path.display()))
    };
    let mut files = Vec::new();
    for path in from {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).map_err(|error| unreadable(path, error))?;
        let before = files.len();
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(path, error))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("shard-") && name.ends_with(".json.gz") {
                files.push(entry.path());
            }
        }
        if files.len() == before {
            return Err(Stop::usage(format!(
                "error: {} has no shard\n  = help: `--shard K/N` writes shard-K-of-N.json.gz there",
                path.display()
            )));
        }
    }
    Ok(files)
}

/// Adds up the parts of a `run`, and replays what is worth showing.
fn merge_runs(arguments: &Merge, shards: &[Shard], least: Exit) -> Result<Exit, Stop> {
    let first = &shards[0];
    let Plan { engine, cases, seeds } = first.plan().map_err(|it| unreadable(first, &it))?;
    let engine: Engine = engine.parse().map_err(Stop::usage)?;
    let mut sums = vec![CaseSums::Played(Box::default()); cases.len()];
    for shard in shards {
        let part: Vec<CaseSums> = shard.sums().map_err(|it| unreadable(shard, &it))?;
        sums = sums.into_iter().zip(part).map(|(sum, part)| sum.merge(part)).collect();
    }
    let bar = progress::bar(Some(cases.len() as u64), arguments.amount.quiet, "{wide_bar}");
    let never = AtomicBool::new(false);
    let report = |(index, selected): &(usize, &Selected)| -> Outcome {
        let campaign = Campaign {
            case: &selected.case,
            engine,
            seeds: seeds[*index].clone(),
            part: Part::WHOLE,
            is_checked: true,
            stop: &never,
            progress: &|_| {},
        };
        let tally = match &sums[*index] {
            CaseSums::Played(tally) => tally,
            CaseSums::Unsupported(what) => {
                return Ok(Err(Unsupported { engine: engine.name(), what: what.clone() }));
            }
            CaseSums::Broken => return Err(Box::new("broken")),
        };
        let mut result = campaign.result(tally);
        let expected = campaign.seeds.end - campaign.seeds.start;
        if result.runs < expected {
            let why = format!("{} of {expected} seeds were played", result.runs);
            result.failures.push(Failure::Incomplete { why });
        }
        bar.inc(1);
        Ok(run::report(&campaign, result, arguments.results_only))
    };
    let out = &arguments.out.out;
    let mut session = Session::new(out, arguments.results_only, arguments.amount, bar.clone());
    session.exit(least);
    let cases: Vec<(usize, &Selected)> = cases.iter().enumerate().collect();
    in_order(&cases, report, |(_, selected), outcome| session.take(selected, outcome));
    session.finish(false)
}
