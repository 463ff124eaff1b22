//! The active expiry cycles of the servers.

use lock_judge::ids::ServerId;
use lock_judge::scenario::ActiveExpiry;

use super::key_events::{is_a_locks, key_ended};
use super::{Due, World};

impl World {
    /// Schedules the active expiry cycle for the expiry of the next key, 1 ms later if the
    /// scenario's active expiry is late.
    pub(super) fn schedule_expiry(&mut self, server: ServerId) {
        let host = &mut self.cluster[server];
        // A replica waits for its master to delete keys.
        if host.redis.is_replica() {
            return;
        }
        let Some(when_ms) = host.redis.keyspace().next_expiry() else { return };
        if host.expiry_due_ms.is_some_and(|due_ms| due_ms <= when_ms) {
            return;
        }
        host.expiry_due_ms = Some(when_ms);
        let late_ms = u64::from(self.plan.scenario.cluster.active_expiry == ActiveExpiry::Late);
        let wall_ns = (when_ms + late_ms).max(self.wall_ms(server)) * 1_000_000;
        if let Some(at_ns) = self.clocks.wall_at(&self.plan.servers[server], wall_ns) {
            let at_ns = at_ns.max(self.now_ns());
            self.agenda.schedule(at_ns, Due::Expiry { server });
        }
    }

    /// Schedules the cycle again: the next expiry, or the clock, has changed.
    pub(super) fn reschedule_expiry(&mut self, server: ServerId) {
        self.cluster[server].expiry_due_ms = None;
        self.schedule_expiry(server);
    }

    pub(super) fn expire_keys(&mut self, server: ServerId) {
        let wall_ms = self.wall_ms(server);
        let Self { cluster, recorder, agenda, plan, .. } = self;
        let host = &mut cluster[server];
        if host.expiry_due_ms.is_some_and(|due_ms| due_ms > wall_ms + 1) {
            // This cycle was scheduled before a key came that expired earlier; that key's cycle has
            // scheduled the next one.
            return;
        }
        host.expiry_due_ms = None;
        if !host.redis.is_running() || host.is_blocked() || host.redis.is_replica() {
            return;
        }
        let (tells, node) = (host.is_master(), plan.servers[server].node);
        let mut changed = Vec::new();
        host.redis.expire_active(wall_ms, |ended| {
            // Servers push by the key's name, whatever its database.
            changed.extend(plan.resource_at(&ended.key));
            if tells && is_a_locks(&ended, plan) {
                recorder.record(agenda.now_ns(), key_ended(node, &ended));
            }
        });
        for resource in changed {
            self.tell_readers(server, resource, None);
        }
        self.end_turn(server);
        self.schedule_expiry(server);
    }
}
