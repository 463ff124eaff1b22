//! Extensions of the application's lease, and their results.

use redlock_client::protocol::NodeMask;

use super::process::{Process, Waiting};
use crate::engine::stage::Stage;
use crate::history::{AttemptId, EventKind, NodeIds};

impl Process {
    /// Asks for an extension; the application waits until the extension is decided.
    pub(super) fn extend(&mut self, stage: &mut Stage, attempt: AttemptId, ttl_ns: u64) {
        let now = self.now(stage);
        match self.subject.extend(ttl_ns, now) {
            Ok(()) => {
                self.extension_began(stage, attempt, now.lease_ns, ttl_ns);
                self.waiting = Waiting::ForExtension;
            }
            Err(why) => stage.record(EventKind::ExtensionRefused { attempt, ttl_ns, why }),
        }
    }

    /// Records the beginning of an extension, requested by the application or made by the client to
    /// keep the lease alive.
    pub(super) fn extension_began(
        &mut self,
        stage: &mut Stage,
        attempt: AttemptId,
        t1_local_ns: u64,
        ttl_ns: u64,
    ) {
        self.rounds += 1;
        let round = self.rounds;
        stage.record(EventKind::ExtensionBegan { attempt, round, t1_local_ns, ttl_ns });
    }

    pub(super) fn extension_settled(
        &mut self,
        stage: &mut Stage,
        attempt: AttemptId,
        extended: Option<(NodeMask, u64)>,
    ) {
        let (counted, deadline_local_ns) = extended
            .map_or((NodeIds::EMPTY, 0), |(counted, deadline_ns)| {
                (NodeIds::from_bits(counted.bits()), deadline_ns)
            });
        let (round, extended) = (self.rounds, extended.is_some());
        stage.record(EventKind::ExtensionSettled {
            attempt,
            round,
            extended,
            counted,
            deadline_local_ns,
        });
        let held = self.held.filter(|held| held.attempt == attempt && !held.lost);
        if extended && held.is_some() {
            self.to_prolong = Some((attempt, deadline_local_ns));
        } else if self.waiting == Waiting::ForExtension {
            self.waiting = Waiting::Nothing;
        }
    }

    /// Delivers the new deadline to the application.
    pub(super) fn prolong(
        &mut self,
        stage: &mut Stage,
        attempt: AttemptId,
        deadline_local_ns: u64,
    ) {
        let clock = self.subject.lease_clock();
        stage.record(EventKind::ExtensionDelivered { attempt, clock, deadline_local_ns });
        if self.waiting == Waiting::ForExtension {
            self.waiting = Waiting::Nothing;
        }
    }
}
