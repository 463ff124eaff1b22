//! Scenarios of faults as tests of a lock client in Rust, in simulated time.
//!
//! A test of the client's own repository, with `harness = false` in its `Cargo.toml`:
//!
//! ```no_run
//! use redlock_sim_test::Host;
//!
//! async fn worker(host: Host) {
//!     // … take the lock with your client, over `host.connect`, then:
//!     let section = host.enter("the value of my keys");
//!     // … use what the lock guards, leave, and release the lock:
//!     drop(section);
//! }
//!
//! redlock_sim_test::main!("scenarios", worker);
//! ```
//!
//! `cargo test` then plays every case of every scenario in the folder with the seeds 0 to 19. Each
//! case is a test with its own name, `scenario` or `scenario::case`; all options of `cargo test` work.
//! A test fails if the expectations of its scenario are not met, with the story of what happened, and
//! writes the page that shows it. The first seed is played twice: if the runs differ, the test fails,
//! because the worker depends on more than its host. `REDLOCK_SEEDS=7..8` plays other seeds.
//!
//! The scenarios are those that `redlock-sim drive` can play, in the same format, and runs are judged
//! by the same rules: by what the masters saw, and by what workers reported.

#![forbid(unsafe_code)]

use core::ops::Range;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use lock_judge::scenario::{Case, File};
use redlock_sim::library;
use redlock_sim::search::Played;
pub use redlock_sim::serve::in_process::{Connection, Host, NoFault, Section, Worker, play};
use redlock_sim_cli::{command, report};

/// Environment variable with the seeds to play, and the seeds without it.
const SEEDS: (&str, Range<u64>) = ("REDLOCK_SEEDS", 0..20);

/// Defines the `main` of a test without harness: every case of every scenario in the folder `$folder`,
/// a path relative to the package, is a test of `$worker`. See the crate's page.
#[macro_export]
macro_rules! main {
    ($folder:expr, $worker:expr) => {
        fn main() -> ::std::process::ExitCode {
            let package = ::std::path::Path::new(::core::env!("CARGO_MANIFEST_DIR"));
            let reports = ::core::option_env!("CARGO_TARGET_TMPDIR").unwrap_or("target/tmp");
            $crate::run(&package.join($folder), ::std::path::Path::new(reports), $worker)
        }
    };
}

/// Runs the tests that the arguments of the process select: the cases of the scenarios at `folder`.
/// Writes pages of the failing ones into folders of `reports`.
pub fn run(folder: &Path, reports: &Path, worker: impl Worker + 'static) -> std::process::ExitCode {
    let suite = seeds().map(|seeds| {
        let (worker, reports) = (Arc::new(worker) as Arc<dyn Worker>, reports.to_owned());
        Arc::new(Suite { seeds, worker, reports })
    });
    let trials = match (suite, library::load(folder)) {
        (Err(why), _) => vec![broken(SEEDS.0, why)],
        (_, Err(problems)) => vec![broken("scenarios", problems.to_string())],
        (_, Ok(files)) if files.is_empty() => {
            vec![broken("scenarios", format!("{} has no scenario", folder.display()))]
        }
        (Ok(suite), Ok(files)) => files.iter().flat_map(|file| suite.of_file(file)).collect(),
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A test that fails because nothing can be tested.
fn broken(name: &str, why: String) -> Trial {
    Trial::test(name, move || Err(Failed::from(why)))
}

/// Returns the seeds to play.
fn seeds() -> Result<Range<u64>, String> {
    let (name, usual) = SEEDS;
    let Ok(text) = env::var(name) else { return Ok(usual) };
    let parsed = text.split_once("..").and_then(|(first, end)| {
        let seeds = first.parse().ok()?..end.parse().ok()?;
        Some(seeds).filter(|it: &Range<u64>| !it.is_empty())
    });
    parsed.ok_or_else(|| format!("`{name}={text}`: expected seeds such as 0..20, the end excluded"))
}

/// Seeds, worker and directory of the pages of all tests.
struct Suite {
    seeds: Range<u64>,
    worker: Arc<dyn Worker>,
    reports: PathBuf,
}

impl Suite {
    fn of_file(self: &Arc<Self>, file: &File) -> Vec<Trial> {
        match file.cases(&[]) {
            Ok(cases) => cases.into_iter().map(|case| self.of_case(case)).collect(),
            Err(problems) => vec![broken(file.path(), problems.to_string())],
        }
    }

    fn of_case(self: &Arc<Self>, case: Case) -> Trial {
        let suite = Arc::clone(self);
        Trial::test(case.full_name(), move || suite.test(&case))
    }

    /// Plays all seeds of `case`, until one does not meet the expectations.
    fn test(&self, case: &Case) -> Result<(), Failed> {
        for seed in self.seeds.clone() {
            let played = play(case, seed, &*self.worker)?;
            if !played.result.is_met() {
                return Err(self.failed(case, seed, &played));
            }
            if seed == self.seeds.start {
                let again = play(case, seed, &*self.worker)?;
                if again.kept != played.kept {
                    return Err(Failed::from(DIFFERS));
                }
            }
        }
        Ok(())
    }

    /// Writes the page of a run, and tells its story.
    fn failed(&self, case: &Case, seed: u64, played: &Played) -> Failed {
        let name = case.full_name();
        let out = self.reports.join(name.replace("::", "."));
        let story = command::told_with(played, &out);
        let page = out.join("index.html").display().to_string();
        let page = match report::write(&out, core::slice::from_ref(played)) {
            Ok(()) => page,
            Err(error) => format!("cannot be written: {error}"),
        };
        let again = format!("REDLOCK_SEEDS={seed}..{} cargo test -- --exact '{name}'", seed + 1);
        Failed::from(format!("\n{story}\n\n  page    {page}\n  again   {again}"))
    }
}

/// Message about a worker that depends on more than its seed.
const DIFFERS: &str = "the same seed gave two different runs: the worker must take its time from \
     `tokio::time`, its connections from `Host::connect`, its random numbers from `Host::random`, and \
     must not depend on the order of a `HashMap` or on a `select!` without `biased`";
