//! Facts about the extensions of a lease.
//!
//! A round is one extension: it begins at its T1 and is settled once. Only answers to its own
//! commands count for it: the commands written since T1. A key that was set again after the grant
//! is *repaired*: it proves nothing about the time before. Its node counts only after one further
//! round, begun since, has succeeded without the node (counterexamples E3, E7).

use super::facts::Facts;
use super::ground::NEVER;
use super::key_losses::kept_since_ns;
use super::leases::{Attempt, Basis, Round};
use crate::history::{AttemptId, CommandId, NodeId, NodeIds, Writer};
use crate::scenario::Span;

impl Attempt {
    /// Returns the nodes that confirmed the round and whose keys are not repaired.
    pub(super) fn confirmed_round(&self) -> NodeIds {
        self.round.confirmed_by - self.repaired
    }
}

impl Facts {
    /// Records the start of a round: its T1 was read.
    pub(super) fn extension_began(&mut self, id: AttemptId, t1_local_ns: u64, ttl_ns: u64) {
        let (began_ns, first_command) = (self.now_ns, self.next_command);
        let drift = self.setting.drift;
        let Some(attempt) = self.leases.get(id).copied() else { return };
        let knows = |node: &NodeId| kept_since_ns(self, id, &attempt, *node) != NEVER;
        let known_before = attempt.repaired.iter().filter(knows).collect();
        let Some(attempt) = self.leases.get_mut(id) else { return };
        // A subject that allows for no drift in a grant allows for none in an extension.
        let drift_ns = match attempt.drift_ns {
            drift_ns if drift_ns == 0 || ttl_ns == attempt.ttl_ns => drift_ns,
            _ => drift.of(Span(ttl_ns)).0,
        };
        attempt.round = Round {
            basis: Basis { began_ns, t1_local_ns, drift_ns },
            ttl_ns,
            first_command,
            settled: false,
            repaired_before: attempt.repaired,
            known_before,
            ..Round::NONE
        };
    }

    /// Records that the client has decided whether the lease of `id` is extended.
    pub(super) fn extension_settled(&mut self, id: AttemptId, extended: bool) {
        let Some(attempt) = self.leases.get(id) else { return };
        let in_time = self.lease_clock(id, attempt) < attempt.deadline_local_ns;
        // A failure behind the deadline may be its effect, and takes nothing from an earlier one.
        let failed_ns = match (extended, in_time) {
            (true, _) => NEVER,
            (false, true) => self.now_ns,
            (false, false) => attempt.failed_ns,
        };
        if let Some(attempt) = self.leases.get_mut(id) {
            (attempt.round.settled, attempt.failed_ns) = (true, failed_ns);
        }
    }

    /// Marks the key on `node` as repaired if a SET is written for an attempt that is already
    /// granted. A node with two names that has the key receives the SET that is meant for the second.
    pub(super) fn repair_written(&mut self, id: AttemptId, node: NodeId) {
        let has_two_names = self.setting.votes(id.client, NodeIds::just(node)) > 1;
        if has_two_names && self.keys.writer(node) == Writer::Attempt(id) {
            return;
        }
        let attempt = self.leases.get_mut(id).filter(|it| it.decided_ns != NEVER);
        if let Some(attempt) = attempt {
            attempt.repaired.insert(node);
            self.leases.key_mut(id, node).into_iter().for_each(|it| it.regained_ns = NEVER);
        }
    }

    /// Records that a node executed an extending command of `id` with success.
    pub(super) fn extension_executed(&mut self, id: AttemptId, node: NodeId, command: CommandId) {
        let Some(attempt) = self.leases.get_mut(id) else { return };
        if command >= attempt.round.first_command {
            attempt.round.executed_on.insert(node);
        }
    }

    /// Records that the client received the node's success, if this happened before the old
    /// deadline.
    pub(super) fn extension_confirmed(&mut self, id: AttemptId, node: NodeId, command: CommandId) {
        let Some(attempt) = self.leases.get(id).copied() else { return };
        let in_time = self.lease_clock(id, &attempt) < attempt.deadline_local_ns;
        let ran_ns = self.processes.ran_for_ns(id.client, self.now_ns);
        if let Some(attempt) = self.leases.get_mut(id)
            && in_time
            && command >= attempt.round.first_command
        {
            attempt.round.confirmed_by |= attempt.round.executed_on & NodeIds::just(node);
            attempt.round.confirmed_ran_ns = ran_ns;
        }
    }

    /// Records that the client decided that the lease of `id` is extended.
    pub(super) fn extended(&mut self, id: AttemptId, counted: NodeIds, deadline_local_ns: u64) {
        let Some(attempt) = self.leases.get(id).copied() else { return };
        let over = self.lease_clock(id, &attempt) >= deadline_local_ns;
        let now_ns = self.now_ns;
        let confirmed = self.setting.votes(id.client, attempt.confirmed_round());
        let is_confirmed = confirmed >= attempt.needed.max(1);
        for node in attempt.round.known_before.iter().filter(|_| is_confirmed) {
            self.leases.key_mut(id, node).into_iter().for_each(|it| it.regained_ns = now_ns);
        }
        if let Some(attempt) = self.leases.get_mut(id) {
            if is_confirmed {
                attempt.repaired -= attempt.round.repaired_before;
            }
            attempt.counted_once = (attempt.counted_once | attempt.counted) - counted;
            attempt.counted = counted;
            attempt.deadline_local_ns = deadline_local_ns;
            attempt.over_when_decided |= over;
            attempt.basis = attempt.round.basis;
            attempt.checked_ns = now_ns;
        }
    }
}
