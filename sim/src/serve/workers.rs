//! The processes of workers, which faults stop.

use std::collections::BTreeMap;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lock_judge::history::ClientId;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};
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
    body: Body,
    /// Number of active faults that stop it.
    stops: u32,
    /// True once a fault has killed it.
    is_killed: bool,
}

/// Target of the signals to a worker.
#[derive(Clone, Copy, Debug)]
enum Body {
    /// One process of the system.
    Alone(Pid),
    /// A process group of the system.
    Group(Pid),
    /// A process in simulated time, which looks at its own state.
    Simulated,
}

impl Process {
    fn signal(self, signal: Signal) {
        // A process that has ended needs no signal.
        let _ = match self.body {
            Body::Alone(pid) => kill_process(pid, signal),
            Body::Group(pid) => kill_process_group(pid, signal),
            Body::Simulated => Ok(()),
        };
    }
}

/// Reason for rejecting a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoWorker {
    #[error("no fault of this scenario pauses this client")]
    NeverPaused,
    #[error("expected the id of a worker's process that may be stopped")]
    NoProcess,
    #[error("the process of this client is stopped by a fault")]
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
        match self.lock().get(&client) {
            // The group is known already, and is more than this process.
            Some(Process { body: Body::Group(_) | Body::Simulated, .. }) => return Ok(()),
            Some(known) if known.stops > 0 => return Err(NoWorker::Stopped),
            _ => {}
        }
        self.insert(client, Body::Alone(pid));
        Ok(())
    }

    /// Notes the process group of `client`.
    pub(super) fn adopt(&self, client: ClientId, group: Pid) {
        self.insert(client, Body::Group(group));
    }

    /// Notes the process of `client` in simulated time.
    pub(super) fn simulate(&self, client: ClientId) {
        self.insert(client, Body::Simulated);
    }

    fn insert(&self, client: ClientId, body: Body) {
        let process = Process { body, stops: 0, is_killed: false };
        self.lock().insert(client, process);
        self.named.notify_waiters();
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
        process.signal(Signal::STOP);
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
            process.signal(Signal::CONT);
        }
        goes_on
    }

    /// Kills the process of `client` unless it was killed before, and calls `record`. Nobody learns of
    /// the end by [`Workers::is_killed`] before it is recorded: a run may be judged right after.
    pub(super) fn kill(&self, client: ClientId, record: impl FnOnce()) {
        let mut processes = self.lock();
        let Some(process) = processes.get_mut(&client).filter(|it| !it.is_killed) else { return };
        process.is_killed = true;
        process.signal(Signal::KILL);
        record();
    }

    /// Returns true while a fault stops the process of `client`.
    pub(super) fn is_stopped(&self, client: ClientId) -> bool {
        self.lock().get(&client).is_some_and(|it| it.stops > 0)
    }

    /// Returns true if a fault has killed the process of `client`.
    pub(super) fn is_killed(&self, client: ClientId) -> bool {
        self.lock().get(&client).is_some_and(|it| it.is_killed)
    }

    /// Forgets the process of `client`, whose number may be another process's from now on.
    pub(super) fn forget(&self, client: ClientId) {
        self.lock().remove(&client);
    }

    /// Lets every stopped process go on, at the end of the run.
    pub(super) fn release(&self) {
        for process in self.lock().values_mut().filter(|it| it.stops > 0) {
            process.stops = 0;
            process.signal(Signal::CONT);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn an_end_is_recorded_before_it_is_reported() {
        let (workers, client) = (Workers::default(), ClientId(0));
        let mut process = Command::new("sleep").arg("1000").spawn().expect("it is there");
        let pid = Pid::from_child(&process);
        workers.insert(client, Body::Alone(pid));
        let mut records = 0;
        for _ in 0..2 {
            workers.kill(client, || {
                assert!(workers.processes.try_lock().is_err(), "`is_killed` waits");
                records += 1;
            });
        }
        assert!(workers.is_killed(client) && records == 1);
        process.wait().expect("it was killed");
    }
}
