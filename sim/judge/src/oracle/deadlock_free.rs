//! No deadlock: while a client keeps trying and can reach a majority, some client is granted the
//! lock within a bound.
//!
//! The bound is [`Setting::progress_ns`](super::setting::Setting): the longest TTL in the lock's
//! settings plus its drift, 1 ms, one retry delay and one attempt bound. It is the same for every
//! subject; a subject whose keys have no TTL can exceed it. The bound starts again with each
//! event that excuses waiting:
//!
//! - for the probe, which begins when all faults have healed and acquires until it is granted: the
//!   last execution or delivery of a command that was written before the heal;
//! - for any other client: its first attempt. The client keeps trying as long as the pause between
//!   the failure of an attempt and the next attempt is at most twice the longest retry delay plus
//!   one attempt bound;
//! - a grant to any client, and the end of the last belief (starvation is not deadlock). A lease
//!   that is extended excuses waiting no longer than a lease may be held
//!   ([`Setting::hold_max_ns`](super::setting::Setting)): the longest TTL for its grant and for
//!   each of the extensions that the scenario's lock allows (catalogue E8);
//! - the end of a stop of the client's process;
//! - for each node: [`Setting::heal_ns`](super::setting::Setting) after it becomes reachable (see
//!   [`Reach`](super::reach::Reach)), and the end of its quarantine, which excuses no longer than
//!   the bound. The first majority that is available counts. Without a majority nothing is judged.
//!
//! So a livelock of ordinary clients violates the property, with or without a probe: for example,
//! if two clients split the nodes in lock step for longer than the bound. A history without a probe
//! in which no client waited too long is vacuous. So is a history that ends before the probe's
//! bound has passed.
//!
//! Blame: the wall clock of each node that still holds another client's key, if that clock has lost
//! more time since the key was timed than the drift of the key's lease, and if these nodes and the
//! free ones make a majority. Otherwise only the client is blamed.

use super::facts::{Facts, since};
use super::ground::NEVER;
use super::verdict::{Blame, Blamed, Judgement, Violation};
use crate::history::{AttemptId, ClientId, NodeId, NodeIds, Settlement, Writer};
use crate::ids::{PerClient, PerNode};

/// Waiting times of the clients, and the judgement so far.
#[derive(Debug)]
pub(super) struct DeadlockFree {
    /// T1 of the first attempt since which the client has kept trying; [`NEVER`] if it is not
    /// trying.
    trying_since_ns: PerClient<u64>,
    failed_ns: PerClient<u64>,
    granted_ns: u64,
    /// Time at which the probe began, and the number of the first command written after that.
    healed: Option<(u64, u32)>,
    /// Time of the last execution or delivery of a command that was written before the probe began.
    last_old_ns: u64,
    probe_was_granted: bool,
    found: Judgement,
}

impl DeadlockFree {
    pub(super) fn new() -> Self {
        Self {
            trying_since_ns: PerClient::filled(NEVER),
            failed_ns: PerClient::filled(0),
            granted_ns: 0,
            healed: None,
            last_old_ns: 0,
            probe_was_granted: false,
            found: Judgement::Vacuous,
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }

    /// Records that a command was executed, or that its answer was received.
    pub(super) fn moved(&mut self, command: u32, at_ns: u64) {
        if self.healed.is_some_and(|(_, first_new)| command < first_new) {
            self.last_old_ns = at_ns;
        }
    }

    pub(super) fn healed(&mut self, facts: &Facts) {
        self.healed = Some((facts.now_ns, facts.next_command));
        self.last_old_ns = facts.now_ns;
    }

    pub(super) fn began(&mut self, facts: &Facts, client: ClientId) {
        let pause_ns = facts.now_ns.saturating_sub(self.failed_ns[client]);
        let keeps_trying = pause_ns <= 2 * facts.setting.retry_ns + facts.setting.attempt_ns;
        if self.trying_since_ns[client] == NEVER || !keeps_trying {
            self.trying_since_ns[client] = facts.now_ns;
        }
    }

    pub(super) fn settled(&mut self, facts: &Facts, id: AttemptId, outcome: Settlement) {
        self.failed_ns[id.client] = facts.now_ns;
        match outcome {
            Settlement::Granted => {}
            Settlement::Cancelled => self.trying_since_ns[id.client] = NEVER,
            _ => self.check(facts, id),
        }
    }

    pub(super) fn delivered(&mut self, facts: &Facts, client: ClientId) {
        self.granted_ns = facts.now_ns;
        self.trying_since_ns[client] = NEVER;
        if client == facts.setting.probe && self.healed.is_some() {
            self.probe_was_granted = true;
            self.found.held();
        }
    }

    /// Returns the judgement of a finished run.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        let probe = facts.setting.probe;
        if self.healed.is_some() && !self.probe_was_granted {
            let nothing = AttemptId { client: probe, number: 0 };
            self.check(facts, facts.leases.newest(probe).unwrap_or(nothing));
        }
        self.found
    }

    /// Records a violation if the client of `id` has waited too long by now.
    fn check(&mut self, facts: &Facts, id: AttemptId) {
        let from_ns = self.waits_since_ns(facts, id);
        let too_long = from_ns.saturating_add(facts.setting.progress_ns) < facts.now_ns;
        if too_long && !self.found.is_violated() {
            let blamed = of_clocks(facts, id);
            let found = Violation::of_one(id, facts.now_ns, blamed);
            self.found = Judgement::Violated(Violation { from_ns, ..found });
        }
    }

    /// Returns the time since which the client of `id` has been waiting without an excuse.
    fn waits_since_ns(&self, facts: &Facts, id: AttemptId) -> u64 {
        let client = id.client;
        let is_probe = client == facts.setting.probe;
        let began_ns = match self.healed {
            Some(_) if is_probe => self.last_old_ns,
            _ => self.trying_since_ns[client],
        };
        [
            began_ns,
            self.granted_ns,
            facts.beliefs.nobody_since_ns(facts.now_ns),
            facts.processes.runs_since_ns(id.client),
            majority_since_ns(facts, id),
        ]
        .into_iter()
        .fold(0, u64::max)
    }
}

/// Returns since when a majority of nodes has been available to the client of `id`; [`NEVER`] if
/// none is.
fn majority_since_ns(facts: &Facts, id: AttemptId) -> u64 {
    let nodes = facts.setting.nodes;
    let needed = needed_by(facts, id);
    let mut since_ns = PerNode::filled(NEVER);
    for node in facts.setting.node_ids() {
        // A subject that uses one node among several never asks the other nodes.
        let key = facts.leases.key(id, node);
        let asks = needed > 1 || nodes == 1 || key.is_some_and(|it| it.written_ns != NEVER);
        if asks {
            since_ns[node] = node_since_ns(facts, id.client, node);
        }
    }
    let since_ns = since_ns.first_mut(nodes);
    since_ns.sort_unstable();
    since_ns.get(needed - 1).copied().unwrap_or(NEVER)
}

/// Returns the number of nodes that the client of `id` needs for a majority.
fn needed_by(facts: &Facts, id: AttemptId) -> usize {
    let told = facts.leases.get(id).map_or(0, |it| it.needed as usize);
    if told == 0 { facts.setting.nodes / 2 + 1 } else { told }
}

fn node_since_ns(facts: &Facts, client: ClientId, node: NodeId) -> u64 {
    if !facts.reach.answers_in_time(client, node) {
        return NEVER;
    }
    let reached_ns = match facts.reach.since_ns(client, node) {
        0 => 0,
        reached_ns => {
            let dials_ns = reached_ns.max(facts.processes.runs_since_ns(client));
            dials_ns.saturating_add(facts.setting.heal_ns)
        }
    };
    reached_ns.max(facts.eligible[client][node].since_ns)
}

/// Returns the masters' clocks that keep the client of `id` waiting.
fn of_clocks(facts: &Facts, id: AttemptId) -> Blamed {
    let (mut slow, mut free) = (NodeIds::EMPTY, 0);
    for node in facts.setting.node_ids() {
        match facts.keys.writer(node) {
            Writer::Attempt(writer) if writer.client != id.client => {
                let wall_ns = facts.node_wall_ns(node);
                let (Some(key), Some(attempt)) =
                    (facts.leases.key(writer, node), facts.leases.get(writer))
                else {
                    continue;
                };
                let lived_ns = since(key.timed_ns, facts.now_ns);
                let lost_ns = lived_ns.saturating_sub(since(key.timed_wall_ns, wall_ns));
                let allowed_ns = i64::try_from(attempt.drift_ns).unwrap_or(i64::MAX);
                if attempt.ttl_ns != u64::MAX && lost_ns > allowed_ns {
                    slow.insert(node);
                }
            }
            _ => free += u32::from(facts.reach.since_ns(id.client, node) != NEVER),
        }
    }
    let mut blamed = Blamed::NONE;
    if !slow.is_empty() && (free + slow.count()) as usize >= needed_by(facts, id) {
        slow.iter().for_each(|node| blamed.add(Blame::Clock(facts.master(node))));
    }
    blamed
}
