//! Selection of cases from the words of the command line.

use std::collections::BTreeSet;
use std::path::Path;

use lock_judge::scenario::{Case, File, Override, nearest};
use redis_sim::profile::{PROFILES, Profile};
use redlock_sim::library;
use redlock_sim::search::Played;
use serde::{Deserialize, Serialize};

use super::exit::{Exit, Stop};

/// Folder of scenarios that is used, if it exists, instead of the built-in ones.
const FOLDER: &str = "scenarios";

/// A selected case. `by_name` is true if the user named its scenario or its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Selected {
    pub(super) case: Case,
    pub(super) by_name: bool,
    /// Selector that matches this case alone.
    pub(super) which: String,
    /// Family of the scenario.
    pub(super) family: String,
}

impl Selected {
    /// Name of the scenario.
    pub(super) fn scenario(&self) -> &str {
        &self.case.scenario.name
    }

    /// Returns the played case with its family and its selector.
    pub(super) fn adopt(&self, played: Played) -> Played {
        Played { family: self.family.clone(), selector: self.which.clone(), ..played }
    }
}

/// The scenarios in which names and tags are looked up, and their origin.
pub(super) struct Library {
    pub(super) files: Vec<File>,
    pub(super) origin: &'static str,
}

impl Library {
    /// Loads `./scenarios` if it exists, or else the built-in scenarios.
    pub(super) fn load() -> Result<Self, Stop> {
        let folder = Path::new(FOLDER);
        let (files, origin) = if folder.is_dir() {
            (library::load(folder), "./scenarios")
        } else {
            (library::embedded(), "built in")
        };
        Ok(Self { files: files.map_err(Stop::usage)?, origin })
    }

    fn named(&self, name: &str) -> Result<&File, Stop> {
        let names = self.files.iter().map(|file| file.scenario().name.as_str());
        let found = self.files.iter().find(|file| file.scenario().name == name);
        found.ok_or_else(|| {
            let message = format!("error: there is no scenario `{name}` ({})", self.origin);
            if Path::new(name).is_dir() {
                let help = format!("for the scenarios in the folder, write `./{name}/`");
                return Stop::usage(format!("{message}\n  = help: {help}"));
            }
            let file = format!("{name}.toml");
            if Path::new(&file).is_file() {
                let help = format!("for the scenario in the file, write `./{file}`");
                return Stop::usage(format!("{message}\n  = help: {help}"));
            }
            let tag = self.tags().find(|tag| tag.eq_ignore_ascii_case(name));
            let tag = tag.map(|tag| format!("tag:{tag}"));
            let help = match tag.as_deref().or_else(|| nearest(name, names)) {
                Some(other) => format!("did you mean `{other}`?"),
                None => {
                    format!("`redlock-sim list` lists all; give a file by its path, `./{file}`")
                }
            };
            Stop::usage(format!("{message}\n  = help: {help}"))
        })
    }

    /// Returns the files with a tag; at least one.
    fn tagged(&self, tag: &str) -> Result<Vec<&File>, Stop> {
        let has = |file: &&File| file.scenario().tags.iter().any(|it| it == tag);
        let found: Vec<&File> = self.files.iter().filter(has).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let help = match nearest(tag, self.tags()) {
            Some(other) => format!("did you mean `tag:{other}`?"),
            None => String::from("`redlock-sim list` shows the tags of each scenario"),
        };
        let message =
            format!("error: no scenario has the tag `{tag}` ({})\n  = help: {help}", self.origin);
        Err(Stop { exit: Exit::Nothing, message })
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|file| &file.scenario().tags).map(String::as_str)
    }
}

/// Parsed form of one word of the command line.
enum Selector<'a> {
    Tag(&'a str),
    Path(&'a str, Option<&'a str>),
    Name(&'a str, Option<&'a str>),
}

impl<'a> Selector<'a> {
    fn new(word: &'a str) -> Self {
        if let Some(tag) = word.strip_prefix("tag:") {
            return Self::Tag(tag);
        }
        let (head, slug) = match word.split_once("::") {
            Some((head, slug)) => (head, Some(slug)),
            None => (word, None),
        };
        if is_path(head) { Self::Path(head, slug) } else { Self::Name(head, slug) }
    }
}

fn is_path(word: &str) -> bool {
    word.contains(['/', '\\']) || word.ends_with(".toml") || word == "."
}

/// Returns the files that `words` select, each once: those of names, paths and tags.
pub(super) fn files(words: &[String]) -> Result<Vec<File>, Stop> {
    let mut found: Vec<File> = Vec::new();
    for word in words {
        let files = match Selector::new(word) {
            Selector::Path(_, Some(_)) | Selector::Name(_, Some(_)) => {
                let head = word.split("::").next().unwrap_or_default();
                let help = format!("a case is a part of its file: `redlock-sim show {head}`");
                return Err(Stop::usage(format!("error: `{word}` is a case\n  = help: {help}")));
            }
            Selector::Path(path, None) => library::load(Path::new(path)).map_err(Stop::usage)?,
            Selector::Name(name, None) => vec![Library::load()?.named(name)?.clone()],
            Selector::Tag(tag) => Library::load()?.tagged(tag)?.into_iter().cloned().collect(),
        };
        for file in files {
            library::add(&mut found, file).map_err(Stop::usage)?;
        }
    }
    Ok(found)
}

/// Returns the selector of `case` in the file at `path`.
fn word(path: &str, case: &Case) -> String {
    let here = if is_path(path) { "" } else { "./" };
    let slug = case.slug.as_ref().map_or_else(String::new, |slug| format!("::{slug}"));
    format!("{here}{path}{slug}")
}

/// Returns the cases that `words` select, each once, with `overrides` applied; all cases if there
/// are no words. The string names the origin of the cases.
pub(super) fn select(
    words: &[String],
    overrides: &[Override],
) -> Result<(Vec<Selected>, String), Stop> {
    let selectors: Vec<Selector<'_>> = words.iter().map(|word| Selector::new(word)).collect();
    let only_paths = selectors.iter().all(|it| matches!(it, Selector::Path(..)));
    let library = if only_paths && !words.is_empty() { None } else { Some(Library::load()?) };
    let origin = library.as_ref().map_or_else(|| words.join(" "), |it| it.origin.to_owned());
    let (files, seen, cases) = (Vec::new(), BTreeSet::new(), Vec::new());
    let mut selection = Selection { overrides, files, seen, cases };
    if let (Some(library), []) = (&library, words) {
        selection.add_files(&library.files, None, By::Library)?;
    }
    for selector in selectors {
        match (selector, &library) {
            (Selector::Tag(tag), Some(library)) => {
                selection.add_files(library.tagged(tag)?, None, By::Library)?;
            }
            (Selector::Path(path, slug), _) => {
                let path = Path::new(path);
                let files = library::load(path).map_err(Stop::usage)?;
                let by = if path.is_file() { By::File } else { By::Folder };
                selection.add_files(&files, slug, by)?;
            }
            (Selector::Name(name, slug), Some(library)) => {
                selection.add_files([library.named(name)?], slug, By::Name)?;
            }
            (Selector::Name(..) | Selector::Tag(_), None) => {
                unreachable!("names and tags need the library")
            }
        }
    }
    Ok((selection.cases, origin))
}

/// The way in which a file was selected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Together with others from the library: all files, or those with a tag.
    Library,
    Name,
    /// Together with all files of a folder.
    Folder,
    File,
}

struct Selection<'a> {
    overrides: &'a [Override],
    files: Vec<File>,
    seen: BTreeSet<String>,
    cases: Vec<Selected>,
}

impl Selection<'_> {
    /// Adds all cases of each of `files`, or only the case `slug` of each.
    fn add_files<'f>(
        &mut self,
        files: impl IntoIterator<Item = &'f File>,
        slug: Option<&str>,
        by: By,
    ) -> Result<(), Stop> {
        for file in files {
            library::add(&mut self.files, file.clone()).map_err(Stop::usage)?;
            let cases = file.cases(self.overrides).map_err(Stop::usage)?;
            let slugs: Vec<String> = cases.iter().filter_map(|case| case.slug.clone()).collect();
            let mut found = false;
            for case in cases {
                if slug.is_some() && case.slug.as_deref() != slug {
                    continue;
                }
                found = true;
                if self.seen.insert(case.full_name()) {
                    let which = match by {
                        By::Library | By::Name => case.full_name(),
                        By::Folder | By::File => word(file.path(), &case),
                    };
                    let by_name = matches!(by, By::Name | By::File);
                    let family = file.family().to_owned();
                    self.cases.push(Selected { case, by_name, which, family });
                }
            }
            if let (Some(slug), false) = (slug, found) {
                return Err(no_case(file, slug, &slugs));
            }
        }
        Ok(())
    }
}

fn no_case(file: &File, slug: &str, slugs: &[String]) -> Stop {
    let message = format!("error: {} has no case `{slug}`", file.path());
    let help = match nearest(slug, slugs.iter().map(String::as_str)) {
        Some(other) => format!("did you mean `{}::{other}`?", file.scenario().name),
        None if slugs.is_empty() => String::from("it has no cases"),
        None => format!("its cases are {}", slugs.join(", ")),
    };
    Stop::usage(format!("{message}\n  = help: {help}"))
}

/// Looks up a profile by name.
pub(super) fn profile(name: &str) -> Result<&'static Profile, Stop> {
    Profile::named(name).ok_or_else(|| {
        let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        let help = match nearest(name, known.iter().copied()) {
            Some(other) => format!("did you mean `{other}`?"),
            None => format!("the profiles are {}", known.join(", ")),
        };
        Stop::usage(format!("error: there is no profile `{name}`\n  = help: {help}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library() -> Library {
        Library { files: library::embedded().expect("they are valid"), origin: "built in" }
    }

    #[test]
    fn an_unknown_tag_is_answered_with_the_nearest() {
        let library = library();
        assert!(library.tagged("K1").is_ok_and(|files| files.len() > 1));
        for (tag, help) in [("k1", "did you mean `tag:K1`?"), ("", "`redlock-sim list` shows")] {
            let stop = library.tagged(tag).expect_err("there is no such tag");
            assert_eq!(stop.exit, Exit::Nothing);
            assert!(stop.message.contains(help), "{}", stop.message);
        }
    }

    #[test]
    fn an_unknown_tag_beside_a_known_one_is_an_error() {
        let words = ["tag:K1", "tag:no-such-tag"].map(String::from);
        let stop = select(&words, &[]).expect_err("the second tag is unknown");
        assert!(stop.message.contains("the tag `no-such-tag`"), "{}", stop.message);
    }

    #[test]
    fn a_file_without_its_path_is_recognised() {
        let library = library();
        let stop = library.named("Cargo").expect_err("there is no such scenario");
        assert!(stop.message.contains("write `./Cargo.toml`"), "{}", stop.message);
        let stop = library.named("zzzzzzzz").expect_err("there is no such scenario");
        assert!(stop.message.contains("by its path, `./zzzzzzzz.toml`"), "{}", stop.message);
    }

    #[test]
    fn a_tag_in_place_of_a_name_is_recognised() {
        let library = library();
        for (name, help) in [("k1", "`tag:K1`"), ("canonicl", "`canonical`")] {
            let stop = library.named(name).expect_err("there is no such scenario");
            assert!(stop.message.contains(help), "{}", stop.message);
        }
    }
}
