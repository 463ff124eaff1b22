//! Replies of real servers: recorded by `BLESS=1` where there is a real server, and compared with
//! the simulated server everywhere.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use bytes::Bytes;
use libtest_mimic::Failed;
use redis_sim::profile::Profile;

use crate::real;
use crate::reply::{self, Reply, escaped, unescaped};
use crate::round::{Form, Word};
use crate::simulated::Simulated;

const REQUESTS: &str = include_str!("transcript.txt");

/// Precision, in milliseconds, to which numbers in replies that depend on the clock are rounded.
const ROUNDED_MS: i64 = 100;

/// Unix time at which transcripts are played, in milliseconds.
const PLAYED_MS: i64 = 1_800_000_000_000;

/// A request line of a transcript.
struct Request<'a> {
    connection: char,
    form: Form,
    is_rounded: bool,
    line: &'a str,
}

impl<'a> Request<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (head, what) = line.split_once(' ')?;
        let mut head = head.chars();
        let (connection, mark) = (head.next()?, head.next()?);
        let form = match mark {
            '>' | '~' => Form::Array(words(what)),
            '!' => Form::Line(Bytes::from(unescaped(what))),
            _ => return None,
        };
        head.next().is_none().then_some(Self { connection, form, is_rounded: mark == '~', line })
    }

    fn answer(&self, bytes: &[u8]) -> String {
        match reply::parse(bytes) {
            Some((Reply::One(b':', digits), _)) if self.is_rounded => {
                let number = String::from_utf8_lossy(&digits).parse::<i64>().expect("an integer");
                format!(":{}\\r\\n", (number + ROUNDED_MS / 2) / ROUNDED_MS * ROUNDED_MS)
            }
            _ => escaped(bytes),
        }
    }
}

/// Splits a line into words. Words in quotation marks may contain anything.
fn words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"').expect("a closing quotation mark");
                (&quoted[..end], quoted[end + 1..].trim_start())
            }
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(Word::Is(Bytes::from(unescaped(word))));
        rest = after;
    }
    words
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/judge/golden/{name}.txt"))
}

/// Sends every request to the real server and records the replies.
pub(crate) fn record(name: &str, program: &str) -> Result<(), Failed> {
    let server = real::Server::start(program)?;
    let mut control = server.connect()?;
    let mut connections = BTreeMap::new();
    let mut text = format!("# Recorded from {name} by `BLESS=1`, from transcript.txt.\n");
    for line in REQUESTS.lines() {
        if line.starts_with("== ") {
            connections.clear();
            for words in [&["FLUSHALL"][..], &["SCRIPT", "FLUSH"]] {
                control.ask(words)?;
            }
            write!(text, "\n{line}\n")?;
        }
        let Some(request) = Request::parse(line) else { continue };
        let connection = match connections.entry(request.connection) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let mut connection = server.connect()?;
                let Reply::One(_, id) = connection.ask(&["CLIENT", "ID"])? else {
                    return Err("CLIENT ID is a number".into());
                };
                writeln!(text, "{}= {}", request.connection, escaped(&id))?;
                place.insert(connection)
            }
        };
        connection.send(&request.form.encode(0))?;
        let (pushes, _, bytes) = connection.receive_reply()?;
        let pushes = escaped(&pushes);
        writeln!(text, "{}\n{pushes}{}", request.line, request.answer(&bytes))?;
    }
    fs::write(golden(name), text)?;
    Ok(())
}

/// Sends the recorded requests to the simulated server, and compares the replies.
pub(crate) fn play(name: &str, profile: &'static Profile) -> Result<(), Failed> {
    let path = golden(name);
    let text = fs::read_to_string(&path).map_err(|error| missing(&path, &error))?;
    let mut simulated = Simulated::new(profile, PLAYED_MS as u64);
    let (mut told, mut asked) = (String::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("== ") {
            simulated = Simulated::new(profile, PLAYED_MS as u64);
            continue;
        }
        let place = line.bytes().next().map_or(0, |letter| usize::from(letter.wrapping_sub(b'a')));
        if let Some((_, id)) = line.split_once("= ").filter(|(head, _)| head.len() == 1) {
            simulated.open(place, id.parse()?);
        }
        let Some(request) = Request::parse(line) else { continue };
        let real = lines.next().ok_or("a transcript ends with an answer")?;
        let bytes = simulated.ask(place, &request.form.encode(0), PLAYED_MS * 1_000);
        let answer = request.answer(&bytes);
        asked.push(line);
        if answer != real {
            write!(told, "{line}\nreal      {real}\nsimulated {answer}\n")?;
        }
    }
    let wanted = REQUESTS.lines().filter(|line| Request::parse(line).is_some());
    if !wanted.eq(asked) {
        return Err(format!("{}: not what transcript.txt asks", path.display()).into());
    }
    if told.is_empty() { Ok(()) } else { Err(told.into()) }
}

fn missing(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
