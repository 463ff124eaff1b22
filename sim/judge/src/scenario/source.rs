//! The text of a scenario, followed by the settings from the command line.

use core::fmt;
use core::ops::Range;
use core::str::FromStr;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::check::Complaint;
use super::problem::{Excerpt, Problem};
use super::tree::{Tree, Value};

/// Maximum size of a scenario file, in bytes.
pub const TEXT_MAX: usize = 256 * 1024;

/// Maximum number of dots in a line. A dotted key nests as deep as it has dots, TOML readers
/// recurse, and the parser limits only the nesting of brackets.
const DOTS_MAX: usize = 32;

/// Key that replaces the path while a setting's value is parsed. One character, so that it is never
/// longer than the path.
const KEY: &str = "v";

/// A setting from the command line, `path=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// A dotted path. Items of lists are named by their `id`.
    pub path: String,
    /// A TOML value, or a string without quotes.
    pub value: String,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, value) = text
            .split_once('=')
            .ok_or_else(|| format!("expected `path=value`, such as `lock.ttl=5s`, not `{text}`"))?;
        let (path, value) = (path.trim().to_owned(), value.trim().to_owned());
        if path.split('.').any(str::is_empty) {
            return Err(format!("`{path}` is not a path: expected names joined by dots"));
        }
        if path.len() + value.len() > TEXT_MAX || too_deep(&value).is_some() {
            return Err(String::from("the value is too long"));
        }
        Ok(Self { path, value })
    }
}

impl fmt::Display for Override {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.path, self.value)
    }
}

/// A text followed by the settings from the command line, so that one position identifies a place
/// in either.
#[derive(Clone, Debug)]
pub(super) struct Source<'t> {
    path: &'t str,
    text: &'t str,
    settings: Vec<Setting>,
}

/// A setting and its position. `padded` is a line that assigns the value to `KEY`, preceded by so
/// many blanks that the parser reports the value at its position after the file's text.
#[derive(Clone, Debug)]
struct Setting {
    start: usize,
    path: String,
    padded: String,
}

impl<'t> Source<'t> {
    pub(super) fn new(path: &'t str, text: &'t str, overrides: &[Override]) -> Self {
        // The position right after the text still belongs to the text: it is its end.
        let mut start = text.len() + 1;
        let mut settings = Vec::new();
        for Override { path, value } in overrides {
            let value_start = start + path.len() + 1;
            let padded = format!("{:blanks$}{KEY}={value}", "", blanks = value_start - 2);
            let end = padded.len() + 1;
            settings.push(Setting { start, path: path.clone(), padded });
            start = end;
        }
        Self { path, text, settings }
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the settings: the path, the position of the path, the value.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&str, Range<usize>, Value<'_>)> {
        self.settings.iter().map(|Setting { start, path, padded }| {
            let path_span = *start..start + path.len();
            let bare = || {
                let value_span = path_span.end + 1..padded.len();
                let text = DeString::Borrowed(&padded[value_span.clone()]);
                Spanned::new(value_span, DeValue::String(text))
            };
            let line = DeTable::parse(padded).map(Spanned::into_inner).ok();
            let alone = line.filter(|line| line.len() == 1).and_then(|mut line| line.remove(KEY));
            (path.as_str(), path_span.clone(), alone.unwrap_or_else(bare))
        })
    }

    fn problem_at(
        &self,
        span: Range<usize>,
        message: &str,
        expected: &str,
        help: Option<&str>,
    ) -> Problem {
        let setting = self.settings.iter().rev().find(|setting| setting.start <= span.start);
        let Some(Setting { start, path, padded }) = setting else {
            let excerpt = Excerpt { origin: self.path, text: self.text, span };
            return Problem::new(&excerpt, message, expected, help);
        };
        let text = format!("{path}={}", &padded[start + path.len() + 1..]);
        let span = span.start - start..span.end.saturating_sub(*start);
        Problem::new(&Excerpt { origin: "--set", text: &text, span }, message, expected, help)
    }

    /// Converts an error of the TOML reader, and suggests the most similar of the names that it
    /// lists.
    pub(super) fn toml_problem(&self, error: &toml::de::Error) -> Problem {
        let message = error.message();
        let (title, expected) = match message.split_once(", expected ") {
            Some((title, expected)) => (title, format!("expected {}", in_words(expected))),
            None => (message, String::new()),
        };
        let title = title.replace("unknown field", "unknown key").replace("variant", "word");
        let mut quoted = message.split('`').skip(1).step_by(2);
        let help = quoted.next().and_then(|given| super::names::nearest(given, quoted));
        let help = help.map(|name| format!("did you mean `{name}`?"));
        let missing = message.strip_prefix("missing field `").and_then(|it| it.strip_suffix('`'));
        let help = help.or_else(|| missing.map(example));
        let title = title.replace("missing field", "missing key");
        self.problem_at(error.span().unwrap_or(0..0), &title, &expected, help.as_deref())
    }

    /// Converts a complaint, with its position according to `tree`.
    pub(super) fn problem(&self, tree: &Tree<'_>, complaint: &Complaint) -> Problem {
        let Complaint { place, on_key, message, expected, help } = complaint;
        let span = if *on_key { tree.key_span(place) } else { tree.span(place) };
        self.problem_at(span, message, expected, help.as_deref())
    }

    /// Creates a problem at a known position.
    pub(super) fn problem_here(
        &self,
        span: Range<usize>,
        message: &str,
        help: Option<&str>,
    ) -> Problem {
        self.problem_at(span, message, "", help)
    }
}

/// Returns what the TOML reader expected, where it would name a type of this program.
fn in_words(expected: &str) -> String {
    let integer = |least: i128, most: i128| format!("an integer from {least} to {most}");
    match expected {
        "i32" => integer(i32::MIN.into(), i32::MAX.into()),
        "u8" => integer(0, u8::MAX.into()),
        "a nonzero u16" => integer(1, u16::MAX.into()),
        "u32" => integer(0, u32::MAX.into()),
        _ if expected.starts_with("struct ") => String::from("a table"),
        _ => String::from(expected),
    }
}

/// Returns help for a key that is missing.
fn example(key: &str) -> String {
    match key {
        "at" => String::from("the start of a fault, such as `at = \"250ms\"`"),
        "by" => String::from("a time, such as `by = \"500ms\"`"),
        "host" => String::from("the name of a host, such as `host = \"A\"`"),
        "id" => String::from("a name, such as `id = \"c1\"`"),
        _ => format!("add `{key} = …`"),
    }
}

/// Returns the start of the first line that may nest too deeply, if there is one.
pub(super) fn too_deep(text: &str) -> Option<usize> {
    let mut start = 0;
    for line in text.split('\n') {
        if line.bytes().filter(|&byte| byte == b'.').count() > DOTS_MAX {
            return Some(start);
        }
        start += line.len() + 1;
    }
    None
}
