//! Environment of a client whose nodes are in memory.

#![expect(clippy::disallowed_methods, reason = "tasks run on the runtime of the test")]

use std::io;
use std::sync::Arc;

use redlock_protocol::BootInstant;
use tokio::runtime::Handle;

use super::clock::ClockTimer;
use super::fleet::Fleet;
use super::stream::MemoryStream;
use crate::environment::{BoxFuture, Endpoint, Environment, Stream, Timer};

/// Start of the nodes' host names; the place follows.
const HOST: &str = "node-";

/// Returns the URL of the node at `place`.
pub(super) fn url(place: usize) -> String {
    format!("redis://{HOST}{place}")
}

/// Returns the place of the node that `endpoint` names.
fn place_of(endpoint: &Endpoint) -> Option<usize> {
    let (host, _) = endpoint.tcp()?;
    host.strip_prefix(HOST)?.parse().ok()
}

/// Connections to the nodes, and the clock and runtime of the test.
pub(super) struct MemoryEnvironment(pub(super) Arc<Fleet>);

impl Environment for MemoryEnvironment {
    fn connect<'a>(&'a self, to: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let place = place_of(to).ok_or(io::ErrorKind::NotFound)?;
            Ok(Box::new(MemoryStream::open(&self.0, place)?) as Box<dyn Stream>)
        })
    }

    fn now(&self) -> BootInstant {
        self.0.clock.read().now
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(ClockTimer::new(&self.0.clock))
    }

    fn can_spawn(&self) -> io::Result<()> {
        Handle::try_current().map(drop).map_err(io::Error::other)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }

    /// Runs the task on the same runtime: a paused clock belongs to one runtime alone.
    fn spawn_apart(&self, task: BoxFuture<'static, ()>) {
        self.spawn(task);
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.0.entropy.fill(bytes);
        Ok(())
    }
}
