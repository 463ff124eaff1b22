//! The machine on which a worker runs.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_judge::history::ClientId;

use crate::choice::{Choice, Choices, Label};
use crate::serve::memory::{End as Connection, Memory};
use crate::serve::world::World;

/// The machine on which a worker runs: its connections, its random numbers, and its reports.
///
/// Clones are the same machine.
#[derive(Clone)]
pub struct Host {
    world: Arc<World>,
    memory: Arc<Memory>,
    client: ClientId,
    draws: Arc<AtomicU32>,
}

/// Error: the scenario has no such fault, or it cannot begin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the scenario has no such fault, or it has begun already, or time 0 has not come")]
pub struct NoFault;

impl Host {
    pub(super) fn new(world: &Arc<World>, memory: &Arc<Memory>, client: ClientId) -> Self {
        let (world, memory) = (Arc::clone(world), Arc::clone(memory));
        Self { world, memory, client, draws: Arc::default() }
    }

    /// Returns the name of the scenario's client that runs here.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.world.case.scenario.clients[self.client.0 as usize].id
    }

    /// Returns the addresses of the masters, in the order of the scenario.
    #[must_use]
    pub fn nodes(&self) -> Vec<SocketAddr> {
        self.world.nodes.values().map(|node| node.address()).collect()
    }

    /// Returns the name of the lock. The client may store it with a prefix (`redlock:res`).
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.world.case.scenario.lock.resource
    }

    /// Returns the time to live that the scenario gives to this client's keys.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        let scenario = &self.world.case.scenario;
        let own = scenario.clients[self.client.0 as usize].ttl;
        own.unwrap_or(scenario.lock.ttl).duration()
    }

    /// Opens a connection to the master at `node`, one of [`Host::nodes`]. What a client calls in
    /// place of `TcpStream::connect`.
    ///
    /// # Errors
    ///
    /// `ConnectionRefused` if no process listens there.
    #[expect(clippy::unused_async, reason = "as `TcpStream::connect`")]
    pub async fn connect(&self, node: SocketAddr) -> io::Result<Connection> {
        self.memory.connect(node, self.name())
    }

    /// Returns the next random number, which the seed determines. Two hosts draw different numbers.
    #[must_use]
    pub fn random(&self) -> u64 {
        let repeat = self.draws.fetch_add(1, Ordering::Relaxed);
        let choice = Choice { repeat, ..Choice::of(Label::Token, self.client.0) };
        Choices::new(self.world.seed).bits(choice)
    }

    /// Reports that the worker enters its section: from now on it uses what the lock guards, until the
    /// returned value is dropped. `token` is the value of the client's keys, which identifies the
    /// attempt. An integer that is no key's value is a fencing token, which `fenced-order` judges.
    ///
    /// # Panics
    ///
    /// If the worker is in its section already.
    #[must_use = "the section ends when this is dropped"]
    pub fn enter(&self, token: impl AsRef<[u8]>) -> Section {
        let (resource, name) = (self.resource().as_bytes(), self.name().as_bytes());
        let entered = self.world.recorder.entered(resource, name, Some(token.as_ref()));
        assert!(entered.is_ok(), "worker {} is in its section already", self.name());
        Section(self.clone())
    }

    /// Makes the fault called `name` begin now, and returns once it has: a worker that it stops goes on
    /// when it is over. To begin a fault by this alone, give it a time that the run does not reach:
    /// `at = "60m"`.
    ///
    /// # Errors
    ///
    /// If the scenario has no such fault that waits, or no command about the lock has been executed.
    pub async fn begin_fault(&self, name: &str) -> Result<(), NoFault> {
        self.world.ask_for_fault(name.as_bytes()).map_err(|_| NoFault)?;
        // The masters' next step begins the fault, the one after it is behind it.
        super::pass(2 * super::TICK).await;
        Ok(())
    }
}

/// A worker's section: it ends when this is dropped.
pub struct Section(Host);

impl Drop for Section {
    fn drop(&mut self) {
        let (resource, name) = (self.0.resource().as_bytes(), self.0.name().as_bytes());
        // A process that a fault has killed has left already.
        let _ = self.0.world.recorder.left(resource, name);
    }
}
