//! A client that reports a lease as lost is right, and hears of a loss soon.
//!
//! A lease is *lost* when so many nodes lack its key that no majority can have it.
//!
//! - A report that the keys are gone is a violation if a majority of the nodes has had the key without
//!   interruption since the grant: no node can have shown that it lacks it.
//! - A report that the lease has run out comes at most [`LOSS_MARGIN_NS`] before the deadline. Of a
//!   lease that its client keeps alive it says that keep-alive failed if the last extension did so, in
//!   time, and otherwise that it did not; or that the limit was reached.
//! - A lease that is lost, and has been held for long enough to be watched, must be reported or
//!   released within [`Setting::notice_ns`](super::setting::Setting). The bound begins when so many
//!   of the nodes that lack the key have been available and connected to the client (see
//!   [`Facts::connected_since_ns`]) that their replies prove the loss.
//! - A lease whose process has been running since the deadline was reported as lost, or released, by
//!   then; and no check from the deadline on says that it is alive (counterexample K6).
//! - A lease that was reported as lost stays lost: neither an extension nor a check revives it.
//! - A lease that its client keeps alive is not over two TTLs or more before its limit, if for the last
//!   half of its TTL the process has been running and could reach a majority, all of them nodes that
//!   count for the lease.
//! - A key that such a lease has lost on a node that can take it is set again within the time of a
//!   notice and of a round, if no SET to the node may be late.
//!
//! Judged are clients of this project alone; the bound on the notice of a loss holds only for those that
//! hear pushes. A node counts as one that the client can reach only if its first host is still its
//! master, because clients may not know of another one, and if it loses no key without a push
//! ([`Setting::silent`](super::setting::Setting)), and not while the client's connection may be half
//! open.
//!
//! The property is vacuous if no lease was lost or reported as lost before its deadline, and no key
//! was set again. A
//! false report is blamed on the amnesia of nodes that restarted behind a proxy, if the client may have
//! taken the answer to another command for that to its read; nothing excuses any other violation.

use super::facts::Facts;
use super::ground::{NEVER, kth_since_ns};
use super::kept_alive::{is_neglected, missing_since_ns};
use super::key_losses::{attends_since_ns, has_had, has_kept, lacks_since_ns};
use super::leases::Attempt;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::{AttemptId, ClientId, LostReason, NodeId};
use crate::ids::PerNode;

/// A report that a lease has run out may come this long before its deadline.
pub const LOSS_MARGIN_NS: u64 = 2_000_000;

/// Leases of which no loss was reported yet, and the judgement so far.
#[derive(Debug)]
pub(super) struct SoundLoss {
    held: Vec<AttemptId>,
    /// The last lease of each client that was reported as lost, and the time of the report.
    lost: Vec<(AttemptId, u64)>,
    found: Judgement,
}

impl SoundLoss {
    pub(super) fn new() -> Self {
        Self { held: Vec::with_capacity(16), lost: Vec::new(), found: Judgement::Vacuous }
    }

    pub(super) fn reset(&mut self) {
        self.held.clear();
        self.lost.clear();
        self.found = Judgement::Vacuous;
    }

    /// Records that the application received the lease of `id`.
    pub(super) fn delivered(&mut self, facts: &Facts, id: AttemptId) {
        if facts.setting.is_ours(id.client) && !self.held.contains(&id) {
            self.held.push(id);
        }
    }

    /// Judges the report that the lease of `id` is lost for this reason.
    pub(super) fn reported(&mut self, facts: &Facts, id: AttemptId, reason: LostReason) {
        if !self.held.contains(&id) {
            return;
        }
        if let Some(attempt) = facts.leases.get(id) {
            if reason == LostReason::KeysGone {
                self.found.held();
                if is_kept_by_a_majority(facts, id, attempt) {
                    self.violated(facts, id, facts.now_ns, facts.mismatched_since_t1(id));
                }
            } else if reason != LostReason::Closed
                && (is_early(facts, id, attempt)
                    || is_wrong(facts, id, attempt, reason)
                    || is_neglected(facts, id, attempt))
            {
                self.violated(facts, id, facts.now_ns, Blamed::NONE);
            }
        }
        self.ended(facts, id);
        self.lost.retain(|(other, _)| other.client != id.client);
        self.lost.push((id, facts.now_ns));
    }

    /// Judges the SET that is written now to set the key of `id` on `node` again.
    pub(super) fn sets_again(&mut self, facts: &Facts, id: AttemptId, node: NodeId) {
        if self.held.contains(&id) {
            self.found.held();
            self.judge_key(facts, id, node);
        }
    }

    /// Judges for how long nodes have lacked the key of `id` by now.
    pub(super) fn judge_keys(&mut self, facts: &Facts, id: AttemptId) {
        if self.held.contains(&id) {
            facts.setting.members(id.client).iter().for_each(|it| self.judge_key(facts, id, it));
        }
    }

    fn judge_key(&mut self, facts: &Facts, id: AttemptId, node: NodeId) {
        let Some(attempt) = facts.leases.get(id) else { return };
        if let Some(since_ns) = missing_since_ns(facts, id, attempt, node) {
            self.late(facts, id, since_ns);
        }
    }

    /// Records a violation if the lease of `id`, which is alive to its application now, was lost.
    pub(super) fn revived(&mut self, facts: &Facts, id: AttemptId) {
        if let Some(&(_, lost_ns)) = self.lost.iter().find(|(it, _)| *it == id) {
            self.violated(facts, id, lost_ns, Blamed::NONE);
        }
    }

    /// Judges the answer to a check of the lease of `id`.
    pub(super) fn checked(&mut self, facts: &Facts, id: AttemptId, alive: bool) {
        if alive {
            self.revived(facts, id);
        }
        let over_ns = over_since_ns(facts, id);
        if alive && facts.setting.is_ours(id.client) && over_ns != NEVER {
            self.late(facts, id, over_ns);
        }
    }

    /// Judges the end of the lease of `id`: it was released, or reported as lost.
    pub(super) fn ended(&mut self, facts: &Facts, id: AttemptId) {
        if let Some(place) = self.held.iter().position(|it| *it == id) {
            self.judge_keys(facts, id);
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
        let over_ns = over_since_ns(facts, id);
        if over_ns != NEVER {
            let runs_ns = facts.processes.runs_since_ns(id.client);
            if over_ns < facts.now_ns && runs_ns <= over_ns {
                self.late(facts, id, over_ns);
            }
            return;
        }
        if !facts.setting.hears(id.client) {
            return;
        }
        let lost_ns = lost_since_ns(facts, id, attempt);
        if lost_ns == NEVER {
            return;
        }
        self.found.held();
        if has_had(facts, (id, attempt), lost_ns, facts.setting.notice_ns) {
            self.late(facts, id, lost_ns);
        }
    }

    /// Records that the client of `id` should have acted on what it could know since `from_ns`.
    fn late(&mut self, facts: &Facts, id: AttemptId, from_ns: u64) {
        self.violated(facts, id, from_ns, Blamed::NONE);
    }

    fn violated(&mut self, facts: &Facts, id: AttemptId, from_ns: u64, blamed: Blamed) {
        self.found.violated(Violation::lasting(id, from_ns, facts.now_ns, blamed));
    }
}

/// Returns true if a majority has had the key of `id` without interruption since the grant.
fn is_kept_by_a_majority(facts: &Facts, id: AttemptId, attempt: &Attempt) -> bool {
    let members = facts.setting.members(id.client);
    let kept = members.iter().filter(|node| has_kept(facts, id, attempt, *node)).count();
    kept >= attempt.needed as usize
}

/// Returns true if the deadline of a lease that is reported as over has not nearly come.
fn is_early(facts: &Facts, id: AttemptId, attempt: &Attempt) -> bool {
    facts.lease_clock(id, attempt).saturating_add(LOSS_MARGIN_NS) < attempt.deadline_local_ns
}

/// Returns true if `reason`, given for the end of a lease by its deadline, cannot be the reason. If an
/// extension failed in the instant of the report, the deadline may have been the cause of that.
fn is_wrong(facts: &Facts, id: AttemptId, attempt: &Attempt, reason: LostReason) -> bool {
    let is_kept_alive = facts.setting.keeps_alive_ns[id.client] > 0;
    is_kept_alive
        && match reason {
            LostReason::DeadlinePassed => attempt.failed_ns < facts.now_ns,
            LostReason::KeepAliveFailed => attempt.failed_ns == NEVER,
            _ => false,
        }
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
    let others = (members.count() + 1).saturating_sub(attempt.needed) as usize;
    kth_since_ns(since_ns, others).max(attends_since_ns(facts, id.client))
}

/// Returns since when the lease of `id` has been over by the client's clock; [`NEVER`] if it is not.
fn over_since_ns(facts: &Facts, id: AttemptId) -> u64 {
    let Some(attempt) = facts.leases.get(id) else { return NEVER };
    if facts.lease_clock(id, attempt) < attempt.deadline_local_ns {
        return NEVER;
    }
    let clock = facts.clocks.segment(facts.setting.client_host(id.client), attempt.clock);
    clock.true_at(attempt.deadline_local_ns).unwrap_or(facts.now_ns).min(facts.now_ns)
}
