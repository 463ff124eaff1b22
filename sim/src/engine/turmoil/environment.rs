//! The world as a client sees it: [`Environment`] over turmoil.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use lock_judge::history::{AttemptId, ClientId};
use lock_judge::ids::ConnectionId;
use redlock_client::environment::{self, BoxFuture, Endpoint, Environment, Stream};
use redlock_protocol::BootInstant;
use turmoil::net::TcpStream;

use super::connection::ClientStream;
use super::names::{node_of, server_name};
use super::server::PORT;
use super::shared::{self, Due, Shared};
use crate::choice::{Choice, Label};
use crate::subject::token_of;

/// Environment of the client at a place.
pub(super) struct HostEnvironment {
    pub(super) shared: Arc<Shared>,
    pub(super) client: ClientId,
}

impl Environment for HostEnvironment {
    fn connect<'a>(&'a self, to: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let (host, _) = to.tcp().ok_or(io::ErrorKind::Unsupported)?;
            let node = node_of(host);
            let number = self.shared.lock().dial(self.client, node);
            let number = number.ok_or(io::ErrorKind::ConnectionRefused)?;
            let dialing = Dialing { shared: Arc::clone(&self.shared), number: Some(number) };
            let server = self.shared.lock().lines[&number].server;
            // Turmoil connects at once; the world decides whether the connection exists.
            let stream = TcpStream::connect((server_name(server), PORT)).await?;
            self.shared.lock().numbers.insert(stream.local_addr()?, number);
            poll_fn(|_| self.shared.lock().poll_opened(number)).await?;
            dialing.done();
            self.shared.lock().clients[self.client].connected[node] = Some(number);
            let stream = ClientStream::new(Arc::clone(&self.shared), stream, number);
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn now(&self) -> BootInstant {
        BootInstant::from_nanos(self.shared.lock().boot_ns(self.client))
    }

    fn timer(&self) -> Box<dyn environment::Timer> {
        Box::new(BootTimer { shared: Arc::clone(&self.shared), client: self.client, sleep: None })
    }

    fn can_spawn(&self) -> io::Result<()> {
        Ok(())
    }

    /// Runs the task in the same thread: the process has only one, and the task never blocks.
    fn spawn_apart(&self, task: BoxFuture<'static, ()>) {
        self.spawn(task);
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut state = self.shared.lock();
        state.clients[self.client].spawned.push(task);
        state.wake_client(self.client);
    }

    /// Draws the random bytes of an attempt: its token, and the jitter of its waits.
    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut state = self.shared.lock();
        let drawn = &mut state.clients[self.client].draws;
        *drawn += 1;
        let number = *drawn as u16;
        let draw = |label| Choice { attempt: number, ..Choice::of(label, self.client.0) };
        let attempt = AttemptId { client: self.client, number };
        let token = token_of(attempt, state.world.choices.bits(draw(Label::Token)));
        let jitter = state.world.choices.bits(draw(Label::Jitter)).to_le_bytes();
        let drawn = [&token.as_bytes()[..], &jitter].concat();
        bytes.copy_from_slice(&drawn[..bytes.len()]);
        Ok(())
    }
}

/// A connection that is being dialled; it is reset if the dial is abandoned.
struct Dialing {
    shared: Arc<Shared>,
    number: Option<ConnectionId>,
}

impl Dialing {
    fn done(mut self) {
        self.number = None;
    }
}

impl Drop for Dialing {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.shared.lock().let_go(number);
        }
    }
}

/// A timer of the client at a place.
struct BootTimer {
    shared: Arc<Shared>,
    client: ClientId,
    sleep: Option<(BootInstant, Sleep)>,
}

impl environment::Timer for BootTimer {
    fn poll_until(&mut self, at: BootInstant, context: &mut Context<'_>) -> Poll<()> {
        if self.sleep.as_ref().map(|(set, _)| *set) != Some(at) {
            let due = Due::Boot { client: self.client, at_ns: at.as_nanos() };
            self.sleep = Some((at, Sleep::new(Arc::clone(&self.shared), due)));
        }
        let sleep = self.sleep.as_mut().map(|(_, sleep)| Pin::new(sleep).poll(context));
        let polled = sleep.unwrap_or(Poll::Ready(()));
        if polled.is_ready() {
            self.sleep = None;
        }
        polled
    }
}

/// Waits for a time on one clock. The world wakes the sleeper in the tick in which that clock
/// reaches the time, even if the clock was changed meanwhile.
pub(super) struct Sleep {
    shared: Arc<Shared>,
    due: Due,
    timer: Option<u64>,
}

impl Sleep {
    pub(super) fn new(shared: Arc<Shared>, due: Due) -> Self {
        Self { shared, due, timer: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if state.is_due(self.due) {
            return Poll::Ready(());
        }
        let (due, waker) = (self.due, context.waker().clone());
        let name = *self.timer.get_or_insert_with(|| state.timer());
        state.timers.insert(name, shared::Timer { due, waker });
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(name) = self.timer {
            self.shared.lock().timers.remove(&name);
        }
    }
}
