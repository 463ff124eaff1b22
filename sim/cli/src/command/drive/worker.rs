//! A worker's process.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::leftovers;
use super::watchdog::Watchdog;

/// Maximum number of characters of the last words.
const WORDS_MAX: usize = 200;

/// Number of bytes at the end of a log in which the last words are looked for.
const TAIL_BYTES: u64 = 8_192;

/// Description of a process to start.
pub(super) struct Start {
    /// Name of the scenario's client.
    pub(super) client: String,
    /// Program and arguments.
    pub(super) words: Vec<String>,
    /// Variables of the environment, beside those of `drive`.
    pub(super) environment: Vec<(&'static str, String)>,
    /// Mark of its processes.
    pub(super) mark: String,
    /// File for its output.
    pub(super) log: PathBuf,
}

/// A worker. It leads a process group of its own, which is killed when this value is dropped.
pub(super) struct Worker<'w> {
    watchdog: &'w Watchdog,
    process: Child,
    pub(super) client: String,
    pub(super) log: PathBuf,
    mark: String,
    has_ended: bool,
}

/// The end of a worker's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Code(i32),
    Signal(i32),
}

impl core::fmt::Display for End {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "with exit code {code}"),
            Self::Signal(signal) => write!(f, "by signal {signal}"),
        }
    }
}

impl<'w> Worker<'w> {
    pub(super) fn start(watchdog: &'w Watchdog, start: Start) -> io::Result<Self> {
        let Start { client, words, environment, mark, log } = start;
        let (program, arguments) = words.split_first().expect("a command has a word");
        if let Some(directory) = log.parent() {
            fs::create_dir_all(directory)?;
        }
        let output = File::create(&log)?;
        let process = Command::new(program)
            .args(arguments)
            .envs(environment)
            .env(leftovers::VARIABLE, &mark)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        watchdog.watch(process.id());
        Ok(Self { watchdog, process, client, log, mark, has_ended: false })
    }

    /// Returns the number of the process, which is that of its group, too.
    pub(super) fn group(&self) -> u32 {
        self.process.id()
    }

    /// Asks the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
        // A group that is stopped receives nothing else.
        self.signal(Signal::CONT);
    }

    /// Kills the group, and what the worker started in other groups. Returns the number of processes
    /// beside the worker's own, if that one has ended.
    pub(super) fn kill(&mut self) -> usize {
        if core::mem::replace(&mut self.has_ended, true) {
            return 0;
        }
        // Before the group: the parent of a dead process is unknown.
        let left = leftovers::kill(&self.mark);
        self.signal(Signal::KILL);
        self.watchdog.release(self.process.id());
        let _ = self.process.wait();
        left
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = pid(self.process.id()) {
            // A group without processes needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the number of bytes that the worker has printed.
    pub(super) fn printed(&self) -> u64 {
        fs::metadata(&self.log).map_or(0, |it| it.len())
    }

    /// Returns the last line that the worker has printed, fit for a terminal.
    pub(super) fn last_words(&self) -> Option<String> {
        let mut file = File::open(&self.log).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).ok()?;
        let mut tail = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
        let tail = String::from_utf8_lossy(&tail);
        let line = tail.lines().rev().find(|line| !line.trim().is_empty())?.trim();
        let plain = line.chars().flat_map(|it| {
            let escaped = it.is_control().then(|| it.escape_default());
            let plain = escaped.is_none().then_some(it);
            escaped.into_iter().flatten().chain(plain)
        });
        let mut words: String = plain.take(WORDS_MAX + 1).collect();
        if let Some((end, _)) = words.char_indices().nth(WORDS_MAX) {
            words.truncate(end);
            words += "…";
        }
        Some(words)
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until the process has ended. It stays a zombie, so that no other process gets its number.
pub(super) fn await_end(process: u32) -> io::Result<End> {
    let pid = pid(process).ok_or(io::ErrorKind::NotFound)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(Some(status)) => break status,
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let signal = status.terminating_signal().map(End::Signal);
    Ok(status.exit_status().map(End::Code).or(signal).unwrap_or(End::Code(-1)))
}

fn pid(process: u32) -> Option<Pid> {
    i32::try_from(process).ok().and_then(Pid::from_raw)
}
