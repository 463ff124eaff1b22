//! A stored history: JSON lines that [`read`] trusts no further than it has checked them.
//!
//! The first line is the [`Header`], then one [`Event`] a line, and the last line is the history's
//! hash, without which a file that was cut off could pass for a short run. The header repeats the
//! scenario, because events hold numbers and the scenario holds their names; so this one file of
//! `history` knows `scenario`, its neighbour.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Event, HistoryHash, SCHEMA};
use crate::scenario::Case;

mod bounds;

/// The longest line, in bytes. Headers hold a whole scenario; events are far shorter.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// The most events of one history: more than any run has, and little enough to hold in memory.
pub const EVENTS_MAX: usize = 2_000_000;

/// The first line of a stored history: all that is needed to play the run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Header {
    /// The version of the event format: [`SCHEMA`].
    pub schema: u32,
    /// The engine that played it.
    pub engine: String,
    /// The build of the harness.
    pub build: String,
    /// The seed it was played by.
    pub seed: u64,
    /// What was played, with the case's settings and those of the command line applied.
    pub case: Case,
}

/// A history that was read back, and is whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its first line.
    pub header: Header,
    /// What happened.
    pub events: Vec<Event>,
    /// Its last line: the hash of the events.
    pub hash: u64,
}

/// A file that is not a whole history, and where it departs from one.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct ReadError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

/// How a file can fail to be a history.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// An event that is none, or that the scenario has no room for.
    #[error("expected an event of this scenario: {0}")]
    Event(String),
    /// The last line tells another hash than the events have.
    #[error("expected the hash {told}, but the events have {found}: the file was changed")]
    Hash {
        /// As the file says.
        told: String,
        /// As the events say.
        found: String,
    },
    /// The first line is no header.
    #[error("expected the header of a stored history: {0}")]
    Header(String),
    /// The file could not be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A line without an end in sight.
    #[error("expected a line of at most {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// More than one run can have.
    #[error("expected at most {EVENTS_MAX} events")]
    TooManyEvents,
    /// Something after the last line.
    #[error("expected the end of the file after the line with the hash")]
    Trailing,
    /// The file ends before the line with the hash.
    #[error("expected a last line {{\"hash\":\"…\"}}: the file is truncated")]
    Truncated,
    /// The header is of another version.
    #[error("expected schema {SCHEMA}, found schema {0}")]
    Schema(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastLine {
    hash: String,
}

/// Writes a history, and tells its hash.
///
/// # Errors
///
/// If `to` cannot be written.
pub fn write<'a>(
    to: &mut impl io::Write,
    header: &Header,
    events: impl IntoIterator<Item = &'a Event>,
) -> io::Result<u64> {
    let mut hash = HistoryHash::default();
    write_line(to, header)?;
    for event in events {
        hash.add(event);
        write_line(to, event)?;
    }
    write_line(to, &LastLine { hash: hex(hash.value()) })?;
    Ok(hash.value())
}

fn write_line(to: &mut impl io::Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

/// Reads the history in the file at `path`.
///
/// # Errors
///
/// If it cannot be read, or is not a whole history of a scenario; see [`Problem`].
pub fn read_path(path: &Path) -> Result<Stored, ReadError> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => read(BufReader::new(file), &name),
        Err(error) => Err(ReadError { file: name, line: 1, problem: error.into() }),
    }
}

/// Reads a history; errors call it `name`.
///
/// # Errors
///
/// If it is not a whole history of a scenario; see [`Problem`].
pub fn read(source: impl BufRead, name: &str) -> Result<Stored, ReadError> {
    let mut lines = Lines { source, line: 0, bytes: Vec::new() };
    read_lines(&mut lines).map_err(|problem| ReadError {
        file: name.to_owned(),
        line: lines.line.max(1),
        problem,
    })
}

fn read_lines(lines: &mut Lines<impl BufRead>) -> Result<Stored, Problem> {
    let header = read_header(lines)?;
    let scenario = &header.case.scenario;
    let mut events: Vec<Event> = Vec::new();
    let mut hash = HistoryHash::default();
    loop {
        let Some(line) = lines.next()? else { return Err(Problem::Truncated) };
        if line.bytes.starts_with(b"{\"hash\"") {
            break;
        }
        if events.len() == EVENTS_MAX {
            return Err(Problem::TooManyEvents);
        }
        let event: Event = match parse(line.bytes) {
            Ok(event) => event,
            Err(_) if !line.is_terminated => return Err(Problem::Truncated),
            Err(why) => return Err(Problem::Event(why)),
        };
        bounds::check(&event, events.last(), scenario).map_err(Problem::Event)?;
        hash.add(&event);
        events.push(event);
    }
    let told: LastLine = parse(&lines.bytes).map_err(|_| Problem::Truncated)?;
    let found = hex(hash.value());
    if told.hash != found {
        return Err(Problem::Hash { told: told.hash, found });
    }
    match lines.next()? {
        Some(_) => Err(Problem::Trailing),
        None => Ok(Stored { header, events, hash: hash.value() }),
    }
}

fn read_header(lines: &mut Lines<impl BufRead>) -> Result<Header, Problem> {
    #[derive(Deserialize)]
    struct Version {
        schema: u64,
    }
    let Some(line) = lines.next()? else {
        return Err(Problem::Header(String::from("the file is empty")));
    };
    let version: Version = parse(line.bytes).map_err(Problem::Header)?;
    if version.schema != u64::from(SCHEMA) {
        return Err(Problem::Schema(version.schema));
    }
    let header: Header = parse(line.bytes).map_err(Problem::Header)?;
    bounds::check_scenario(&header.case.scenario).map_err(Problem::Header)?;
    Ok(header)
}

/// One line, as JSON; an error names the column, since the reader's caller knows the line.
fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let text = error.to_string();
        let what = text.strip_suffix(&place).unwrap_or(&text);
        format!("{what}, at column {}", error.column())
    })
}

fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The lines of a file, none of them longer than [`LINE_BYTES_MAX`].
struct Lines<R> {
    source: R,
    line: usize,
    bytes: Vec<u8>,
}

struct Line<'a> {
    bytes: &'a [u8],
    is_terminated: bool,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<Line<'_>>, Problem> {
        self.bytes.clear();
        self.line += 1;
        let limit = LINE_BYTES_MAX as u64 + 1;
        let taken = (&mut self.source).take(limit).read_until(b'\n', &mut self.bytes)?;
        if taken == 0 {
            return Ok(None);
        }
        let is_terminated = self.bytes.last() == Some(&b'\n');
        if is_terminated {
            self.bytes.pop();
        }
        if self.bytes.len() > LINE_BYTES_MAX {
            return Err(Problem::LineTooLong);
        }
        Ok(Some(Line { bytes: &self.bytes, is_terminated }))
    }
}

#[cfg(test)]
pub(crate) mod tests;
