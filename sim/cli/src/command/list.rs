//! `list`: prints the available scenarios.

use lock_judge::scenario::{Case, Expectations, File, SeedRange};
use serde::Serialize;

use super::arguments::{Format, List};
use super::exit::{Exit, Stop};
use super::say::{emit, say};
use super::select::Library;

/// A scenario in the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry<'a> {
    name: &'a str,
    file: &'a str,
    title: &'a str,
    story: &'a str,
    tags: &'a [String],
    source: &'a str,
    cases: Vec<CaseEntry>,
}

/// A case in the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct CaseEntry {
    name: String,
    title: Option<String>,
    seeds: SeedRange,
    turmoil_seeds: SeedRange,
    expect: Expectations,
}

const WRITABLE: &str = "names, numbers and texts can always be written";

/// Prints the available scenarios with their cases.
pub(super) fn list(arguments: &List) -> Result<Exit, Stop> {
    let library = Library::load()?;
    let mut entries = Vec::with_capacity(library.files.len());
    for file in &library.files {
        entries.push(entry(file, file.cases(&[]).map_err(Stop::usage)?));
    }
    for entry in &entries {
        emit("scenario", || serde_json::to_value(entry).expect(WRITABLE));
    }
    match arguments.format {
        Format::Json => say(serde_json::to_string_pretty(&entries).expect(WRITABLE)),
        Format::Text => {
            say(format_args!("scenarios: {}", library.origin));
            for Entry { name, title, tags, cases, .. } in &entries {
                let tags = tags.join(" ");
                say(format_args!("\n{name}  [{tags}]\n  {title}"));
                for case in cases.iter().filter(|case| case.name != *name) {
                    say(format_args!("    {}", case.name));
                }
            }
        }
    }
    Ok(if entries.is_empty() { Exit::Nothing } else { Exit::Met })
}

fn entry(file: &File, cases: Vec<Case>) -> Entry<'_> {
    let scenario = file.scenario();
    let case = |case: Case| CaseEntry {
        name: case.full_name(),
        seeds: case.scenario.run.seeds,
        turmoil_seeds: case.scenario.run.turmoil_seeds,
        expect: case.scenario.expect,
        title: case.name,
    };
    Entry {
        name: &scenario.name,
        file: file.path(),
        title: &scenario.title,
        story: &scenario.story,
        tags: &scenario.tags,
        source: &scenario.source,
        cases: cases.into_iter().map(case).collect(),
    }
}
