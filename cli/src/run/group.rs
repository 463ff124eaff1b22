//! The process group of the command.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, wait,
};

use crate::exit::{Exit, Stop};

/// Makes this process the parent of orphaned descendants, if the system supports that, so that it
/// is notified when they end. Process 1 is their parent anyway.
pub(super) fn adopt_orphans() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // Without it the ends of orphans are noticed by looking.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// A change of the command's own process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It ended.
    Ended(Exit),
    /// A signal stopped it.
    Stopped(i32),
}

/// The command's process and all processes that it started, unless they left its group.
pub(super) struct Group {
    leader: Child,
}

impl Group {
    /// Starts the command in a group of its own.
    pub(super) fn start(mut command: Command) -> Result<Self, Stop> {
        match command.process_group(0).spawn() {
            Ok(leader) => Ok(Self { leader }),
            Err(error) => {
                let exit = match error.kind() {
                    ErrorKind::NotFound => Exit::NotFound,
                    _ => Exit::NotExecutable,
                };
                let name = command.get_program().to_string_lossy();
                Err(Stop { exit, message: format!("{name} cannot be started: {error}") })
            }
        }
    }

    /// Id of the group, and of the command's own process.
    pub(super) fn id(&self) -> Pid {
        Pid::from_child(&self.leader)
    }

    /// Sends a signal to every process of the group. Nothing happens if there is none.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id(), signal);
    }

    /// Returns true if the group has a process. One that this process may not signal counts.
    pub(super) fn is_alive(&self) -> bool {
        test_kill_process_group(self.id()) != Err(Errno::SRCH)
    }

    /// Collects every child that has ended, also those that are not of the command: process 1 of a
    /// container must. Returns the next change of the command's own process.
    pub(super) fn reap(&self) -> Option<Change> {
        loop {
            let (child, status) = match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some(changed)) => changed,
                Err(Errno::INTR) => continue,
                Ok(None) | Err(_) => return None,
            };
            if child != self.id() {
                continue;
            }
            if let Some(signal) = status.stopping_signal() {
                return Some(Change::Stopped(signal));
            }
            if let Some(signal) = status.terminating_signal() {
                return Some(Change::Ended(Exit::signaled(signal)));
            }
            if let Some(code) = status.exit_status() {
                // A status has eight bits.
                return Some(Change::Ended(Exit::Command(u8::try_from(code).unwrap_or(u8::MAX))));
            }
        }
    }
}
