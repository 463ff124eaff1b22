//! A grant is backed by a majority of the attempt's own keys, its T1 was read before they were
//! written, and it has time left.
//!
//! When the client decides a grant, these conditions hold: a majority of the configured nodes had
//! executed this attempt's SET with success, and the client had received their answers; T1 had been
//! read before the first command was written; the deadline is at most T1 + TTL − drift; and the
//! clock reads less than the deadline. The values are those of the events: a subject that allows
//! for no drift reports a drift of 0, and a subject without a TTL (`u64::MAX`) may have any
//! deadline. An unsound grant is the client's error, unless a node restarted behind a proxy that took
//! another command's answer for the SET's: then the node's amnesia is to blame. Of a worker outside the
//! simulator, only the keys are known: its deadline is the time until which they last, and is not
//! compared with T1 + TTL − drift.
//!
//! The same holds for each extension. When an extension succeeds, a majority of the configured
//! nodes had executed a command of its round with success, on keys that were not [set
//! again](super::extension) since the grant. The client had received their answers while its clock
//! read less than the old deadline, and the clock still reads less now. The new deadline is at most
//! T1 of the round + its TTL − drift, and is not yet reached (counterexamples E1, E3, E4, E5).
//!
//! Of clients of this project more is asked. No node votes that was in quarantine at T1, as far as
//! the client knows, and under the guard `Quarantine` none that has restarted, or failed over, less
//! than the longest TTL before T1 (K3); the same under every guard if the node lost keys without a
//! [restart](super::flushes) after it introduced itself to the client. This is judged in true time,
//! where no clock is faster or slower than the drift allows. A lease is not delivered with less
//! time left than `min-validity`. An extension does not shorten its lease, and does not keep it for
//! longer than the scenario allows (E8). No extension, and no SET that sets a missing key again, is
//! written once the lease is over, and no such SET before an extension has succeeded (E7). No
//! extension begins before the last one is decided. No command that a node executes late shortens the
//! life of a key on which the lease counts, to less than until the deadline (E6). No SET is written to a
//! node that has owed an answer for longer than the node timeout: it would wait behind the command
//! on which the node is stuck, and set its key long after the attempt. This is not judged if a
//! client has two names of one node.

use super::facts::Facts;
use super::ground::{MS_NS, NEVER, ROUNDING_NS};
use super::leases::Attempt;
use super::owed_answers::SetBehind;
use super::verdict::{Judgement, Violation};
use crate::history::{AttemptId, NodeId, NodeIds, OpKind};

/// Judgement so far.
#[derive(Debug, Default)]
pub(super) struct SoundGrant(Judgement);

impl SoundGrant {
    pub(super) fn reset(&mut self) {
        self.0 = Judgement::Vacuous;
    }

    pub(super) fn decided(
        &mut self,
        facts: &Facts,
        id: AttemptId,
        t2_local_ns: u64,
        deadline_local_ns: u64,
    ) {
        if is_sound(facts, id, t2_local_ns, deadline_local_ns) {
            self.0.held();
        } else {
            self.violated(facts, id, |it| it.began_ns);
        }
    }

    /// Judges an extension of the lease of `id`, before it is recorded in `facts`.
    pub(super) fn extended(&mut self, facts: &Facts, id: AttemptId, deadline_local_ns: u64) {
        if is_sound_extension(facts, id, deadline_local_ns) {
            self.0.held();
        } else {
            self.violated(facts, id, |it| it.round.basis.began_ns);
        }
    }

    /// Judges the delivery of the lease of `id`.
    pub(super) fn delivered(&mut self, facts: &Facts, id: AttemptId, deadline_local_ns: u64) {
        let Some(attempt) = facts.leases.get(id) else { return };
        let needed_ns = facts.setting.min_validity_ns;
        let reads_ns = facts.lease_clock(id, attempt);
        if facts.setting.is_ours(id.client)
            && reads_ns.saturating_add(needed_ns) > deadline_local_ns
        {
            self.violated(facts, id, |it| it.began_ns);
        }
    }

    /// Judges the begin of an extension of the lease of `id`, before it is recorded in `facts`.
    pub(super) fn extends(&mut self, facts: &Facts, id: AttemptId) {
        // A round takes a node timeout at most. Its end may be recorded after the next one's begin, in
        // the same instant.
        let is_recent = |began_ns: u64| {
            let since_ns = facts.by_clock_of(id.client, facts.now_ns.saturating_sub(began_ns));
            since_ns.saturating_add(ROUNDING_NS) < facts.setting.node_timeout_ns
        };
        let is_extending = facts
            .leases
            .get(id)
            .is_some_and(|it| !it.round.settled && is_recent(it.round.basis.began_ns));
        if is_extending && facts.setting.is_ours(id.client) {
            self.violated(facts, id, |it| it.round.basis.began_ns);
        }
    }

    /// Judges a command of the attempt `id` to `node`, which is written now, before it is recorded in
    /// `facts`.
    pub(super) fn written(&mut self, facts: &Facts, id: AttemptId, (node, op): (NodeId, OpKind)) {
        if !matches!(op, OpKind::Extend | OpKind::Set) || !facts.setting.is_ours(id.client) {
            return;
        }
        let Some(attempt) = facts.leases.get(id).filter(|it| it.decided_ns != NEVER) else {
            return;
        };
        let has_been_set = facts.leases.key(id, node).is_some_and(|it| it.written_ns != NEVER);
        let votes = facts.setting.votes(id.client, attempt.confirmed_round());
        let is_extended = attempt.basis.began_ns != attempt.began_ns || votes >= attempt.needed;
        let is_repair = op == OpKind::Set && has_been_set && !facts.setting.has_names_twice();
        if is_repair && !is_extended {
            self.violated(facts, id, |it| it.began_ns);
        }
        if facts.lease_clock(id, attempt) < attempt.deadline_local_ns {
            return;
        }
        let since_t1_ns =
            facts.by_clock_of(id.client, facts.now_ns.saturating_sub(attempt.began_ns));
        // The first SET may wait for a connection. And a process may stop between its last look at the
        // clock and the command.
        let may_be_late = op == OpKind::Set && since_t1_ns <= facts.setting.node_timeout_ns
            || facts.processes.runs_since_ns(id.client) == facts.now_ns;
        if !may_be_late {
            self.violated(facts, id, |it| it.round.basis.began_ns);
        }
    }

    /// Judges a SET that was written while its node owed an answer.
    pub(super) fn set_behind(&mut self, facts: &Facts, set: SetBehind) {
        let SetBehind { id, at_ns, owed_since_ns } = set;
        let owed_ns = facts.by_clock_of(id.client, at_ns - owed_since_ns);
        let is_stuck = owed_ns > facts.setting.node_timeout_ns.saturating_add(MS_NS)
            && facts.has_kept_its_rate(id.client, owed_since_ns);
        // A process that stopped may have had the answer before it took it in.
        let ran = facts.processes.runs_since_ns(id.client) <= owed_since_ns;
        let is_ours = facts.setting.is_ours(id.client) && facts.setting.is_judged(id.client);
        // Two names of one node have a connection each.
        if is_stuck && ran && is_ours && !facts.setting.has_names_twice() {
            self.violated(facts, id, |it| it.began_ns);
        }
    }

    /// Judges a new expiry of the key of `id` on `node`, which a command of its client sets.
    pub(super) fn retimed(
        &mut self,
        facts: &Facts,
        id: AttemptId,
        (node, expires_wall_ms): (NodeId, u64),
    ) {
        let Some(attempt) = facts.leases.get(id).filter(|it| it.finished_ns == NEVER) else {
            return;
        };
        let left_ns = attempt.deadline_local_ns.saturating_sub(facts.lease_clock(id, attempt));
        let expires_ns = expires_wall_ms.saturating_mul(MS_NS);
        let lives_ns = expires_ns.saturating_sub(facts.node_wall_ns(node));
        let allowed_ns = attempt.basis.drift_ns.saturating_add(MS_NS);
        // A key that lives too short by the client's clock alone has not been shortened.
        let is_shorter =
            facts.leases.key(id, node).is_some_and(|key| expires_wall_ms < key.promised_wall_ms);
        if facts.setting.is_ours(id.client)
            && is_shorter
            && attempt.counted.contains(node)
            && lives_ns.saturating_add(allowed_ns) < left_ns
        {
            self.violated(facts, id, |it| it.basis.began_ns);
        }
    }

    pub(super) fn judge(&self) -> Judgement {
        self.0
    }

    /// Records a violation by the lease of `id`, whose attempt or extension began at `began_ns_of` it.
    fn violated(&mut self, facts: &Facts, id: AttemptId, began_ns_of: impl Fn(&Attempt) -> u64) {
        if !self.0.is_final() {
            let began_ns = facts.leases.get(id).map_or(NEVER, began_ns_of);
            let blamed = facts.mismatched(id.client, facts.setting.members(id.client), began_ns);
            self.0.violated(Violation::of_one(id, facts.now_ns, blamed));
        }
    }
}

fn is_sound(facts: &Facts, id: AttemptId, t2_local_ns: u64, deadline_local_ns: u64) -> bool {
    let Some(attempt) = facts.leases.get(id) else { return false };
    let votes = facts.setting.votes(id.client, attempt.confirmed_by);
    let has_majority = votes >= attempt.needed.max(1);
    let is_timed_from_before = attempt.began_ns != NEVER && !attempt.wrote_early;
    let expiry_ns = attempt.t1_local_ns.saturating_add(attempt.ttl_ns);
    let is_within_ttl = attempt.ttl_ns == u64::MAX
        || facts.setting.is_worker(id.client)
        || deadline_local_ns <= expiry_ns.saturating_sub(attempt.drift_ns);
    let has_time_left = t2_local_ns < deadline_local_ns && !attempt.over_when_decided;
    let was_in_quarantine = |node: NodeId| {
        // Each name of a node has a quarantine of its own, and a report does not say whose it is.
        let has_two_names = facts.setting.votes(id.client, NodeIds::just(node)) > 1;
        let was_eligible = has_two_names
            || attempt.eligible_since_answer.contains(node)
            || facts.is_eligible(id, node);
        !was_eligible || facts.may_have_forgotten(id, node)
    };
    let counts_quarantined =
        facts.setting.is_ours(id.client) && attempt.granted_by.iter().any(was_in_quarantine);
    has_majority && is_timed_from_before && is_within_ttl && has_time_left && !counts_quarantined
}

fn is_sound_extension(facts: &Facts, id: AttemptId, deadline_local_ns: u64) -> bool {
    let Some(attempt) = facts.leases.get(id) else { return false };
    let round = &attempt.round;
    let votes = facts.setting.votes(id.client, attempt.confirmed_round());
    let has_majority = votes >= attempt.needed.max(1);
    let expiry_ns = round.basis.t1_local_ns.saturating_add(round.ttl_ns);
    let is_within_ttl = deadline_local_ns <= expiry_ns.saturating_sub(round.basis.drift_ns);
    let now_local_ns = facts.lease_clock(id, attempt);
    // If the process has not run since the last answer, it decided before it was stopped.
    let ran_ns = facts.processes.ran_for_ns(id.client, facts.now_ns);
    let is_in_time = now_local_ns < attempt.deadline_local_ns.min(deadline_local_ns)
        || ran_ns == round.confirmed_ran_ns;
    let latest_ns = attempt.t1_local_ns.saturating_add(facts.setting.hold_max_ns);
    let is_within_bounds = !facts.setting.is_ours(id.client)
        || (attempt.deadline_local_ns..=latest_ns).contains(&deadline_local_ns);
    round.basis.began_ns != NEVER && has_majority && is_within_bounds && is_within_ttl && is_in_time
}
