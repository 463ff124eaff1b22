//! Reports for people and programs: pages, tables and files with the expectations, the results and
//! their causes.
//!
//! Every report is a function of its input alone: no date, no path and no float in a text. The same
//! runs give the same bytes.

use std::path::Path;

use lock_judge::history::file::{self, Header};
use lock_judge::scenario::Case;
use rayon::prelude::*;
use redlock_sim::search::Played;

mod block;
mod claim;
mod clocks;
pub mod drift;
mod earlier;
mod events;
mod faults;
#[cfg(test)]
mod fixture;
pub mod gallery;
mod gantt;
mod index;
mod left_keys;
mod messages;
mod page;
pub mod picture;
mod readme;
pub(crate) mod results;
mod staged;
mod story;
mod svg;
mod table;
mod timeline;
mod versions;
mod words;

pub use readme::readme_table;
pub use versions::versions_page;

pub(crate) use block::violation_block;
pub(crate) use claim::Claim;
pub(crate) use events::events_table;
pub(crate) use left_keys::{left_keys, left_keys_of};
pub(crate) use results::Results;
pub(crate) use staged::Staged;

pub use earlier::OutError;

use earlier::Earlier;

use crate::build;

/// Name of the file with the results for programs.
const RESULTS: &str = "results.json";

/// Name of the page that leads to all others.
const INDEX: &str = "index.html";

/// Path of the page of the scenario `name`, relative to the directory of the reports.
fn page_file(name: &str) -> String {
    format!("{name}.html")
}

/// Writes all reports into the directory `out`: `results.json`, `index.html`, `NAME.html` for each
/// scenario, and `NAME/slug.SEED.jsonl.gz` for each history that was kept. Removes the files of an
/// earlier run, as its `results.json` lists them, and nothing else.
///
/// # Errors
///
/// If a file cannot be written, or if there are reports that this command did not write; then all
/// files are as they were before.
pub fn write(out: &Path, played: &[Played]) -> Result<(), OutError> {
    let earlier = Earlier::read(out)?;
    let staged = Staged::default();
    let results = results::Results::new(played);
    staged.write(out.join(RESULTS), &results.to_json())?;
    staged.write(out.join(INDEX), &index::draw(played))?;
    scenarios(played).par_iter().try_for_each(|(name, cases)| {
        staged.write(out.join(page_file(name)), &page::draw(cases, true))
    })?;
    played.par_iter().try_for_each(|one| stage_histories(&staged, out, one))?;
    earlier.check(staged.final_paths())?;
    let written = staged.commit()?;
    earlier.remove_except(&written)?;
    Ok(())
}

/// Writes `results.json` alone into the directory `out`, and removes the files of an earlier run
/// like [`write`].
///
/// # Errors
///
/// Like [`write`].
pub(crate) fn write_results(out: &Path, played: &[Played]) -> Result<(), OutError> {
    let earlier = Earlier::read(out)?;
    let staged = Staged::default();
    let results = results::Results::new(played).without_files();
    staged.write(out.join(RESULTS), &results.to_json())?;
    earlier.remove_except(&staged.commit()?)?;
    Ok(())
}

/// Writes the histories that were kept into the directory `out`, and no reports.
///
/// # Errors
///
/// If a file cannot be written.
pub(crate) fn write_histories(out: &Path, played: &[Played]) -> Result<(), OutError> {
    let staged = Staged::default();
    played.par_iter().try_for_each(|one| stage_histories(&staged, out, one))?;
    staged.commit()?;
    Ok(())
}

/// Creates the directory `out`, and checks that reports can be written there, with pages for these
/// `scenarios`.
///
/// # Errors
///
/// If the directory cannot be created, if a file cannot be written there, or if there are reports
/// that this command did not write.
pub(crate) fn check_writable<'a>(
    out: &Path,
    scenarios: impl IntoIterator<Item = &'a str>,
) -> Result<(), OutError> {
    Staged::default().create(out.join(RESULTS))?;
    let pages = scenarios.into_iter().map(page_file).chain([INDEX.to_owned()]);
    Earlier::read(out)?.check(pages.map(|page| out.join(page)))
}

/// Groups the cases by scenario, in the order in which each scenario first appears.
fn scenarios(played: &[Played]) -> Vec<(&str, Vec<&Played>)> {
    let mut found: Vec<(&str, Vec<&Played>)> = Vec::new();
    for one in played {
        let name = one.result.case.scenario.name.as_str();
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cases)) => cases.push(one),
            None => found.push((name, vec![one])),
        }
    }
    found
}

fn stage_histories(staged: &Staged, out: &Path, played: &Played) -> std::io::Result<()> {
    for (seed, events) in &played.kept {
        let header = Header {
            schema: lock_judge::history::SCHEMA,
            engine: played.result.engine.to_owned(),
            build: build::NAME.to_owned(),
            seed: *seed,
            case: played.result.case.clone(),
        };
        let mut to = staged.create(out.join(played.result.history_file(*seed)))?;
        file::write_compressed(&mut to, &header, events)?;
        std::io::Write::flush(&mut to)?;
    }
    Ok(())
}

/// Returns the command that replays a run. `which` is the selector of its case on the command line.
/// For a run of workers (`serve`), returns the command that judges the stored `history` again.
#[must_use]
pub(crate) fn replay_command(
    case: &Case,
    which: &str,
    engine: &str,
    seed: u64,
    history: &str,
) -> String {
    if engine == "serve" {
        return format!("redlock-sim check {}", quoted(history));
    }
    let mut command = format!("redlock-sim replay {} --seed {seed}", quoted(which));
    if engine != "event" {
        command += &format!(" --engine {engine}");
    }
    for setting in &case.overrides {
        command += &format!(" --set '{setting}'");
    }
    command
}

/// Quotes `word` for a shell's command line if it needs quotes.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || "-_./:,+@%=".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests;
