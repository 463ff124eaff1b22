//! One `redis-server` process on loopback, in its own directory.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use redis::FromRedisValue;

use crate::wait::until;

/// Maximum time for a process to start, to stop or to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Key by which clients recognise the server's data set.
pub(crate) const CANARY: &str = "redlock-client:canary";

/// Range of the ports. It lies below the range of outgoing connections, because such a connection
/// could take the port of a server that is down for a while.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// Command of the server under test with its first arguments: `redis-server`, or the value of
/// `REDLOCK_REDIS_SERVER`, such as `target/debug/redlock-sim master`.
fn program() -> Command {
    let told = std::env::var("REDLOCK_REDIS_SERVER");
    let told = told.as_deref().unwrap_or("redis-server");
    let mut words = told.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Returns true if the servers are simulated masters.
pub(crate) fn is_simulated() -> bool {
    let told = std::env::var("REDLOCK_REDIS_SERVER");
    told.is_ok_and(|told| told.split(' ').nth(1) == Some("master"))
}

/// Output of the program's `--version`; `None` if there is no such program.
pub(crate) fn version() -> Option<String> {
    let output = program().arg("--version").stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the command that deletes a key if it has a given value, if servers of this version have
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
    /// Starts a server without persistence, unless `options` enable it.
    pub(crate) fn start(options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().copied().map(String::from).collect();
        loop {
            let port = free_port();
            let name = format!("redlock-real-{}-{port}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            fs::create_dir(&directory).expect("a directory of our own");
            let process = spawn(port, &directory, &options);
            let mut server = Self { port, directory, options: options.clone(), process };
            // If another process has taken the port meanwhile, the server ends at once: try another
            // port.
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

    /// Directory of the server's files.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Kills the process at once.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("a process of ours");
        self.process.wait().expect("a process of ours");
    }

    /// Kills the process and starts a new one, which knows only the data on disk.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.process = spawn(self.port, &self.directory, &self.options);
        assert!(self.comes_up(), "the port {} was taken meanwhile", self.port);
    }

    /// Stops the process. It executes nothing, while its kernel still accepts connections and
    /// bytes.
    pub(crate) fn stop(&self) {
        self.signal("-STOP");
        until("the server stands still", PATIENCE, || self.state() == Some('T'));
    }

    /// Continues the process if it was stopped, and restarts it if it was killed.
    pub(crate) fn recover(&mut self) {
        if self.process.try_wait().expect("a process of ours").is_some() {
            self.restart();
        } else {
            self.cont();
        }
    }

    /// Continues a stopped process.
    pub(crate) fn cont(&self) {
        self.signal("-CONT");
        until("the server goes on", PATIENCE, || self.state() != Some('T'));
    }

    /// Returns the server's reply to `line`, whose words are separated by spaces.
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

    /// Number of keys, without the canary.
    pub(crate) fn keys(&self) -> usize {
        self.names().iter().filter(|name| *name != CANARY).count()
    }

    /// Names of the keys. DBSIZE would also count expired keys that nobody has accessed since.
    pub(crate) fn names(&self) -> Vec<String> {
        let names: Vec<Vec<u8>> = self.ask("KEYS *");
        names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Number of times that `command` was executed.
    pub(crate) fn calls(&self, command: &str) -> usize {
        let stats: String = self.ask("INFO commandstats");
        let prefix = format!("cmdstat_{command}:calls=");
        let calls = stats.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
        calls.map_or(0, |calls| calls.parse().expect("a number"))
    }

    /// Ids of the connections of our clients, recognised by their name.
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

    /// Returns true if this process replies on the port, and not another one that took it first.
    fn is_answering(&self) -> bool {
        let line = format!("process_id:{}", self.process.id());
        self.try_ask::<String>("INFO server").is_ok_and(|info| info.lines().any(|it| it == line))
    }

    fn signal(&self, signal: &str) {
        let process = self.process.id().to_string();
        let status = Command::new("kill").args([signal, &process]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal} {process}");
    }

    /// Letter that the kernel uses for the state of the process.
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

/// Returns a port that nobody listens on, and that no other caller in this process gets.
pub(crate) fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let size = PORTS.end - PORTS.start;
    // Processes on the same machine begin at different places, far from each other.
    let first = u16::try_from(std::process::id() * 601 % u32::from(size)).expect("below 2^16");
    let mut ports = std::iter::repeat_with(|| {
        let offset = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % size;
        PORTS.start + offset
    });
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.by_ref().take(usize::from(size)).find(|port| is_free(port)).expect("a free port")
}
