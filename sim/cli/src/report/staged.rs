//! Writes several files so that they appear complete and together, or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Suffix of a file that is not complete yet. Names the program: a file of another one would be
/// replaced.
const PART: &str = ".redlock-sim.part";

/// Files that are written beside their final paths. [`Staged::commit`] moves the files to their
/// final paths; a drop removes the files that were not moved.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    /// Final paths.
    paths: Mutex<Vec<PathBuf>>,
}

impl Staged {
    /// Creates the file that becomes `path`, and its directory.
    pub(crate) fn create(&self, path: PathBuf) -> io::Result<BufWriter<File>> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let file = File::create(part(&path))?;
        self.paths().push(path);
        Ok(BufWriter::new(file))
    }

    /// Writes the file that becomes `path`.
    pub(super) fn write(&self, path: PathBuf, text: &str) -> io::Result<()> {
        let mut file = self.create(path)?;
        file.write_all(text.as_bytes())?;
        file.flush()
    }

    /// Writes the file `path` as a whole: if that fails, an earlier file stays as it is.
    pub(crate) fn write_one(path: &Path, text: &str) -> io::Result<()> {
        let staged = Self::default();
        staged.write(path.to_owned(), text)?;
        staged.commit().map(drop)
    }

    /// Returns the final paths.
    pub(super) fn final_paths(&self) -> Vec<PathBuf> {
        self.paths().clone()
    }

    /// Moves every file to its final path, the first one last. Returns the final paths.
    pub(crate) fn commit(self) -> io::Result<BTreeSet<PathBuf>> {
        let mut written = BTreeSet::new();
        let mut paths = self.paths();
        while let Some(path) = paths.last() {
            fs::rename(part(path), path)?;
            written.extend(paths.pop());
        }
        drop(paths);
        Ok(written)
    }

    fn paths(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        // No panic leaves a list of paths half changed.
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        for path in self.paths().iter() {
            let _ = fs::remove_file(part(path));
        }
    }
}

fn part(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(PART);
    part.into()
}
