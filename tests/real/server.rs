//! One `redis-server` process on loopback, in a directory of its own.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use redis::FromRedisValue;

use crate::wait::until;

/// A process may take this long to come up, to stop or to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The key by which clients know the server's memory.
const CANARY: &str = "redlock-client:canary";

/// Where ports are taken from: below the range of outgoing connections, one of which could take the
/// port of a server that is dead for a while.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// The program that is tested against, and what it is told first: `redis-server`, or what
/// `REDLOCK_REDIS_SERVER` says, such as `target/debug/redlock-sim master`.
fn program() -> Command {
    let told = std::env::var("REDLOCK_REDIS_SERVER");
    let told = told.as_deref().unwrap_or("redis-server");
    let mut words = told.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Whether the servers are simulated masters.
pub(crate) fn is_simulated() -> bool {
    let told = std::env::var("REDLOCK_REDIS_SERVER");
    told.is_ok_and(|told| told.split(' ').nth(1) == Some("master"))
}

/// What the program says of itself; `None` if there is no such program.
pub(crate) fn version() -> Option<String> {
    let output = program().arg("--version").stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command that deletes a key if it has a certain value, where servers of this version have
/// one.
pub(crate) fn deletes_if_equal(version: &str) -> Option<&'static str> {
    let number = version.split_once("v=")?.1;
    let mut parts = number.split('.').map_while(|part| part.parse::<u32>().ok());
    let number = (parts.next()?, parts.next()?);
    let is_valkey = version.to_ascii_lowercase().contains("valkey");
    match is_valkey {
        true => (number >= (9, 0)).then_some("delifeq"),
        false => (number >= (8, 4)).then_some("delex"),
    }
}

/// A server, killed when dropped.
pub(crate) struct Server {
    port: u16,
    directory: PathBuf,
    options: Vec<String>,
    process: Child,
}

impl Server {
    /// A server that keeps nothing on disk unless `options` say so.
    pub(crate) fn start(options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().copied().map(String::from).collect();
        loop {
            let port = free_port();
            let name = format!("redlock-real-{}-{port}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            fs::create_dir(&directory).expect("a directory of our own");
            let process = spawn(port, &directory, &options);
            let mut server = Self { port, directory, options: options.clone(), process };
            // Another process may have taken the port meanwhile: then the server ends at once.
            if server.comes_up() {
                return server;
            }
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Where the server lives.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Ends the process as a power failure would.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("a process of ours");
        self.process.wait().expect("a process of ours");
    }

    /// A new process in the place of the old one. It knows only what is on disk.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.process = spawn(self.port, &self.directory, &self.options);
        assert!(self.comes_up(), "the port {} was taken meanwhile", self.port);
    }

    /// Stops the process: it executes nothing, and its kernel goes on taking connections and bytes.
    pub(crate) fn stop(&self) {
        self.signal("-STOP");
        until("the server stands still", PATIENCE, || self.state() == Some('T'));
    }

    /// Lets the process go on if it was stopped, and starts another one if it was killed.
    pub(crate) fn recover(&mut self) {
        if self.process.try_wait().expect("a process of ours").is_some() {
            self.restart();
        } else {
            self.cont();
        }
    }

    /// Lets a stopped process go on.
    pub(crate) fn cont(&self) {
        self.signal("-CONT");
        until("the server goes on", PATIENCE, || self.state() != Some('T'));
    }

    /// What the server answers to `line`, whose words are separated by spaces.
    pub(crate) fn ask<T: FromRedisValue>(&self, line: &str) -> T {
        let answer = self.try_ask(line);
        answer.unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub(crate) fn try_ask<T: FromRedisValue>(&self, line: &str) -> redis::RedisResult<T> {
        let mut words = line.split(' ');
        let mut command = redis::cmd(words.next().expect("a command"));
        words.for_each(|word| {
            command.arg(word);
        });
        let client = redis::Client::open(self.url())?;
        let mut connection = client.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        command.query(&mut connection)
    }

    /// How many keys there are, without the canary.
    pub(crate) fn keys(&self) -> usize {
        self.names().iter().filter(|name| *name != CANARY).count()
    }

    /// The names of the keys. DBSIZE would count those that have expired, until somebody looks at
    /// them.
    pub(crate) fn names(&self) -> Vec<String> {
        let names: Vec<Vec<u8>> = self.ask("KEYS *");
        names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// How often `command` was executed.
    pub(crate) fn calls(&self, command: &str) -> usize {
        let stats: String = self.ask("INFO commandstats");
        let prefix = format!("cmdstat_{command}:calls=");
        let calls = stats.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
        calls.map_or(0, |calls| calls.parse().expect("a number"))
    }

    /// The connections of our clients, which name themselves.
    pub(crate) fn connections(&self) -> Vec<u64> {
        let list: String = self.ask("CLIENT LIST");
        let ours = list.lines().filter(|line| line.contains(" name=redlock-client "));
        ours.filter_map(|line| line.split(' ').next()?.strip_prefix("id=")?.parse().ok()).collect()
    }

    fn comes_up(&mut self) -> bool {
        let mut alive = true;
        until("the server answers or ends", PATIENCE, || {
            alive = self.process.try_wait().expect("a process of ours").is_none();
            !alive || self.is_answering()
        });
        alive
    }

    /// Whether it is this process that answers, and not another one that was faster.
    fn is_answering(&self) -> bool {
        let line = format!("process_id:{}", self.process.id());
        self.try_ask::<String>("INFO server").is_ok_and(|info| info.lines().any(|it| it == line))
    }

    fn signal(&self, signal: &str) {
        let process = self.process.id().to_string();
        let status = Command::new("kill").args([signal, &process]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal} {process}");
    }

    /// The letter by which the kernel names the state of the process.
    fn state(&self) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn spawn(port: u16, directory: &Path, options: &[String]) -> Child {
    let mut command = program();
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    command.args(["--appendonly", "no", "--dir"]).arg(directory).args(options);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the program that was asked for its version")
}

/// A port that nobody listens on, and that nobody else in this process is given.
pub(crate) fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let size = PORTS.end - PORTS.start;
    // Processes of the same machine begin at different places, far from each other.
    let first = u16::try_from(std::process::id() * 601 % u32::from(size)).expect("below 2^16");
    let mut ports = std::iter::repeat_with(|| {
        let offset = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % size;
        PORTS.start + offset
    });
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.by_ref().take(usize::from(size)).find(|port| is_free(port)).expect("a free port")
}
