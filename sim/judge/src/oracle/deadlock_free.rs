//! No deadlock: while a client keeps trying and can reach a majority, some client is granted the
//! lock within a bound.
//!
//! The bound is [`Setting::progress_ns`](super::setting::Setting): the longest TTL in the lock's
//! settings plus its drift, 1 ms, one retry delay and one attempt bound. It is the same for every
//! subject, but a client of this project that no node wakes, or that may find no room to look at a
//! key, has [`Setting::paced_progress_ns`](super::setting::Setting), a second more. A subject whose
//! keys have no TTL can exceed it. The bound starts again with each event that excuses waiting:
//!
//! - for the probe, which begins when all faults have healed and acquires until it is granted: the
//!   last execution or delivery of a command that was written before the heal;
//! - for any other client: its first attempt. The client keeps trying as long as the pause between
//!   the failure of an attempt and the next attempt is at most twice the longest retry delay plus
//!   one attempt bound, or, if the history records the end of the acquisition, until that end;
//! - a grant to any client, and the end of the last belief (starvation is not deadlock). An
//!   extended lease excuses waiting only for as long as a lease may be held
//!   ([`Setting::hold_max_ns`](super::setting::Setting)): the longest TTL for its grant and for
//!   each of the extensions that the scenario's lock allows (counterexample E8), and the longest
//!   limit of keep-alive;
//! - the death of any client, and each command of a dead one that a node executes later: its keys
//!   live for up to one more TTL, whether or not it knew of its grant;
//! - the end of a stop of the client's process;
//! - the end of a quarantine that the client knew when its attempt failed for it, even if it has
//!   counted the node earlier: a node that had refused to introduce itself may do so before that end,
//!   and clients that sleep until then sleep on;
//! - for each node: [`Setting::heal_ns`](super::setting::Setting) after it becomes reachable (see
//!   [`Reach`](super::reach::Reach)), the end of its quarantine, which excuses no longer than the
//!   bound, and the end of each key of a client that cannot be granted the lock, because it counts
//!   no majority, or that cannot release the key, also because it is stopped or has just continued, or
//!   because the key was set behind its releases.
//!   The bound begins with the first majority that is available. Without a majority nothing is
//!   judged.
//!
//! So a livelock of ordinary clients violates the property, with or without a probe: for example,
//! if two clients split the nodes in lock step for longer than the bound. A history without a probe
//! in which no client waited too long is vacuous. So is a history that ends before the probe's
//! bound has passed.
//!
//! A client that sleeps between two attempts of an acquisition, until a server wakes it or the keys
//! in its way can have expired, is not stuck. But it must not continue to sleep while the lock is
//! free: the pause may not exceed [`Setting::sleep_ns`](super::setting::Setting), counted from the
//! failed attempt and from each of the excuses above, and from the end of the last key on each node
//! of a majority. Pushes can be lost, so this bound is longer than the longest silence of a
//! sleeping client. The client of this project has the bound of [`Wakes`], if no node loses keys
//! without a push, and the connections to the majority are not half open. Both are judged when the
//! client attempts again or gives up, and at the end.
//!
//! Blame: the wall clock of each node that still holds another attempt's key, or held one during the
//! wait, if that clock has lost more time since the key was timed than the drift of the key's lease,
//! and if these nodes and the free ones make a majority. Or the client's own clock, if it is so slow
//! that the client has waited for no longer than the bound by it, or so fast that a round trip
//! exceeds the node timeout. Or *membership*, if a client's list has two names of a node: it can need
//! a vote that no node gives twice, and its attempts keep the nodes from others. Otherwise only the
//! client is blamed.

use super::facts::Facts;
use super::ground::{NEVER, kth_since_ns, since};
use super::verdict::{Blame, Blamed, Judgement, Violation};
use super::wakes::Wakes;
use crate::history::{
    AttemptId, ClientId, ClientIds, CommandId, HostId, NodeId, Settlement, Writer,
};
use crate::ids::{PerClient, PerNode};

/// Waiting times of the clients, and the judgement so far.
#[derive(Debug)]
pub(super) struct DeadlockFree {
    /// T1 of the first attempt since which the client has kept trying; [`NEVER`] if it is not
    /// trying.
    trying_since_ns: PerClient<u64>,
    /// Last attempt that failed, and when.
    failed: PerClient<(AttemptId, u64)>,
    /// End of the quarantine that the client knew when an attempt last failed for one; 0 if none has
    /// since its acquisition began.
    quarantined_ns: PerClient<u64>,
    /// Clients between a failed attempt and the next one of the same acquisition.
    between: ClientIds,
    wakes: Wakes,
    granted_ns: u64,
    /// Time of the last death of a client.
    died_ns: u64,
    /// Time at which the probe began, and the number of the first command written after that.
    healed: Option<(u64, CommandId)>,
    /// Time of the last execution or delivery of a command that was written before the probe began.
    last_old_ns: u64,
    /// Time at which a stranded key last ended on each node; 0 if none has.
    stranded_ns: PerNode<u64>,
    probe_was_granted: bool,
    found: Judgement,
}

impl DeadlockFree {
    pub(super) fn new() -> Self {
        Self {
            trying_since_ns: PerClient::filled(NEVER),
            failed: PerClient::filled((AttemptId::default(), 0)),
            quarantined_ns: PerClient::filled(0),
            between: ClientIds::EMPTY,
            wakes: Wakes::new(),
            granted_ns: 0,
            died_ns: 0,
            healed: None,
            last_old_ns: 0,
            stranded_ns: PerNode::filled(0),
            probe_was_granted: false,
            found: Judgement::Vacuous,
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }

    /// Records that a command was executed, or that its answer was received.
    pub(super) fn moved(&mut self, command: CommandId, at_ns: u64) {
        if self.healed.is_some_and(|(_, first_new)| command < first_new) {
            self.last_old_ns = at_ns;
        }
    }

    pub(super) fn healed(&mut self, facts: &Facts) {
        self.healed = Some((facts.now_ns, facts.next_command));
        self.last_old_ns = facts.now_ns;
    }

    pub(super) fn began(&mut self, facts: &Facts, client: ClientId) {
        self.check_pause(facts, client);
        let is_same_acquisition = self.between.contains(client);
        self.between.remove(client);
        self.wakes.began(client, !is_same_acquisition);
        let pause_ns = facts.now_ns.saturating_sub(self.failed[client].1);
        let is_short = pause_ns <= 2 * facts.setting.retry_ns + facts.setting.attempt_ns;
        let keeps_trying = is_same_acquisition || is_short;
        if self.trying_since_ns[client] == NEVER || !keeps_trying {
            self.trying_since_ns[client] = facts.now_ns;
        }
    }

    pub(super) fn settled(&mut self, facts: &Facts, id: AttemptId, outcome: Settlement) {
        self.failed[id.client] = (id, facts.now_ns);
        if outcome == Settlement::Quarantined {
            self.quarantined_ns[id.client] = quarantine_ends_ns(facts, id);
        }
        match outcome {
            Settlement::Granted => {}
            Settlement::Cancelled => {
                self.trying_since_ns[id.client] = NEVER;
                self.between.remove(id.client);
            }
            _ => {
                if !facts.setting.is_worker(id.client) {
                    self.between.insert(id.client);
                }
                self.wakes.failed(facts, id, outcome);
                self.check(facts, id);
            }
        }
    }

    /// Records that an acquisition of `client` ended without a lease.
    pub(super) fn gave_up(&mut self, facts: &Facts, client: ClientId) {
        self.check_pause(facts, client);
        self.between.remove(client);
        self.quarantined_ns[client] = 0;
    }

    /// Records that the key that is on `node` ends.
    pub(super) fn key_ends(&mut self, facts: &Facts, node: NodeId) {
        if is_stranded(facts, node) {
            self.stranded_ns[node] = facts.now_ns;
        }
    }

    /// Records that a client died, or that a node executes a command of a dead one.
    pub(super) fn died(&mut self, facts: &Facts) {
        self.died_ns = facts.now_ns;
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
        self.between.iter().for_each(|client| self.check_pause(facts, client));
        self.found
    }

    /// Records a violation if `client` has paused between two attempts for too long by now: it waits
    /// for too long, or the lock is free.
    fn check_pause(&mut self, facts: &Facts, client: ClientId) {
        if !self.between.contains(client) {
            return;
        }
        let (id, failed_ns) = self.failed[client];
        self.check(facts, id);
        let excused_ns = self.excused_until_ns(facts, client).max(failed_ns);
        let free_ns = majority_since_ns(facts, id, |node| free_since_ns(facts, client, node));
        self.judge_wait(facts, id, excused_ns.max(free_ns), facts.setting.sleep_ns);
        let setting = &facts.setting;
        if setting.hears(client) && setting.silent.is_empty() && setting.has_one_membership() {
            let heard_ns = majority_since_ns(facts, id, |node| {
                free_since_ns(facts, client, node).max(facts.reach.works_since_ns(client, node))
            });
            let (from_ns, trying_ns) = (excused_ns.max(heard_ns), self.trying_since_ns[client]);
            let bound_ns = self.wakes.bound_ns(facts, client, (from_ns, trying_ns));
            self.judge_wait(facts, id, from_ns, bound_ns);
        }
    }

    /// Records a violation if the client of `id` has waited too long by now.
    fn check(&mut self, facts: &Facts, id: AttemptId) {
        let client = id.client;
        let began_ns = match self.healed {
            Some(_) if client == facts.setting.probe => self.last_old_ns,
            _ => self.trying_since_ns[client],
        };
        let reached_ns = majority_since_ns(facts, id, |node| {
            let free_ns = if is_stranded(facts, node) { NEVER } else { self.stranded_ns[node] };
            free_ns.max(node_since_ns(facts, client, node))
        });
        let from_ns = self.excused_until_ns(facts, client).max(began_ns).max(reached_ns);
        let setting = &facts.setting;
        let is_paced = setting.is_ours(client) && (setting.narrow || !setting.hears(client));
        let bound_ns = if is_paced { setting.paced_progress_ns } else { setting.progress_ns };
        self.judge_wait(facts, id, from_ns, bound_ns);
    }

    fn judge_wait(&mut self, facts: &Facts, id: AttemptId, from_ns: u64, bound_ns: u64) {
        let too_long = from_ns.saturating_add(bound_ns) < facts.now_ns;
        if too_long && !self.found.is_violated() {
            let blamed = match of_clocks(facts, id, from_ns) {
                blamed if !blamed.is_none() => blamed,
                _ if facts.setting.has_names_twice() => Blamed::just(Blame::Membership),
                _ => of_own_clock(facts, id, (from_ns, bound_ns)),
            };
            let found = Violation::lasting(id, from_ns, facts.now_ns, blamed);
            self.found = Judgement::Violated(found);
        }
    }

    /// Returns the time until which every wait of `client` is excused, whatever the nodes do.
    fn excused_until_ns(&self, facts: &Facts, client: ClientId) -> u64 {
        let nobody_ns = facts.beliefs.nobody_since_ns(facts.now_ns);
        let runs_ns = facts.processes.runs_since_ns(client);
        let of_all = [self.granted_ns, self.died_ns, nobody_ns, runs_ns];
        of_all.into_iter().fold(self.quarantined_ns[client], u64::max)
    }
}

/// Returns since when a majority of nodes has been of use to the client of `id`; [`NEVER`] if none
/// is. Each node has been since the time that `since_ns_of` returns.
fn majority_since_ns(facts: &Facts, id: AttemptId, since_ns_of: impl Fn(NodeId) -> u64) -> u64 {
    let nodes = facts.setting.nodes;
    let needed = needed_by(facts, id);
    let mut since_ns = PerNode::filled(NEVER);
    for node in facts.setting.members(id.client).iter() {
        // A subject that uses one node among several never asks the other nodes.
        let key = facts.leases.key(id, node);
        let asks = needed > 1 || nodes == 1 || key.is_some_and(|it| it.written_ns != NEVER);
        if asks {
            since_ns[node] = since_ns_of(node);
        }
    }
    kth_since_ns(since_ns, needed)
}

/// Returns since when the votes of a majority count, as the client of `id` knows it now; 0 if it knows
/// no such time.
fn quarantine_ends_ns(facts: &Facts, id: AttemptId) -> u64 {
    let ends_ns = majority_since_ns(facts, id, |node| facts.eligible[id.client][node].since_ns);
    if ends_ns == NEVER { 0 } else { ends_ns }
}

/// Returns the number of nodes that the client of `id` needs for a majority.
fn needed_by(facts: &Facts, id: AttemptId) -> usize {
    let told = facts.leases.get(id).map_or(0, |it| it.needed as usize);
    if told == 0 { facts.majority_of(id.client) } else { told }
}

/// Returns since when a node has been available to a client and has had no key; [`NEVER`] if it has
/// one. Clients may not know yet that another server is the node's master.
fn free_since_ns(facts: &Facts, client: ClientId, node: NodeId) -> u64 {
    let is_replaced = facts.master(node) != node.first_host();
    match facts.keys.free_since_ns(node) {
        _ if is_replaced => NEVER,
        since_ns => since_ns.max(node_since_ns(facts, client, node)),
    }
}

/// Returns true if the key on `node` was set behind its releases, or belongs to a client that is
/// stopped, or has not had the time to release it since; that counts no majority of nodes, or cannot
/// reach `node`.
fn is_stranded(facts: &Facts, node: NodeId) -> bool {
    let Writer::Attempt(id @ AttemptId { client, .. }) = facts.keys.writer(node) else {
        return false;
    };
    if !facts.can_be(client, node) {
        return false;
    }
    let is_overtaken = facts.leases.key(id, node).is_some_and(|key| key.overtaken);
    let reaches = |node: &NodeId| facts.reach.since_ns(client, *node) != NEVER;
    let members = facts.setting.members(client).iter();
    let counted = members.filter(|node| reaches(node) && facts.counts(client, *node));
    let runs_ns = facts.processes.runs_since_ns(client);
    let releases_ns = runs_ns.saturating_add(facts.setting.release_ns);
    is_overtaken
        || facts.processes.is_stopped(client)
        || (runs_ns != 0 && runs_ns != NEVER && facts.now_ns < releases_ns)
        || !reaches(&node)
        || counted.count() < facts.majority_of(client)
}

/// Returns since when a node has been available to a client, and its votes have counted; [`NEVER`] if
/// it is not.
fn node_since_ns(facts: &Facts, client: ClientId, node: NodeId) -> u64 {
    facts.available_since_ns(client, node).max(facts.eligible[client][node].since_ns)
}

/// Returns the masters' clocks that have kept the client of `id` waiting since `from_ns`.
fn of_clocks(facts: &Facts, id: AttemptId, from_ns: u64) -> Blamed {
    let (mut blamed, mut slow, mut free) = (Blamed::NONE, 0, 0);
    for node in facts.setting.members(id.client).iter() {
        let blocking = match facts.keys.writer(node) {
            Writer::Attempt(writer) if writer != id => Some(writer),
            _ => None,
        };
        let outlives = blocking.filter(|writer| outlives(facts, *writer, node));
        let clock = outlives.map(|_| facts.master(node));
        match clock.or_else(|| outlived_on(facts, id, node, from_ns)) {
            Some(host) => {
                slow += 1;
                blamed.add(Blame::Clock(host));
            }
            // A node that has set this key since then was free.
            None if blocking.is_some_and(|it| !is_set_since(facts, it, node, from_ns)) => {}
            None => free += usize::from(facts.reach.since_ns(id.client, node) != NEVER),
        }
    }
    if free + slow >= needed_by(facts, id) { blamed } else { Blamed::NONE }
}

/// Blames the clock of the client of `id` if round trips exceed the node timeout only by that clock,
/// or if the wait since `from_ns` is too long only because that clock has lost more than the drift of
/// a lease: by its rate since then, or by its readings since the attempt. The client measures
/// quarantines on that clock, too.
fn of_own_clock(facts: &Facts, id: AttemptId, (from_ns, bound_ns): (u64, u64)) -> Blamed {
    let Some(attempt) = facts.leases.get(id) else { return Blamed::NONE };
    let is_excused = |waited_ns: u64, by_clock_ns: u64, bound_ns: u64| {
        waited_ns.saturating_sub(by_clock_ns) > attempt.drift_ns && by_clock_ns <= bound_ns
    };
    let waited_ns = facts.now_ns.saturating_sub(from_ns);
    let by_rate_ns = facts.by_clock_of(id.client, waited_ns);
    let since_t1_ns = facts.now_ns.saturating_sub(attempt.began_ns);
    let by_readings_ns = since(attempt.t1_local_ns, facts.lease_clock(id, attempt)).max(0) as u64;
    let longest_ns = facts.setting.progress_ns.saturating_add(bound_ns);
    let mut members = facts.setting.members(id.client).iter();
    if members.any(|node| facts.has_timed_out_early(id.client, node, from_ns))
        || facts.is_quarantine_prolonged(id.client, from_ns)
        || is_excused(waited_ns, by_rate_ns, bound_ns)
        || is_excused(since_t1_ns, by_readings_ns, longest_ns)
    {
        return Blamed::just(Blame::Clock(facts.setting.client_host(id.client)));
    }
    Blamed::NONE
}

fn is_set_since(facts: &Facts, writer: AttemptId, node: NodeId, from_ns: u64) -> bool {
    facts.leases.key(writer, node).is_some_and(|key| key.set_ns != NEVER && key.set_ns > from_ns)
}

/// Returns true if the key of `writer` on `node` has lived for longer than by the node's clock, by
/// more than the drift of its lease.
fn outlives(facts: &Facts, writer: AttemptId, node: NodeId) -> bool {
    let lease = facts.leases.key(writer, node).zip(facts.leases.get(writer));
    let now = (facts.now_ns, facts.node_wall_ns(node));
    lease.is_some_and(|(key, attempt)| attempt.ttl_ns != u64::MAX && key.outlives(attempt, now))
}

/// Returns the master of `node` on which a key of an attempt other than `own` ended after `from_ns`,
/// if by its clock the key had lived for less time than it did, by more than the drift of its lease.
fn outlived_on(facts: &Facts, own: AttemptId, node: NodeId, from_ns: u64) -> Option<HostId> {
    let attempts = facts.setting.client_ids().flat_map(|client| facts.leases.of_client(client));
    let mut others = attempts.filter(|id| *id != own);
    others.find_map(|id| {
        let key = facts.leases.key(id, node).filter(|key| key.end.is_some())?;
        key.outlived_on.filter(|_| key.gone_ns > from_ns)
    })
}
