//! The sources of scenarios: a file, a folder, or the command itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use include_dir::{Dir, DirEntry, include_dir};

use lock_judge::scenario::{File, Problem, Problems, TEXT_MAX};

/// The scenarios built into this binary.
static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// Reads the file at `path`, or every `.toml` below the folder at `path`, sorted by path. A file that
/// links lead to is read once.
///
/// # Errors
///
/// If a file cannot be read, is not a scenario, or has the name of another one. The error lists
/// every problem.
pub fn load(path: &Path) -> Result<Vec<File>, Problems> {
    let paths = if path.is_dir() { find(path)? } else { vec![path.to_owned()] };
    parse_all(paths.iter().map(|path| (shown(path), read(path))))
}

/// Returns the scenarios built into this binary, sorted by path.
///
/// # Errors
///
/// As [`load`]; the tests make sure that there are none.
pub fn embedded() -> Result<Vec<File>, Problems> {
    let mut files = Vec::new();
    let mut folders = vec![&EMBEDDED];
    while let Some(folder) = folders.pop() {
        for entry in folder.entries() {
            match entry {
                DirEntry::Dir(inner) => folders.push(inner),
                DirEntry::File(file) if is_scenario(file.path()) => files.push(file),
                DirEntry::File(_) => {}
            }
        }
    }
    files.sort_by_key(|file| file.path());
    parse_all(files.into_iter().map(|file| {
        let path = format!("scenarios/{}", shown(file.path()));
        let text = file.contents_utf8().map(str::to_owned);
        let text = text.ok_or_else(|| Problem::of_file(&path, "the file is not UTF-8"));
        (path, text)
    }))
}

fn parse_all(
    texts: impl Iterator<Item = (String, Result<String, Problem>)>,
) -> Result<Vec<File>, Problems> {
    let (mut files, mut problems) = (Vec::<File>::new(), Vec::new());
    for (path, text) in texts {
        let parsed = text.map_err(Problems::from).and_then(|text| File::parse(&path, &text));
        match parsed {
            Ok(file) => problems.extend(add(&mut files, file).err()),
            Err(Problems(more)) => problems.extend(more),
        }
    }
    if problems.is_empty() { Ok(files) } else { Err(Problems(problems)) }
}

/// Adds `file` to `files`, unless it is there already: a path and a link can lead to one file.
///
/// # Errors
///
/// If another file there has its name: reports and selectors identify a scenario by its name.
pub fn add(files: &mut Vec<File>, file: File) -> Result<(), Problem> {
    let name = &file.scenario().name;
    let Some(other) = files.iter().find(|other| other.scenario().name == *name) else {
        files.push(file);
        return Ok(());
    };
    if place(Path::new(other.path())) == place(Path::new(file.path())) {
        return Ok(());
    }
    let message = format!("`{name}` is also the name of {}", other.path());
    Err(Problem::of_file(file.path(), &message))
}

/// Returns the path without links; the path itself if it leads nowhere, as those built in do.
fn place(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the path of every `.toml` below `folder`, sorted. A link that leads nowhere is among
/// them: it is an error when it is read.
fn find(folder: &Path) -> Result<Vec<PathBuf>, Problems> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    let mut seen = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        // A link can lead back to a folder around it.
        if !seen.insert(place(&folder)) {
            continue;
        }
        for path in entries(&folder)? {
            if path.is_dir() {
                folders.push(path);
            } else if is_scenario(&path) && (path.is_file() || !path.exists()) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the paths in a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let unreadable =
        |error| Problem::of_file(&shown(folder), &format!("the folder cannot be read: {error}"));
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<String, Problem> {
    let unreadable = |message: &str| Problem::of_file(&shown(path), message);
    if path.is_symlink() && !path.exists() {
        return Err(unreadable("the link leads to no file"));
    }
    let size = fs::metadata(path).map_err(|error| unreadable(&error.to_string()))?.len();
    if size > TEXT_MAX as u64 {
        return Err(unreadable(&format!("the file is larger than {} KiB", TEXT_MAX / 1024)));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(&error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| {
        unreadable(&format!(
            "the file is not UTF-8 from byte {} on",
            error.utf8_error().valid_up_to()
        ))
    })
}

fn is_scenario(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// Returns the path with `/` as its separator on every system, and without a leading `./`.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    text.strip_prefix("./").map_or(text.clone(), str::to_owned)
}
