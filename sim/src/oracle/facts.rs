//! What the history has told so far, kept in the form in which the properties ask for it.

use super::beliefs::Beliefs;
use super::leases::{Attempt, Leases, just};
use super::processes::Processes;
use super::setting::Setting;
use crate::history::{AttemptId, ClockKind, ClockSegments, HostIndex, KeyEnd, Segment, Writer};
use crate::scenario::Scenario;

/// The shared state of the fold. Properties read it; only the fold writes it, before they do.
#[derive(Debug)]
pub(super) struct Facts {
    /// The instant of the event.
    pub now_ns: u64,
    pub setting: Setting,
    pub clocks: ClockSegments,
    pub leases: Leases,
    pub processes: Processes,
    pub beliefs: Beliefs,
}

impl Facts {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let setting = Setting::new(scenario);
        let leases = Leases::new(setting.nodes);
        let mut facts = Self {
            now_ns: 0,
            setting,
            clocks: ClockSegments::default(),
            leases,
            processes: Processes::new(),
            beliefs: Beliefs::new(),
        };
        facts.reset();
        facts
    }

    pub(super) fn reset(&mut self) {
        self.now_ns = 0;
        self.clocks.clear();
        // A host that tells nothing of its clocks has them agree with true time.
        let last = HostIndex((self.setting.nodes + self.setting.probe + 1) as u8);
        self.clocks.set(last, ClockKind::Wall, TRUE_TIME);
        self.leases.reset();
        self.processes.reset();
        self.beliefs.reset();
    }

    /// What a clock reads now.
    pub(super) fn reading(&self, host: HostIndex, clock: ClockKind) -> u64 {
        self.clocks.segment(host, clock).local_at(self.now_ns)
    }

    /// What the clock of an attempt reads now.
    pub(super) fn lease_clock(&self, id: AttemptId, attempt: &Attempt) -> u64 {
        self.reading(self.setting.client_host(id.client), attempt.clock)
    }

    /// A clock runs differently from now on.
    pub(super) fn clock(&mut self, host: HostIndex, clock: ClockKind, local_ns: u64, rate: i32) {
        if host.get() <= self.setting.nodes + self.setting.probe + 1 {
            let segment = Segment { true_ns: self.now_ns, local_ns, rate_ppb: rate };
            self.clocks.set(host, clock, segment);
            self.beliefs.clock_changed(&self.clocks, host, clock, self.now_ns);
        }
    }

    /// A node executed the SET of `id`, and the key is its own now.
    pub(super) fn set(&mut self, id: AttemptId, node: u8) {
        let set_wall_ns = self.reading(HostIndex(node), ClockKind::Wall);
        if let Some(attempt) = self.leases.ensure(id) {
            attempt.set_on |= just(node);
        }
        let now_ns = self.now_ns;
        if let Some(key) = self.leases.key_mut(id, node) {
            (key.set_ns, key.set_wall_ns) = (now_ns, set_wall_ns);
            key.end = None;
        }
    }

    /// The key of `id` on `node` ended.
    pub(super) fn key_ended(&mut self, id: AttemptId, node: u8, cause: KeyEnd, by: Writer) {
        let Some(attempt) = self.leases.get(id) else { return };
        let lease_ns = since(attempt.t1_local_ns, self.lease_clock(id, attempt));
        let client_lost_ns = since(attempt.began_ns, self.now_ns).saturating_sub(lease_ns);
        let wall_ns = self.reading(HostIndex(node), ClockKind::Wall);
        let now_ns = self.now_ns;
        if let Some(key) = self.leases.key_mut(id, node).filter(|it| it.end.is_none()) {
            key.ended_ns = now_ns;
            key.end = Some((cause, by));
            let lived_ns = since(key.set_ns, now_ns);
            key.node_gained_ns = since(key.set_wall_ns, wall_ns).saturating_sub(lived_ns);
            key.client_lost_ns = client_lost_ns;
        }
    }

    /// The client decided that `id` is granted.
    pub(super) fn decided(&mut self, id: AttemptId, counted: u16, deadline_local_ns: u64) {
        let Some(attempt) = self.leases.ensure(id).copied() else { return };
        let over = self.lease_clock(id, &attempt) >= deadline_local_ns;
        let now_ns = self.now_ns;
        if let Some(attempt) = self.leases.get_mut(id) {
            attempt.counted = counted;
            attempt.decided_ns = now_ns;
            attempt.over_when_decided = over;
            attempt.looked_ns = now_ns;
        }
    }

    /// The application got the lease of `id`.
    pub(super) fn delivered(&mut self, id: AttemptId, clock: ClockKind, deadline_local_ns: u64) {
        let host = self.setting.client_host(id.client);
        let now_ns = self.now_ns;
        self.beliefs.begin(&self.clocks, id, host, (clock, deadline_local_ns), now_ns);
        // Who hands out a lease that is over has not looked.
        if self.beliefs.is_believed(id, now_ns) {
            self.looked(id);
        }
    }

    /// The lease of `id` was compared with the clock.
    pub(super) fn looked(&mut self, id: AttemptId) {
        let now_ns = self.now_ns;
        if let Some(attempt) = self.leases.get_mut(id) {
            attempt.looked_ns = now_ns;
        }
    }
}

/// `to_ns` less `from_ns`, which may be negative where a clock was set.
fn since(from_ns: u64, to_ns: u64) -> i64 {
    (to_ns as i64).saturating_sub(from_ns as i64)
}

const TRUE_TIME: Segment = Segment { true_ns: 0, local_ns: 0, rate_ppb: 0 };
