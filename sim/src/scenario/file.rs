//! A scenario file, read; its cases are worked out in `cases`.

use std::path::Path;

use super::check;
use super::model::Scenario;
use super::problem::{Problem, Problems};
use super::source::{self, Source, TEXT_MAX};
use super::tree::Tree;

/// A scenario file that can be read.
#[derive(Clone, Debug)]
pub struct File {
    pub(super) path: String,
    pub(super) text: String,
    base: Scenario,
}

impl File {
    /// Reads `text`. `path` is the file's name, relative to where the command runs: it is shown in
    /// errors, and its stem is the scenario's name.
    ///
    /// # Errors
    ///
    /// If the text is not TOML, has unknown or missing keys, or is named otherwise than its file.
    /// What the values mean is judged with the cases.
    pub fn parse(path: &str, text: &str) -> Result<Self, Problems> {
        if text.len() > TEXT_MAX {
            let message = format!("the file is larger than {} KiB", TEXT_MAX / 1024);
            return Err(Problem::of_file(path, &message).into());
        }
        let source = Source::new(path, text, &[]);
        if let Some(at) = source::too_deep(text) {
            let help = "put fewer dots into one line";
            return Err(source.problem_here(at..at, "this could nest too deep", Some(help)).into());
        }
        let tree = Tree::parse(text).map_err(|error| source.toml_problem(&error))?;
        let base = tree.scenario().map_err(|error| source.toml_problem(&error))?;
        let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if let Some(complaint) = check::file_name(&base.name, stem) {
            return Err(source.problem(&tree, &complaint).into());
        }
        Ok(Self { path: path.to_owned(), text: text.to_owned(), base })
    }

    /// The file's name.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The scenario as it stands in the file, cases and sweeps not applied.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.base
    }
}
