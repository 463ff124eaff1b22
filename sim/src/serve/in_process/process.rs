//! The process of a worker: a tokio runtime with a clock of its own.

use std::any::Any;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, LocalSet};

use super::pass;

/// A process that runs. Dropping it ends everything that the worker has spawned.
pub(super) struct Process {
    tasks: LocalSet,
    main: JoinHandle<()>,
    runtime: Runtime,
    /// Time for which the process has been stopped since its last step.
    missed: Duration,
}

/// The end of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The worker has returned.
    Returned,
    /// The worker has panicked, with this message.
    Panicked(String),
    /// A fault has killed the process.
    Killed,
}

impl Process {
    /// Starts the process of `worker`. It acts at its first step.
    pub(super) fn start(worker: Pin<Box<dyn Future<Output = ()>>>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
        let tasks = LocalSet::new();
        let main = tasks.spawn_local(worker);
        Ok(Self { tasks, main, runtime, missed: Duration::ZERO })
    }

    /// Lets `time` pass without the process: it is stopped.
    pub(super) fn miss(&mut self, time: Duration) {
        self.missed += time;
    }

    /// Lets the process act for `time`. Returns its end, if it has ended.
    pub(super) fn step(&mut self, time: Duration) -> Option<End> {
        let missed = core::mem::take(&mut self.missed);
        self.runtime.block_on(self.tasks.run_until(async {
            if missed > Duration::ZERO {
                // No task is polled before the clock shows the time that the process has missed.
                tokio::time::advance(missed).await;
            }
            pass(time).await;
        }));
        if !self.main.is_finished() {
            return None;
        }
        let returned = self.runtime.block_on(self.tasks.run_until(&mut self.main));
        Some(match returned {
            Ok(()) => End::Returned,
            Err(error) => End::Panicked(match error.try_into_panic() {
                Ok(panic) => message(&*panic),
                Err(error) => error.to_string(),
            }),
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Destructors may start tasks, which never run.
        let _context = self.runtime.enter();
        self.tasks = LocalSet::new();
    }
}

/// Returns the message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| String::from("a value that is no text"))
}
