//! Bound within which a client of this project that sleeps between two attempts, and to which servers
//! push, attempts again once the lock is free.
//!
//! The client hears of the change, looks, draws a delay within its contention window and attempts. If
//! its attempts have grown rare, it also waits for the next one.
//!
//! The window begins at twice a round trip, or at the first retry delay if that is longer. Each attempt
//! that meets another one at most doubles it, and it never exceeds the longest retry delay. All tasks
//! of a process share it. What the client takes for a round trip is known only while nothing has
//! delayed a message and the process has not stopped; afterwards the bound assumes the longest retry
//! delay, or two node timeouts for acquisitions with a limit of attempts, whose delays only a round trip
//! bounds. A look at a node that cannot answer lasts a node timeout.

use super::facts::Facts;
use super::ground::MS_NS;
use super::setting::{IDLE_NS, PACE_NS, SLACK_NS};
use crate::history::{AttemptId, ClientId, ClientIds, Settlement};
use crate::ids::PerClient;

/// Shortest interval between two attempts while no majority answers.
const AWAY_NS: u64 = 100 * MS_NS;

/// Attempts by which the contention windows of the clients may have grown.
#[derive(Debug)]
pub(super) struct Wakes {
    /// Clients whose newest attempt is not the first of its acquisition.
    repeating: ClientIds,
    /// Number of attempts of the client's process that may have met another one.
    collisions: PerClient<u32>,
}

impl Wakes {
    pub(super) fn new() -> Self {
        Self { repeating: ClientIds::EMPTY, collisions: PerClient::filled(0) }
    }

    /// Records the begin of an attempt of `client`.
    pub(super) fn began(&mut self, client: ClientId, is_first: bool) {
        self.repeating.set(client, !is_first);
    }

    /// Records that the attempt `id` failed.
    pub(super) fn failed(&mut self, facts: &Facts, id: AttemptId, outcome: Settlement) {
        if outcome == Settlement::Split || self.repeating.contains(id.client) {
            for task in facts.setting.tasks_with(id.client).iter() {
                self.collisions[task] += 1;
            }
        }
    }

    /// Returns how long after `from_ns` `client`, which has been trying since `trying_ns`, attempts at
    /// the latest.
    pub(super) fn bound_ns(
        &self,
        facts: &Facts,
        client: ClientId,
        (from_ns, trying_ns): (u64, u64),
    ) -> u64 {
        let waited_ns = facts.now_ns.saturating_sub(trying_ns);
        let delays_ns = [self.window_ns(facts, client), pace_ns(waited_ns), 2 * IDLE_NS];
        let looks_ns = AWAY_NS.saturating_add(looks_ns(facts, client, from_ns));
        delays_ns.into_iter().fold(looks_ns, u64::saturating_add)
    }

    /// Returns the widest contention window that `client` may have.
    fn window_ns(&self, facts: &Facts, client: ClientId) -> u64 {
        let setting = &facts.setting;
        if is_calm(facts, client) {
            let first_ns = setting.retry_first_ns.max(2 * answer_ns(facts));
            let doubles = 1_u64.checked_shl(self.collisions[client]).unwrap_or(u64::MAX);
            first_ns.saturating_mul(doubles).min(setting.retry_ns)
        } else if setting.counts_attempts(client) {
            setting.retry_ns.max(2 * setting.node_timeout_ns)
        } else {
            setting.retry_ns
        }
    }
}

/// Returns the longest time for which `client`, which has waited for `waited_ns`, pauses once its
/// attempts have grown rare: a tenth of the wait, half as much again by chance, at most a second.
fn pace_ns(waited_ns: u64) -> u64 {
    PACE_NS.min(waited_ns / 20 * 3)
}

/// Returns the longest time for a push, a look at one node, and then looks at all others, if the lock
/// has been free for `client` since `from_ns`.
fn looks_ns(facts: &Facts, client: ClientId, from_ns: u64) -> u64 {
    let mut members = facts.setting.members(client).iter();
    let answers = |node| facts.connected_since_ns(client, node) <= from_ns;
    let look_ns =
        if members.all(answers) { answer_ns(facts) } else { facts.setting.node_timeout_ns };
    2 * (look_ns + SLACK_NS + facts.setting.round_trip_ns)
}

/// Returns the longest time until a node answers that nothing delays: an answer may wait for two syncs.
fn answer_ns(facts: &Facts) -> u64 {
    facts.setting.round_trip_ns + 2 * facts.setting.sync_ns
}

/// Returns true if nothing has delayed a message between `client` and its nodes yet, and its process
/// has never stopped.
fn is_calm(facts: &Facts, client: ClientId) -> bool {
    let mut members = facts.setting.members(client).iter();
    // Cold connections can be dialled from the first nanosecond on.
    let is_undisturbed = |node| facts.reach.since_ns(client, node) <= 1;
    facts.processes.runs_since_ns(client) == 0 && members.all(is_undisturbed)
}
