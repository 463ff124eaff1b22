//! A parsed scenario file. The module `cases` expands it into cases.

use std::path::Path;

use super::check;
use super::model::Scenario;
use super::problem::{Problem, Problems};
use super::source::{self, Source, TEXT_MAX};
use super::tree::Tree;

/// A scenario file that parsed without errors.
#[derive(Clone, Debug)]
pub struct File {
    pub(super) path: String,
    pub(super) text: String,
    base: Scenario,
}

impl File {
    /// Parses `text`. `path` is the file's name, relative to the working directory of the command.
    /// It is shown in errors, and its stem must be the scenario's name.
    ///
    /// # Errors
    ///
    /// If the text is too large or too deeply nested, is not TOML, has unknown or missing keys, or
    /// has another name than its file. The values are checked later, with the cases.
    pub fn parse(path: &str, text: &str) -> Result<Self, Problems> {
        if text.len() > TEXT_MAX {
            let message = format!("the file is larger than {} KiB", TEXT_MAX / 1024);
            return Err(Problem::of_file(path, &message).into());
        }
        let source = Source::new(path, text, &[]);
        if let Some(at) = source::too_deep(text) {
            let help = "use fewer dots in one line";
            return Err(source
                .problem_here(at..at, "the tables are nested too deep", Some(help))
                .into());
        }
        let tree = Tree::parse(text).map_err(|error| source.toml_problem(&error))?;
        let base = tree.scenario().map_err(|error| source.toml_problem(&error))?;
        let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if let Some(complaint) = check::file_name(&base.name, stem) {
            return Err(source.problem(&tree, &complaint).into());
        }
        Ok(Self { path: path.to_owned(), text: text.to_owned(), base })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the text of the file, as it was read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the family of the scenario: the name of the file's folder. Empty if the path names no
    /// folder.
    #[must_use]
    pub fn family(&self) -> &str {
        let folder = Path::new(&self.path).parent().and_then(Path::file_name);
        folder.and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Returns the scenario as written in the file, without cases and sweeps applied.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.base
    }
}
