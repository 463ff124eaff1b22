//! Servers, and calls of the command with them.

use std::io::{BufRead, BufReader, Read, Write};
use std::ops::{Deref, DerefMut};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use crate::server::Server;
use crate::wait::until;

/// Time limit for everything that does not wait for a TTL, even on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Path of the command.
pub(crate) const REDLOCK: &str = env!("CARGO_BIN_EXE_redlock");

/// Independent servers, without persistence.
pub(crate) struct Fleet(Vec<Server>);

impl Fleet {
    pub(crate) fn of(size: usize) -> Self {
        Self((0..size).map(|_| Server::start(&[])).collect())
    }

    /// The command with settings for these servers, which are new and have no leases to forget. It
    /// waits for slow ones, because the test machine may be busy.
    pub(crate) fn command(&self, program: &str) -> Command {
        let urls: Vec<String> = self.iter().map(Server::url).collect();
        let mut command = heedful(program);
        command.env("REDLOCK_NODES", urls.join(",")).env("REDLOCK_FLEET_MAX_TTL", "10s");
        command.env("REDLOCK_TTL", "10s").env("REDLOCK_NODE_TIMEOUT", "1s");
        command.env("REDLOCK_RESTART_GUARD", "delayed-restart").stdin(Stdio::null());
        command
    }

    /// `redlock` with `words`, which are separated by spaces.
    pub(crate) fn redlock(&self, words: &str) -> Command {
        let mut command = self.command(REDLOCK);
        command.args(words.split_whitespace());
        command
    }

    /// `redlock run` with `options` of a shell that executes `script`.
    pub(crate) fn run(&self, options: &str, script: &str) -> Command {
        let mut command = self.redlock(&format!("run {options} res -- sh -c"));
        command.arg(script);
        command
    }

    /// Waits until no server has a key. The TTL is too long for an expired key to be mistaken for
    /// one that was released.
    pub(crate) fn empties(&self) {
        for server in &self.0 {
            until("the keys are released", Duration::from_secs(5), || server.keys() == 0);
        }
    }

    /// Sets the key `res` of somebody else on every server.
    pub(crate) fn take(&self) {
        self.iter().for_each(|server| server.ask::<()>("SET res somebody PX 60000"));
    }
}

impl Deref for Fleet {
    type Target = [Server];

    fn deref(&self) -> &[Server] {
        &self.0
    }
}

impl DerefMut for Fleet {
    fn deref_mut(&mut self) -> &mut [Server] {
        &mut self.0
    }
}

/// `program` with no signal ignored, although the caller of these tests may ignore some: `nohup` and
/// a shell's `&` do, and `redlock` leaves them ignored.
fn heedful(program: &str) -> Command {
    if !cfg!(target_os = "linux") {
        return Command::new(program);
    }
    let mut command = Command::new("env");
    command.args(["--default-signal", program]);
    command
}

/// The exit code and the output of a finished call.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> Done {
    let Output { status, stdout, stderr } = command.output().expect("a command that can be run");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Done { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// A call under way, killed when dropped.
pub(crate) struct Call {
    process: Child,
    out: BufReader<ChildStdout>,
}

impl Call {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut process =
            command.stdout(Stdio::piped()).spawn().expect("a command that can be run");
        let out = BufReader::new(process.stdout.take().expect("it is piped"));
        Self { process, out }
    }

    /// Next line of the command's output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("text");
        String::from(line.trim_end())
    }

    /// Sends a line to the command's standard input.
    pub(crate) fn say(&mut self, line: &str) {
        let input = self.process.stdin.as_mut().expect("it is piped");
        writeln!(input, "{line}").expect("a reader");
    }

    /// Text that an ended call has written to its standard error, which must be piped.
    pub(crate) fn errors(&mut self) -> String {
        let mut text = String::new();
        let stderr = self.process.stderr.as_mut().expect("it is piped");
        stderr.read_to_string(&mut text).expect("text");
        text
    }

    /// Id of the process.
    pub(crate) fn id(&self) -> String {
        self.process.id().to_string()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let process = self.id();
        let status = Command::new("kill").args([signal, &process]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal} {process}");
    }

    /// Waits for the end; returns the exit code and the rest of the output.
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        let mut status = None;
        until("the call ends", SOON, || {
            status = self.process.try_wait().expect("a process of ours");
            status.is_some()
        });
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        (status.and_then(|status| status.code()), rest)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns true if there is such a process.
pub(crate) fn is_running(process: &str) -> bool {
    let status = Command::new("kill").args(["-0", process]).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
