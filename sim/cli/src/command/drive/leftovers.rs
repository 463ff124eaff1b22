//! Processes that a worker has left behind, even in sessions of their own: their environment has the
//! mark of the worker that started them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use rustix::process::{Pid, Signal, kill_process};

/// Variable of the environment that marks the processes of a worker.
pub(super) const VARIABLE: &str = "DRIVE_RUN";

/// Maximum number of looks, each after a kill of everything that the previous one found: a process
/// may start another one while it is being found.
const LOOKS_MAX: usize = 100;

/// Returns a mark that no other `drive` has.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a number of a process is used again, an instant is not"
)]
pub(super) fn new_mark() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    format!("{}-{:x}", std::process::id(), now.unwrap_or_default().as_nanos())
}

/// Kills every process whose mark begins with `mark`, and returns their number. Finds them on Linux
/// only.
pub(super) fn kill(mark: &str) -> usize {
    let mut killed = BTreeSet::new();
    for _ in 0..LOOKS_MAX {
        let found = marked(mark);
        if found.is_empty() {
            break;
        }
        for pid in found {
            if kill_process(pid, Signal::KILL).is_ok() {
                killed.insert(pid.as_raw_pid());
            }
        }
    }
    killed.len()
}

/// Returns the processes whose mark begins with `mark`. A process that has ended has no environment
/// any more.
fn marked(mark: &str) -> Vec<Pid> {
    let wanted = format!("{VARIABLE}={mark}");
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.filter_map(|entry| {
        let entry = entry.ok()?;
        let pid = std::str::from_utf8(entry.file_name().as_bytes()).ok()?.parse().ok()?;
        // That of another user cannot be read, and is no worker's.
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let mut variables = environment.split(|&byte| byte == 0);
        let is_marked = variables.any(|it| it.starts_with(wanted.as_bytes()));
        Pid::from_raw(pid).filter(|_| is_marked)
    });
    pids.collect()
}
