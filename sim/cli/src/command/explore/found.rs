//! Findings as they are stored: at first the plan, in the end the smallest scenario that shows the
//! same.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};

use lock_judge::text::count;
use redlock_sim::explore::{Finding, Found, Shrunk, case, events_up_to, explained, shrink, text};
use redlock_sim::search::{Engine, replay_checked};

use super::super::exit::Stop;
use crate::report::Staged;

/// The folder of the findings.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Names of the files of earlier explorations: none of them is overwritten.
    earlier: BTreeSet<OsString>,
}

impl Folder {
    /// Creates the folder in `out`, unless there is one.
    pub(super) fn open(out: &Path) -> Result<Self, Stop> {
        let path = out.join("found");
        let names = || -> io::Result<BTreeSet<OsString>> {
            fs::create_dir_all(&path)?;
            fs::read_dir(&path)?.map(|entry| Ok(entry?.file_name())).collect()
        };
        match names() {
            Ok(earlier) => Ok(Self { path, earlier }),
            Err(error) => Err(Stop::unwritable(&path, &error)),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.toml"))
    }

    fn is_earlier(&self, name: &str) -> bool {
        self.earlier.contains(OsStr::new(&format!("{name}.toml")))
    }

    /// Returns the names of the earlier files about `finding`, and the first that is free.
    fn names(&self, finding: &Finding) -> (Vec<String>, String) {
        let first = finding.name();
        let mut names = (2..).map(|number| format!("{first}-{number}"));
        let (mut taken, mut name) = (Vec::new(), first.clone());
        while self.is_earlier(&name) {
            taken.push(name);
            name = names.next().expect("numbers do not end");
        }
        (taken, name)
    }

    /// Stores the plan of a finding as it is, in case the process does not live to shrink it.
    pub(super) fn store(&self, finding: &Finding, found: &Found) -> io::Result<()> {
        let (_, name) = self.names(finding);
        Staged::write_one(&self.file(&name), &text(&found.plan, &name, finding, &[]))
    }

    /// Replaces the stored plan of a finding by `text_of` its name, or by the earlier file that says
    /// the same. Returns the file.
    fn replace(&self, finding: &Finding, text_of: impl Fn(&str) -> String) -> io::Result<PathBuf> {
        let (taken, name) = self.names(finding);
        let says_the_same = |it: &&String| {
            fs::read_to_string(self.file(it)).is_ok_and(|known| known == text_of(it))
        };
        let file = self.file(&name);
        if let Some(known) = taken.iter().find(says_the_same) {
            fs::remove_file(file)?;
            return Ok(self.file(known));
        }
        Staged::write_one(&file, &text_of(&name))?;
        Ok(file)
    }
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
    folder: &Folder,
    engine: Engine,
    found: BTreeMap<Finding, Found>,
) -> io::Result<Vec<Kept>> {
    let keep = |(finding, found): (Finding, Found)| {
        folder.store(&finding, &found)?;
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
        let file = folder.replace(&finding, |name| text(&scenario, name, &finding, &others))?;
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
