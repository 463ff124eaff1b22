//! Facts derived from the history so far, in the form in which the properties use them.

use super::beliefs::Beliefs;
use super::flushes::Flushes;
use super::ground::NEVER;
use super::keys::Keys;
use super::leases::{Attempt, Leases};
use super::owed_answers::OwedAnswers;
use super::processes::Processes;
use super::pushes::Pushes;
use super::reach::Reach;
use super::setting::Setting;
use super::verdict::{Blame, Blamed};
use crate::history::{
    AttemptId, ClientId, ClockKind, ClockSegments, CommandId, HostId, Id, NodeId, NodeIds, Segment,
};
use crate::ids::{PerClient, PerNode, ResourceId};
use crate::scenario::{Scenario, Span};

/// Shared state of the fold. Only the fold writes it, before the properties read it.
#[derive(Debug)]
pub(super) struct Facts {
    /// Time of the current event.
    pub now_ns: u64,
    pub setting: Setting,
    pub clocks: ClockSegments,
    pub leases: Leases,
    pub processes: Processes,
    pub beliefs: Beliefs,
    pub keys: Keys,
    pub reach: Reach,
    pub owed_answers: OwedAnswers,
    pub flushes: Flushes,
    pub pushes: Pushes,
    /// Host whose wall clock expires the keys on each node: the node's master.
    masters: PerNode<HostId>,
    /// Time of the last restart of each node, or of the last failover to another master; 0 if there
    /// was none.
    restarted_ns: PerNode<u64>,
    /// Number of the next command: one more than the largest number seen.
    pub next_command: CommandId,
    /// Eligibility of each node's votes for each client.
    pub eligible: PerClient<PerNode<Eligible>>,
    told_eligibility: bool,
    /// Last change of each client's clock by which alone round trips to each node exceeded the node timeout;
    /// 0 if there was none.
    timed_out_early_ns: PerClient<PerNode<u64>>,
}

/// Time from which a client counts a node's votes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eligible {
    /// On the client's boot clock; [`NEVER`] if the client does not count them, 0 if it reported
    /// nothing.
    pub from_local_ns: u64,
    /// In true time; at most `latest_ns`.
    pub since_ns: u64,
    /// One progress bound after the report: a client may not postpone this for longer.
    latest_ns: u64,
    /// Length of the quarantine on the client's clock.
    quarantine_ns: u64,
    /// Earliest end of the quarantine by a clock within the drift; 0 if there is none.
    pub earliest_ns: u64,
}

impl Eligible {
    const ALWAYS: Self =
        Self { from_local_ns: 0, since_ns: 0, latest_ns: 0, quarantine_ns: 0, earliest_ns: 0 };
}

impl Facts {
    pub(super) fn new(scenario: &Scenario, resource: ResourceId) -> Self {
        let setting = Setting::new(scenario, resource);
        let leases = Leases::new(setting.nodes, setting.clients);
        let reach = Reach::new(scenario, &setting);
        let flushes = Flushes::new(scenario, &setting);
        let mut facts = Self {
            now_ns: 0,
            setting,
            clocks: ClockSegments::default(),
            leases,
            processes: Processes::new(),
            beliefs: Beliefs::new(),
            keys: Keys::new(),
            reach,
            owed_answers: OwedAnswers::new(),
            flushes,
            pushes: Pushes::new(scenario),
            masters: first_masters(),
            restarted_ns: PerNode::filled(0),
            next_command: CommandId(0),
            eligible: ALL_ELIGIBLE,
            told_eligibility: false,
            timed_out_early_ns: PerClient::filled(PerNode::filled(0)),
        };
        facts.reset();
        facts
    }

    pub(super) fn reset(&mut self) {
        self.now_ns = 0;
        self.clocks.clear();
        // The clocks of a host that reports none agree with true time.
        let last = HostId::at(self.setting.hosts - 1);
        self.clocks.set(last, ClockKind::Wall, TRUE_TIME);
        let clients = self.setting.clients;
        self.leases.reset();
        self.processes.reset(clients);
        self.beliefs.reset();
        self.keys.reset(self.setting.nodes, clients);
        self.reach.reset();
        self.owed_answers.reset(clients);
        self.flushes.reset();
        self.pushes.reset();
        self.masters = first_masters();
        self.restarted_ns.first_mut(self.setting.nodes).fill(0);
        self.timed_out_early_ns.first_mut(clients).fill(PerNode::filled(0));
        self.next_command = CommandId(0);
        if core::mem::take(&mut self.told_eligibility) {
            self.eligible = ALL_ELIGIBLE;
        }
    }

    /// Returns the current reading of a clock.
    pub(super) fn reading(&self, host: HostId, clock: ClockKind) -> u64 {
        self.clocks.segment(host, clock).local_at(self.now_ns)
    }

    /// Returns the current reading of an attempt's clock.
    pub(super) fn lease_clock(&self, id: AttemptId, attempt: &Attempt) -> u64 {
        self.reading(self.setting.client_host(id.client), attempt.clock)
    }

    /// Returns true if a round trip between `client` and `node` fits into the node timeout.
    fn answers_in_time(&self, client: ClientId, node: NodeId) -> bool {
        self.reach.round_trip_ns(client, node) < self.setting.node_timeout_ns
    }

    /// Returns true if a round trip between `client` and `node` has exceeded the node timeout since
    /// `from_ns`, but only by the client's clock.
    pub(super) fn has_timed_out_early(&self, client: ClientId, node: NodeId, from_ns: u64) -> bool {
        self.timed_out_early_ns[client][node] > from_ns || self.times_out_early(client, node)
    }

    /// Records to which nodes round trips time out early by the clock of `client`, the rate of which is
    /// about to change.
    pub(super) fn note_early_timeouts(&mut self, client: ClientId) {
        for node in self.setting.members(client).iter() {
            if self.times_out_early(client, node) {
                self.timed_out_early_ns[client][node] = self.now_ns;
            }
        }
    }

    /// Returns true if a round trip, with or without a sync, fits into the node timeout, but not on the
    /// client's clock at its current rate.
    pub(super) fn times_out_early(&self, client: ClientId, node: NodeId) -> bool {
        let round_trip_ns = self.reach.round_trip_ns(client, node);
        let timeout_ns = self.setting.node_timeout_ns;
        [round_trip_ns, round_trip_ns.saturating_add(self.setting.sync_ns)]
            .into_iter()
            .any(|it| it < timeout_ns && self.by_clock_of(client, it) >= timeout_ns)
    }

    /// Returns the amnesia of those of `nodes` whose answers may have misled `client` about a command
    /// that it wrote from `at_ns` on: the node restarted behind a proxy, so that the client took the
    /// answer to another command for that one; or a failover that the client was not told of had
    /// replaced the master that answered.
    pub(super) fn mismatched(&self, client: ClientId, nodes: NodeIds, at_ns: u64) -> Blamed {
        let mut blamed = Blamed::NONE;
        nodes
            .iter()
            .filter(|&node| self.setting.has_node(node))
            .filter(|&node| self.reach.may_be_mismatched(client, node, at_ns))
            .for_each(|node| blamed.add(Blame::Amnesia(node.first_host())));
        blamed
    }

    /// Returns the amnesia of those nodes behind which the client of `id` may have mistaken one answer
    /// for another since T1.
    pub(super) fn mismatched_since_t1(&self, id: AttemptId) -> Blamed {
        let began_ns = self.leases.get(id).map_or(NEVER, |it| it.began_ns);
        self.mismatched(id.client, self.setting.members(id.client), began_ns)
    }

    /// Returns since when `node` has been available to `client` on a connection that is not half open;
    /// [`NEVER`] if it is not.
    pub(super) fn connected_since_ns(&self, client: ClientId, node: NodeId) -> u64 {
        let works_ns = self.reach.works_since_ns(client, node);
        works_ns.max(self.available_since_ns(client, node))
    }

    /// Returns since when `node` has been available to `client`: the client has had the time to open a
    /// connection, and a round trip fits into the node timeout. [`NEVER`] if it is not available.
    pub(super) fn available_since_ns(&self, client: ClientId, node: NodeId) -> u64 {
        if !self.answers_in_time(client, node) {
            return NEVER;
        }
        match self.reach.since_ns(client, node) {
            0 => 0,
            reached_ns => {
                let dials_ns = reached_ns.max(self.processes.runs_since_ns(client));
                dials_ns.saturating_add(self.setting.heal_ns)
            }
        }
    }

    /// Returns true if the client's boot clock has had its current rate since `from_ns`.
    pub(super) fn has_kept_its_rate(&self, client: ClientId, from_ns: u64) -> bool {
        let host = self.setting.client_host(client);
        self.clocks.segment(host, ClockKind::Boot).true_ns <= from_ns
    }

    /// Converts a duration in true time to the client's clock, at the clock's current rate.
    pub(super) fn by_clock_of(&self, client: ClientId, span_ns: u64) -> u64 {
        let clock = self.clocks.segment(self.setting.client_host(client), ClockKind::Boot);
        u64::try_from(clock.advance_ns(span_ns).max(0)).unwrap_or(u64::MAX)
    }

    /// Returns true if two attempts with one token had begun at `at_ns`. Copies draw the same tokens in
    /// the same order, so their first attempts show it.
    pub(super) fn is_token_shared(&self, at_ns: u64) -> bool {
        let has_begun = |client: &ClientId| {
            let first = self.leases.get(AttemptId { client: *client, number: 1 });
            first.is_some_and(|it| it.began_ns <= at_ns)
        };
        let begun = || self.setting.client_ids().filter(has_begun);
        begun().any(|one| begun().any(|other| self.setting.are_copies(one, other)))
    }

    /// Returns the host that is the master of `node` now.
    pub(super) fn master(&self, node: NodeId) -> HostId {
        self.masters[node]
    }

    /// Returns the reading of the wall clock by which the keys on `node` expire.
    pub(super) fn node_wall_ns(&self, node: NodeId) -> u64 {
        self.reading(self.master(node), ClockKind::Wall)
    }

    /// Records that a new process of `node` answers.
    pub(super) fn restarted(&mut self, node: NodeId) {
        self.restarted_ns[node] = self.now_ns;
        self.flushes.restarted(node);
        self.reach.node_up(node, self.now_ns);
    }

    /// Returns true if `node`, which voted for `id`, had restarted or lost keys before its vote, and less
    /// than the longest TTL before T1: it may have forgotten a lease that was not over.
    pub(super) fn may_have_forgotten(&self, id: AttemptId, node: NodeId) -> bool {
        let (Some(attempt), Some(key)) = (self.leases.get(id), self.leases.key(id, node)) else {
            return false;
        };
        let (restarted_ns, quarantine_ns) = (self.restarted_ns[node], self.setting.quarantine_ns);
        let has_restarted = restarted_ns != 0 && restarted_ns <= key.set_ns;
        let is_too_soon = attempt.began_ns < restarted_ns.saturating_add(quarantine_ns);
        let is_restart_known = quarantine_ns != 0 && !self.setting.silent.contains(node);
        has_restarted && is_too_soon && is_restart_known
            || self.setting.hears(id.client)
                && self.flushes.rules_out((id.client, node), attempt.began_ns, key.set_ns)
    }

    /// Makes `host` the master of `node`.
    pub(super) fn failed_over(&mut self, node: NodeId, host: HostId) {
        if self.setting.has_node(node) && self.setting.has_host(host) {
            self.masters[node] = host;
            self.restarted(node);
        }
    }

    /// Records a client's report from when on it counts a node's votes; its tasks have one node's
    /// connection, and count the same.
    pub(super) fn eligible(&mut self, client: ClientId, node: NodeId, from_local_ns: u64) {
        if !self.can_be(client, node) {
            return;
        }
        let latest_ns = self.now_ns.saturating_add(self.setting.progress_ns);
        let now_local_ns = self.reading(self.setting.client_host(client), ClockKind::Boot);
        let quarantine_ns = from_local_ns.saturating_sub(now_local_ns);
        let drift_ns = self.setting.drift.of(Span(quarantine_ns)).0;
        let earliest_ns = match quarantine_ns.saturating_sub(drift_ns) {
            0 => 0,
            least_ns => self.now_ns.saturating_add(least_ns),
        };
        for task in self.setting.tasks_with(client).iter() {
            self.eligible[task][node] =
                Eligible { from_local_ns, since_ns: NEVER, latest_ns, quarantine_ns, earliest_ns };
            self.time_eligibility(task);
            if let Some(id) = self.leases.newest(task) {
                self.note_eligibility(id, node);
            }
        }
        self.told_eligibility = true;
    }

    /// Returns true if `client` counts the votes of `node` now.
    pub(super) fn counts(&self, client: ClientId, node: NodeId) -> bool {
        self.eligible[client][node].since_ns <= self.now_ns
    }

    /// Returns the number of nodes that make a majority of the list of `client`.
    pub(super) fn majority_of(&self, client: ClientId) -> usize {
        self.setting.members(client).count() as usize / 2 + 1
    }

    /// Computes again when the votes begin to count that do not count yet: the client has reported it,
    /// or its clock has changed.
    pub(super) fn time_eligibility(&mut self, client: ClientId) {
        let host = self.setting.client_host(client);
        let clock = self.clocks.segment(host, ClockKind::Boot);
        let all = self.eligible[client].values_mut();
        for it in all.filter(|it| it.since_ns > self.now_ns && it.from_local_ns != NEVER) {
            it.since_ns = clock.true_at(it.from_local_ns).unwrap_or(NEVER).min(it.latest_ns);
        }
    }

    /// Returns true if the clock of `client` is so slow that a quarantine lasts beyond `at_ns`, and beyond
    /// its bound.
    pub(super) fn is_quarantine_prolonged(&self, client: ClientId, at_ns: u64) -> bool {
        let clock = self.clocks.segment(self.setting.client_host(client), ClockKind::Boot);
        self.setting.members(client).iter().any(|node| {
            let it = self.eligible[client][node];
            let is_cut_short = it.since_ns == it.latest_ns && it.latest_ns > 0;
            let is_due = it.quarantine_ns <= self.setting.progress_ns;
            is_cut_short && is_due && clock.true_at(it.from_local_ns).is_some_and(|it| it > at_ns)
        })
    }

    /// Records that `node`, which has voted for the attempt `id`, was not in quarantine at T1, if that
    /// is what the client knows.
    pub(super) fn note_eligibility(&mut self, id: AttemptId, node: NodeId) {
        let is_eligible = self.is_eligible(id, node);
        if let Some(attempt) = self.leases.get_mut(id)
            && is_eligible
        {
            let confirmed = attempt.confirmed_by & NodeIds::just(node);
            attempt.eligible_since_answer |= confirmed;
            if attempt.began_ns < self.eligible[id.client][node].earliest_ns {
                attempt.eligible_early |= confirmed;
            }
        }
    }

    /// Returns true if the client of `id` counts the votes of `node` since T1 or before, as far as it
    /// knows now.
    pub(super) fn is_eligible(&self, id: AttemptId, node: NodeId) -> bool {
        if !self.can_be(id.client, node) {
            return false;
        }
        let from_local_ns = self.eligible[id.client][node].from_local_ns;
        from_local_ns == 0
            || self.leases.get(id).is_some_and(|attempt| from_local_ns <= attempt.t1_local_ns)
    }

    /// Returns true if the scenario can have such a client and such a node.
    pub(super) fn can_be(&self, client: ClientId, node: NodeId) -> bool {
        self.setting.has_client(client) && self.setting.has_node(node)
    }

    /// Returns the T1 of `id`, whose SET to `node` is written now, if a stop came in between, and this
    /// is the first SET; otherwise [`NEVER`].
    pub(super) fn t1_before_stop_ns(&self, id: AttemptId, node: NodeId) -> u64 {
        let is_first = self.leases.key(id, node).is_none_or(|key| key.written_ns == NEVER);
        let began_ns = self.leases.get(id).map_or(NEVER, |attempt| attempt.began_ns);
        let was_stopped = began_ns < self.processes.runs_since_ns(id.client);
        if is_first && was_stopped { began_ns } else { NEVER }
    }

    /// Records that the client decided that `id` is granted.
    pub(super) fn decided(&mut self, id: AttemptId, counted: NodeIds, deadline_local_ns: u64) {
        let Some(attempt) = self.leases.ensure(id).copied() else { return };
        let over = self.lease_clock(id, &attempt) >= deadline_local_ns;
        let now_ns = self.now_ns;
        if let Some(attempt) = self.leases.get_mut(id) {
            (attempt.granted_by, attempt.counted) = (counted, counted);
            attempt.decided_ns = now_ns;
            attempt.deadline_local_ns = deadline_local_ns;
            attempt.over_when_decided = over;
            attempt.checked_ns = now_ns;
        }
    }

    /// Records that the application checked the lease of `id`.
    pub(super) fn checked(&mut self, id: AttemptId) {
        let now_ns = self.now_ns;
        if let Some(attempt) = self.leases.get_mut(id) {
            attempt.checked_ns = now_ns;
        }
    }
}

/// At first each node is its own master.
fn first_masters() -> PerNode<HostId> {
    PerNode::from_fn(NodeId::first_host)
}

const ALL_ELIGIBLE: PerClient<PerNode<Eligible>> =
    PerClient::filled(PerNode::filled(Eligible::ALWAYS));

const TRUE_TIME: Segment = Segment { true_ns: 0, local_ns: 0, rate_ppb: 0 };
