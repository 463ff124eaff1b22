//! The watchdog: a process that outlives `drive` and kills its workers, however `drive` ends.
//!
//! `drive` names each worker's process group on the watchdog's standard input. The end of that input is
//! the end of `drive`, even by SIGKILL.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

use super::leftovers;
use crate::command::arguments::WATCHDOG;
use crate::command::exit::{Exit, Stop};

/// The watchdog, as `drive` has it.
pub(super) struct Watchdog {
    process: Child,
    /// `None` once the watchdog was told to end.
    input: Mutex<Option<ChildStdin>>,
}

impl Watchdog {
    /// Starts the watchdog of the workers whose environment has `mark`.
    pub(super) fn start(mark: &str) -> io::Result<Self> {
        let mut process = Command::new(program()?)
            .args([WATCHDOG, mark])
            .env_remove(leftovers::VARIABLE)
            // Not reached by Ctrl-C, which is for the process group of the terminal.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let input = Mutex::new(process.stdin.take());
        Ok(Self { process, input })
    }

    /// Makes the watchdog responsible for a process group.
    pub(super) fn watch(&self, group: u32) {
        self.tell(format_args!("+{group}"));
    }

    /// Ends the watchdog's responsibility for a process group. The group's leader must not have been
    /// reaped: its number would be free for another process.
    pub(super) fn release(&self, group: u32) {
        self.tell(format_args!("-{group}"));
    }

    fn tell(&self, line: core::fmt::Arguments<'_>) {
        if let Some(input) = &mut *self.input() {
            // In one write, which is never cut short: a part of a number is another group's. Without a
            // watchdog, `drive` still ends its workers unless it is killed.
            let _ = input.write_all(format!("{line}\n").as_bytes());
        }
    }

    fn input(&self) -> MutexGuard<'_, Option<ChildStdin>> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.input().take());
        let _ = self.process.wait();
    }
}

/// Returns this program. Linux knows it even if its file was replaced meanwhile.
fn program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe()
}

/// Is the watchdog: waits for the end of standard input, then kills the groups that it watches and
/// every process whose environment has `mark`.
pub(in crate::command) fn watchdog(mark: &str) -> Result<Exit, Stop> {
    let mut groups = BTreeSet::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Some((sign, number)) = line.split_at_checked(1) else { continue };
        let Ok(group) = number.parse::<i32>() else { continue };
        if sign == "+" {
            groups.insert(group)
        } else {
            groups.remove(&group)
        };
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    leftovers::kill(mark);
    Ok(Exit::Met)
}
