//! The files of an earlier run in a directory, which the reports of a new run replace.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use super::{INDEX, RESULTS};

/// Maximum distance of a mark of this program from the end of a page, or from the beginning of a
/// history, in bytes.
const MARK_WITHIN: u64 = 256;

/// Reason why a directory cannot take the reports of a run.
#[derive(Debug, thiserror::Error)]
pub enum OutError {
    /// The directory has a file that this command did not write, under the name of a report.
    #[error("{} was not written by redlock-sim", .0.display())]
    Foreign(PathBuf),
    /// Another run of this command writes its reports there.
    #[error("another run writes there")]
    Claimed,
    /// A file cannot be read, written or removed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Files of the run whose reports are in a directory.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    files: BTreeSet<PathBuf>,
}

/// The part of `results.json` that names files. Other builds may write more, or less.
#[derive(Deserialize)]
struct Listing {
    build: String,
    cases: Vec<CaseListing>,
}

#[derive(Deserialize)]
struct CaseListing {
    page: Option<PathBuf>,
    #[serde(default)]
    histories: Vec<PathBuf>,
}

impl Earlier {
    /// Reads which files in `out` an earlier run wrote.
    ///
    /// # Errors
    ///
    /// If `results.json` is there and not of such a run.
    pub(super) fn read(out: &Path) -> Result<Self, OutError> {
        let path = out.join(RESULTS);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(OutError::Foreign(path));
            }
            Err(error) => return Err(error.into()),
        };
        match serde_json::from_str::<Listing>(&text) {
            Ok(listing) if listing.build.starts_with("redlock-sim ") => Ok(listing.files(out)),
            _ => Err(OutError::Foreign(path)),
        }
    }

    /// Checks that none of `paths` is there, unless that run wrote it, or a run that was killed before
    /// its `results.json` was there.
    ///
    /// # Errors
    ///
    /// If a file of others is there.
    pub(super) fn check(&self, paths: impl IntoIterator<Item = PathBuf>) -> Result<(), OutError> {
        let mut paths = paths.into_iter();
        // A link that leads nowhere is a file of others, too.
        let is_own = |path: &PathBuf, is_file: bool| {
            self.files.contains(path) || (is_file && is_marked(path))
        };
        let is_foreign = |path: &PathBuf| {
            fs::symlink_metadata(path).is_ok_and(|found| !is_own(path, found.is_file()))
        };
        paths.find(is_foreign).map_or(Ok(()), |path| Err(OutError::Foreign(path)))
    }

    /// Removes the files that are not in `kept`, and the folders that are empty then.
    pub(super) fn remove_except(&self, kept: &BTreeSet<PathBuf>) -> io::Result<()> {
        for file in self.files.difference(kept) {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            // Fails if other files are there, which stay.
            let _ = file.parent().map(fs::remove_dir);
        }
        Ok(())
    }
}

impl Listing {
    fn files(self, out: &Path) -> Earlier {
        let of_case = |case: CaseListing| case.histories.into_iter().chain(case.page);
        let listed = self.cases.into_iter().flat_map(of_case);
        let reports = listed.filter(|it| is_report(it)).chain([INDEX, RESULTS].map(PathBuf::from));
        Earlier { files: reports.map(|it| out.join(it)).collect() }
    }
}

/// Returns true for paths that a run can write: `NAME.html` and `NAME/slug.SEED.jsonl.gz`. A listing
/// that was tampered with must not name other files.
fn is_report(path: &Path) -> bool {
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let suffix = match path.components().count() {
        1 => ".html",
        2 => ".jsonl.gz",
        _ => return false,
    };
    is_plain && name.ends_with(suffix)
}

/// Returns true for a page or a history of this program: pages end with the name of their build,
/// histories begin with it.
fn is_marked(path: &Path) -> bool {
    let (read, mark) = match path.extension().is_some_and(|it| it == "html") {
        true => (end(path), "<footer>Written by redlock-sim "),
        false => (beginning(path), "\"build\":\"redlock-sim "),
    };
    read.is_ok_and(|text| String::from_utf8_lossy(&text).contains(mark))
}

fn end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(MARK_WITHIN)))?;
    read_some(file)
}

fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    read_some(MultiGzDecoder::new(File::open(path)?))
}

fn read_some(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MARK_WITHIN).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_names_reports_only() {
        let is = |path: &str| is_report(Path::new(path));
        assert!(is("clock-jump.html") && is("clock-jump/base.0.jsonl.gz"));
        for other in
            ["", "a.toml", "/a.html", "../a.html", "../a.jsonl.gz", "a/b.html", "a/b/c.jsonl.gz"]
        {
            assert!(!is(other), "{other}");
        }
    }
}
