//! The processes of workers, which faults stop.

use std::collections::BTreeMap;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lock_judge::history::ClientId;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::sync::Notify;

/// The processes that workers have named.
#[derive(Debug, Default)]
pub(super) struct Workers {
    processes: Mutex<BTreeMap<ClientId, Process>>,
    named: Notify,
}

/// A worker's process.
#[derive(Clone, Copy, Debug)]
struct Process {
    pid: Pid,
    /// Number of active faults that stop it.
    stops: u32,
}

/// Reason for rejecting a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoWorker {
    #[error("ERR no fault of this scenario pauses this client")]
    NeverPaused,
    #[error("ERR expected the id of a worker's process that may be stopped")]
    NoProcess,
    #[error("ERR the process of this client is stopped by a fault")]
    Stopped,
}

impl Workers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClientId, Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the process of `client`.
    pub(super) fn name(&self, client: ClientId, pid: &[u8]) -> Result<(), NoWorker> {
        let number = core::str::from_utf8(pid).ok().and_then(|it| it.parse().ok());
        let number = number.filter(|&it: &i32| it > 1 && u32::try_from(it) != Ok(process::id()));
        let pid = number.and_then(Pid::from_raw).filter(|&it| test_kill_process(it).is_ok());
        let pid = pid.ok_or(NoWorker::NoProcess)?;
        let mut processes = self.lock();
        if processes.get(&client).is_some_and(|it| it.stops > 0) {
            return Err(NoWorker::Stopped);
        }
        processes.insert(client, Process { pid, stops: 0 });
        drop(processes);
        self.named.notify_waiters();
        Ok(())
    }

    /// Waits until the process of `client` is named.
    pub(super) async fn named(&self, client: ClientId) {
        loop {
            let mut named = core::pin::pin!(self.named.notified());
            named.as_mut().enable();
            if self.lock().contains_key(&client) {
                return;
            }
            named.await;
        }
    }

    /// Stops the process of `client`, if it is named. Returns true unless it was stopped before.
    pub(super) fn stop(&self, client: ClientId) -> bool {
        let mut processes = self.lock();
        let Some(process) = processes.get_mut(&client) else { return false };
        process.stops += 1;
        // A process that has ended needs no stop.
        let _ = kill_process(process.pid, Signal::STOP);
        process.stops == 1
    }

    /// Ends one stop of the process of `client`. Returns true if the process goes on.
    pub(super) fn go_on(&self, client: ClientId) -> bool {
        let mut processes = self.lock();
        let Some(process) = processes.get_mut(&client).filter(|it| it.stops > 0) else {
            return false;
        };
        process.stops -= 1;
        let goes_on = process.stops == 0;
        if goes_on {
            let _ = kill_process(process.pid, Signal::CONT);
        }
        goes_on
    }

    /// Lets every stopped process go on, at the end of the run.
    pub(super) fn release(&self) {
        for process in self.lock().values_mut().filter(|it| it.stops > 0) {
            process.stops = 0;
            let _ = kill_process(process.pid, Signal::CONT);
        }
    }
}
