//! Messages of the command.
//!
//! A thread of their own writes the messages: the reader of standard error may stall, as may a
//! terminal after Ctrl-S, and the supervisor of a command must not.

use core::convert::Infallible;
use core::fmt;
use core::time::Duration;
use std::io::{self, ErrorKind, Write};
use std::panic;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use nix::sys::signal::SigSet;

use crate::exit::Stop;

/// Number of messages that wait for a reader. Further ones are dropped.
const ROOM: usize = 64;
/// Time for the reader to take the last messages.
const FINISH_WITHIN: Duration = Duration::from_secs(1);

static WRITER: Mutex<Option<Writer>> = Mutex::new(None);

/// The thread that writes.
struct Writer {
    queue: SyncSender<String>,
    /// Closed by the end of the thread.
    end: Receiver<Infallible>,
}

impl Writer {
    fn start() -> io::Result<Self> {
        let (queue, messages) = sync_channel::<String>(ROOM);
        let (alive, end) = channel();
        let write = move || {
            let _alive = alive;
            // Signals are for the supervisor; and SIGTTOU would stop this process if it wrote to a
            // terminal that is lent to the command.
            let _ = SigSet::all().thread_block();
            for message in messages {
                // One write: otherwise the lines of several processes with one standard error mix.
                // A reader that is gone must not end the supervisor, so there is no panic as in
                // `eprintln`.
                let _ = io::stderr().write_all(format!("redlock: {message}\n").as_bytes());
            }
        };
        thread::Builder::new().name(String::from("redlock-say")).spawn(write)?;
        Ok(Self { queue, end })
    }
}

/// Starts the thread, which also reports panics. Until then and after [`finish`], messages are dropped.
pub(crate) fn start() -> io::Result<()> {
    *WRITER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Writer::start()?);
    panic::set_hook(Box::new(|panic| say(format_args!("{panic}"))));
    Ok(())
}

/// Prints a message to standard error, without waiting for its reader.
pub(crate) fn say(message: fmt::Arguments<'_>) {
    let message = message.to_string();
    if let Some(writer) = &*WRITER.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = writer.queue.try_send(message);
    }
}

/// Waits until the messages are written, but only [`FINISH_WITHIN`] for a reader that stalls.
pub(crate) fn finish() {
    let writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Writer { queue, end }) = writer {
        drop(queue);
        let _ = end.recv_timeout(FINISH_WITHIN);
    }
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
