//! One master: its server, its clocks, and the port at which it listens.

#![expect(clippy::disallowed_methods, reason = "masters on real sockets in real time")]

mod connection;
mod process;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub(super) use self::process::Process;
use super::chronicle::Chronicle;
use super::executor::{Executor, begins_with};
use super::hours::Hours;
use super::limits::CONNECTIONS_MAX;
use super::pushes::Pushes;
use super::socket::Door;
use super::weather::{Life, Weather};
use crate::engine::stage::nodes::key_ended;
use crate::history::ClockKind;
use crate::master::Disk;
use crate::master::resp::Value;
use crate::master::server::{Server, Session};
use crate::world::{Choice, Choices, HostClocks, Label};

/// How often keys are deleted whose time has come.
const CYCLE: Duration = Duration::from_millis(100);

/// How long it takes until something may be had that somebody else has: a port, a descriptor.
pub(super) const RETRY: Duration = Duration::from_millis(10);

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
    pub(super) executor: Executor,
    pub(super) pushes: Pushes,
    /// If it is a process of its own.
    process: Option<Process>,
    weather: Mutex<Weather>,
    is_stalled: AtomicBool,
    roads: Roads,
    /// Where it listens, and who takes connections while it does.
    address: SocketAddr,
    door: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    connections: AtomicUsize,
    accepted: AtomicU64,
    /// Syncs in the background are numbered from 1.
    syncs_begun: AtomicU64,
    syncs_done: AtomicU64,
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
            executor: Executor::new(server, Arc::clone(&hours)),
            hours,
            pushes: Pushes::default(),
            chronicle,
            changed: Notify::new(),
            clocks: Mutex::new(clocks),
            process: None,
            weather: Mutex::new(Weather::default()),
            is_stalled: AtomicBool::new(false),
            roads,
            address,
            door: tokio::sync::Mutex::new(None),
            connections: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            syncs_begun: AtomicU64::new(0),
            syncs_done: AtomicU64::new(0),
        }
    }

    /// The same, as a process of its own.
    pub(super) fn with_process(self, process: Process) -> Self {
        Self { process: Some(process), ..self }
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
        self.executor.server().await
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

    /// A request is about to be executed.
    pub(super) fn begin(&self, server: &mut Server, request: &[Bytes]) {
        if let Some(process) = &self.process {
            process.begin(server, request);
        }
    }

    /// A request was executed; why what it says cannot be done after all.
    pub(super) fn executed(
        self: &Arc<Self>,
        server: &mut Server,
        request: &[Bytes],
    ) -> Option<Value> {
        if self.process.is_none() || !begins_with(request, b"CONFIG") {
            return None;
        }
        let error = self.configured(server).err()?;
        Some(Value::error(format!("ERR CONFIG SET failed: {error}")))
    }

    /// Does what is set, as far as it is about a process of its own.
    pub(super) fn configured(self: &Arc<Self>, server: &mut Server) -> io::Result<()> {
        self.process.as_ref().map_or(Ok(()), |process| process.configured(self, server))
    }

    /// Delivers what the server has for connections that did not ask for it.
    pub(super) fn push(&self, server: &mut Server) {
        self.pushes.deliver(server.take_pushes());
    }

    /// Closes the connections that somebody said CLIENT KILL of.
    pub(super) fn close_killed(&self, server: &mut Server) {
        let killed = server.clients_mut().take_killed();
        if !killed.is_empty() {
            self.change(|weather| weather.killed.extend(killed));
        }
    }

    /// A sync begins.
    pub(super) fn sync_begins(&self) {
        self.syncs_begun.fetch_add(1, Ordering::AcqRel);
    }

    /// The last one that began is done, and whoever waits for it should know.
    pub(super) fn sync_ends(&self) {
        self.syncs_done.store(self.syncs_begun.load(Ordering::Acquire), Ordering::Release);
        self.changed.notify_waiters();
    }

    /// The number of the sync by which everything is kept that is on `disk` now.
    pub(super) fn sync_of_all(&self, disk: &Disk) -> u64 {
        let begun = self.syncs_begun.load(Ordering::Acquire);
        // What is written while a sync is under way is written after it.
        let is_under_way = disk.is_syncing() && !disk.is_write_postponed();
        if is_under_way { begun } else { begun + 1 }
    }

    /// The number of the last sync that is done.
    pub(super) fn synced(&self) -> u64 {
        self.syncs_done.load(Ordering::Acquire)
    }

    /// A connection that the `incarnation`-th process took is gone.
    pub(super) async fn forget(&self, session: Session, incarnation: u32) {
        let id = session.id();
        self.pushes.close(id);
        let mut server = self.server().await;
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
            let mut server = self.server().await;
            if server.is_running() {
                server.expire_active(self.wall_ns() / 1_000_000, |ended| {
                    self.tell_of(&ended);
                });
                self.push(&mut server);
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

    /// Takes connections from now on.
    pub(super) async fn open_door(self: &Arc<Self>, door: Door) {
        *self.door.lock().await = Some(tokio::spawn(Arc::clone(self).accept(door)));
    }

    /// The `incarnation`-th process takes connections, once nobody else has the port.
    pub(super) async fn reopen_door(self: &Arc<Self>, incarnation: u32) {
        loop {
            let mut door = self.door.lock().await;
            if door.is_some() || !self.is_alive(incarnation) {
                return;
            }
            if let Ok(found) = Door::at(self.address) {
                *door = Some(tokio::spawn(Arc::clone(self).accept(found)));
                return;
            }
            drop(door);
            // An outgoing connection has it for the moment.
            tokio::time::sleep(RETRY).await;
        }
    }

    fn is_alive(&self, incarnation: u32) -> bool {
        let weather = self.weather();
        weather.life == Life::Up && weather.incarnation == incarnation
    }

    /// Takes no more connections: the kernel refuses them.
    pub(super) async fn close_door(&self) {
        if let Some(door) = self.door.lock().await.take() {
            door.abort();
            // It is over either way.
            let _ = door.await;
        }
    }

    /// Takes connections at `door`.
    pub(super) async fn accept(self: Arc<Self>, door: Door) {
        loop {
            let Ok(socket) = door.accept().await else {
                // Out of descriptors: it will pass when somebody goes.
                tokio::time::sleep(RETRY).await;
                continue;
            };
            let count = self.connections.fetch_add(1, Ordering::Relaxed);
            let id = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
            let node = Arc::clone(&self);
            tokio::spawn(async move {
                if count < CONNECTIONS_MAX {
                    connection::serve(socket, &node, id).await;
                } else {
                    connection::refuse(socket);
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
}
