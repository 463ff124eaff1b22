//! Stored histories: files of JSON lines. Runs store them compressed with gzip; a reader takes both
//! forms.
//!
//! [`read`] validates the events, but of the scenario only the numbers of nodes and clients: the caller
//! must check [`complaints`](crate::scenario::complaints) before it uses the scenario.
//!
//! The first line is the [`Header`], each further line is one [`Event`], and the last line is the
//! hash of the history; without the hash, a truncated file could pass for a short run. The header
//! repeats the scenario, because events hold numbers and the scenario holds their names. For that
//! reason only this file of `history` and its part `bounds` import the neighbouring module `scenario`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Event, HistoryHash, SCHEMA};
use crate::scenario::Case;

mod bounds;

/// Extension of a compressed history.
pub const EXTENSION: &str = "jsonl.gz";

/// Level of compression. Of the higher ones, 6 saves a fifth more bytes for twice the time.
const LEVEL: u32 = 3;

/// First bytes of a gzip file. No line of JSON begins with them.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Maximum length of a line, in bytes. A header holds a whole scenario; events are far shorter.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Maximum number of events of one history: more than any run has, and few enough to hold in
/// memory.
pub const EVENTS_MAX: usize = 2_000_000;

/// First line of a stored history: everything that is needed to repeat the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Header {
    /// Version of the event format: [`SCHEMA`].
    pub schema: u32,
    /// Name of the engine that ran the case.
    pub engine: String,
    /// Build of the simulator.
    pub build: String,
    /// Seed of the run.
    pub seed: u64,
    /// The case, with its own settings and the overrides of the command line applied.
    pub case: Case,
}

/// A complete history that was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The first line.
    pub header: Header,
    /// The events, in order.
    pub events: Vec<Event>,
    /// The last line: the hash of the events.
    pub hash: u64,
}

/// Error for a file that is not a complete history, with the first offending line.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {problem}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ReadError {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1; `None` if the file cannot be read at all.
    pub line: Option<usize>,
    /// The problem with the line.
    #[source]
    pub problem: Problem,
}

/// Reason why a file is not a history.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A line is not an event, or refers to something that the scenario does not have.
    #[error("expected an event of this scenario: {0}")]
    Event(String),
    /// The hash in the last line differs from the hash of the events.
    #[error("expected the hash {told}, but the events have {found}: the file was changed")]
    Hash {
        /// Hash in the file.
        told: String,
        /// Hash computed from the events.
        found: String,
    },
    /// The first line is not a header.
    #[error("expected the header of a stored history: {0}")]
    Header(String),
    /// The file could not be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A line is longer than [`LINE_BYTES_MAX`].
    #[error("expected a line of at most {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// The file has more than [`EVENTS_MAX`] events.
    #[error("expected at most {EVENTS_MAX} events")]
    TooManyEvents,
    /// The file continues after the line with the hash.
    #[error("expected the end of the file after the line with the hash")]
    Trailing,
    /// The file ends before the line with the hash.
    #[error("expected a last line {{\"hash\":\"…\"}}: the file is truncated")]
    Truncated,
    /// The header has another schema version.
    #[error("expected schema {SCHEMA}, found schema {0}")]
    Schema(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastLine {
    hash: String,
}

/// Writes a history and returns its hash.
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

/// Writes a history like [`write()`], compressed. The same history always gives the same bytes.
///
/// # Errors
///
/// If `to` cannot be written.
pub fn write_compressed<'a>(
    to: &mut impl io::Write,
    header: &Header,
    events: impl IntoIterator<Item = &'a Event>,
) -> io::Result<u64> {
    // The encoder is slow with many short writes.
    let mut lines = BufWriter::new(GzEncoder::new(to, Compression::new(LEVEL)));
    let hash = write(&mut lines, header, events)?;
    lines.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(hash)
}

fn write_line(to: &mut impl io::Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

/// Reads the history in the file at `path`.
///
/// # Errors
///
/// If the file cannot be read, or is not a complete history of a scenario; see [`Problem`].
pub fn read_path(path: &Path) -> Result<Stored, ReadError> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => read(BufReader::new(file), &name),
        Err(error) => Err(ReadError { file: name, line: None, problem: error.into() }),
    }
}

/// Reads a history, compressed or not; errors name it `name`.
///
/// # Errors
///
/// If `source` cannot be read, or is not a complete history of a scenario; see [`Problem`].
pub fn read(mut source: impl BufRead, name: &str) -> Result<Stored, ReadError> {
    match source.fill_buf() {
        Ok(begin) if begin.starts_with(&GZIP) => {
            read_text(BufReader::new(MultiGzDecoder::new(source)), name)
        }
        Ok(_) => read_text(source, name),
        Err(error) => Err(ReadError { file: name.to_owned(), line: None, problem: error.into() }),
    }
}

fn read_text(source: impl BufRead, name: &str) -> Result<Stored, ReadError> {
    let mut lines = Lines { source, line: 0, bytes: Vec::new() };
    read_lines(&mut lines).map_err(|problem| ReadError {
        file: name.to_owned(),
        line: Some(lines.line.max(1)),
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

/// Parses one line of JSON. Errors name only the column, because the caller knows the line.
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

/// Iterates over the lines of a file; a line over [`LINE_BYTES_MAX`] is an error.
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
        let mut rest = (&mut self.source).take(limit);
        let taken =
            rest.read_until(b'\n', &mut self.bytes).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => Problem::Truncated,
                _ => Problem::Io(error),
            })?;
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
mod tests;
