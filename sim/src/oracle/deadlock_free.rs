//! Nobody waits for ever: while a client keeps trying and a majority can be reached, somebody is
//! granted, within a bound.
//!
//! The bound is [`Setting::progress_ns`](super::setting::Setting): the longest TTL of the lock's
//! settings and its drift, 1 ms, one retry delay, one attempt bound. It is the same for every
//! subject: one whose keys have no TTL breaks it. It begins anew with whatever excuses waiting:
//!
//! - for the probe, which begins when all faults have healed and acquires until it is granted: the
//!   last execution or delivery of a command that was written before the heal;
//! - for any other client, its first attempt. It keeps trying as long as the pause between an
//!   attempt's failure and the next is no more than twice the longest retry delay and a bit;
//! - a grant to anybody, and the end of the last belief (to starve is not to deadlock). A lease
//!   that is extended is such an excuse for as long as a lease may be held
//!   ([`Setting::held_most_ns`](super::setting::Setting)): the longest TTL for its grant and for
//!   each of the extensions that the scenario's lock allows (catalogue E8);
//! - a stop of the process;
//! - for each node, that it can be reached (see [`Reach`](super::reach::Reach)), by
//!   [`Setting::heal_ns`](super::setting::Setting); and the end of its quarantine, which is
//!   believed for as long as the bound. What counts is the majority that is there first. Without
//!   one, nothing is judged.
//!
//! So a livelock of ordinary clients violates it, with or without a probe: in a scenario where two
//! clients split the nodes in lock step for longer than the bound. A history without a probe in
//! which nobody waited too long is vacuous, and so is one that ends before the probe's bound does.
//!
//! Blamed is the wall clock of each node whose key, of another attempt, should have expired but
//! for what the clock has lost since the key was timed, beyond the lease's drift, if these nodes
//! and the free ones make a majority. Else nobody but the client.

use super::facts::{Facts, since};
use super::ground::{NEVER, just, nodes_in};
use super::setting::{CLIENTS_MAX, NODES_MAX};
use super::verdict::{Blame, Blamed, Judgement, Violation};
use crate::history::{AttemptId, Settlement, Writer};

/// Who has been waiting since when.
#[derive(Debug)]
pub(super) struct DeadlockFree {
    /// T1 of the first attempt since which a client has kept trying; [`NEVER`] if it does not.
    trying_since_ns: [u64; CLIENTS_MAX],
    failed_ns: [u64; CLIENTS_MAX],
    granted_ns: u64,
    /// When the probe began, and the number of the first command written since.
    healed: Option<(u64, u32)>,
    /// When a command written before that did something last.
    last_old_ns: u64,
    probe_was_granted: bool,
    found: Judgement,
}

impl DeadlockFree {
    pub(super) fn new() -> Self {
        Self {
            trying_since_ns: [NEVER; CLIENTS_MAX],
            failed_ns: [0; CLIENTS_MAX],
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

    /// A command was executed, or its answer taken in.
    pub(super) fn moved(&mut self, command: u32, at_ns: u64) {
        if self.healed.is_some_and(|(_, first_new)| command < first_new) {
            self.last_old_ns = at_ns;
        }
    }

    pub(super) fn healed(&mut self, facts: &Facts) {
        self.healed = Some((facts.now_ns, facts.next_command));
        self.last_old_ns = facts.now_ns;
    }

    pub(super) fn began(&mut self, facts: &Facts, client: u8) {
        let place = usize::from(client);
        let pause_ns = facts.now_ns.saturating_sub(self.failed_ns[place]);
        let keeps_trying = pause_ns <= 2 * facts.setting.retry_ns + facts.setting.attempt_ns;
        if self.trying_since_ns[place] == NEVER || !keeps_trying {
            self.trying_since_ns[place] = facts.now_ns;
        }
    }

    pub(super) fn settled(&mut self, facts: &Facts, id: AttemptId, outcome: Settlement) {
        self.failed_ns[usize::from(id.client)] = facts.now_ns;
        match outcome {
            Settlement::Granted => {}
            Settlement::Cancelled => self.trying_since_ns[usize::from(id.client)] = NEVER,
            _ => self.check(facts, id),
        }
    }

    pub(super) fn delivered(&mut self, facts: &Facts, client: u8) {
        self.granted_ns = facts.now_ns;
        self.trying_since_ns[usize::from(client)] = NEVER;
        if usize::from(client) == facts.setting.probe && self.healed.is_some() {
            self.probe_was_granted = true;
            self.found.held();
        }
    }

    /// What was found, once the run is over.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        let probe = facts.setting.probe as u8;
        if self.healed.is_some() && !self.probe_was_granted {
            let nothing = AttemptId { client: probe, number: 0 };
            self.check(facts, facts.leases.newest(probe).unwrap_or(nothing));
        }
        self.found
    }

    /// Whether the client of `id` has waited for too long by now.
    fn check(&mut self, facts: &Facts, id: AttemptId) {
        let from_ns = self.waits_since_ns(facts, id);
        let too_long = from_ns.saturating_add(facts.setting.progress_ns) < facts.now_ns;
        if too_long && !self.found.is_violated() {
            let blamed = of_clocks(facts, id);
            let found = Violation::of_one(id, facts.now_ns, blamed);
            self.found = Judgement::Violated(Violation { from_ns, ..found });
        }
    }

    /// Since when nothing has excused the client of `id` from being granted.
    fn waits_since_ns(&self, facts: &Facts, id: AttemptId) -> u64 {
        let client = usize::from(id.client);
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

/// Since when a majority of nodes has been there for the client of `id`; [`NEVER`] without one.
fn majority_since_ns(facts: &Facts, id: AttemptId) -> u64 {
    let nodes = facts.setting.nodes;
    let needed = needed_by(facts, id);
    let mut since_ns = [NEVER; NODES_MAX];
    for node in 0..nodes as u8 {
        // A subject of one node among several never asks the others.
        let key = facts.leases.key(id, node);
        let asks = needed > 1 || nodes == 1 || key.is_some_and(|it| it.written_ns != NEVER);
        if asks {
            since_ns[usize::from(node)] = node_since_ns(facts, id.client, node);
        }
    }
    since_ns[..nodes].sort_unstable();
    since_ns.get(needed - 1).copied().unwrap_or(NEVER)
}

/// A majority of the nodes that the client of `id` locks.
fn needed_by(facts: &Facts, id: AttemptId) -> usize {
    let told = facts.leases.get(id).map_or(0, |it| it.needed as usize);
    if told == 0 { facts.setting.nodes / 2 + 1 } else { told }
}

fn node_since_ns(facts: &Facts, client: u8, node: u8) -> u64 {
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
    reached_ns.max(facts.eligible[usize::from(client)][usize::from(node)].since_ns)
}

/// Which masters' clocks keep the client of `id` waiting.
fn of_clocks(facts: &Facts, id: AttemptId) -> Blamed {
    let (mut slow, mut free) = (0, 0u32);
    for node in 0..facts.setting.nodes as u8 {
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
                    slow |= just(node);
                }
            }
            _ => free += u32::from(facts.reach.since_ns(id.client, node) != NEVER),
        }
    }
    let mut blamed = Blamed::NONE;
    if slow != 0 && (free + slow.count_ones()) as usize >= needed_by(facts, id) {
        nodes_in(slow).for_each(|node| blamed.add(Blame::Clock(facts.master(node))));
    }
    blamed
}
