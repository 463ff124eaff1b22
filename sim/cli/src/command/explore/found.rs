//! Findings as they are stored: at first the plan, in the end the smallest scenario that shows the
//! same.

use core::fmt;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};

use lock_judge::text::count;
use redlock_sim::explore::{Finding, Found, Shrunk, case, events_up_to, explained, shrink, text};
use redlock_sim::search::{Engine, replay_checked};

use super::super::exit::Stop;
use crate::report::Staged;

/// Creates the folder of the findings.
pub(super) fn folder(out: &Path) -> Result<PathBuf, Stop> {
    let folder = out.join("found");
    fs::create_dir_all(&folder).map_err(|error| Stop::unwritable(&folder, &error))?;
    Ok(folder)
}

/// Stores the plan of a finding as it is, in case the process does not live to shrink it.
pub(super) fn store(folder: &Path, finding: &Finding, found: &Found) -> io::Result<PathBuf> {
    let name = finding.name();
    let path = folder.join(format!("{name}.toml"));
    Staged::write_one(&path, &text(&found.plan, &name, finding, &[]))?;
    Ok(path)
}

/// A finding as it is stored: the smallest scenario that shows it.
pub(super) struct Kept {
    pub(super) finding: Finding,
    /// Number of the plan that showed it first.
    pub(super) number: u64,
    file: PathBuf,
    seed: u64,
    pub(super) clients: usize,
    pub(super) faults: usize,
    /// Number of events up to the violation.
    pub(super) events: usize,
    /// Number of scenarios that were played to shrink the plan.
    candidates: u64,
}

impl fmt::Display for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { finding, number, file, seed, clients, faults, events, candidates } = self;
        write!(
            formatter,
            "{finding}\n  plan {number}; shrunk to {}, {}, {} ({})\n  redlock-sim replay {} --seed {seed}",
            count(*clients as u64, "client"),
            count(*faults as u64, "fault"),
            count(*events as u64, "event"),
            count(*candidates, "candidate"),
            file.display(),
        )
    }
}

/// Replaces each stored plan by the smallest scenario that shows the same.
pub(super) fn keep_smallest(
    folder: &Path,
    engine: Engine,
    found: BTreeMap<Finding, Found>,
) -> io::Result<Vec<Kept>> {
    let keep = |(finding, found): (Finding, Found)| {
        let file = store(folder, &finding, &found)?;
        let Shrunk { scenario, candidates } = quietly(|| shrink(&found.plan, engine, &finding));
        let seed = scenario.run.seeds.0.start;
        let run = || replay_checked(&case(&scenario), engine, seed).ok();
        let (others, events) = match quietly(|| catch_unwind(AssertUnwindSafe(run))) {
            Ok(Some((outcome, events))) => {
                let violation = finding.violation(&outcome);
                let length = violation.map_or(events.len(), |it| events_up_to(&it, &events));
                (explained(&scenario, &outcome), length)
            }
            Ok(None) | Err(_) => (Vec::new(), 0),
        };
        Staged::write_one(&file, &text(&scenario, &finding.name(), &finding, &others))?;
        let (clients, faults) = (scenario.clients.len(), scenario.faults.len());
        let number = found.number;
        Ok(Kept { finding, number, file, seed, clients, faults, events, candidates })
    };
    found.into_iter().map(keep).collect()
}

/// Runs `work` without messages of panics: shrinking a panic repeats it many times.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let usual = take_hook();
    set_hook(Box::new(|_| {}));
    let done = work();
    set_hook(usual);
    done
}
