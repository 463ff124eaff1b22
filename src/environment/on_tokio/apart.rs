//! Threads that no task of the application can delay.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use crate::environment::BoxFuture;

/// A thread with a runtime of its own. It ends when this handle is dropped.
#[derive(Debug)]
pub(super) struct Apart {
    runtime: Handle,
    /// Id of the process that started the thread: a forked child does not have the thread.
    process: u32,
    _ends_when_dropped: oneshot::Sender<()>,
}

impl Apart {
    /// # Errors
    ///
    /// If the system provides no thread, or no descriptors for its runtime.
    pub(super) fn start(name: &str) -> io::Result<Self> {
        // The thread comes first: a runtime that gets none would be dropped here, and tokio panics
        // if the caller is a task.
        let (give, given) = mpsc::channel::<Runtime>();
        let (end, ended) = oneshot::channel();
        let thread = thread::Builder::new().name(String::from(name));
        thread.spawn(move || given.recv().map(|runtime| runtime.block_on(ended)))?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        give.send(runtime).expect("the thread waits for it");
        Ok(Self { runtime: handle, process: std::process::id(), _ends_when_dropped: end })
    }

    /// Returns true if the thread is another process's.
    pub(super) fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }

    pub(super) fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.runtime.spawn(task);
    }
}

/// Returns the timer thread shared by all clients of the process. It is started at first use, and
/// parked while nothing is due.
pub(super) fn timekeeper() -> io::Result<Arc<Apart>> {
    static TIMEKEEPER: Mutex<Option<Arc<Apart>>> = Mutex::new(None);
    let mut timekeeper = TIMEKEEPER.lock().unwrap_or_else(PoisonError::into_inner);
    match &*timekeeper {
        Some(it) if !it.is_inherited() => Ok(Arc::clone(it)),
        _ => {
            let started = Arc::new(Apart::start("redlock time")?);
            // A handle inherited from the parent process must not be dropped: it would signal the
            // end of the parent's thread.
            core::mem::forget(timekeeper.replace(Arc::clone(&started)));
            Ok(started)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_ends_with_its_handle() {
        let (sender, receiver) = mpsc::channel::<()>();
        let apart = Apart::start("test").unwrap();
        apart.spawn(Box::pin(async move {
            std::future::pending::<()>().await;
            drop(sender);
        }));
        drop(apart);
        assert!(receiver.recv().is_err(), "its tasks are dropped");
    }

    #[test]
    fn the_process_has_one_timekeeper() {
        let (one, other) = (timekeeper().unwrap(), timekeeper().unwrap());
        assert!(Arc::ptr_eq(&one, &other));
    }
}
