//! The file of one part.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use redis_sim::script::sha_of;
use redlock_sim::part::Part;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::build;
use crate::report::Staged;

/// Version of the format.
const SCHEMA: u32 = 1;

/// Maximum length of a header, and of a plan or sums, in bytes.
const HEADER_BYTES_MAX: u64 = 1 << 16;
const LINE_BYTES_MAX: u64 = 1 << 30;

/// Command that wrote a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Run,
    Explore,
    Drive,
}

/// First line of a shard's file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Header {
    /// Version of the format: [`SCHEMA`].
    schema: u32,
    pub(crate) kind: Kind,
    /// Build of the command, with a digest of its program.
    pub(crate) build: String,
    pub(crate) part: Part,
    /// Digest of the plan: what all parts together run.
    pub(crate) plan: String,
    /// True if every run of the part was played.
    pub(crate) complete: bool,
    /// Number of runs that were played.
    pub(crate) runs: u64,
    /// Digest of the sums.
    pub(crate) sums: String,
}

/// Reason why a file is no shard that this build can read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShardError {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is no shard: not compressed with gzip")]
    Uncompressed,
    #[error("line {line} is not a line of a shard: {error}")]
    Json { line: usize, error: serde_json::Error },
    #[error("its schema is {0}; this build knows {SCHEMA}")]
    Schema(u32),
    #[error("line {0} is too long for a shard")]
    TooLong(usize),
    #[error("line {0} is not what the header says it is: the file was changed or cut off")]
    Digest(usize),
}

/// A stored part, of which only the header is in memory.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
}

/// Writes the part of a campaign into the directory `out`. `plan` is equal for all parts. Returns the
/// path.
pub(crate) fn write(
    out: &Path,
    (kind, part): (Kind, Part),
    plan: &impl Serialize,
    sums: &impl Serialize,
    (runs, complete): (u64, bool),
) -> io::Result<PathBuf> {
    let (plan, sums) = (serde_json::to_string(plan)?, serde_json::to_string(sums)?);
    let build = build::identity()?;
    let header = Header::new((kind, part), build, (&plan, &sums), (runs, complete));
    let header = serde_json::to_string(&header)?;
    let path = out.join(format!("shard-{}-of-{}.json.gz", part.number(), part.of()));
    let staged = Staged::default();
    let mut to = GzEncoder::new(staged.create(path.clone())?, Compression::fast());
    for line in [&header, &plan, &sums] {
        to.write_all(line.as_bytes())?;
        to.write_all(b"\n")?;
    }
    to.finish()?.flush()?;
    staged.commit()?;
    Ok(path)
}

impl Header {
    pub(super) fn new(
        (kind, part): (Kind, Part),
        build: String,
        (plan, sums): (&str, &str),
        (runs, complete): (u64, bool),
    ) -> Self {
        let (plan, sums) = (digest(plan), digest(sums));
        Self { schema: SCHEMA, kind, build, part, plan, complete, runs, sums }
    }
}

impl Shard {
    /// Reads the header of the file `path`, and checks that the sums are whole.
    pub(crate) fn open(path: PathBuf) -> Result<Self, ShardError> {
        let header = line(&mut lines(&path)?, 1, HEADER_BYTES_MAX)?;
        let header: Header = json(&header, 1)?;
        if header.schema != SCHEMA {
            return Err(ShardError::Schema(header.schema));
        }
        let shard = Self { path, header };
        shard.sums_text()?;
        Ok(shard)
    }

    /// Reads the plan.
    pub(crate) fn plan<T: DeserializeOwned>(&self) -> Result<T, ShardError> {
        let mut from = lines(&self.path)?;
        line(&mut from, 1, HEADER_BYTES_MAX)?;
        json(&checked(line(&mut from, 2, LINE_BYTES_MAX)?, 2, &self.header.plan)?, 2)
    }

    /// Reads the sums.
    pub(crate) fn sums<T: DeserializeOwned>(&self) -> Result<T, ShardError> {
        json(&self.sums_text()?, 3)
    }

    fn sums_text(&self) -> Result<String, ShardError> {
        let mut from = lines(&self.path)?;
        line(&mut from, 1, HEADER_BYTES_MAX)?;
        line(&mut from, 2, LINE_BYTES_MAX)?;
        checked(line(&mut from, 3, LINE_BYTES_MAX)?, 3, &self.header.sums)
    }
}

/// Returns the text of a line if its digest is that of the header.
fn checked(text: String, number: usize, expected: &str) -> Result<String, ShardError> {
    if digest(&text) == expected { Ok(text) } else { Err(ShardError::Digest(number)) }
}

fn lines(path: &Path) -> Result<impl BufRead, ShardError> {
    let text = GzDecoder::new(File::open(path)?);
    if text.header().is_none() {
        return Err(ShardError::Uncompressed);
    }
    Ok(BufReader::new(text))
}

/// Reads the line `number`, without its end.
fn line(from: &mut impl BufRead, number: usize, bytes_max: u64) -> Result<String, ShardError> {
    let mut text = String::new();
    from.take(bytes_max).read_line(&mut text)?;
    if text.pop() == Some('\n') {
        return Ok(text);
    }
    let is_cut = (text.len() as u64) < bytes_max - 1;
    Err(if is_cut { ShardError::Digest(number) } else { ShardError::TooLong(number) })
}

fn json<T: DeserializeOwned>(text: &str, line: usize) -> Result<T, ShardError> {
    serde_json::from_str(text).map_err(|error| ShardError::Json { line, error })
}

fn digest(text: &str) -> String {
    String::from_utf8_lossy(&sha_of(text.as_bytes())).into_owned()
}
