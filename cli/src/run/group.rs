//! The process group of the command.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread;

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

/// Returns true if every process of the group has ended, and waits to be collected by a parent that
/// has left the group. Where the system does not tell, the answer is no.
fn has_ended(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let stats = processes.flatten().filter_map(|it| std::fs::read(it.path().join("stat")).ok());
    let mut members = stats.filter_map(|stat| member(group, &stat)).peekable();
    members.peek().is_some() && members.all(|it| it.has_ended && it.parent != std::process::id())
}

/// A process of a group.
#[derive(Debug, PartialEq, Eq)]
struct Member {
    has_ended: bool,
    parent: u32,
}

/// Returns the process with the content `stat` of `/proc/PID/stat`; `None` if it is in another group.
fn member(group: Pid, stat: &[u8]) -> Option<Member> {
    // The name of the program is in brackets, and may have any bytes.
    let behind = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut words = core::str::from_utf8(&stat[behind..]).ok()?.split_ascii_whitespace();
    let is_zombie = matches!(words.next()?, "Z" | "X");
    let parent = words.next()?.parse().ok()?;
    if words.next()?.parse() != Ok(group.as_raw_pid()) {
        return None;
    }
    // A process whose first thread has ended is a zombie, too, while other threads are at work.
    let threads = words.nth(THREADS_BEHIND_GROUP).and_then(|word| word.parse::<u32>().ok());
    Some(Member { has_ended: is_zombie && threads.is_some_and(|threads| threads <= 1), parent })
}

/// Number of words between the group (field 5) and the number of threads (field 20).
const THREADS_BEHIND_GROUP: usize = 14;

/// Returns the exit code for a command that cannot be started.
fn exit(error: &io::Error) -> Exit {
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => Exit::Failed,
        Some(Errno::NOENT) => Exit::NotFound,
        _ => Exit::NotExecutable,
    }
}

/// A change of the command's own process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It ended.
    Ended(Exit),
    /// A signal stopped it.
    Stopped(i32),
}

/// The command's process and all processes that it started, unless they left its group. A panic ends
/// them: nobody would end them with the lease.
pub(super) struct Group {
    leader: Child,
}

impl Group {
    /// Starts the command in a group of its own.
    pub(super) fn start(mut command: Command) -> Result<Self, Stop> {
        match command.process_group(0).spawn() {
            Ok(leader) => Ok(Self { leader }),
            Err(error) => {
                let exit = exit(&error);
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

    /// Returns true if the group has a process that has not ended. One that this process may not
    /// signal counts.
    pub(super) fn is_alive(&self) -> bool {
        test_kill_process_group(self.id()) != Err(Errno::SRCH)
            // A process that started during the first look is seen by the second.
            && !(has_ended(self.id()) && has_ended(self.id()))
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

impl Drop for Group {
    fn drop(&mut self) {
        // Without a panic the supervisor has ended the group, and its id may be that of another by now.
        if thread::panicking() {
            self.signal(Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use rustix::process::waitpid;

    use super::*;

    #[test]
    fn a_panic_ends_the_group() {
        let mut command = Command::new("sleep");
        command.arg("10");
        let group = Group::start(command).expect("a command that can be started");
        let id = group.id();
        let supervisor = move || {
            let _group = group;
            panic!("a defect of the supervisor");
        };
        assert!(catch_unwind(AssertUnwindSafe(supervisor)).is_err());
        let (_, status) =
            waitpid(Some(id), WaitOptions::empty()).expect("a child").expect("its end");
        assert_eq!(status.terminating_signal(), Some(Signal::KILL.as_raw()));
    }

    #[test]
    fn a_system_without_resources_is_not_an_error_of_the_command() {
        let exit = |error| super::exit(&io::Error::from(error));
        assert_eq!(exit(Errno::NOENT), Exit::NotFound);
        assert_eq!(exit(Errno::ACCESS), Exit::NotExecutable);
        assert_eq!(exit(Errno::TOOBIG), Exit::NotExecutable);
        for error in [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE] {
            assert_eq!(exit(error), Exit::Failed, "{error}");
        }
    }

    #[test]
    fn a_process_is_described_behind_the_name_of_its_program() {
        let group = Pid::from_raw(42).expect("not 0");
        let of = |stat: &str| member(group, stat.as_bytes());
        let is = |has_ended, parent| Some(Member { has_ended, parent });
        let rest = "42 0 -1 4228108 0 0 0 0 0 0 0 0 20 0";
        assert_eq!(of(&format!("7 (sh) Z 1 42 {rest} 1 0 99\n")), is(true, 1));
        assert_eq!(of(&format!("7 (a) b) R 1 (c) S 3 42 {rest} 1 0 99")), is(false, 3));
        assert_eq!(of(&format!("7 (sh) Z 1 42 {rest} 2 0 99")), is(false, 1), "a live thread");
        assert_eq!(of(&format!("7 (sh) S 42 41 {rest} 1 0 99")), None, "another group");
        assert_eq!(of(""), None);
        assert_eq!(of("7 (sh)"), None);
    }
}
