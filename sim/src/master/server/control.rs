//! A script that runs, seen from another thread.

use std::sync::atomic::{AtomicBool, Ordering};

/// By which others see that a script runs, and end it.
///
/// A transport in real time hands one of these to its server ([`super::Server::set_script_control`])
/// and keeps it: when a script has run for too long it answers everybody else with
/// [`Texts::busy`](crate::master::profile::Texts::busy), and `SCRIPT KILL` with [`ScriptControl::kill`]. Scripts of servers that
/// nobody watches end after so many instructions.
#[derive(Debug, Default)]
pub struct ScriptControl {
    is_watched: AtomicBool,
    is_running: AtomicBool,
    has_written: AtomicBool,
    is_killed: AtomicBool,
}

impl ScriptControl {
    /// One by which somebody watches.
    #[must_use]
    pub fn watched() -> Self {
        Self { is_watched: AtomicBool::new(true), ..Self::default() }
    }

    /// Whether a script runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_running.load(Ordering::SeqCst)
    }

    /// `SCRIPT KILL`.
    ///
    /// # Errors
    ///
    /// The error to answer with, if no script runs, or it has written already.
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

    /// Ends the script whatever it has done: the process dies.
    pub fn abort(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
    }

    pub(in crate::master) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::SeqCst)
    }

    pub(in crate::master) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::SeqCst)
    }

    pub(in crate::master) fn begin(&self) {
        self.is_killed.store(false, Ordering::SeqCst);
        self.has_written.store(false, Ordering::SeqCst);
        self.is_running.store(true, Ordering::SeqCst);
    }

    pub(in crate::master) fn write(&self) {
        self.has_written.store(true, Ordering::SeqCst);
    }

    pub(in crate::master) fn end(&self) {
        self.is_running.store(false, Ordering::SeqCst);
    }
}
