//! The file of known departures.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::value::Datetime;

use super::Departure;
use crate::text_file;

/// Version of the format.
const SCHEMA: u32 = 1;

/// The cases of a suite, and their accepted departures from their expectations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Baseline {
    /// Names of all cases.
    pub(crate) cases: Vec<String>,
    /// Known departures.
    pub(crate) known: Vec<Known>,
}

/// A departure that passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// The departure.
    #[serde(flatten)]
    pub(crate) departure: Departure,
    /// Why it is accepted.
    pub(crate) reason: String,
    /// Day since which it is accepted.
    pub(crate) since: Datetime,
}

/// The file as it is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    schema: u32,
    cases: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    known: Vec<Known>,
}

/// Error: the baseline cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// The file is no baseline.
    #[error("{}: {source}", path.display())]
    Format { path: PathBuf, source: Box<toml::de::Error> },
    /// The file is of another version.
    #[error("{}: schema {schema} is not known; this build knows {SCHEMA}", path.display())]
    Schema { path: PathBuf, schema: u32 },
}

impl Unreadable {
    /// Returns true if there is no such file.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl Baseline {
    /// Reads the file `path`.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is no baseline of this version.
    pub(crate) fn read(path: &Path) -> Result<Self, Unreadable> {
        let text = text_file::read(path)
            .map_err(|source| Unreadable::File { path: path.to_owned(), source })?;
        let of_format =
            |source| Unreadable::Format { path: path.to_owned(), source: Box::new(source) };
        // Another version may have other keys.
        let table: toml::Table = toml::from_str(&text).map_err(of_format)?;
        let schema = table.get("schema").and_then(toml::Value::as_integer);
        if let Some(schema) =
            schema.and_then(|it| u32::try_from(it).ok()).filter(|it| *it != SCHEMA)
        {
            return Err(Unreadable::Schema { path: path.to_owned(), schema });
        }
        let content: Content = toml::from_str(&text).map_err(of_format)?;
        Ok(Self { cases: content.cases, known: content.known })
    }

    /// Returns the text of the file, sorted, so that its changes are easy to review.
    pub(crate) fn text(&self) -> String {
        let Self { mut cases, mut known } = self.clone();
        cases.sort();
        known.sort_by(|one, other| {
            let key = |it: &Known| (it.departure.case.clone(), it.departure.about.clone());
            key(one).cmp(&key(other))
        });
        let content = Content { schema: SCHEMA, cases, known };
        toml::to_string_pretty(&content).expect("names, texts and dates can always be written")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_written_baseline_is_read_back() {
        let known = |case: &str| Known {
            departure: Departure {
                case: case.to_owned(),
                about: String::from("tidy"),
                observed: String::from("violated"),
                blame: vec![String::from("amnesia(A)")],
            },
            reason: String::from("said \"later\""),
            since: "2026-11-23".parse().unwrap(),
        };
        let cases = ["b", "a::one"].map(String::from).to_vec();
        let baseline = Baseline { cases, known: vec![known("b"), known("a::one")] };
        let folder = std::env::temp_dir().join(format!("baseline-{}", std::process::id()));
        fs::write(&folder, baseline.text()).unwrap();
        let read = Baseline::read(&folder).unwrap();
        assert_eq!(read.cases, ["a::one", "b"]);
        assert_eq!(read.known, [known("a::one"), known("b")]);
        assert_eq!(read.text(), baseline.text());
        fs::write(&folder, "schema = 2\nfuture = true\n").unwrap();
        let error = Baseline::read(&folder).unwrap_err().to_string();
        assert!(error.ends_with("schema 2 is not known; this build knows 1"), "{error}");
        fs::remove_file(&folder).unwrap();
        assert!(Baseline::read(&folder).unwrap_err().is_missing());
    }
}
