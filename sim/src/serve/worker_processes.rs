//! Worker processes that the caller of [`Fleet`] has started.

use lock_judge::history::ClientId;
use lock_judge::scenario::Case;
use rustix::process::Pid;

use super::world::World;
use super::{Fleet, Refusal, plan};

/// Circumstances of the end of a worker's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerEnd {
    /// True if a fault killed the process.
    pub by_fault: bool,
    /// True if the worker was in its section.
    pub was_inside: bool,
}

/// Checks that `case` can be served to workers that the caller starts.
///
/// # Errors
///
/// If the scenario needs something that cannot be done in real time or to external clients.
pub fn check(case: &Case) -> Result<(), Refusal> {
    plan(case, true).map(drop)
}

impl Fleet {
    /// Names the process group of the scenario's client `name`, which faults stop and kill.
    ///
    /// # Panics
    ///
    /// If the scenario has no such client, or `group` is no process.
    pub fn adopt(&self, name: &str, group: u32) {
        let pid = i32::try_from(group).ok().and_then(Pid::from_raw).expect("the id of a process");
        self.world.workers.adopt(self.client(name), pid);
    }

    /// Notes that the process of the client `name` has ended; `is_clean` is false if it failed. A
    /// section in which the worker was is over. The process group is not signalled any more.
    ///
    /// # Panics
    ///
    /// If the scenario has no such client.
    pub fn worker_ended(&self, name: &str, is_clean: bool) -> WorkerEnd {
        self.world.worker_ended(self.client(name), is_clean)
    }

    /// Describes the first report of a worker under a name that is no client's.
    #[must_use]
    pub fn stranger(&self) -> Option<String> {
        self.world.recorder.stranger().map(|refused| format!("a report was refused: {refused}"))
    }

    /// Describes each fault that should happen in this run and has not begun.
    #[must_use]
    pub fn unbegun_faults(&self) -> Vec<String> {
        self.world.unbegun_faults()
    }

    fn client(&self, name: &str) -> ClientId {
        self.world.plan.scenario.client_named(name).expect("a client of the scenario")
    }
}

impl World {
    /// Notes that the process of `client` has ended; `is_clean` is false if it failed.
    pub(super) fn worker_ended(&self, client: ClientId, is_clean: bool) -> WorkerEnd {
        let by_fault = self.workers.is_killed(client);
        self.workers.forget(client);
        let was_inside = self.recorder.is_inside(client);
        if !by_fault && (was_inside || !is_clean) {
            self.recorder.killed(client, self.plan.client_host(client));
        }
        WorkerEnd { by_fault, was_inside }
    }
}
