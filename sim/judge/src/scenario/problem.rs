//! A problem with a scenario file, and its place: file, line, column, excerpt, and help.

use core::fmt;
use core::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// One problem with a file or with a setting from the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rendered}")]
pub struct Problem {
    /// The file, or `--set`.
    pub origin: String,
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Description of the problem.
    pub message: String,
    rendered: String,
}

/// All problems of a scenario; never empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl core::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.0.iter().enumerate() {
            let gap = if place == 0 { "" } else { "\n\n" };
            write!(formatter, "{gap}{problem}")?;
        }
        Ok(())
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// A span of a text, to be shown in an error.
pub(super) struct Excerpt<'a> {
    /// The file, or `--set`.
    pub(super) origin: &'a str,
    pub(super) text: &'a str,
    pub(super) span: Range<usize>,
}

impl Problem {
    /// Creates a problem at `at`; `expected` is shown under the excerpt.
    pub(super) fn new(at: &Excerpt<'_>, message: &str, expected: &str, help: Option<&str>) -> Self {
        let start = floor_boundary(at.text, at.span.start);
        let line_start = at.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = at.text[start..].find('\n').map_or(at.text.len(), |length| start + length);
        let line_text = at.text[line_start..line_end].trim_end_matches('\r');
        let line = at.text[..line_start].matches('\n').count() + 1;
        let column = at.text[line_start..start].chars().count() + 1;
        // Only the first line is rendered, so that a table over many lines gets a single mark.
        let from = (start - line_start).min(line_text.len());
        let to = floor_boundary(at.text, at.span.end.max(start)).min(line_end) - line_start;
        let mark = AnnotationKind::Primary.span(from..to.clamp(from, line_text.len()));
        let mark = if expected.is_empty() { mark } else { mark.label(expected) };
        let excerpt = Snippet::source(line_text).path(at.origin).line_start(line).annotation(mark);
        let group = Level::ERROR.primary_title(message).element(excerpt);
        let group = match help {
            Some(help) => group.element(Level::HELP.message(help)),
            None => group,
        };
        let rendered = Renderer::plain().render(&[group]);
        Self { origin: at.origin.to_owned(), line, column, message: message.to_owned(), rendered }
    }

    /// Creates a problem with a file as a whole.
    pub fn of_file(origin: &str, message: &str) -> Self {
        let rendered = format!("error: {message}\n --> {origin}");
        Self {
            origin: origin.to_owned(),
            line: 1,
            column: 1,
            message: message.to_owned(),
            rendered,
        }
    }
}

/// Returns the last character boundary of `text` that is at or before `place`.
fn floor_boundary(text: &str, place: usize) -> usize {
    let mut place = place.min(text.len());
    while !text.is_char_boundary(place) {
        place -= 1;
    }
    place
}
