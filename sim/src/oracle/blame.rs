//! Which broken assumption made a violation possible. Nothing at all means that the client is
//! wrong.
//!
//! Blame follows the key, not the list of faults. Where two leases overlap, the later one counted
//! nodes that the earlier one had counted too, and on each of them the earlier key had ended for
//! one reason:
//!
//! - a *command*: of an attempt, and the client is wrong; of an operator, and the operator is;
//! - *lost* by a restart, a failover, a flush, an eviction: the node's amnesia;
//! - *expired*. Measured from when the key was timed last, by its SET or an extension, the node's
//!   wall clock has gained `g` on true time by then, and measured from T1, of the attempt or of the
//!   extension that the deadline rests on, the lease's clock has lost `l`. With `g + l` within what
//!   the lease gives up for drift the key outlives the belief, so the client is wrong. Beyond it,
//!   whichever of the two exceeds the allowance alone is to blame, or both where only their sum
//!   does. (The node is timed from the SET and not from T1 since what its clock does before the SET
//!   does not shorten the key.) After a failover the node's clock is that of the host that is its
//!   master;
//! - *never there*, and the client is wrong; as it is where the later lease's key never was.
//!
//! The blame is the union over these nodes. Where the client is wrong at some of them and faults
//! excuse others, the faults are blamed if the later lease keeps a majority without the nodes at
//! which the client is wrong; else it would not have been granted but for the client.
//!
//! A node that the earlier lease counted once, and an extension did without, is no excuse for the
//! client and no fault of its: but what a fault took from it let the later lease in as well, and is
//! blamed beside the others.
//!
//! It is found out as the overlap begins, or as the later lease is granted: keys that ended can be
//! made again later.

use super::facts::{Facts, since};
use super::ground::{NEVER, just, nodes_in};
use super::leases::Basis;
use super::leases::KeyLife;
use super::verdict::{Blame, Blamed};
use crate::history::{AttemptId, HostIndex, KeyEnd, Writer};

/// Why the beliefs of two leases could overlap.
pub(super) fn of_leases(facts: &Facts, one: AttemptId, other: AttemptId) -> Blamed {
    let (first, second) = facts.leases.in_order(one, other);
    let leases = (facts.leases.get(first), facts.leases.get(second));
    let (Some(earlier), Some(later)) = leases else { return Blamed::NONE };
    let mut blamed = Blamed::NONE;
    let mut client_is_wrong_at = 0;
    for node in nodes_in(earlier.counted & later.counted) {
        let cause = of_node(facts, first, second, node);
        client_is_wrong_at |= if cause.is_none() { just(node) } else { 0 };
        cause.iter().for_each(|it| blamed.add(it));
    }
    let excused = later.counted & !client_is_wrong_at;
    if client_is_wrong_at != 0 && excused.count_ones() < later.needed {
        return Blamed::NONE;
    }
    if !blamed.is_none() {
        for node in nodes_in(earlier.counted_once & later.counted) {
            of_node(facts, first, second, node).iter().for_each(|it| blamed.add(it));
        }
    }
    blamed
}

/// Why the key that was first on `node` made way for the other.
fn of_node(facts: &Facts, one: AttemptId, other: AttemptId, node: u8) -> Blamed {
    let set_ns = |id| facts.leases.key(id, node).map_or(NEVER, |it| it.set_ns);
    // A slow client can be first by T1 and yet second on a node.
    let (first, second) = if set_ns(one) <= set_ns(other) { (one, other) } else { (other, one) };
    let (Some(attempt), Some(key)) = (facts.leases.get(first), facts.leases.key(first, node))
    else {
        return Blamed::NONE;
    };
    // Whoever counts a node without having its key there, or before the other's is gone, is wrong.
    let made_way = set_ns(second) != NEVER && key.ended_ns <= set_ns(second);
    let Some((cause, by)) = key.end.filter(|_| made_way) else {
        return Blamed::NONE;
    };
    match cause {
        KeyEnd::Command if by == Writer::Operator => Blamed::just(Blame::Operator),
        KeyEnd::Command => Blamed::NONE,
        KeyEnd::Evicted | KeyEnd::FailedOver | KeyEnd::Flushed | KeyEnd::Restarted => {
            Blamed::just(Blame::Amnesia(HostIndex(node)))
        }
        KeyEnd::Expired => {
            let client = facts.setting.client_host(first.client);
            of_expiry(&attempt.basis, key, facts.master(node), client)
        }
    }
}

fn of_expiry(basis: &Basis, key: &KeyLife, node: HostIndex, client: HostIndex) -> Blamed {
    let allowed_ns = i64::try_from(basis.drift_ns).unwrap_or(i64::MAX);
    let lease_ns = since(basis.t1_local_ns, key.ended_local_ns);
    let client_lost_ns = since(basis.began_ns, key.ended_ns).saturating_sub(lease_ns);
    let (gained_ns, lost_ns) = (key.node_gained_ns.max(0), client_lost_ns.max(0));
    let mut blamed = Blamed::NONE;
    if gained_ns.saturating_add(lost_ns) <= allowed_ns {
        return blamed;
    }
    let neither_alone = gained_ns <= allowed_ns && lost_ns <= allowed_ns;
    if gained_ns > allowed_ns || neither_alone {
        blamed.add(Blame::Clock(node));
    }
    if lost_ns > allowed_ns || neither_alone {
        blamed.add(Blame::Clock(client));
    }
    blamed
}

/// Why somebody was in a section, or wrote, while another lease was live, given that the beliefs
/// of the two do not overlap: each of `leases` that is not believed now is to blame.
///
/// A lease that was over when it was decided is the client's fault. Else the process was stopped
/// between its last look at the clock and now, or the application did not look, or did not stop.
pub(super) fn of_staying(facts: &Facts, leases: &[AttemptId]) -> Blamed {
    let mut blamed = Blamed::NONE;
    for &id in leases {
        if facts.beliefs.is_believed(id, facts.now_ns) {
            continue;
        }
        let of_one = of_lingering(facts, id);
        if of_one.is_none() {
            return of_one;
        }
        of_one.iter().for_each(|cause| blamed.add(cause));
    }
    blamed
}

/// Why the section of a lease goes on, from `from_ns` on without it: the lease's clock ran ahead by more
/// than the lease gives up for drift and ended it early, or whatever is to blame for lingering.
pub(super) fn of_exposure(facts: &Facts, id: AttemptId, from_ns: u64) -> Blamed {
    let Some(attempt) = facts.leases.get(id) else { return Blamed::NONE };
    let basis = &attempt.basis;
    let lease_ns = since(basis.t1_local_ns, facts.lease_clock(id, attempt));
    let gained_ns = lease_ns.saturating_sub(since(basis.began_ns, facts.now_ns));
    let is_early =
        since(basis.began_ns, from_ns) < since(basis.t1_local_ns, attempt.deadline_local_ns);
    let allowed_ns = i64::try_from(basis.drift_ns).unwrap_or(i64::MAX);
    if is_early && gained_ns > allowed_ns {
        return Blamed::just(Blame::Clock(facts.setting.client_host(id.client)));
    }
    of_lingering(facts, id)
}

/// Why one lease, which is not believed, has not been let go.
pub(super) fn of_lingering(facts: &Facts, id: AttemptId) -> Blamed {
    match facts.leases.get(id) {
        Some(attempt) if !attempt.over_when_decided => {
            let stopped = facts.processes.has_stopped_since(id.client, attempt.looked_ns);
            Blamed::just(if stopped { Blame::Pause } else { Blame::Application })
        }
        _ => Blamed::NONE,
    }
}
