//! Determines which broken assumption made a violation possible. An empty blame means that the
//! client is wrong.
//!
//! Blame follows the key, not the list of faults. If two leases overlap, the later lease was granted
//! by nodes that the earlier lease counts, too. On each of these nodes the earlier key ended for one
//! reason:
//!
//! - *command*: if an attempt sent the command, the client is wrong; if an operator sent it, the
//!   operator is to blame;
//! - *lost* by a restart, a failover, a flush or an eviction: the node's amnesia is to blame. There are
//!   two exceptions. If the later client had the node in quarantine, which its fast clock ended early,
//!   that clock is to blame. If the key, or the key that the last extension would have timed, would
//!   have expired by the time of the later SET, by the node's clock or by true time, the loss has
//!   changed nothing: the key is judged as one that expired then;
//! - *expired*. Let `g` be the time that the node's wall clock gained on true time between the last
//!   timing of the key (by its SET or an extension) and its end; 0 if the key lived for its TTL in true
//!   time, because the node may have been down when it expired. If the deadline is based on an
//!   extension that left the key as it was, because its expiry was late enough, `g` counts from there.
//!   Let `l` be the time that the lease's
//!   clock lost between T1 (of the attempt or of the extension on which the deadline is based) and the
//!   key's end. Nodes drop the part of a millisecond at the key's timing. If `g + l` is within the
//!   drift that the lease allows for, less that part, the key outlives the belief, so the client is
//!   wrong. So it is if the belief outlives the key by clocks that are right, and by more than a
//!   millisecond. Otherwise each of the two that exceeds the allowance alone is to blame, or both if only
//!   their sum exceeds it. (The node is timed from the SET and not from T1, because what its clock does
//!   before the SET does not shorten the key.) The node's clock is that of its master when the key
//!   ended. If the key expired earlier than its last extension had promised, the node forgot that
//!   extension: its amnesia is to blame;
//! - *never set*: the client is wrong, whichever of the two keys it is, unless the node restarted
//!   behind a proxy and the client took the answer to another command for that to the SET: then the
//!   node's amnesia is to blame.
//!
//! The blame is the union over these nodes. If the client is wrong at some of the nodes and faults
//! excuse others, the faults are blamed if the later lease keeps a majority without the nodes at
//! which the client is wrong. Otherwise the client is blamed, because the later lease would not
//! have been granted without its error.
//!
//! If the later lease was granted by a majority of its client's nodes that the earlier lease did not
//! count, although the earlier lease counted a majority of *its* client's nodes, then the two clients
//! have different lists of nodes: *membership* is to blame, too.
//!
//! A node that has two names in a client's list has two votes for that client.
//!
//! Nodes that the later lease counts only since an extension did not let it in: its client may have
//! had them in quarantine.
//!
//! A node that the earlier lease counted once, but not for its last extension, neither excuses nor
//! convicts the client. A fault that ended the earlier key on such a node helped to let the later
//! lease in, and is added to the blame if faults at other nodes are blamed.
//!
//! The blame is determined when the overlap begins or when the later lease is granted, because keys
//! that ended can be set again later.

use super::facts::Facts;
use super::ground::{MS_NS, NEVER, exceeds, since};
use super::leases::{Attempt, KeyLife};
use super::verdict::{Blame, Blamed, Judgement, Violation};
use crate::history::{AttemptId, KeyEnd, NodeId, NodeIds, Writer};

/// Returns the blame for an overlap of the beliefs of two leases.
pub(super) fn of_leases(facts: &Facts, one: AttemptId, other: AttemptId) -> Blamed {
    let (first, second) = facts.leases.in_order(one, other);
    let leases = (facts.leases.get(first), facts.leases.get(second));
    let (Some(earlier), Some(later)) = leases else { return Blamed::NONE };
    let mut blamed = Blamed::NONE;
    let mut client_is_wrong_at = NodeIds::EMPTY;
    for node in (earlier.counted & later.granted_by).iter() {
        let cause = of_node(facts, first, second, node);
        client_is_wrong_at.set(node, cause.is_none());
        cause.iter().for_each(|it| blamed.add(it));
    }
    let excused = later.granted_by - client_is_wrong_at;
    let excused_votes = facts.setting.votes(second.client, excused);
    if !client_is_wrong_at.is_empty() && excused_votes < later.needed {
        return Blamed::NONE;
    }
    if !blamed.is_none() {
        for node in (earlier.counted_once & later.granted_by).iter() {
            of_node(facts, first, second, node).iter().for_each(|it| blamed.add(it));
        }
    }
    if are_apart(facts, (first, earlier), (second, later)) {
        blamed.add(Blame::Membership);
    }
    blamed
}

/// Returns true if each of two leases had a majority of its client's list of nodes, and the later one
/// was granted without the nodes that the earlier one had counted. Majorities of one list have a node
/// in common, so the two clients have different lists.
fn are_apart(
    facts: &Facts,
    (first, earlier): (AttemptId, &Attempt),
    (second, later): (AttemptId, &Attempt),
) -> bool {
    let apart = later.granted_by - earlier.counted;
    earlier.needed > 0
        && facts.setting.votes(first.client, earlier.counted) >= earlier.needed
        && later.needed > 0
        && facts.setting.votes(second.client, apart) >= later.needed
}

/// Blames randomness for a violation that is blamed on the client alone, if two attempts had one
/// token: no node, and no third client, can tell their keys and commands apart.
pub(super) fn of_copies(facts: &Facts, found: Judgement) -> Judgement {
    match found {
        Judgement::Violated(violation)
            if violation.blamed.is_none() && facts.is_token_shared(violation.to_ns) =>
        {
            let blamed = Blamed::just(Blame::Randomness);
            Judgement::Violated(Violation { blamed, ..violation })
        }
        _ => found,
    }
}

/// Returns the blame for the end of the key that was set first on `node`.
fn of_node(facts: &Facts, one: AttemptId, other: AttemptId, node: NodeId) -> Blamed {
    let set_ns = |id| facts.leases.key(id, node).map_or(NEVER, |it| it.set_ns);
    let ended_ns = |id| facts.leases.key(id, node).map_or(NEVER, |it| it.ended_ns);
    let is_before = |id, later| (set_ns(id), ended_ns(id)) <= (set_ns(later), ended_ns(later));
    // A slow client can be first by T1 and yet second on a node.
    let (first, second) = if is_before(one, other) { (one, other) } else { (other, one) };
    if let Some(unset) = [second, first].into_iter().find(|id| set_ns(*id) == NEVER) {
        return of_unset(facts, unset, node);
    }
    let (Some(attempt), Some(key)) = (facts.leases.get(first), facts.leases.key(first, node))
    else {
        return Blamed::NONE;
    };
    // The client is wrong if it counts a node on which its key was never set, or was set before the
    // other key had ended.
    let made_way = set_ns(second) != NEVER && key.ended_ns <= set_ns(second);
    let Some((cause, by)) = key.end.filter(|_| made_way) else {
        return Blamed::NONE;
    };
    match cause {
        KeyEnd::Command if by == Writer::Operator => Blamed::just(Blame::Operator),
        KeyEnd::Command => Blamed::NONE,
        KeyEnd::Evicted | KeyEnd::FailedOver | KeyEnd::Flushed | KeyEnd::Restarted => {
            let later = facts.leases.get(second);
            match outlived(facts, (first, attempt), key, facts.leases.key(second, node)) {
                Some(key) => of_expiry(facts, (first, attempt), &key),
                None if later.is_some_and(|it| it.eligible_early.contains(node)) => {
                    Blamed::just(Blame::Clock(facts.setting.client_host(second.client)))
                }
                None => Blamed::just(Blame::Amnesia(node.first_host())),
            }
        }
        KeyEnd::Expired if key.expiry_wall_ms < key.promised_wall_ms => {
            Blamed::just(Blame::Amnesia(node.first_host()))
        }
        KeyEnd::Expired => of_expiry(facts, (first, attempt), key),
    }
}

/// Returns the blame for a lease that counts `node`, which never set its key: the amnesia of the node,
/// if it restarted behind a proxy, and the client took the answer to another command for that to the
/// SET.
fn of_unset(facts: &Facts, id: AttemptId, node: NodeId) -> Blamed {
    let began_ns = facts.leases.get(id).map_or(NEVER, |it| it.began_ns);
    facts.mismatched(id.client, NodeIds::just(node), began_ns)
}

/// Returns the lost `key` of the lease as it would have been if it had expired now, by its last expiry
/// that the node acknowledged; `None` if it would have prevented the SET of the `later` key. If only the node's slow clock would have kept the key
/// until then, it would not have: no lease needs a key for longer than its TTL.
fn outlived(
    facts: &Facts,
    (id, attempt): (AttemptId, &Attempt),
    key: &KeyLife,
    later: Option<&KeyLife>,
) -> Option<KeyLife> {
    let (basis, later) = (&attempt.basis, later?);
    let key = KeyLife { expiry_wall_ms: key.promised_wall_ms, ..*key };
    let is_extended = basis.began_ns > key.timed_ns;
    let is_over = if is_extended {
        let valid_ns = attempt.deadline_local_ns.saturating_sub(basis.t1_local_ns);
        later.timed_ns >= basis.began_ns.saturating_add(valid_ns).saturating_add(basis.drift_ns)
    } else {
        later.timed_wall_ns / MS_NS >= key.expiry_wall_ms || key.has_lived(later.timed_ns)
    };
    if !is_over {
        return None;
    }
    let gained_ns = key.node_gained_ns((later.timed_ns, later.timed_wall_ns));
    let node_gained_ns = if is_extended { 0 } else { gained_ns };
    let ended_local_ns = facts.lease_clock(id, attempt);
    let ended_ns = facts.now_ns;
    Some(KeyLife { ended_ns, ended_local_ns, node_gained_ns, regainable_ns: 0, ..key })
}

fn of_expiry(facts: &Facts, (id, attempt): (AttemptId, &Attempt), key: &KeyLife) -> Blamed {
    if is_outlived_by_belief(facts, (id, attempt), key) {
        return Blamed::NONE;
    }
    let basis = &attempt.basis;
    let rounded_ns = key.timed_wall_ns % MS_NS;
    let allowed_ns = i64::try_from(basis.drift_ns.saturating_sub(rounded_ns)).unwrap_or(i64::MAX);
    let lease_ns = since(basis.t1_local_ns, key.ended_local_ns);
    let client_lost_ns = since(basis.began_ns, key.ended_ns).saturating_sub(lease_ns);
    let is_left = basis.began_ns > key.timed_ns;
    let regained_ns = if is_left { key.regainable_ns } else { 0 };
    let node_gained_ns = key.node_gained_ns.saturating_add(regained_ns);
    let (gained_ns, lost_ns) = (node_gained_ns.max(0), client_lost_ns.max(0));
    let mut blamed = Blamed::NONE;
    if gained_ns.saturating_add(lost_ns) <= allowed_ns {
        return blamed;
    }
    let neither_alone = gained_ns <= allowed_ns && lost_ns <= allowed_ns;
    if gained_ns > allowed_ns || neither_alone {
        blamed.add(Blame::Clock(key.ended_on));
    }
    if lost_ns > allowed_ns || neither_alone {
        blamed.add(Blame::Clock(facts.setting.client_host(id.client)));
    }
    blamed
}

/// Returns true if the belief in the lease lasts longer than its key by clocks that are right, and by
/// more than the part of a millisecond that a node drops.
fn is_outlived_by_belief(
    facts: &Facts,
    (id, attempt): (AttemptId, &Attempt),
    key: &KeyLife,
) -> bool {
    let basis = &attempt.basis;
    if key.timed_ns < basis.began_ns {
        return false;
    }
    let deadline_ns = facts.beliefs.deadline_ns(id).unwrap_or(attempt.deadline_local_ns);
    let believed_ns = deadline_ns.saturating_sub(basis.t1_local_ns);
    let ttl_ns = key.expiry_wall_ms.saturating_mul(MS_NS).saturating_sub(key.timed_wall_ns);
    let lives_ns = (key.timed_ns - basis.began_ns).saturating_add(ttl_ns);
    believed_ns > lives_ns.saturating_add(MS_NS)
}

/// Returns the blame for a section or a write of one lease while another lease was live, given that
/// the beliefs of the two do not overlap. Each of `leases` that is not believed now is to blame.
///
/// If a lease was already over when it was decided, the client is wrong. Otherwise the process was
/// stopped when its lease ended, or the application did not look or did not stop.
pub(super) fn of_use_without_belief(facts: &Facts, leases: &[AttemptId]) -> Blamed {
    let mut blamed = Blamed::NONE;
    for &id in leases {
        if facts.beliefs.is_believed(id, facts.now_ns) {
            continue;
        }
        let of_one = of_one_lease_in_use(facts, id, facts.now_ns);
        if of_one.is_none() {
            return of_one;
        }
        of_one.iter().for_each(|cause| blamed.add(cause));
    }
    blamed
}

/// Returns the blame for a section that goes on after its belief ended at `from_ns`: the lease's
/// clock, if it ran ahead by more than the drift that the lease allows for and ended the belief
/// early; otherwise the blame of [`of_one_lease_in_use`].
pub(super) fn of_exposure(facts: &Facts, id: AttemptId, from_ns: u64) -> Blamed {
    let Some(attempt) = facts.leases.get(id) else { return Blamed::NONE };
    let basis = &attempt.basis;
    let lease_ns = since(basis.t1_local_ns, facts.lease_clock(id, attempt));
    let gained_ns = lease_ns.saturating_sub(since(basis.began_ns, facts.now_ns));
    let is_early =
        since(basis.began_ns, from_ns) < since(basis.t1_local_ns, attempt.deadline_local_ns);
    if is_early && exceeds(gained_ns, basis.drift_ns) {
        return Blamed::just(Blame::Clock(facts.setting.client_host(id.client)));
    }
    of_one_lease_in_use(facts, id, from_ns)
}

/// Returns the blame for a violation by the use of `leases` that began with the blame `blamed` and
/// has lasted until `to_ns`: the application is to blame instead of a stop that excuses none of
/// them for so long. No event lies between now and `to_ns`.
pub(super) fn of_lasting_use(
    facts: &Facts,
    blamed: Blamed,
    leases: &[AttemptId],
    to_ns: u64,
) -> Blamed {
    let is_paused = blamed.iter().any(|cause| cause == Blame::Pause);
    if !is_paused || leases.iter().any(|&id| facts.is_excused(id, to_ns)) {
        return blamed;
    }
    let mut revised = Blamed::just(Blame::Application);
    blamed.iter().filter(|&cause| cause != Blame::Pause).for_each(|cause| revised.add(cause));
    revised
}

/// Returns the blame for a lease that is not believed but in use at `at_ns`.
fn of_one_lease_in_use(facts: &Facts, id: AttemptId, at_ns: u64) -> Blamed {
    match facts.leases.get(id) {
        Some(attempt) if !attempt.over_when_decided => {
            // An application that has looked since the stop knows that its lease is over.
            let may_not_know = facts.processes.has_stopped_since(id.client, attempt.checked_ns);
            let is_paused = may_not_know && facts.is_excused(id, at_ns);
            Blamed::just(if is_paused { Blame::Pause } else { Blame::Application })
        }
        _ => Blamed::NONE,
    }
}
