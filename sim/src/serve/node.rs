//! One master: its server, its clocks, and the port at which it listens.

#![expect(clippy::disallowed_methods, reason = "masters on real sockets in real time")]

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;

use super::connection;
use super::hours::Hours;
use super::limits::CONNECTIONS_MAX;
use crate::history::ClockKind;
use crate::master::server::Server;
use crate::world::HostClocks;

/// How many connections the kernel keeps for us.
const BACKLOG: u32 = 1_024;

/// How often keys are deleted whose time has come.
const CYCLE: Duration = Duration::from_millis(100);

/// A master.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) hours: Arc<Hours>,
    pub(super) clocks: Mutex<HostClocks>,
    /// Whoever executes has it, for a moment or for a script. It is fair, and nobody waits for it
    /// without letting others run.
    pub(super) server: tokio::sync::Mutex<Server>,
    /// Rung whenever connections should look around.
    pub(super) changed: Notify,
    connections: AtomicUsize,
    accepted: AtomicU64,
}

impl Node {
    pub(super) fn new(hours: Arc<Hours>, clocks: HostClocks, server: Server) -> Self {
        Self {
            hours,
            clocks: Mutex::new(clocks),
            server: tokio::sync::Mutex::new(server),
            changed: Notify::new(),
            connections: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
        }
    }

    pub(super) fn clocks(&self) -> MutexGuard<'_, HostClocks> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the node's wall clock reads.
    pub(super) fn wall_ns(&self) -> u64 {
        self.clocks().read(ClockKind::Wall, self.hours.now_ns())
    }

    /// The active expiry cycle, ten times a second.
    pub(super) async fn expire_keys(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(CYCLE);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let mut server = self.server.lock().await;
            if server.is_running() {
                server.expire_active(self.wall_ns() / 1_000_000, |_| {});
            }
        }
    }

    /// Takes connections.
    pub(super) async fn accept(self: Arc<Self>, listener: TcpListener) {
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
}

/// Listens at `port` of `address`; any free one if it is 0.
pub(super) fn listen(address: Ipv4Addr, port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((address, port)))?;
    socket.listen(BACKLOG)
}
