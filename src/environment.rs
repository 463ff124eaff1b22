//! What the client takes from the world: connections, one clock, timers, tasks and entropy.

mod on_tokio;

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

pub use self::on_tokio::TokioEnvironment;
pub use crate::endpoint::{Address, Endpoint};
use crate::protocol::BootInstant;
pub use crate::stream::Stream;

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A timer that can be set any number of times.
pub trait Timer: Send + 'static {
    /// Ready when [`Environment::now`] reads at least `at`: perhaps late, never early. What it was
    /// asked for before is forgotten.
    fn poll_until(&mut self, at: BootInstant, context: &mut Context<'_>) -> Poll<()>;
}

/// The world as the client sees it. The client does nothing that does not go through here.
pub trait Environment: Send + Sync + 'static {
    /// Resolves the name and opens a connection.
    fn connect<'a>(&'a self, to: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>>;

    /// The client's clock: it counts time asleep and never goes back.
    fn now(&self) -> BootInstant;

    /// A timer on the same clock, for the task that polls it first.
    fn timer(&self) -> Box<dyn Timer>;

    /// Returns whether tasks can be started from here. Called from inside a poll, before
    /// [`Environment::spawn`] and [`Environment::spawn_apart`].
    ///
    /// # Errors
    ///
    /// If they cannot, and why: no runtime, no network in it, no thread to be had.
    fn can_spawn(&self) -> io::Result<()>;

    /// Runs `task` in the background, where connections are polled: by default on the caller's
    /// runtime.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Runs `task` where no task of the application can hold it up.
    fn spawn_apart(&self, task: BoxFuture<'static, ()>);

    /// Fills `bytes` from a source that no other client shares.
    ///
    /// # Errors
    ///
    /// If there is no entropy to be had.
    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()>;
}
