//! Promises of keep-alive: the lease is extended in time, and its lost keys are set again.

use super::facts::Facts;
use super::ground::{NEVER, kth_since_ns};
use super::key_losses::{
    answers_since_ns, attends_since_ns, has_had, has_kept, kept_since_ns, lacks_since_ns,
};
use super::leases::Attempt;
use super::setting::SLACK_NS;
use crate::history::{AttemptId, KeyEnd, NodeId};
use crate::ids::PerNode;

/// Longest pause before a round that sets keys again, as a fraction of the TTL.
const PAUSE: u64 = 10;

/// Longest pause between two rounds if nothing brings one forward, in per cent of the TTL.
const PERIOD_PERCENT: u64 = 37;

/// Returns true if the lease of `id`, which ends now, was to be kept alive for longer, and could have
/// been extended: for the last half of its TTL, a majority that counts has been able to answer.
pub(super) fn is_neglected(facts: &Facts, id: AttemptId, attempt: &Attempt) -> bool {
    let could_ns = facts.now_ns.saturating_sub(attempt.ttl_ns / 2);
    lasts(facts, id, attempt) && confirms_since_ns(facts, id, attempt) <= could_ns
}

/// Returns since when `node` has lacked the key of `id` although the client has had the time to set it
/// again; `None` if it has the key, or the client may not set it, or has not had the time.
///
/// The client learns of the loss, waits for the next round, and sets the key when the round succeeds,
/// unless a SET that was not answered may still be executed (rule 5 of docs/extension.md). After a SET
/// that the node answered with an error, as for want of memory, no round begins sooner than usual.
pub(super) fn missing_since_ns(
    facts: &Facts,
    id: AttemptId,
    attempt: &Attempt,
    node: NodeId,
) -> Option<u64> {
    // After a longer extension by its caller, a lease has no round that would not shorten it.
    let is_prolonged =
        attempt.deadline_local_ns > attempt.basis.t1_local_ns.saturating_add(attempt.ttl_ns);
    if is_prolonged || !facts.setting.hears(id.client) || !lasts(facts, id, attempt) {
        return None;
    }
    let key = facts.leases.key(id, node);
    let may_be_late = key.is_some_and(|key| {
        key.written_ns != NEVER && (key.answered_ns == NEVER || key.answered_ns < key.written_ns)
    });
    let (failed_ns, pause_ns) = match key.filter(|key| key.failed) {
        Some(key) => (key.answered_ns, attempt.ttl_ns / 100 * PERIOD_PERCENT),
        None => (0, attempt.ttl_ns / PAUSE),
    };
    let since_ns = could_have_since_ns(facts, id, node)
        .max(confirms_since_ns(facts, id, attempt))
        .max(failed_ns);
    let round_ns = pause_ns + facts.setting.node_timeout_ns + SLACK_NS;
    let bound_ns = facts.setting.notice_ns.saturating_add(round_ns);
    (!may_be_late && since_ns != NEVER && has_had(facts, (id, attempt), since_ns, bound_ns))
        .then_some(since_ns)
}

/// Returns since when `node` has lacked the key of `id`, and the client could have set it or kept it there;
/// [`NEVER`] if the node has it, or another key, or cannot be asked. A key that has lived for its TTL lacks
/// an extension that the node could have executed before.
fn could_have_since_ns(facts: &Facts, id: AttemptId, node: NodeId) -> u64 {
    let free_ns = facts.keys.free_since_ns(node);
    let has_expired = facts.leases.key(id, node).is_some_and(|key| {
        let is_last = key.gone_ns == free_ns && matches!(key.end, Some((KeyEnd::Expired, _)));
        is_last && key.has_lived(key.gone_ns)
    });
    match lacks_since_ns(facts, id, node) {
        NEVER => NEVER,
        _ if has_expired => answers_since_ns(facts, id.client, node),
        lacks_ns => lacks_ns.max(free_ns),
    }
}

/// Returns true if the client is to keep the lease of `id` alive for two TTLs or more from now.
fn lasts(facts: &Facts, id: AttemptId, attempt: &Attempt) -> bool {
    let held_ns = facts.now_ns.saturating_sub(attempt.delivered_ns);
    let by_clock_ns = held_ns.max(facts.by_clock_of(id.client, held_ns));
    let ends_ns = by_clock_ns.saturating_add(attempt.ttl_ns.saturating_mul(2));
    !facts.setting.narrow && ends_ns < facts.setting.keeps_alive_ns[id.client]
}

/// Returns since when the client of `id` has been running, and so many nodes that count for the lease
/// have been able to answer that they are a majority; [`NEVER`] if they are not.
fn confirms_since_ns(facts: &Facts, id: AttemptId, attempt: &Attempt) -> u64 {
    let mut since_ns = PerNode::filled(NEVER);
    for node in facts.setting.members(id.client).iter() {
        since_ns[node] =
            counts_since_ns(facts, id, attempt, node).max(answers_since_ns(facts, id.client, node));
    }
    kth_since_ns(since_ns, attempt.needed as usize).max(attends_since_ns(facts, id.client))
}

/// Returns since when `node` may count for an extension of the lease of `id`; [`NEVER`] if it may not. A
/// key that was set again counts after a round that began when the client knew of it, and succeeded
/// without it (rule 4 of docs/extension.md).
fn counts_since_ns(facts: &Facts, id: AttemptId, attempt: &Attempt, node: NodeId) -> u64 {
    let counts_ns = if has_kept(facts, id, attempt, node) {
        if attempt.counted.contains(node) { 0 } else { NEVER }
    } else {
        facts.leases.key(id, node).map_or(NEVER, |it| it.regained_ns)
    };
    counts_ns.max(kept_since_ns(facts, id, attempt, node))
}
