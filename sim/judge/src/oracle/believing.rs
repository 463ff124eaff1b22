//! Updates of beliefs. An overlap of beliefs is blamed when it begins.

use super::blame;
use super::facts::Facts;
use crate::history::{AttemptId, ClockKind, HostId, Segment};

impl Facts {
    /// Starts a new segment of a clock.
    pub(super) fn clock(&mut self, host: HostId, clock: ClockKind, local_ns: u64, rate: i32) {
        if self.setting.has_host(host) {
            if clock == ClockKind::Boot {
                let clients = self.setting.clients_on(host);
                clients.iter().for_each(|client| self.note_early_timeouts(client));
            }
            let segment = Segment { true_ns: self.now_ns, local_ns, rate_ppb: rate };
            self.clocks.set(host, clock, segment);
            self.beliefs.clock_changed(&self.clocks, host, clock, self.now_ns);
            self.blame_overlaps();
            if clock == ClockKind::Boot {
                let clients = self.setting.clients_on(host);
                clients.iter().for_each(|client| self.time_eligibility(client));
            }
        }
    }

    /// Begins the belief of `id`: the lease was delivered to the application.
    pub(super) fn delivered(&mut self, id: AttemptId, clock: ClockKind, deadline_local_ns: u64) {
        let host = self.setting.client_host(id.client);
        let now_ns = self.now_ns;
        self.beliefs.begin(&self.clocks, id, host, (clock, deadline_local_ns), now_ns);
        self.blame_overlaps();
        self.told_of_deadline(id);
    }

    /// Moves the deadline of the belief of `id`: the application was notified of an extension.
    pub(super) fn prolonged(&mut self, id: AttemptId, deadline_local_ns: u64) {
        let granted_ns = self.leases.get(id).map_or(0, |it| it.decided_ns);
        let excuses_until_ns = granted_ns.saturating_add(self.setting.hold_max_ns);
        let now_ns = self.now_ns;
        let until = (deadline_local_ns, excuses_until_ns);
        self.beliefs.prolong(&self.clocks, id, until, now_ns);
        self.blame_overlaps();
        self.told_of_deadline(id);
    }

    /// Records that the application of `id` was notified of a deadline.
    fn told_of_deadline(&mut self, id: AttemptId) {
        let is_believed = self.beliefs.is_believed(id, self.now_ns);
        let Some(attempt) = self.leases.get_mut(id) else { return };
        attempt.delivered_ns = attempt.delivered_ns.min(self.now_ns);
        // A client that delivers a lease that is over has not looked at the clock.
        if is_believed {
            attempt.checked_ns = self.now_ns;
            attempt.excused_ns = None;
        }
    }

    /// Determines the blame of each new overlap at once. Its cause may be forgotten later, because
    /// a key that ended can be set again.
    fn blame_overlaps(&mut self) {
        while let Some((place, first, second)) = self.beliefs.unblamed() {
            let blamed = blame::of_leases(self, first, second);
            self.beliefs.blame(place, blamed);
        }
    }
}
