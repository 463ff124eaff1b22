//! Interface between the client and its environment: connections, one clock, timers, tasks and
//! entropy.
//!
//! Unstable: this module lets simulators run the client, and is exempt from semver. Applications do
//! not need it; [`TokioEnvironment`] is the default. To test applications, use the module `testing`
//! (feature `testing`), which is covered by semver.

mod on_tokio;

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

pub use redlock_protocol::{BootInstant, Drift, RetryDelay};

pub use self::on_tokio::TokioEnvironment;
pub use crate::endpoint::{Address, Endpoint};
pub use crate::stream::Stream;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A timer that can be set any number of times.
pub trait Timer: Send + 'static {
    /// Ready when [`Environment::now`] returns at least `at`; may be late, never early. Each call
    /// replaces the previous instant.
    fn poll_until(&mut self, at: BootInstant, context: &mut Context<'_>) -> Poll<()>;
}

/// The client's environment: connections, one clock, timers, tasks and random bytes. The client
/// uses nothing else of the outside world.
pub trait Environment: Send + Sync + 'static {
    /// Resolves the host name and opens a connection.
    fn connect<'a>(&'a self, to: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>>;

    /// Returns the reading of the client's clock, which counts time asleep and never goes back.
    fn now(&self) -> BootInstant;

    /// Creates a timer on the same clock, for the task that polls it first.
    fn timer(&self) -> Box<dyn Timer>;

    /// Returns `Ok` if tasks can be started from here. Called from inside a poll, before
    /// [`Environment::spawn`] and [`Environment::spawn_apart`].
    ///
    /// # Errors
    ///
    /// The reason why tasks cannot be started: no runtime, no network in it, no thread available.
    fn can_spawn(&self) -> io::Result<()>;

    /// Runs `task` in the background, where connections are polled: by default, on the caller's
    /// runtime.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Runs `task` where no task of the application can delay it.
    fn spawn_apart(&self, task: BoxFuture<'static, ()>);

    /// Returns the id of the process, by which a forked child recognises that a client is its
    /// parent's. Called at every use. A constant in an environment that no process can inherit.
    fn process(&self) -> u32 {
        0
    }

    /// Fills `bytes` from a source that no other client shares.
    ///
    /// # Errors
    ///
    /// If no entropy is available.
    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()>;
}
