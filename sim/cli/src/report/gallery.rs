//! The gallery: a few pages that are committed and compared byte for byte, and the verdicts of all
//! cases. A comparison shows at once whether a change altered a verdict or only the appearance of a
//! page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use lock_judge::history::HistoryHash;
use lock_judge::scenario::Property;
use redlock_sim::search::Observed;
use serde::{Deserialize, Serialize};

use super::{Played, page, results};

/// Maximum number of pages of a gallery.
const PAGES_MAX: usize = 12;

/// Maximum size of a page, in bytes.
const PAGE_BYTES_MAX: usize = 200 * 1024;

/// Name of the file with the verdicts.
const VERDICTS: &str = "verdicts.json";

/// The files of a gallery: pages and the verdicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gallery {
    /// Contents by file name.
    pub files: BTreeMap<String, String>,
}

/// Reason why a gallery cannot be rendered or stored.
#[derive(Debug, thiserror::Error)]
pub enum GalleryError {
    /// The environment variable `CI` is set. A person must look at a gallery before it is blessed.
    #[error("a gallery is not blessed where `CI` is set: look at it, and commit it")]
    InCi,
    /// A file cannot be read or written.
    #[error("the gallery's files: {0}")]
    Io(#[from] io::Error),
    /// A page is too large.
    #[error("the page `{name}` has {bytes} bytes, more than {PAGE_BYTES_MAX}")]
    PageTooLarge {
        /// Name of the scenario.
        name: String,
        /// Size of the page, in bytes.
        bytes: usize,
    },
    /// There are too many pages.
    #[error("a gallery has at most {PAGES_MAX} pages, not {0}")]
    TooManyPages(usize),
    /// The gallery names a scenario that was not played.
    #[error("the scenario `{0}` of the gallery was not played")]
    Unplayed(String),
}

/// Differences between a gallery and the committed one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Changed verdicts, in words.
    pub verdicts: Vec<String>,
    /// Files that differ, are new or are gone.
    pub files: Vec<String>,
}

impl Differences {
    /// Returns true if there are no differences.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.verdicts.is_empty() && self.files.is_empty()
    }
}

impl core::fmt::Display for Differences {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let lists = [("verdicts changed", &self.verdicts), ("files changed", &self.files)];
        for (title, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            writeln!(formatter, "{title}:")?;
            list.iter().try_for_each(|line| writeln!(formatter, "  {line}"))?;
        }
        Ok(())
    }
}

/// Verdicts of one case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CaseVerdicts {
    /// Verdict and blame of each property that is not vacuous.
    found: BTreeMap<Property, String>,
    /// Hash of the history that a page of the gallery shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

type AllVerdicts = BTreeMap<String, CaseVerdicts>;

/// Renders the pages of the scenarios in `names`, and the verdicts of all cases in `played`.
///
/// # Errors
///
/// If a scenario was not played, or if pages are too many or too large.
pub fn render(played: &[Played], names: &[&str]) -> Result<Gallery, GalleryError> {
    if names.len() > PAGES_MAX {
        return Err(GalleryError::TooManyPages(names.len()));
    }
    let scenarios = super::scenarios(played);
    let mut files = BTreeMap::new();
    for &name in names {
        let Some((_, cases)) = scenarios.iter().find(|(known, _)| *known == name) else {
            return Err(GalleryError::Unplayed(name.to_owned()));
        };
        let content = page::draw(cases, false);
        if content.len() > PAGE_BYTES_MAX {
            let (name, bytes) = (name.to_owned(), content.len());
            return Err(GalleryError::PageTooLarge { name, bytes });
        }
        files.insert(format!("{name}.html"), content);
    }
    files.insert(VERDICTS.to_owned(), verdicts(played, names));
    Ok(Gallery { files })
}

fn verdicts(played: &[Played], names: &[&str]) -> String {
    let mut all = AllVerdicts::new();
    for one in played {
        let name = match one.result.engine {
            "event" => one.result.name(),
            engine => format!("{} on {engine}", one.result.name()),
        };
        let found = one.result.properties.iter().filter(|it| it.observed != Observed::Vacuous);
        let found = found.map(|it| {
            let word = results::word(it.observed);
            let blame = it.blames.join("; ");
            let told = if blame.is_empty() { word.to_owned() } else { format!("{word}: {blame}") };
            (it.property, told)
        });
        let is_shown = names.contains(&one.result.case.scenario.name.as_str());
        let seed = one.shown_seeds().first().copied().filter(|_| is_shown);
        let events = seed.and_then(|seed| one.history(seed));
        let hash = events.map(|events| {
            let mut hash = HistoryHash::default();
            events.iter().for_each(|event| hash.add(event));
            format!("{:016x}", hash.value())
        });
        all.insert(name, CaseVerdicts { found: found.collect(), hash });
    }
    let mut json = serde_json::to_string_pretty(&all).expect("plain structs serialize");
    json.push('\n');
    json
}

/// Compares `gallery` with the one in `directory`.
///
/// # Errors
///
/// If an existing file cannot be read.
pub fn compare(directory: &Path, gallery: &Gallery) -> io::Result<Differences> {
    let committed = read(directory)?;
    let verdicts_of = |files: &BTreeMap<String, String>| -> AllVerdicts {
        let json = files.get(VERDICTS);
        json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    };
    let mut differences = Differences {
        verdicts: changes(&verdicts_of(&committed), &verdicts_of(&gallery.files)),
        files: Vec::new(),
    };
    let names: BTreeSet<&String> = committed.keys().chain(gallery.files.keys()).collect();
    for name in names {
        match (committed.get(name), gallery.files.get(name)) {
            (Some(_), None) => differences.files.push(format!("{name} is gone")),
            (None, Some(_)) => differences.files.push(format!("{name} is new")),
            (old, new) if old != new => differences.files.push(format!("{name} differs")),
            _ => {}
        }
    }
    Ok(differences)
}

fn changes(old: &AllVerdicts, new: &AllVerdicts) -> Vec<String> {
    let mut told = Vec::new();
    let none = CaseVerdicts::default();
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (was, is) = (old.get(name).unwrap_or(&none), new.get(name).unwrap_or(&none));
        for property in Property::ALL {
            let (was, is) = (was.found.get(&property), is.found.get(&property));
            if was != is {
                let word = |it: Option<&String>| it.map_or("not judged", String::as_str).to_owned();
                told.push(format!(
                    "{name} {}: was {}, is {}",
                    property.name(),
                    word(was),
                    word(is)
                ));
            }
        }
    }
    told
}

/// Reads the files of a committed gallery. Returns no files if the directory does not exist.
fn read(directory: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".html") || name == VERDICTS {
            let bytes = fs::read(entry.path())?;
            files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(files)
}

/// Replaces the gallery in `directory` with `gallery`, and returns the differences.
///
/// # Errors
///
/// If the environment variable `CI` is set, or if a file cannot be read or written.
pub fn bless(directory: &Path, gallery: &Gallery) -> Result<Differences, GalleryError> {
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    bless_where(in_ci, directory, gallery)
}

fn bless_where(
    in_ci: bool,
    directory: &Path,
    gallery: &Gallery,
) -> Result<Differences, GalleryError> {
    if in_ci {
        return Err(GalleryError::InCi);
    }
    let differences = compare(directory, gallery)?;
    fs::create_dir_all(directory)?;
    for name in read(directory)?.keys().filter(|name| !gallery.files.contains_key(*name)) {
        fs::remove_file(directory.join(name))?;
    }
    for (name, content) in &gallery.files {
        fs::write(directory.join(name), content)?;
    }
    Ok(differences)
}

#[cfg(test)]
mod tests;
