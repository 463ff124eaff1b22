//! Messages of the command.

use core::fmt;
use std::io::{self, ErrorKind, Write};

use crate::exit::Stop;

/// Prints a message to standard error. A reader that is gone must not end the supervisor of a
/// command, so errors are ignored, and there is no panic as in `eprintln`.
pub(crate) fn say(message: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "redlock: {message}");
}

/// Prints a line to standard output. A reader that has read enough and is gone, as in `| head -1`, is
/// no error.
pub(crate) fn print(line: fmt::Arguments<'_>) -> Result<(), Stop> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Stop::failed(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
