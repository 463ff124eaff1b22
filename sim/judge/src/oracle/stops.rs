//! Stops of a process, and the leases that end during them.
//!
//! A process that is stopped when its lease ends cannot notice the end. A stop during which a lease
//! ends excuses the use of that lease as long as the use would have been in time without the stop:
//! until the process has run, since the stop began, for the time that the lease had left then. No
//! other stop is an excuse, because a process that runs when its lease ends can notice the end.

use super::facts::Facts;
use super::ground::NEVER;
use crate::history::{AttemptId, ClientId};

impl Facts {
    /// Folds in a stop of the process of `client`: any lease that it has now may end meanwhile.
    pub(super) fn stopped(&mut self, client: ClientId) {
        // Two faults can stop a process at once.
        if self.processes.is_stopped(client) {
            return;
        }
        self.processes.stopped(client, self.now_ns);
        let ran_ns = self.processes.ran_for_ns(client, self.now_ns);
        for id in self.leases.of_client(client) {
            let Some(ends_ns) = self.lease_ends_ns(id) else { continue };
            let left_ns = ends_ns - self.now_ns;
            if let Some(attempt) = self.leases.get_mut(id) {
                attempt.excused_ns = Some(ran_ns.saturating_add(left_ns));
            }
        }
    }

    /// Folds in that the process of `client` runs again: a lease that it still has did not end
    /// during the stop.
    pub(super) fn continued(&mut self, client: ClientId) {
        for id in self.leases.of_client(client) {
            if self.lease_ends_ns(id).is_some()
                && let Some(attempt) = self.leases.get_mut(id)
            {
                attempt.excused_ns = None;
            }
        }
        self.processes.continued(client, self.now_ns);
    }

    /// Returns true if the lease of `id` ended while its process was stopped, and its use at
    /// `at_ns` would have been in time without the stop. No event lies between now and `at_ns`.
    pub(super) fn is_excused(&self, id: AttemptId, at_ns: u64) -> bool {
        let excused_ns = self.leases.get(id).and_then(|it| it.excused_ns);
        excused_ns.is_some_and(|it| self.processes.ran_for_ns(id.client, at_ns) <= it)
    }

    /// Returns the time at which the lease of `id` will end, at its clock's current rate; `None` if
    /// it was not granted, or has ended. A lease that is still to be delivered ends at the deadline
    /// that was decided.
    fn lease_ends_ns(&self, id: AttemptId) -> Option<u64> {
        let attempt = self.leases.get(id)?;
        let ends_ns = if attempt.delivered_ns != NEVER {
            self.beliefs.until_ns(id)?
        } else if attempt.decided_ns != NEVER {
            let host = self.setting.client_host(id.client);
            let segment = self.clocks.segment(host, attempt.clock);
            segment.true_at(attempt.deadline_local_ns).unwrap_or(NEVER)
        } else {
            return None;
        };
        (ends_ns > self.now_ns).then_some(ends_ns)
    }
}
