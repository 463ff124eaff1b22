//! One master: its server, its clocks, and the port at which it listens.

#![expect(clippy::disallowed_methods, reason = "masters on real sockets in real time")]

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::chronicle::Chronicle;
use super::connection;
use super::hours::Hours;
use super::limits::{CONNECTIONS_MAX, PARTIAL_BYTES_MAX};
use super::weather::{Life, Weather};
use crate::engine::stage::nodes::key_ended;
use crate::history::ClockKind;
use crate::master::resp::Value;
use crate::master::server::{Server, Session};
use crate::world::{Choice, Choices, HostClocks, Label};

/// How many connections the kernel keeps for us.
const BACKLOG: u32 = 1_024;

/// How often keys are deleted whose time has come.
const CYCLE: Duration = Duration::from_millis(100);

/// How long others are kept waiting by a script before they are told so, unless the server is told
/// otherwise (`busy-reply-threshold`).
const BUSY_AFTER_NS: u64 = 5_000_000_000;

const BUSY: &str = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                    SHUTDOWN NOSAVE.";

/// Bytes that came and are no whole request, of all connections of the process.
static PARTIAL_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A master.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: u8,
    pub(super) hours: Arc<Hours>,
    /// Where what becomes of the lock is told, if anybody wants to know.
    pub(super) chronicle: Option<Arc<Chronicle>>,
    /// Rung whenever connections should look around.
    pub(super) changed: Notify,
    clocks: Mutex<HostClocks>,
    /// Whoever executes has it, for a moment or for a script. It is fair, and nobody waits for it
    /// without letting others run.
    server: tokio::sync::Mutex<Server>,
    /// When the script that is being executed began; 0: none is.
    script_since_ns: AtomicU64,
    busy_after_ns: AtomicU64,
    /// Where snapshots would be, if it is a process of its own.
    directory: Option<PathBuf>,
    weather: Mutex<Weather>,
    is_stalled: AtomicBool,
    roads: Roads,
    /// Where it listens, and who takes connections while it does.
    address: SocketAddr,
    door: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    connections: AtomicUsize,
    accepted: AtomicU64,
}

/// How long messages travel to a node, and back.
#[derive(Debug)]
pub(super) struct Roads {
    pub(super) choices: Choices,
    /// The names of the scenario's clients, and the shortest and longest way to each.
    pub(super) clients: Vec<(String, (u64, u64))>,
    /// The same for everybody else.
    pub(super) usual: (u64, u64),
    /// Counts the draws.
    pub(super) drawn: AtomicU32,
}

/// What becomes of who wants to execute.
pub(super) enum Entrance<'a> {
    Open(tokio::sync::MutexGuard<'a, Server>),
    /// A script keeps the node.
    Busy,
    /// There is no process.
    Dead,
}

impl Node {
    pub(super) fn new(
        place: u8,
        hours: Arc<Hours>,
        chronicle: Option<Arc<Chronicle>>,
        address: SocketAddr,
        (clocks, server, roads): (HostClocks, Server, Roads),
    ) -> Self {
        Self {
            place,
            hours,
            chronicle,
            changed: Notify::new(),
            clocks: Mutex::new(clocks),
            server: tokio::sync::Mutex::new(server),
            script_since_ns: AtomicU64::new(0),
            busy_after_ns: AtomicU64::new(BUSY_AFTER_NS),
            directory: None,
            weather: Mutex::new(Weather::default()),
            is_stalled: AtomicBool::new(false),
            roads,
            address,
            door: tokio::sync::Mutex::new(None),
            connections: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
        }
    }

    /// The same, as a process that lives in `directory`.
    pub(super) fn living_in(self, directory: PathBuf) -> Self {
        Self { directory: Some(directory), ..self }
    }

    pub(super) fn clocks(&self) -> MutexGuard<'_, HostClocks> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the node's wall clock reads.
    pub(super) fn wall_ns(&self) -> u64 {
        self.clocks().read(ClockKind::Wall, self.hours.now_ns())
    }

    /// The server, for the world around it.
    pub(super) async fn server(&self) -> tokio::sync::MutexGuard<'_, Server> {
        self.server.lock().await
    }

    pub(super) fn weather(&self) -> MutexGuard<'_, Weather> {
        self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the weather, and lets every connection know.
    pub(super) fn change(&self, change: impl FnOnce(&mut Weather)) {
        let mut weather = self.weather();
        change(&mut weather);
        weather.change();
        self.is_stalled.store(weather.stalls > 0, Ordering::Release);
        drop(weather);
        self.changed.notify_waiters();
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.is_stalled.load(Ordering::Acquire)
    }

    pub(super) fn is_due(&self, due_ns: u64) -> bool {
        due_ns == 0 || due_ns <= self.hours.now_ns()
    }

    pub(super) fn client_named(&self, name: &str) -> Option<u8> {
        let place = self.roads.clients.iter().position(|(known, _)| known == name)?;
        Some(place as u8)
    }

    /// How long the next message to or from `client` travels.
    pub(super) fn travels_ns(&self, client: Option<u8>) -> u64 {
        let own = client.and_then(|client| self.roads.clients.get(usize::from(client)));
        let (least, most) = own.map_or(self.roads.usual, |(_, way)| *way);
        if least == most {
            return least;
        }
        let repeat = self.roads.drawn.fetch_add(1, Ordering::Relaxed);
        let choice = Choice { node: self.place, repeat, ..Choice::of(Label::Delay, self.place) };
        self.roads.choices.between(choice, least, most)
    }

    /// The server, unless a script keeps it for too long.
    pub(super) async fn enter(&self) -> Entrance<'_> {
        let entered_ns = self.hours.now_ns();
        let server = loop {
            let since_ns = match self.script_since_ns.load(Ordering::Acquire) {
                0 => entered_ns,
                since_ns => since_ns,
            };
            tokio::select! {
                biased;
                server = self.server.lock() => break server,
                () = self.sleep_until(since_ns.saturating_add(self.busy_after_ns())) => {
                    if self.script_since_ns.load(Ordering::Acquire) != 0 {
                        return Entrance::Busy;
                    }
                }
            }
        };
        if server.is_running() { Entrance::Open(server) } else { Entrance::Dead }
    }

    fn busy_after_ns(&self) -> u64 {
        self.busy_after_ns.load(Ordering::Acquire)
    }

    /// A request is about to be executed.
    pub(super) fn begins(&self, server: &mut Server, request: &[Bytes]) {
        let Some(name) = request.first() else { return };
        let begins_with = |word: &[u8]| {
            name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        if begins_with(b"EVAL") {
            let after_ms = server.config().number("busy-reply-threshold").unsigned_abs();
            let after_ns = after_ms.saturating_mul(1_000_000);
            self.busy_after_ns.store(after_ns, Ordering::Release);
            self.script_since_ns.store(self.hours.now_ns().max(1), Ordering::Release);
        } else if let Some(directory) = &self.directory
            && (begins_with(b"BGSAVE") || begins_with(b"SAVE"))
        {
            // Nothing is written there, but a directory in the way is a directory in the way.
            server.set_unable_to_save(directory.join("dump.rdb").is_dir());
        }
    }

    /// Closes the connections that somebody said CLIENT KILL of.
    pub(super) fn close_killed(&self, server: &mut Server) {
        let killed = server.clients_mut().take_killed();
        if !killed.is_empty() {
            self.change(|weather| weather.killed.extend(killed));
        }
    }

    /// Nothing is executed any more.
    pub(super) fn leave(&self) {
        self.script_since_ns.store(0, Ordering::Release);
    }

    /// What is said to `request` while a script keeps the node.
    pub(super) fn busy_answer(&self, _request: &[Bytes]) -> Value {
        Value::error(BUSY)
    }

    /// A connection had so many bytes of a request that is not whole, and has so many now.
    pub(super) fn account_partial(&self, before: usize, now: usize) -> io::Result<()> {
        if now <= before {
            PARTIAL_BYTES.fetch_sub(before - now, Ordering::Relaxed);
            return Ok(());
        }
        let all = PARTIAL_BYTES.fetch_add(now - before, Ordering::Relaxed) + (now - before);
        if all > PARTIAL_BYTES_MAX { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
    }

    /// A connection is gone.
    pub(super) fn forget_partial(&self, bytes: usize) {
        PARTIAL_BYTES.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A connection that the `incarnation`-th process took is gone.
    pub(super) async fn forget(&self, session: Session, incarnation: u32) {
        let id = session.id();
        let mut server = self.server.lock().await;
        self.weather().killed.remove(&id);
        // Another process knows nothing of it.
        if server.is_running() && self.weather().incarnation == incarnation {
            session.close(&mut server);
        }
    }

    /// The active expiry cycle, ten times a second.
    pub(super) async fn expire_keys(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(CYCLE);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.is_stalled() {
                continue;
            }
            let mut server = self.server.lock().await;
            if server.is_running() {
                server.expire_active(self.wall_ns() / 1_000_000, |ended| {
                    self.tell_of(&ended);
                });
            }
        }
    }

    /// Tells that a key ended, if it is the lock's.
    pub(super) fn tell_of(&self, ended: &crate::master::Ended) {
        if let Some(chronicle) = &self.chronicle
            && chronicle.is_key(&ended.key)
        {
            chronicle.tell(key_ended(self.place, ended));
        }
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes connections from now on, at `listener`.
    pub(super) async fn open_door(self: &Arc<Self>, listener: TcpListener) {
        *self.door.lock().await = Some(tokio::spawn(Arc::clone(self).accept(listener)));
    }

    /// Takes connections again, once nobody else has the port.
    pub(super) async fn reopen_door(self: &Arc<Self>) {
        let mut door = self.door.lock().await;
        while door.is_none() {
            match listen(self.address) {
                Ok(listener) => *door = Some(tokio::spawn(Arc::clone(self).accept(listener))),
                // An outgoing connection has it for the moment.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// Takes no more connections: the kernel refuses them.
    pub(super) async fn close_door(&self) {
        if let Some(door) = self.door.lock().await.take() {
            door.abort();
            // It is over either way.
            let _ = door.await;
        }
    }

    /// Takes connections.
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors: it will pass when somebody goes.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let count = self.connections.fetch_add(1, Ordering::Relaxed);
            let id = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
            let node = Arc::clone(&self);
            tokio::spawn(async move {
                if count < CONNECTIONS_MAX {
                    connection::serve(stream, &node, id).await;
                } else {
                    connection::refuse(stream).await;
                }
                node.connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    /// How the node is, in a word.
    pub(super) fn state(&self) -> &'static str {
        let weather = self.weather();
        match weather.life {
            Life::Up if weather.stalls > 0 => "stalled",
            Life::Up => "up",
            Life::Killed => "down",
            Life::Dark => "dark",
        }
    }

    /// Waits for a true time.
    pub(super) async fn sleep_until(&self, at_ns: u64) {
        if at_ns == u64::MAX {
            return core::future::pending().await;
        }
        tokio::time::sleep_until(self.hours.instant(at_ns)).await;
    }
}

/// Listens at `address`; at any free port if that is 0.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
