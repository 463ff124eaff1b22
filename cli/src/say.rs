//! Messages of the command.

use core::fmt;
use std::io::{self, Write};

use crate::exit::Stop;

/// Prints a message to standard error. A reader that is gone must not end the supervisor of a
/// command, so errors are ignored, and there is no panic as in `eprintln`.
pub(crate) fn say(message: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "redlock: {message}");
}

/// Prints a line to standard output.
pub(crate) fn print(line: fmt::Arguments<'_>) -> Result<(), Stop> {
    let written = writeln!(io::stdout(), "{line}");
    written.map_err(|error| Stop::failed(format!("standard output cannot be written: {error}")))
}
