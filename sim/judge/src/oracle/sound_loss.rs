//! A client that reports a lease as lost is right, and hears of a loss soon.
//!
//! A lease is *lost* when so many nodes lack its key that no majority can have it.
//!
//! - A report at least [`MARGIN_NS`] before the deadline is a violation if a majority of the nodes
//!   has had the key without interruption since the grant: no node can have shown that it lacks it.
//! - A lease that is lost, and has been held for long enough to be watched, must be reported or
//!   released within [`Setting::notice_ns`](super::setting::Setting). The bound begins when so many
//!   of the nodes that lack the key have been available to the client (see
//!   [`Facts::available_since_ns`]) that their replies prove the loss.
//!
//! Judged are clients of this project alone, the second rule only for those that hear pushes. A node
//! counts for the second rule only if its first host is still its master, because clients may not
//! know of another one, and if it loses no key without a push
//! ([`Setting::silent`](super::setting::Setting)), and not while the client's connection may be half
//! open.
//!
//! The property is vacuous if no lease was lost or reported as lost before its deadline. Nothing
//! excuses a violation.

use super::facts::Facts;
use super::ground::NEVER;
use super::leases::Attempt;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::{AttemptId, ClientId, NodeId};
use crate::ids::PerNode;

/// A lease is reported as lost this long before its deadline, at the earliest.
const MARGIN_NS: u64 = 2_000_000;

/// Time after the grant for which a lease is not watched: at least this long, and this fraction of
/// its TTL.
const UNWATCHED_LEAST_NS: u64 = 50_000_000;
const UNWATCHED: u64 = 20;

/// Leases of which no loss was reported yet, and the judgement so far.
#[derive(Debug)]
pub(super) struct SoundLoss {
    held: Vec<AttemptId>,
    found: Judgement,
}

impl SoundLoss {
    pub(super) fn new() -> Self {
        Self { held: Vec::with_capacity(16), found: Judgement::Vacuous }
    }

    pub(super) fn reset(&mut self) {
        self.held.clear();
        self.found = Judgement::Vacuous;
    }

    /// Records that the application received the lease of `id`.
    pub(super) fn delivered(&mut self, facts: &Facts, id: AttemptId) {
        if facts.setting.is_ours(id.client) && !self.held.contains(&id) {
            self.held.push(id);
        }
    }

    /// Judges the report that the lease of `id` is lost.
    pub(super) fn reported(&mut self, facts: &Facts, id: AttemptId) {
        if !self.held.contains(&id) {
            return;
        }
        if let Some(attempt) = facts.leases.get(id) {
            let reads_ns = facts.lease_clock(id, attempt).saturating_add(MARGIN_NS);
            if reads_ns < attempt.deadline_local_ns {
                self.found.held();
                if is_kept_by_a_majority(facts, id, attempt) {
                    self.violated(id, facts.now_ns, facts.now_ns);
                }
            }
        }
        self.ended(facts, id);
    }

    /// Judges the end of the lease of `id`: it was released, or reported as lost.
    pub(super) fn ended(&mut self, facts: &Facts, id: AttemptId) {
        if let Some(place) = self.held.iter().position(|it| *it == id) {
            self.held.swap_remove(place);
            self.judge_notice(facts, id);
        }
    }

    /// Judges the leases of `client`, whose process dies now.
    pub(super) fn killed(&mut self, facts: &Facts, client: ClientId) {
        while let Some(&id) = self.held.iter().find(|it| it.client == client) {
            self.ended(facts, id);
        }
    }

    /// Returns the judgement of a finished run.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        while let Some(&id) = self.held.first() {
            self.ended(facts, id);
        }
        self.found
    }

    /// Records a violation if the lease of `id`, which was held until now, has been lost for too long.
    fn judge_notice(&mut self, facts: &Facts, id: AttemptId) {
        let Some(attempt) = facts.leases.get(id) else { return };
        let is_over = facts.lease_clock(id, attempt) >= attempt.deadline_local_ns;
        if is_over || !facts.setting.hears(id.client) {
            return;
        }
        let lost_ns = lost_since_ns(facts, id, attempt);
        if lost_ns == NEVER {
            return;
        }
        self.found.held();
        let unwatched_ns = UNWATCHED_LEAST_NS.max(attempt.ttl_ns / UNWATCHED);
        let notice_ns = facts.setting.notice_ns;
        let has_passed = |since_ns: u64, bound_ns: u64| {
            let passed_ns = facts.now_ns.saturating_sub(since_ns);
            passed_ns.min(facts.by_clock_of(id.client, passed_ns)) > bound_ns
        };
        let is_watched = has_passed(attempt.decided_ns, unwatched_ns.saturating_add(notice_ns));
        if is_watched && has_passed(lost_ns, notice_ns) {
            self.violated(id, lost_ns, facts.now_ns);
        }
    }

    fn violated(&mut self, id: AttemptId, from_ns: u64, at_ns: u64) {
        if !self.found.is_violated() {
            let found = Violation::of_one(id, at_ns, Blamed::NONE);
            self.found = Judgement::Violated(Violation { from_ns, ..found });
        }
    }
}

/// Returns true if a majority has had the key of `id` without interruption since the grant.
fn is_kept_by_a_majority(facts: &Facts, id: AttemptId, attempt: &Attempt) -> bool {
    let has_kept = |node: &NodeId| {
        let key = facts.leases.key(id, *node);
        key.is_some_and(|key| key.end.is_none() && key.set_ns <= attempt.decided_ns)
    };
    let kept = facts.setting.members(id.client).iter().filter(has_kept).count();
    kept >= attempt.needed as usize
}

/// Returns since when the client of `id` could know that no majority can have the key; [`NEVER`] if it
/// cannot.
fn lost_since_ns(facts: &Facts, id: AttemptId, attempt: &Attempt) -> u64 {
    let members = facts.setting.members(id.client);
    if !facts.setting.has_one_membership() {
        return NEVER;
    }
    let mut since_ns = PerNode::filled(NEVER);
    for node in members.iter() {
        since_ns[node] = lacks_since_ns(facts, id, node);
    }
    let since_ns = since_ns.first_mut(facts.setting.nodes);
    since_ns.sort_unstable();
    let others = (members.count() + 1).saturating_sub(attempt.needed) as usize;
    let known_by = others.checked_sub(1).and_then(|place| since_ns.get(place));
    let runs_ns = match facts.processes.runs_since_ns(id.client) {
        0 => 0,
        runs_ns => runs_ns.saturating_add(facts.setting.heal_ns),
    };
    known_by.map_or(NEVER, |known_ns| (*known_ns).max(runs_ns))
}

/// Returns since when `node` has lacked the key of `id` and could have shown it to the client;
/// [`NEVER`] if it has the key, or cannot show anything.
fn lacks_since_ns(facts: &Facts, id: AttemptId, node: NodeId) -> u64 {
    let is_replaced = facts.master(node) != node.first_host();
    if is_replaced || facts.setting.silent.contains(node) || facts.times_out_early(id.client, node)
    {
        return NEVER;
    }
    let lacks_ns = match facts.leases.key(id, node) {
        Some(key) if key.end.is_some() => key.ended_ns,
        Some(key) if key.set_ns != NEVER => NEVER,
        _ => 0,
    };
    let works_ns = facts.reach.works_since_ns(id.client, node);
    lacks_ns.max(works_ns).max(facts.available_since_ns(id.client, node))
}
