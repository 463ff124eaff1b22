//! What is known of the extensions of a lease.
//!
//! A round begins at its T1 and is settled once. What counts for it are the answers to its own
//! commands: those written since T1. A key that was set again after the grant is *repaired*: it
//! says nothing of the time before, so that its node counts only after one further round, begun
//! since, has succeeded without it (catalogue E3, E7).

use super::facts::Facts;
use super::ground::{NEVER, just};
use super::leases::{Attempt, Basis, Round};
use crate::history::AttemptId;

impl Attempt {
    /// The nodes that confirmed the round and whose keys speak for the time since the grant.
    pub(super) fn confirmed_round(&self) -> u16 {
        self.round.confirmed_by & !self.repaired
    }
}

impl Facts {
    /// T1 of a round was read.
    pub(super) fn extension_began(&mut self, id: AttemptId, t1_local_ns: u64, ttl_ns: u64) {
        let (began_ns, first_command) = (self.now_ns, self.next_command);
        let drift = self.setting.drift;
        let Some(attempt) = self.leases.get_mut(id) else { return };
        // Subjects that give up nothing for a grant give up nothing for an extension.
        let drift_ns = match attempt.drift_ns {
            drift_ns if drift_ns == 0 || ttl_ns == attempt.ttl_ns => drift_ns,
            _ => drift_of(drift, ttl_ns),
        };
        attempt.round = Round {
            basis: Basis { began_ns, t1_local_ns, drift_ns },
            ttl_ns,
            first_command,
            repaired_before: attempt.repaired,
            ..Round::NONE
        };
    }

    /// A SET of an attempt that is granted already was written: its key will be a repaired one.
    pub(super) fn repair_written(&mut self, id: AttemptId, node: u8) {
        let attempt = self.leases.get_mut(id).filter(|it| it.decided_ns != NEVER);
        attempt.into_iter().for_each(|it| it.repaired |= just(node));
    }

    /// A node executed an extending command of `id` with success.
    pub(super) fn extension_executed(&mut self, id: AttemptId, node: u8, command: u32) {
        let Some(attempt) = self.leases.get_mut(id) else { return };
        if command >= attempt.round.first_command {
            attempt.round.executed_on |= just(node);
        }
    }

    /// The client took in that it had been.
    pub(super) fn extension_confirmed(&mut self, id: AttemptId, node: u8, command: u32) {
        let Some(attempt) = self.leases.get(id).copied() else { return };
        let in_time = self.lease_clock(id, &attempt) < attempt.deadline_local_ns;
        if let Some(attempt) = self.leases.get_mut(id)
            && in_time
            && command >= attempt.round.first_command
        {
            attempt.round.confirmed_by |= attempt.round.executed_on & just(node);
        }
    }

    /// The client decided that the lease of `id` is extended.
    pub(super) fn extended(&mut self, id: AttemptId, counted: u16, deadline_local_ns: u64) {
        let Some(attempt) = self.leases.get(id).copied() else { return };
        let over = self.lease_clock(id, &attempt) >= deadline_local_ns;
        let now_ns = self.now_ns;
        if let Some(attempt) = self.leases.get_mut(id) {
            if attempt.confirmed_round().count_ones() >= attempt.needed.max(1) {
                attempt.repaired &= !attempt.round.repaired_before;
            }
            attempt.counted_once = (attempt.counted_once | attempt.counted) & !counted;
            attempt.counted = counted;
            attempt.deadline_local_ns = deadline_local_ns;
            attempt.over_when_decided |= over;
            attempt.basis = attempt.round.basis;
            attempt.looked_ns = now_ns;
        }
    }
}

/// What a lease of `ttl_ns` gives up, rounded up as clients round it.
fn drift_of(drift: crate::scenario::Drift, ttl_ns: u64) -> u64 {
    let share_ns = (u128::from(ttl_ns) * u128::from(drift.share_ppm)).div_ceil(1_000_000);
    u64::try_from(share_ns).unwrap_or(u64::MAX).saturating_add(drift.constant.0)
}
