//! The world as a client sees it: [`Environment`] over turmoil.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use redlock_client::environment::{self, BoxFuture, Endpoint, Environment, Stream};
use redlock_client::protocol::BootInstant;
use turmoil::net::TcpStream;

use super::connection::ClientStream;
use super::simulation::node_of;
use super::world::{self, Connection, Due, World};
use crate::world::{Choice, Label};

/// What the client at a place sees of the world.
pub(super) struct HostEnvironment {
    pub(super) world: Arc<World>,
    pub(super) client: u8,
}

impl Environment for HostEnvironment {
    fn connect<'a>(&'a self, to: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let (host, port) = to.tcp().ok_or(io::ErrorKind::Unsupported)?;
            let stream = TcpStream::connect((host, port)).await?;
            let address = stream.local_addr()?;
            let node = node_of(host);
            let mut state = self.world.lock();
            let connection = Connection { client: self.client, node, ..Connection::default() };
            state.connections.insert(address, connection);
            let client = &mut state.clients[usize::from(self.client)];
            client.connected[usize::from(node)] = Some(address);
            drop(state);
            let stream = ClientStream::new(Arc::clone(&self.world), stream, address);
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn now(&self) -> BootInstant {
        BootInstant::from_nanos(self.world.lock().boot_ns(self.client))
    }

    fn timer(&self) -> Box<dyn environment::Timer> {
        Box::new(BootTimer { world: Arc::clone(&self.world), client: self.client, sleep: None })
    }

    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        let mut state = self.world.lock();
        state.clients[usize::from(self.client)].spawned.push(task);
        state.wake_client(self.client);
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut state = self.world.lock();
        for chunk in bytes.chunks_mut(8) {
            let repeat = state.clients[usize::from(self.client)].draws;
            state.clients[usize::from(self.client)].draws += 1;
            let choice = Choice { repeat, ..Choice::of(Label::Token, self.client) };
            chunk.copy_from_slice(&state.choices.bits(choice).to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// A timer of the client at a place.
struct BootTimer {
    world: Arc<World>,
    client: u8,
    sleep: Option<(BootInstant, Sleep)>,
}

impl environment::Timer for BootTimer {
    fn poll_until(&mut self, at: BootInstant, context: &mut Context<'_>) -> Poll<()> {
        if self.sleep.as_ref().map(|(set, _)| *set) != Some(at) {
            let due = Due::Boot { client: self.client, at_ns: at.as_nanos() };
            self.sleep = Some((at, Sleep::new(Arc::clone(&self.world), due)));
        }
        let sleep = self.sleep.as_mut().map(|(_, sleep)| Pin::new(sleep).poll(context));
        let polled = sleep.unwrap_or(Poll::Ready(()));
        if polled.is_ready() {
            self.sleep = None;
        }
        polled
    }
}

/// Waits for a time. The world wakes it in the tick that reaches the time by the clock that it is
/// told on, whatever happened to that clock meanwhile.
pub(super) struct Sleep {
    world: Arc<World>,
    due: Due,
    timer: Option<u64>,
}

impl Sleep {
    pub(super) fn new(world: Arc<World>, due: Due) -> Self {
        Self { world, due, timer: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let world = Arc::clone(&self.world);
        let mut state = world.lock();
        if state.is_due(self.due) {
            return Poll::Ready(());
        }
        let (due, waker) = (self.due, context.waker().clone());
        let name = *self.timer.get_or_insert_with(|| state.timer());
        state.timers.insert(name, world::Timer { due, waker });
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(name) = self.timer {
            self.world.lock().timers.remove(&name);
        }
    }
}
