//! Records the life of an attempt's keys: the SET, releases, new expiries and the end.

use super::facts::Facts;
use super::ground::MS_NS;
use crate::history::{AttemptId, KeyEnd, NodeId, Writer};

impl Facts {
    /// Records that a node executed the SET of `id` and that the key belongs to `id` now.
    pub(super) fn set(&mut self, id: AttemptId, node: NodeId, expires_wall_ms: u64) {
        let timed_wall_ns = self.node_wall_ns(node);
        if let Some(attempt) = self.leases.ensure(id) {
            attempt.set_on.insert(node);
        }
        let now_ns = self.now_ns;
        if let Some(key) = self.leases.key_mut(id, node) {
            (key.set_ns, key.timed_ns, key.timed_wall_ns) = (now_ns, now_ns, timed_wall_ns);
            (key.promised_wall_ms, key.regainable_ns) = (expires_wall_ms, 0);
            (key.end, key.outlived) = (None, false);
            key.overtaken = key.released_again;
        }
    }

    /// Records that a node executed a release of `id`.
    pub(super) fn released(&mut self, id: AttemptId, node: NodeId) {
        let now_ns = self.now_ns;
        let Some(first_ns) = self.leases.key(id, node).map(|it| it.released_ns) else { return };
        let is_again = first_ns < now_ns && {
            let since_first_ns = self.by_clock_of(id.client, now_ns - first_ns);
            since_first_ns.saturating_add(MS_NS) >= self.setting.node_timeout_ns
        };
        if let Some(key) = self.leases.key_mut(id, node) {
            key.released_ns = first_ns.min(now_ns);
            key.released_again |= is_again;
        }
    }

    /// Records that the key of `id` on `node` received another expiry.
    pub(super) fn retimed(&mut self, id: AttemptId, node: NodeId, expires_wall_ms: u64) {
        let now @ (now_ns, timed_wall_ns) = (self.now_ns, self.node_wall_ns(node));
        let Some(attempt) = self.leases.get(id).copied() else { return };
        if let Some(key) = self.leases.key_mut(id, node).filter(|it| it.end.is_none()) {
            let is_over = now_ns.saturating_sub(key.timed_ns) > attempt.ttl_ns;
            key.outlived |= attempt.finished_ns <= now_ns && is_over && key.outlives(&attempt, now);
            (key.timed_ns, key.timed_wall_ns) = (now_ns, timed_wall_ns);
            (key.promised_wall_ms, key.regainable_ns) = (expires_wall_ms, 0);
        }
    }

    /// Records that an extension of `id` found that the key on `node` lives long enough, and left it as
    /// it was.
    pub(super) fn left_as_it_was(&mut self, id: AttemptId, node: NodeId) {
        let now = (self.now_ns, self.node_wall_ns(node));
        if let Some(key) = self.leases.key_mut(id, node).filter(|it| it.end.is_none()) {
            key.regainable_ns = key.node_gained_ns(now).min(0).saturating_neg();
        }
    }

    /// Records the end of the key of `id` on `node`.
    pub(super) fn key_ended(
        &mut self,
        id: AttemptId,
        node: NodeId,
        end: (KeyEnd, Writer),
        expires_wall_ms: u64,
    ) {
        let Some(attempt) = self.leases.get(id).copied() else { return };
        let ended_local_ns = self.lease_clock(id, &attempt);
        let (host, wall_ns) = (self.master(node), self.node_wall_ns(node));
        let now_ns = self.now_ns;
        let Some(key) = self.leases.key_mut(id, node) else { return };
        key.gone_ns = now_ns;
        let outlives = attempt.ttl_ns != u64::MAX && key.outlives(&attempt, (now_ns, wall_ns));
        key.outlived_on = outlives.then_some(host);
        if key.end.is_none() {
            (key.ended_ns, key.ended_on) = (now_ns, host);
            key.end = Some(end);
            key.expiry_wall_ms = expires_wall_ms;
            key.ended_local_ns = ended_local_ns;
            key.node_gained_ns = key.node_gained_ns((now_ns, wall_ns));
        }
    }
}
