//! Of a lease that it watches, a client counts only nodes that have the key as having it, and only
//! nodes that lack the key as lacking it.
//!
//! The client reports which nodes are *confirmed* to have the key, and which are *possible*: not known
//! to lack it. A report stands until the next one, or until the lease ends, and is judged then, by
//! what nodes can show at that instant.
//!
//! - A node that has had the key without interruption since the grant is possible; so is one that has
//!   answered the SET by which the client set the key again, and has kept it since.
//! - A node that has the key, and can show it, is possible after
//!   [`Setting::push_ns`](super::setting::Setting): it pushes the client's own SET that comes late.
//! - A node that lacks the key, and can show it, is not confirmed for longer than
//!   [`Setting::push_ns`](super::setting::Setting): the push alone makes it doubtful.
//! - A node that has the key without interruption, answers, and pushes is confirmed within
//!   [`Setting::notice_ns`](super::setting::Setting) and the interval of reads that nobody answered.
//!   This is not judged if a rate is beyond half the drift or a fault changes a clock: a client does
//!   not rely on a node that seems to push late.
//!
//! A node can show the same as for [sound-loss](super::sound_loss), which judges a majority where this
//! property judges one node. The property is vacuous if no client reports anything. Nothing excuses a
//! violation, except for the restarts behind a proxy that excuse a false report of a loss.

use super::facts::Facts;
use super::ground::NEVER;
use super::key_losses::{
    answers_since_ns, attends_since_ns, has_had, kept_since_ns, lacks_since_ns,
};
use super::leases::Attempt;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::{AttemptId, ClientId, NodeId, NodeIds, Writer};
use crate::ids::PerNode;

/// Interval after which a client repeats a read that was not answered.
const READ_AGAIN_NS: u64 = 1_000_000_000;

/// The last report on a lease.
#[derive(Clone, Copy, Debug)]
struct Report {
    id: AttemptId,
    confirmed: NodeIds,
    possible: NodeIds,
    /// Since when each of the other nodes has not been confirmed.
    doubted_ns: PerNode<u64>,
}

/// The last report on each lease that is held, and the judgement so far.
#[derive(Debug)]
pub(super) struct SoundVotes {
    reports: Vec<Report>,
    found: Judgement,
}

impl SoundVotes {
    pub(super) fn new() -> Self {
        Self { reports: Vec::with_capacity(16), found: Judgement::Vacuous }
    }

    pub(super) fn reset(&mut self) {
        self.reports.clear();
        self.found = Judgement::Vacuous;
    }

    /// Judges a new report on the lease of `id`, and the one before it, which stood until now.
    pub(super) fn changed(
        &mut self,
        facts: &Facts,
        id: AttemptId,
        (confirmed, possible): (NodeIds, NodeIds),
    ) {
        if !facts.setting.has_one_membership() || !facts.setting.is_judged(id.client) {
            return;
        }
        let before = self.reports.iter().find(|it| it.id == id).copied();
        self.ended(facts, id);
        if let Some(attempt) = facts.leases.get(id) {
            if denies_a_key(facts, (id, attempt), possible) {
                self.violated(facts, id, facts.now_ns, facts.mismatched_since_t1(id));
            }
            self.found.held();
            let doubted_ns = PerNode::from_fn(|node| match before {
                Some(it) if !it.confirmed.contains(node) => it.doubted_ns[node],
                _ => facts.now_ns,
            });
            self.reports.push(Report { id, confirmed, possible, doubted_ns });
        }
    }

    /// Judges the last report on the lease of `id`: it ends, or there is a new report.
    pub(super) fn ended(&mut self, facts: &Facts, id: AttemptId) {
        let Some(place) = self.reports.iter().position(|it| it.id == id) else { return };
        let report = self.reports.swap_remove(place);
        let Some(attempt) = facts.leases.get(id) else { return };
        if facts.lease_clock(id, attempt) >= attempt.deadline_local_ns {
            return;
        }
        if denies_a_key(facts, (id, attempt), report.possible) {
            self.violated(facts, id, facts.now_ns, facts.mismatched_since_t1(id));
        }
        for node in facts.setting.members(id.client).iter() {
            let (wrong_ns, bound_ns) = if report.confirmed.contains(node) {
                (lacks_since_ns(facts, id, node), facts.setting.push_ns)
            } else if report.possible.contains(node) {
                let confirms_ns = confirms_since_ns(facts, (id, attempt), node);
                let bound_ns = facts.setting.notice_ns.saturating_add(READ_AGAIN_NS);
                (confirms_ns.max(report.doubted_ns[node]), bound_ns)
            } else {
                (has_since_ns(facts, id, node), facts.setting.push_ns)
            };
            let wrong_ns = wrong_ns.max(attends_since_ns(facts, id.client));
            if wrong_ns != NEVER && has_had(facts, (id, attempt), wrong_ns, bound_ns) {
                self.violated(facts, id, wrong_ns, Blamed::NONE);
            }
        }
    }

    /// Judges the leases of `client`, whose process dies now.
    pub(super) fn killed(&mut self, facts: &Facts, client: ClientId) {
        while let Some(report) = self.reports.iter().find(|it| it.id.client == client) {
            self.ended(facts, report.id);
        }
    }

    /// Returns the judgement of a finished run.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        while let Some(report) = self.reports.first() {
            self.ended(facts, report.id);
        }
        self.found
    }

    fn violated(&mut self, facts: &Facts, id: AttemptId, from_ns: u64, blamed: Blamed) {
        self.found.violated(Violation::lasting(id, from_ns, facts.now_ns, blamed));
    }
}

/// Returns true if the client knows of a node that is not among `possible` that it has the key.
fn denies_a_key(facts: &Facts, (id, attempt): (AttemptId, &Attempt), possible: NodeIds) -> bool {
    let mut members = facts.setting.members(id.client).iter();
    members.any(|node| {
        !possible.contains(node) && kept_since_ns(facts, id, attempt, node) < facts.now_ns
    })
}

/// Returns since when `node` has had the key of `id` again and could have pushed that; [`NEVER`] if it has
/// not, or could not.
fn has_since_ns(facts: &Facts, id: AttemptId, node: NodeId) -> u64 {
    let is_there = facts.keys.writer(node) == Writer::Attempt(id) && !facts.keys.has_returned(node);
    match facts.leases.key(id, node) {
        Some(key) if is_there && facts.setting.hears(id.client) => {
            key.set_ns.max(answers_since_ns(facts, id.client, node))
        }
        _ => NEVER,
    }
}

/// Returns since when `node` could have confirmed that it has the key of `id`, without a push that puts
/// this in doubt; [`NEVER`] if it cannot.
fn confirms_since_ns(facts: &Facts, (id, attempt): (AttemptId, &Attempt), node: NodeId) -> u64 {
    let can_confirm = facts.setting.hears(id.client) && facts.setting.steady;
    if !can_confirm {
        return NEVER;
    }
    let pushed_ns = facts.pushes.last_ns(node);
    let kept_ns = kept_since_ns(facts, id, attempt, node);
    answers_since_ns(facts, id.client, node).max(kept_ns).max(pushed_ns)
}
