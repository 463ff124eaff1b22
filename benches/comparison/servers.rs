//! The `redis-server` processes used for all measurements.

use core::time::Duration;
use std::io;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use redis::Connection;
use rustix::process::{Pid, Signal, kill_process};

use crate::process;

/// Servers without persistence on loopback. A drop ends them.
pub(crate) struct Servers(Vec<Server>);

pub(crate) struct Server {
    port: u16,
    child: Child,
    admin: Connection,
}

impl Servers {
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        (0..count).map(|_| Server::start()).collect::<io::Result<_>>().map(Self)
    }

    /// URLs of the first `count` servers.
    pub(crate) fn urls(&self, count: usize) -> Vec<String> {
        self.0[..count].iter().map(|it| format!("redis://127.0.0.1:{}", it.port)).collect()
    }

    /// Ports of the first `count` servers.
    pub(crate) fn ports(&self, count: usize) -> Vec<u16> {
        self.0[..count].iter().map(|it| it.port).collect()
    }

    /// Pins all servers to `core`, or lets them run on every core.
    pub(crate) fn pin(&self, core: Option<usize>) {
        self.0.iter().for_each(|it| process::pin(Some(it.pid()), core));
    }

    /// Stops the last server with SIGSTOP, as if its machine hung.
    pub(crate) fn stop_last(&self) {
        self.last().signal(Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        self.last().signal(Signal::CONT);
    }

    fn last(&self) -> &Server {
        self.0.last().expect("there are servers")
    }

    /// Number of keys on all servers together, without the canaries by which clients recognise the
    /// data sets.
    pub(crate) fn keys(&mut self) -> u64 {
        let keys = |it: &mut Server| {
            let canary = redis::cmd("EXISTS").arg("redlock-client:canary").query(&mut it.admin);
            it.ask::<u64>("DBSIZE") - canary.unwrap_or(0)
        };
        self.0.iter_mut().map(keys).sum()
    }

    /// Deletes all keys and resets the statistics.
    pub(crate) fn clear(&mut self) {
        for server in &mut self.0 {
            let () = server.ask("FLUSHALL");
        }
        self.reset_statistics();
    }

    /// Makes [`Servers::commands`] count from now on.
    pub(crate) fn reset_statistics(&mut self) {
        for server in &mut self.0 {
            let reset: redis::RedisResult<()> =
                redis::cmd("CONFIG").arg("RESETSTAT").query(&mut server.admin);
            reset.expect("the server obeys");
        }
    }

    /// Number of commands that clients sent since [`Servers::reset_statistics`], handshakes included,
    /// without those that scripts ran and without this program's own.
    pub(crate) fn commands(&mut self) -> u64 {
        self.0.iter_mut().map(Server::commands).sum()
    }

    /// Processor time used by all servers together.
    pub(crate) fn cpu(&self) -> Duration {
        self.0.iter().map(|it| process::cpu_of(it.child.id())).sum()
    }
}

impl Server {
    fn start() -> io::Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let mut guard = Starting(Some(child));
        let admin = connect(port)?;
        let child = guard.0.take().expect("it was put there");
        Ok(Self { port, child, admin })
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the server is ours and alive");
    }

    fn ask<T: redis::FromRedisValue>(&mut self, command: &str) -> T {
        redis::cmd(command).query(&mut self.admin).expect("the server answers")
    }

    fn commands(&mut self) -> u64 {
        let info: String =
            redis::cmd("INFO").arg("commandstats").query(&mut self.admin).expect("it answers");
        // GET and DEL are left out: only scripts run them here. A script also runs the SET of a
        // canary, once for each emptied server.
        let sent = ["set:", "eval:", "evalsha:", "delex:", "pttl:", "hello:", "select:", "client|"];
        let sent = sent.iter().chain(&["script|load:"]).map(|it| format!("cmdstat_{it}"));
        let sent: Vec<String> = sent.collect();
        let calls = info.lines().filter(|line| sent.iter().any(|it| line.starts_with(&it[..])));
        calls
            .filter_map(|line| line.split_once("calls=")?.1.split_once(','))
            .map(|(calls, _)| calls.parse::<u64>().expect("a number of calls"))
            .sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A server that may not have started yet; a drop ends it.
struct Starting(Option<Child>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(end);
    }
}

fn end(child: &mut Child) {
    // SIGKILL also ends a stopped process. An error means that it is dead already.
    let _ = child.kill();
    let _ = child.wait();
}

fn connect(port: u16) -> io::Result<Connection> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"));
    let client = client.map_err(io::Error::other)?;
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        match client.get_connection() {
            Ok(connection) => return Ok(connection),
            Err(error) if Instant::now() > end => return Err(io::Error::other(error)),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
