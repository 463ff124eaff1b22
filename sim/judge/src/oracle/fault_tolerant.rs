//! A free majority of running nodes is enough for a grant, and no attempt hangs.
//!
//! A failed attempt is a violation if a majority of its client's nodes was *good* from its T1 to
//! its end. A good node has no keys and commands of other attempts, and is eligible at T1 according
//! to the client's reports. In addition, one of these conditions holds:
//!
//! - It answered without an error and within the node timeout, and was not cut off while another of
//!   its answers was outstanding. A restart behind a proxy that took an answer along cuts it off,
//!   too, until the client must have noticed.
//! - The attempt ended before the node timeout had passed by the client's clock, and the client could
//!   reach the node for long enough to have a working connection. The connection is not half open since
//!   a silent partition, and the client has not closed it for lack of an older answer, not even during
//!   the attempt. A node that was not asked is not good where few commands fit on a connection.
//!
//! Attempts that their caller cancelled are not judged, nor are attempts during which the process
//! was stopped. Blame: the client's clock, if it gained more than the drift that the lease allows
//! for, or if it is so fast that a round trip exceeds the node timeout; *membership*, if the good
//! nodes are a majority only with one that has two names in the client's list (what happened on its two
//! connections cannot be told apart); otherwise only the client.
//!
//! A grant that counts more votes than a majority was decided too late, by a client of this project: it
//! waited for nodes that it did not need, and one of them may hang (counterexamples N10 and L4). Not
//! judged if a client has two names of one node.
//!
//! In addition, every attempt settles within [`Setting::attempt_ns`](super::setting::Setting) on
//! the client's clock, without stops: one node timeout for each node, two round trips and 10 ms.

use super::facts::Facts;
use super::ground::{NEVER, ROUNDING_NS, exceeds, since};
use super::leases::Attempt;
use super::verdict::{Blame, Blamed, Judgement, Violation};
use crate::history::{AttemptId, ClockKind, NodeId, NodeIds, Settlement};

/// Judgement so far.
#[derive(Debug, Default)]
pub(super) struct FaultTolerant(Judgement);

impl FaultTolerant {
    pub(super) fn reset(&mut self) {
        self.0 = Judgement::Vacuous;
    }

    /// Judges the first settlement of an attempt.
    pub(super) fn settled(&mut self, facts: &Facts, id: AttemptId, outcome: Settlement) {
        let Some(attempt) = facts.leases.get(id).filter(|_| !self.0.is_final()) else { return };
        self.0.held();
        let blamed = match outcome {
            Settlement::Cancelled => return,
            Settlement::Granted => has_waited_for_more(facts, id, attempt).then_some(Blamed::NONE),
            _ => of_refusal(facts, id, attempt),
        };
        let late = took_too_long(facts, id, attempt).then_some(Blamed::NONE);
        if let Some(blamed) = late.or(blamed) {
            self.violated(facts, id, attempt, blamed);
        }
    }

    /// Returns the judgement of a finished run.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        for client in facts.setting.client_ids() {
            let Some(id) = facts.leases.newest(client) else { continue };
            let attempt = facts.leases.get(id).filter(|it| !it.settled && it.began_ns != NEVER);
            let Some(attempt) = attempt else { continue };
            if !facts.processes.is_killed(client) && took_too_long(facts, id, attempt) {
                self.violated(facts, id, attempt, Blamed::NONE);
            }
        }
        self.0
    }

    fn violated(&mut self, facts: &Facts, id: AttemptId, attempt: &Attempt, blamed: Blamed) {
        let from_ns = attempt.began_ns.min(facts.now_ns);
        self.0.violated(Violation::lasting(id, from_ns, facts.now_ns, blamed));
    }
}

/// Returns true if `id` was granted by more votes than a majority.
fn has_waited_for_more(facts: &Facts, id: AttemptId, attempt: &Attempt) -> bool {
    let votes = facts.setting.votes(id.client, attempt.granted_by);
    facts.setting.is_ours(id.client) && !facts.setting.has_names_twice() && votes > attempt.needed
}

fn took_too_long(facts: &Facts, id: AttemptId, attempt: &Attempt) -> bool {
    let (by_rate_ns, by_readings_ns) = since_t1_ns(facts, id, attempt);
    by_rate_ns.min(by_readings_ns) > facts.setting.attempt_ns
}

/// Returns the time since T1 by the client's clock: by its present rate and without stops, and by its
/// readings. The rate may have changed since T1. A wall clock may also have been set, so its readings
/// are not compared.
fn since_t1_ns(facts: &Facts, id: AttemptId, attempt: &Attempt) -> (u64, u64) {
    let stopped_ns = facts.processes.stopped_for_ns(id.client, facts.now_ns);
    let elapsed_ns = facts.now_ns.saturating_sub(attempt.began_ns);
    let running_ns = elapsed_ns.saturating_sub(stopped_ns - attempt.stopped_before_ns);
    let by_rate_ns = facts.by_clock_of(id.client, running_ns);
    let reads_ns = since(attempt.t1_local_ns, facts.lease_clock(id, attempt)).max(0) as u64;
    (by_rate_ns, if attempt.clock == ClockKind::Wall { by_rate_ns } else { reads_ns })
}

/// Returns the blame for the failure of `id`; `None` if the failure is justified.
fn of_refusal(facts: &Facts, id: AttemptId, attempt: &Attempt) -> Option<Blamed> {
    if attempt.began_ns == NEVER || facts.processes.has_stopped_since(id.client, attempt.began_ns) {
        return None;
    }
    let nodes = facts.setting.members(id.client);
    let good: NodeIds = nodes.iter().filter(|&node| is_good(facts, id, attempt, node)).collect();
    if facts.setting.votes(id.client, good) < attempt.needed.max(1) {
        return None;
    }
    let lease_ns = since(attempt.t1_local_ns, facts.lease_clock(id, attempt));
    let gained_ns = lease_ns.saturating_sub(since(attempt.began_ns, facts.now_ns));
    let by_clock = exceeds(gained_ns, attempt.drift_ns)
        || good.iter().any(|node| facts.has_timed_out_early(id.client, node, attempt.began_ns));
    let client = facts.setting.client_host(id.client);
    let has_one_name = |node: &NodeId| facts.setting.votes(id.client, NodeIds::just(*node)) == 1;
    let named_once: NodeIds = good.iter().filter(has_one_name).collect();
    Some(match () {
        () if by_clock => Blamed::just(Blame::Clock(client)),
        () if named_once.count() < attempt.needed => Blamed::just(Blame::Membership),
        () => Blamed::NONE,
    })
}

fn is_good(facts: &Facts, id: AttemptId, attempt: &Attempt, node: NodeId) -> bool {
    let Some(key) = facts.leases.key(id, node) else { return false };
    if !facts.is_eligible(id, node) || !facts.keys.is_free_for(id, node, attempt.began_ns) {
        return false;
    }
    let is_in_time = |took_ns: u64| took_ns + ROUNDING_NS < facts.setting.node_timeout_ns;
    if key.answered_ns != NEVER {
        // The vote may wait for an introduction behind it, which does not come any more.
        let was_cut_off = facts.reach.since_ns(id.client, node) > attempt.began_ns
            && facts.reach.awaits_answer(id.client, node);
        let is_mismatched = facts.reach.may_be_mismatched(id.client, node, attempt.began_ns);
        let took_ns = key.answered_ns.saturating_sub(key.written_ns);
        let is_in_time = is_in_time(facts.by_clock_of(id.client, took_ns));
        return !key.failed && !was_cut_off && !is_mismatched && is_in_time;
    }
    let may_be_written = match key.written_ns {
        // A subject that uses one node among several never asks the other nodes, and no client asks
        // a node that owed an answer to an older command when the attempt began. On a connection of
        // few commands, those that are still to be written may leave no room.
        NEVER => {
            attempt.needed > 1
                && !facts.setting.narrow
                && facts.reach.had_answered(id.client, node, attempt.began_ns)
        }
        _ => true,
    };
    let let_go_ns = facts.reach.let_go_ns(id.client, node);
    let redialled_ns = let_go_ns
        .max(facts.processes.runs_since_ns(id.client))
        .saturating_add(facts.setting.heal_ns);
    let may_be_closed = let_go_ns <= facts.now_ns && attempt.began_ns < redialled_ns;
    let may_answer = may_be_written
        && !may_be_closed
        && !facts.reach.may_be_half_open(id.client, node, attempt.began_ns);
    let is_available = facts.available_since_ns(id.client, node) <= attempt.began_ns;
    let (by_rate_ns, by_readings_ns) = since_t1_ns(facts, id, attempt);
    may_answer && is_available && is_in_time(by_rate_ns.max(by_readings_ns))
}
