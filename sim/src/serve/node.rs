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
use lock_judge::history::{ClientId, ClockKind, NodeId};
use lock_judge::ids::IdVec;
use redis_sim::Disk;
use redis_sim::resp::Value;
use redis_sim::server::{Server, Session};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub(super) use self::process::Process;
use super::executor::{Executor, begins_with};
use super::limits::CONNECTIONS_MAX;
use super::node_faults::{Life, NodeFaults};
use super::pushes::Pushes;
use super::recorder::Recorder;
use super::run_clock::RunClock;
use super::socket::{Door, Network};
use crate::choice::{Choice, Choices, Label};
use crate::world::HostClocks;
use crate::world::key_ended;

/// Interval of the active expiry cycle.
const CYCLE: Duration = Duration::from_millis(100);

/// Interval between attempts to get something that is taken: a port, or a descriptor.
pub(super) const RETRY: Duration = Duration::from_millis(10);

/// A master.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) clock: Arc<RunClock>,
    /// Recorder of what happens to the lock; `None` if nothing is recorded.
    pub(super) recorder: Option<Arc<Recorder>>,
    /// Notifies connections that they must check the node's state again.
    pub(super) changed: Notify,
    clocks: Mutex<HostClocks>,
    pub(super) executor: Executor,
    pub(super) pushes: Pushes,
    /// The extra features of a master in a process of its own; `None` in a fleet.
    process: Option<Process>,
    node_faults: Mutex<NodeFaults>,
    is_stalled: AtomicBool,
    delays: MessageDelays,
    network: Network,
    /// Address of the listening socket. `door` is the task that accepts connections, while the node
    /// listens.
    address: SocketAddr,
    door: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    connections: AtomicUsize,
    accepted: AtomicU64,
    /// Number of background syncs begun; the first has number 1.
    syncs_begun: AtomicU64,
    syncs_done: AtomicU64,
}

/// The message delays between a node and its clients.
#[derive(Debug)]
pub(super) struct MessageDelays {
    pub(super) choices: Choices,
    /// Name of each of the scenario's clients, with its minimum and maximum one-way delay in
    /// nanoseconds.
    pub(super) clients: IdVec<ClientId, (String, (u64, u64))>,
    /// Minimum and maximum delay for all other connections.
    pub(super) usual: (u64, u64),
    /// Number of delays drawn so far.
    pub(super) drawn: AtomicU32,
}

/// The parts of a node that depend on who serves it.
pub(super) struct NodeParts {
    pub(super) clocks: HostClocks,
    pub(super) server: Server,
    pub(super) delays: MessageDelays,
}

impl Node {
    pub(super) fn new(
        id: NodeId,
        clock: Arc<RunClock>,
        recorder: Option<Arc<Recorder>>,
        (network, address): (Network, SocketAddr),
        NodeParts { clocks, server, delays }: NodeParts,
    ) -> Self {
        Self {
            id,
            executor: Executor::new(server, Arc::clone(&clock)),
            clock,
            pushes: Pushes::default(),
            recorder,
            changed: Notify::new(),
            clocks: Mutex::new(clocks),
            process: None,
            node_faults: Mutex::new(NodeFaults::default()),
            is_stalled: AtomicBool::new(false),
            delays,
            network,
            address,
            door: tokio::sync::Mutex::new(None),
            connections: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            syncs_begun: AtomicU64::new(0),
            syncs_done: AtomicU64::new(0),
        }
    }

    /// Returns the node with the features of a process of its own.
    pub(super) fn with_process(self, process: Process) -> Self {
        Self { process: Some(process), ..self }
    }

    pub(super) fn clocks(&self) -> MutexGuard<'_, HostClocks> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reading of the node's wall clock, in nanoseconds.
    pub(super) fn wall_ns(&self) -> u64 {
        self.clocks().read(ClockKind::Wall, self.clock.now_ns())
    }

    /// Waits for exclusive access to the server, for use by the simulator itself.
    pub(super) async fn server(&self) -> tokio::sync::MutexGuard<'_, Server> {
        self.executor.server().await
    }

    pub(super) fn node_faults(&self) -> MutexGuard<'_, NodeFaults> {
        self.node_faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the faults at this node, and notifies every connection.
    pub(super) fn change(&self, change: impl FnOnce(&mut NodeFaults)) {
        let mut node_faults = self.node_faults();
        change(&mut node_faults);
        node_faults.change();
        self.is_stalled.store(node_faults.stalls > 0, Ordering::Release);
        drop(node_faults);
        self.changed.notify_waiters();
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.is_stalled.load(Ordering::Acquire)
    }

    pub(super) fn is_due(&self, due_ns: u64) -> bool {
        due_ns == 0 || due_ns <= self.clock.now_ns()
    }

    pub(super) fn client_named(&self, name: &str) -> Option<ClientId> {
        self.delays.clients.iter().find(|(_, (known, _))| known == name).map(|(client, _)| client)
    }

    /// Draws the delay of the next message to or from `client`, in nanoseconds.
    pub(super) fn travels_ns(&self, client: Option<ClientId>) -> u64 {
        let own = client.and_then(|client| self.delays.clients.get(client));
        let (least, most) = own.map_or(self.delays.usual, |(_, way)| *way);
        if least == most {
            return least;
        }
        let repeat = self.delays.drawn.fetch_add(1, Ordering::Relaxed);
        let choice = Choice { node: self.id.0, repeat, ..Choice::of(Label::Delay, self.id.0) };
        self.delays.choices.between(choice, least, most)
    }

    /// Prepares the execution of a request.
    pub(super) fn begin(&self, server: &mut Server, request: &[Bytes]) {
        if let Some(process) = &self.process {
            process.begin(server, request);
        }
    }

    /// Applies the settings that a request changed. Returns the error to reply with if they cannot
    /// be applied.
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

    /// Applies the settings that concern a process of its own.
    pub(super) fn configured(self: &Arc<Self>, server: &mut Server) -> io::Result<()> {
        self.process.as_ref().map_or(Ok(()), |process| process.configured(self, server))
    }

    /// Delivers the server's pushes to their connections.
    pub(super) fn push(&self, server: &mut Server) {
        self.pushes.deliver(server.take_pushes());
    }

    /// Closes the connections that CLIENT KILL named.
    pub(super) fn close_killed(&self, server: &mut Server) {
        let killed = server.clients_mut().take_killed();
        if !killed.is_empty() {
            self.change(|node_faults| node_faults.killed.extend(killed));
        }
    }

    /// Notes that a background sync begins.
    pub(super) fn sync_begins(&self) {
        self.syncs_begun.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that the last sync that began is done, and notifies the connections that wait for it.
    pub(super) fn sync_ends(&self) {
        self.syncs_done.store(self.syncs_begun.load(Ordering::Acquire), Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Returns the number of the sync after which everything now on `disk` is durable.
    pub(super) fn sync_of_all(&self, disk: &Disk) -> u64 {
        let begun = self.syncs_begun.load(Ordering::Acquire);
        // A write during a sync is postponed until after it, so only the next sync covers it.
        let is_under_way = disk.is_syncing() && !disk.is_write_postponed();
        if is_under_way { begun } else { begun + 1 }
    }

    /// Returns the number of the last completed sync.
    pub(super) fn synced(&self) -> u64 {
        self.syncs_done.load(Ordering::Acquire)
    }

    /// Cleans up after a connection that the `incarnation`-th process accepted.
    pub(super) async fn forget(&self, session: Session, incarnation: u32) {
        let id = session.id();
        self.pushes.close(id);
        let mut server = self.server().await;
        self.node_faults().killed.remove(&id);
        // A later process does not know the connection.
        if server.is_running() && self.node_faults().incarnation == incarnation {
            session.close(&mut server);
        }
    }

    /// Runs the active expiry cycle, ten times a second.
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

    /// Records the end of a key, if it is the lock's.
    pub(super) fn tell_of(&self, ended: &redis_sim::Ended) {
        if let Some(recorder) = &self.recorder
            && recorder.is_key(ended.database, &ended.key)
        {
            recorder.tell(key_ended(self.id, ended));
        }
    }

    /// Returns the address of the listening socket.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to accept connections at `door`.
    pub(super) async fn open_door(self: &Arc<Self>, door: Door) {
        *self.door.lock().await = Some(tokio::spawn(Arc::clone(self).accept(door)));
    }

    /// Listens again for the `incarnation`-th process, as soon as the port is free.
    pub(super) async fn reopen_door(self: &Arc<Self>, incarnation: u32) {
        loop {
            let mut door = self.door.lock().await;
            if door.is_some() || !self.is_alive(incarnation) {
                return;
            }
            if let Ok(found) = self.network.listen(self.address) {
                *door = Some(tokio::spawn(Arc::clone(self).accept(found)));
                return;
            }
            drop(door);
            // An outgoing connection is using the port at the moment.
            tokio::time::sleep(RETRY).await;
        }
    }

    fn is_alive(&self, incarnation: u32) -> bool {
        let node_faults = self.node_faults();
        node_faults.life == Life::Up && node_faults.incarnation == incarnation
    }

    /// Stops accepting connections; the kernel refuses them from now on.
    pub(super) async fn close_door(&self) {
        if let Some(door) = self.door.lock().await.take() {
            door.abort();
            // The task has ended, by the abort or by itself.
            let _ = door.await;
        }
    }

    /// Accepts and serves connections at `door`.
    pub(super) async fn accept(self: Arc<Self>, door: Door) {
        loop {
            let Ok(socket) = door.accept().await else {
                // Out of descriptors, until another connection ends.
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

    /// Returns the state of the node in one word.
    pub(super) fn state(&self) -> &'static str {
        let node_faults = self.node_faults();
        match node_faults.life {
            Life::Up if node_faults.stalls > 0 => "stalled",
            Life::Up => "up",
            Life::Killed => "down",
            Life::Dark => "dark",
        }
    }
}
