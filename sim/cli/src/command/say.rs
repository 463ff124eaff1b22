//! Standard output: text for people, or JSON for programs.

use core::fmt::Display;
use std::io::{self, Write};
use std::sync::OnceLock;

use redlock_sim::search::{CaseResult, Played};
use serde_json::{Value, json};

use super::arguments::MessageFormat;
use super::exit::Exit;
use super::paint::paint;
use crate::report::results::CaseReport;

/// First error of standard output. A closed pipe is not recorded: it is no error if the reader goes
/// away.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

static FORMAT: OnceLock<MessageFormat> = OnceLock::new();

/// Sets the format for the whole process.
pub(super) fn use_format(format: MessageFormat) {
    let _ = FORMAT.set(format);
}

fn is_json() -> bool {
    FORMAT.get() == Some(&MessageFormat::Json)
}

/// Writes a line to standard output, for people.
pub(super) fn say(text: impl Display) {
    if !is_json() {
        write(&paint(&text.to_string()));
    }
}

/// Writes a text to standard output as it is, for people: without colours, without another newline.
pub(super) fn say_raw(text: &str) {
    if !is_json() {
        note(write!(anstream::stdout().lock(), "{text}"));
    }
}

/// Writes a JSON object of a `kind` to standard output, for programs.
pub(super) fn emit(kind: &str, message: impl FnOnce() -> Value) {
    if !is_json() {
        return;
    }
    let mut object = json!({ "kind": kind });
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), message()) {
        object.extend(fields);
    }
    write(&object.to_string());
}

/// Writes the result of a case to standard output, for programs.
pub(super) fn emit_case(played: &Played, exit: Exit) {
    emit("case", || json!({ "exit-code": exit.code(), "result": CaseReport::new(played) }));
}

/// Writes the result of a case of which no history is kept.
pub(super) fn emit_result(result: &CaseResult, exit: Exit) {
    let result = result.clone();
    emit_case(&Played::new(result, Vec::new()), exit);
}

fn write(line: &str) {
    note(writeln!(anstream::stdout().lock(), "{line}"));
}

fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = UNWRITTEN.set(error);
    }
}

/// Returns the first error of standard output, if there was one.
pub(super) fn unwritten() -> Option<&'static io::Error> {
    UNWRITTEN.get()
}
