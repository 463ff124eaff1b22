//! One master as a process of its own, as a replacement for `redis-server`.
//!
//! It accepts the options that Redis accepts in a file or through `CONFIG SET`. It stores nothing
//! on disk: a later process starts empty.

use std::env;
use std::io;
use std::net::{AddrParseError, IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use bytes::Bytes;
use lock_judge::history::NodeId;
use lock_judge::ids::IdVec;
use redis_sim::profile::Profile;
use redis_sim::resp::Value;
use redis_sim::server::{Answer, Server, Session, Turn};
use redis_sim::{Master, Storage, Writer};
use tokio::runtime::{Builder, Runtime};

use super::identity::RunMark;
use super::node::Process;
use super::node::{MessageDelays, Node, NodeParts};
use super::run_clock::RunClock;
use super::socket::{Door, Network};
use crate::choice::Choices;

/// The default port of Redis.
const PORT: u16 = 6_379;

/// Number of threads; a script may block one of them.
const WORKERS: usize = 3;

/// Options that take one value.
const ONE_VALUE: [&str; 7] =
    ["appendonly", "bind", "daemonize", "dir", "port", "requirepass", "unixsocket"];

/// A master that is the only one in its process.
pub struct Alone {
    address: SocketAddr,
    runtime: Runtime,
}

/// An invalid option, or a failure to start.
#[derive(Debug, thiserror::Error)]
pub enum Misuse {
    /// An argument that is not an option.
    #[error("expected an option such as `--port`, found `{0}`")]
    NoOption(String),
    /// An option without a value. It may be unknown, too: the server has not seen it yet.
    #[error("`--{0}` has no value, or is unknown")]
    NoValue(String),
    /// Several values of an option that takes one.
    #[error("`--{0}` takes one value, found `{1}`")]
    Values(String, String),
    /// An invalid port.
    #[error("`{0}` is not a port")]
    Port(String),
    /// An invalid address.
    #[error("`--bind {0}`: {1}")]
    Address(String, #[source] AddrParseError),
    /// A directory that cannot be entered.
    #[error("`--dir {0}`: {1}")]
    Directory(String, #[source] io::Error),
    /// A command to rename. Only removal is supported: a known command and an empty new name.
    #[error("`--rename-command {0}`: the command is unknown, or the new name is not empty")]
    Renamed(String),
    /// Persistence, which is not supported.
    #[error("`--appendonly yes`: `redlock-sim master` stores nothing on disk")]
    Persistence,
    /// A value that `CONFIG SET` would reject as well.
    #[error("`--{option}`: {error}")]
    Option {
        /// The option.
        option: String,
        /// The server's error.
        error: String,
    },
    /// Listening at an address or path failed.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address or path.
        address: String,
        /// The system's error.
        error: io::Error,
    },
    /// The system has no threads or files left.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

impl Misuse {
    fn listen(address: impl ToString, error: io::Error) -> Self {
        Self::Listen { address: address.to_string(), error }
    }
}

/// The parsed options.
struct Options {
    address: SocketAddr,
    directory: Option<PathBuf>,
    /// Unix socket to listen on as well.
    socket: Option<PathBuf>,
    /// Commands to remove from the server.
    without: Vec<String>,
    /// Commands to execute at the start, in order, each with the option that it comes from.
    commands: Vec<(String, Vec<Bytes>)>,
}

impl Alone {
    /// Starts to serve.
    ///
    /// # Errors
    ///
    /// If an option is invalid, or the port is taken.
    pub fn start(options: &[String], profile: &'static Profile) -> Result<Self, Misuse> {
        let options = Options::parse(options)?;
        // As in Redis: file names are relative to this directory.
        if let Some(directory) = &options.directory {
            let named = directory.display().to_string();
            env::set_current_dir(directory).map_err(|error| Misuse::Directory(named, error))?;
        }
        let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
        let clock = Arc::new(RunClock::begin());
        let clocks = clock.clocks(0);
        let wall_ns = clocks.read(lock_judge::history::ClockKind::Wall, 0);
        let run_id = RunMark::unique().run_id(NodeId(0), 0);
        let mut server =
            Server::new(Master::new(Storage::default(), run_id, wall_ns / 1_000_000), profile);
        // No two processes have the same id, so that no two draw the same numbers.
        server.set_seed(run_id.iter().fold(0, |seed, byte| seed << 8 ^ u64::from(*byte)));
        server.set_process_id(std::process::id());
        for command in options.without {
            if !server.lack(&command) {
                return Err(Misuse::Renamed(command));
            }
        }
        for (option, command) in &options.commands {
            tell(&mut server, option, command, wall_ns)?;
        }
        let guard = runtime.enter();
        let at = options.address;
        let door = Door::at(at).map_err(|error| Misuse::listen(at, error))?;
        let address = door.address()?;
        server.config_mut().insist("dir", env::current_dir()?.to_string_lossy());
        server.config_mut().insist("port", address.port().to_string());
        let delays = MessageDelays {
            choices: Choices::new(0),
            clients: IdVec::new(),
            usual: (0, 0),
            drawn: AtomicU32::new(0),
        };
        let node = Node::new(
            NodeId(0),
            clock,
            None,
            (Network::Kernel, address),
            NodeParts { clocks, server, delays },
        );
        let node = Arc::new(node.with_process(Process::at(address.ip())));
        if let Some(path) = options.socket {
            let door = Door::at_path(&path);
            let door = door.map_err(|error| Misuse::listen(path.display(), error))?;
            runtime.spawn(Arc::clone(&node).accept(door));
        }
        runtime.block_on(async {
            node.configured(&mut *node.server().await)?;
            node.open_door(door).await;
            io::Result::Ok(())
        })?;
        runtime.spawn(node.expire_keys());
        drop(guard);
        Ok(Self { address, runtime })
    }

    /// Returns the address at which the master listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the process ends.
    pub fn serve(self) -> ! {
        loop {
            self.runtime.block_on(core::future::pending::<()>());
        }
    }
}

/// Executes `command`, which applies `option`, on `server`.
fn tell(server: &mut Server, option: &str, command: &[Bytes], wall_ns: u64) -> Result<(), Misuse> {
    let mut touched = Vec::new();
    let turn = Turn { wall_ns, writer: Writer::Operator, touched: &mut touched };
    let mut session = Session::new(0);
    // A fresh session: the command line does not need to authenticate.
    let answer = session.execute(server, command, turn);
    session.close(server);
    match answer {
        Answer::Reply(Value::Error(error)) => Err(Misuse::Option {
            option: option.to_owned(),
            error: String::from_utf8_lossy(&error).into_owned(),
        }),
        _ => Ok(()),
    }
}

impl Options {
    fn parse(words: &[String]) -> Result<Self, Misuse> {
        let mut address = (IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);
        let (mut directory, mut socket, mut without) = (None, None, Vec::new());
        let (mut commands, mut passwords) = (Vec::new(), Vec::new());
        let mut rest = words;
        while let Some((word, behind)) = rest.split_first() {
            let option = word.strip_prefix("--").ok_or_else(|| Misuse::NoOption(word.clone()))?;
            let end = behind.iter().position(|it| it.starts_with("--")).unwrap_or(behind.len());
            let (values, behind) = behind.split_at(end);
            rest = behind;
            let first = values.first().ok_or_else(|| Misuse::NoValue(option.to_owned()))?;
            if ONE_VALUE.contains(&option) && values.len() > 1 {
                return Err(Misuse::Values(option.to_owned(), values.join(" ")));
            }
            match option {
                "port" => address.1 = first.parse().map_err(|_| Misuse::Port(first.clone()))?,
                "bind" => {
                    let parsed = first.parse();
                    address.0 = parsed.map_err(|error| Misuse::Address(first.clone(), error))?;
                }
                "dir" => directory = Some(PathBuf::from(first)),
                "unixsocket" => socket = Some(PathBuf::from(first)),
                "rename-command" if values.get(1).is_some_and(String::is_empty) => {
                    without.push(first.clone());
                }
                "rename-command" => return Err(Misuse::Renamed(first.clone())),
                "appendonly" if first == "no" => {}
                "appendonly" => return Err(Misuse::Persistence),
                "daemonize" if first == "no" => {}
                "user" => {
                    let words = values.iter().flat_map(|it| it.split_whitespace());
                    commands.push((option.to_owned(), command(&["ACL", "SETUSER"], words)));
                }
                // Applied last, so that the other options are applied before authentication is
                // required.
                "requirepass" => passwords.push((option, first)),
                _ => {
                    let value = values.join(" ");
                    let value = core::iter::once(value.as_str());
                    commands.push((option.to_owned(), command(&["CONFIG", "SET", option], value)));
                }
            }
        }
        for (option, password) in passwords {
            let value = core::iter::once(password.as_str());
            commands.push((option.to_owned(), command(&["CONFIG", "SET", option], value)));
        }
        let address = SocketAddr::from(address);
        Ok(Self { address, directory, socket, without, commands })
    }
}

fn command<'a>(head: &[&str], rest: impl Iterator<Item = &'a str>) -> Vec<Bytes> {
    let head = head.iter().map(|word| Bytes::copy_from_slice(word.as_bytes()));
    head.chain(rest.map(|word| Bytes::copy_from_slice(word.as_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_takes_no_more_values_than_it_has() {
        let misuse = |line: &str| {
            let words: Vec<String> = line.split(' ').map(String::from).collect();
            Options::parse(&words).err().map(|misuse| misuse.to_string())
        };
        let refused = "`--port` takes one value, found `0 9999`";
        assert_eq!(misuse("--port 0 9999 --bind 127.0.0.1").as_deref(), Some(refused));
        assert_eq!(misuse("--port 0 --user default on nopass ~* +@all --maxmemory 1gb"), None);
    }
}
