//! Extensions of the application's lease, and their results.

use lock_judge::history::{AttemptId, EventKind, NodeIds, RoundId};
use redlock_protocol::NodeMask;

use super::process::{Process, Task, Waiting};
use crate::world::World;

impl Process {
    /// Asks for an extension; the application waits until the extension is decided.
    pub(super) fn extend(
        &mut self,
        world: &mut World,
        task: usize,
        attempt: AttemptId,
        ttl_ns: u64,
    ) {
        let now = self.now(world);
        match self.subject.extend(task, ttl_ns, now) {
            Ok(()) => {
                self.tasks[task].extension_began(world, attempt, now.lease_ns, ttl_ns);
                self.tasks[task].waiting = Waiting::ForExtension;
            }
            Err(why) => world.record(EventKind::ExtensionRefused { attempt, ttl_ns, why }),
        }
    }

    pub(super) fn extension_settled(
        &mut self,
        world: &mut World,
        task: usize,
        attempt: AttemptId,
        extended: Option<(NodeMask, u64)>,
    ) {
        let (counted, deadline_local_ns) = extended
            .map_or((NodeIds::EMPTY, 0), |(counted, deadline_ns)| {
                (self.members_at(counted), deadline_ns)
            });
        let task = &mut self.tasks[task];
        let (round, extended) = (RoundId(task.rounds), extended.is_some());
        world.record(EventKind::ExtensionSettled {
            attempt,
            round,
            extended,
            counted,
            deadline_local_ns,
        });
        let held = task.held.filter(|held| held.attempt == attempt && !held.lost);
        if extended && held.is_some() {
            task.to_prolong = Some((attempt, deadline_local_ns));
        } else if task.waiting == Waiting::ForExtension {
            task.waiting = Waiting::Nothing;
        }
    }

    /// Delivers the new deadline to the application.
    pub(super) fn prolong(
        &mut self,
        world: &mut World,
        task: usize,
        attempt: AttemptId,
        deadline_local_ns: u64,
    ) {
        let clock = self.subject.lease_clock();
        world.record(EventKind::ExtensionDelivered { attempt, clock, deadline_local_ns });
        let task = &mut self.tasks[task];
        if task.waiting == Waiting::ForExtension {
            task.waiting = Waiting::Nothing;
        }
    }
}

impl Task {
    /// Records the beginning of an extension, requested by the application or made by the client to
    /// keep the lease alive.
    pub(super) fn extension_began(
        &mut self,
        world: &mut World,
        attempt: AttemptId,
        t1_local_ns: u64,
        ttl_ns: u64,
    ) {
        self.rounds += 1;
        let round = RoundId(self.rounds);
        world.record(EventKind::ExtensionBegan { attempt, round, t1_local_ns, ttl_ns });
    }
}
