//! One master as a process of its own, in the place of `redis-server`.
//!
//! It takes the options that Redis takes in a file or by `CONFIG SET`. It keeps nothing on disk: a
//! process that comes after it begins empty.

use std::env;
use std::io;
use std::net::{AddrParseError, IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};

use super::hours::Hours;
use super::identity;
use super::node::Process;
use super::node::{Node, Roads};
use super::socket::Door;
use crate::history::Writer;
use crate::master::profile::Profile;
use crate::master::resp::Value;
use crate::master::server::{Answer, Server, Session, Turn};
use crate::master::{Master, Storage};
use crate::world::Choices;

/// Where Redis listens unless something else is said.
const PORT: u16 = 6_379;

/// Threads: one may be kept by a script.
const WORKERS: usize = 3;

/// A master that is alone in its process.
pub struct Alone {
    address: SocketAddr,
    runtime: Runtime,
}

/// Options that make no sense.
#[derive(Debug, thiserror::Error)]
pub enum Misuse {
    /// Something that is no option.
    #[error("expected an option such as `--port`, found `{0}`")]
    NoOption(String),
    /// An option without what it needs.
    #[error("`--{0}` needs a value")]
    NoValue(String),
    /// A port that is none.
    #[error("`{0}` is no port")]
    Port(String),
    /// An address that is none.
    #[error("`--bind {0}`: {1}")]
    Address(String, #[source] AddrParseError),
    /// A directory that is none.
    #[error("`--dir {0}`: {1}")]
    Directory(String, #[source] io::Error),
    /// Another name for a command.
    #[error("`--rename-command {0}`: there is no such command, or it is to have another name")]
    Renamed(String),
    /// What keeps keys on disk.
    #[error("`--appendonly yes`: a master that is alone keeps nothing on disk")]
    Persistence,
    /// What the server would not take by `CONFIG SET` either.
    #[error("`--{option}`: {error}")]
    Option {
        /// Which.
        option: String,
        /// What the server says.
        error: String,
    },
    /// It cannot listen at an address or path.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address or path.
        address: String,
        /// What the system says.
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

/// What options say.
struct Options {
    address: SocketAddr,
    directory: Option<PathBuf>,
    /// Where it listens besides.
    socket: Option<PathBuf>,
    /// The commands that it is to lack.
    without: Vec<String>,
    /// What the server is told, one after the other.
    commands: Vec<(String, Vec<Bytes>)>,
}

impl Alone {
    /// Begins to serve.
    ///
    /// # Errors
    ///
    /// If the options make no sense, or the port is taken.
    pub fn start(options: &[String], profile: &'static Profile) -> Result<Self, Misuse> {
        let options = Options::parse(options)?;
        // As Redis does: names of files are seen from there.
        if let Some(directory) = &options.directory {
            let named = directory.display().to_string();
            env::set_current_dir(directory).map_err(|error| Misuse::Directory(named, error))?;
        }
        let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
        let hours = Arc::new(Hours::begin());
        let clocks = hours.clocks(0);
        let wall_ns = clocks.read(crate::history::ClockKind::Wall, 0);
        let master = Master::new(Storage::default(), identity::run_id(0, 0), wall_ns / 1_000_000);
        let mut server = Server::new(master, profile);
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
        let roads = Roads {
            choices: Choices::new(0),
            clients: Vec::new(),
            usual: (0, 0),
            drawn: AtomicU32::new(0),
        };
        let node = Node::new(0, hours, None, address, (clocks, server, roads));
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

    /// Where it listens.
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

/// Has `server` execute `command`, which says what `option` does.
fn tell(server: &mut Server, option: &str, command: &[Bytes], wall_ns: u64) -> Result<(), Misuse> {
    let mut touched = Vec::new();
    let turn = Turn { wall_ns, writer: Writer::Operator, touched: &mut touched };
    let mut session = Session::new(0);
    // Whoever starts the process need not say who he is.
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
                // The others are said before anybody has to say who he is.
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
