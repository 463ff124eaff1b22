//! Since when a node has lacked the key of a lease, and the time that its client has had to notice.

use super::facts::Facts;
use super::ground::NEVER;
use super::leases::Attempt;
use crate::history::{AttemptId, ClientId, NodeId, Writer};

/// Time after its delivery for which a lease is not watched: at least this long, and this fraction of
/// its TTL.
const UNWATCHED_LEAST_NS: u64 = 50_000_000;
const UNWATCHED: u64 = 20;

/// Returns true if `node` has had the key of `id` without interruption since the grant.
pub(super) fn has_kept(facts: &Facts, id: AttemptId, attempt: &Attempt, node: NodeId) -> bool {
    kept_since_ns(facts, id, attempt, node) == 0
}

/// Returns since when the client knows that `node` has the key of `id` and has kept it: 0 if it has done
/// so since the grant, or the time of the answer to the SET that set it again; [`NEVER`] if it does not
/// know.
pub(super) fn kept_since_ns(facts: &Facts, id: AttemptId, attempt: &Attempt, node: NodeId) -> u64 {
    match facts.leases.key(id, node).filter(|key| key.end.is_none()) {
        Some(key) if key.set_ns <= attempt.decided_ns => 0,
        // It refuses a SET where the key itself has come back.
        _ if facts.keys.has_returned(node) => NEVER,
        Some(key) if key.set_ns <= key.answered_ns && !key.failed => key.answered_ns,
        _ => NEVER,
    }
}

/// Returns since when `node` has lacked the key of `id` and could have shown it to the client;
/// [`NEVER`] if it has the key, or cannot show anything.
pub(super) fn lacks_since_ns(facts: &Facts, id: AttemptId, node: NodeId) -> u64 {
    if facts.keys.writer(node) == Writer::Attempt(id) {
        return NEVER;
    }
    let lacks_ns = match facts.leases.key(id, node) {
        Some(key) if key.end.is_some() => key.gone_ns,
        Some(key) if key.set_ns != NEVER => NEVER,
        _ => 0,
    };
    lacks_ns.max(answers_since_ns(facts, id.client, node))
}

/// Returns since when `node`, the first of its masters, has been able to answer `client` in time, and
/// to push what happens to its keys; [`NEVER`] if it is not.
pub(super) fn answers_since_ns(facts: &Facts, client: ClientId, node: NodeId) -> u64 {
    let is_replaced = facts.master(node) != node.first_host();
    if is_replaced || facts.setting.silent.contains(node) || facts.times_out_early(client, node) {
        return NEVER;
    }
    facts.connected_since_ns(client, node)
}

/// Returns since when the process of `client` has been running and has had the time to catch up.
pub(super) fn attends_since_ns(facts: &Facts, client: ClientId) -> u64 {
    match facts.processes.runs_since_ns(client) {
        0 => 0,
        runs_ns => runs_ns.saturating_add(facts.setting.heal_ns),
    }
}

/// Returns true if the client of `id`, which has a lease that it watches, has had more than `bound_ns`
/// since `since_ns`, in true time and by its clock.
pub(super) fn has_had(
    facts: &Facts,
    (id, attempt): (AttemptId, &Attempt),
    since_ns: u64,
    bound_ns: u64,
) -> bool {
    let has_passed = |since_ns: u64, bound_ns: u64| {
        let passed_ns = facts.now_ns.saturating_sub(since_ns);
        passed_ns.min(facts.by_clock_of(id.client, passed_ns)) > bound_ns
    };
    let unwatched_ns = UNWATCHED_LEAST_NS.max(attempt.ttl_ns / UNWATCHED);
    let is_watched =
        has_passed(attempt.delivered_ns, unwatched_ns.saturating_add(facts.setting.notice_ns));
    is_watched && has_passed(since_ns, bound_ns)
}
