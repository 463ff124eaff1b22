//! Control of a running script from another thread.

use std::sync::atomic::{AtomicBool, Ordering};

/// Lets another thread observe and end a running script.
///
/// A real-time transport hands one of these to its server ([`super::Server::set_script_control`])
/// and keeps a copy. When a script has run too long, the transport replies to other clients with
/// [`Texts::busy`](crate::profile::Texts::busy), and to `SCRIPT KILL` with the result of
/// [`ScriptControl::kill`]. A script of an unwatched server ends after a fixed number of
/// instructions.
#[derive(Debug, Default)]
pub struct ScriptControl {
    is_watched: AtomicBool,
    is_running: AtomicBool,
    has_written: AtomicBool,
    is_killed: AtomicBool,
}

impl ScriptControl {
    /// Returns a control that a transport watches.
    #[must_use]
    pub fn watched() -> Self {
        Self { is_watched: AtomicBool::new(true), ..Self::default() }
    }

    /// Returns true while a script runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_running.load(Ordering::SeqCst)
    }

    /// Ends the running script (`SCRIPT KILL`).
    ///
    /// # Errors
    ///
    /// The error to reply with, if no script runs or the script has already written.
    pub fn kill(&self) -> Result<(), &'static str> {
        if !self.is_running() {
            return Err("NOTBUSY No scripts in execution right now.");
        }
        if self.has_written.load(Ordering::SeqCst) {
            return Err(
                "UNKILLABLE Sorry the script already executed write commands against the dataset. \
                 You can either wait the script termination or kill the server in a hard way \
                 using the SHUTDOWN NOSAVE command.",
            );
        }
        self.is_killed.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Ends the script even if it has written: the process dies.
    pub fn abort(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::SeqCst)
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::SeqCst)
    }

    pub(crate) fn begin(&self) {
        self.is_killed.store(false, Ordering::SeqCst);
        self.has_written.store(false, Ordering::SeqCst);
        self.is_running.store(true, Ordering::SeqCst);
    }

    pub(crate) fn write(&self) {
        self.has_written.store(true, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.is_running.store(false, Ordering::SeqCst);
    }
}
