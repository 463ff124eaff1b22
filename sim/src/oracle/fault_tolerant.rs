//! A majority that is up and free is enough, and no attempt hangs.
//!
//! An attempt that fails is wrong if a majority of the configured nodes was *good* from its T1 to
//! its end: free of other attempts' keys and commands, eligible by T1 as far as the client says,
//! and either answering without an error and within the node timeout, or with that much time left
//! and within the client's reach for long enough that a connection is to be expected. Attempts
//! that their caller cancelled, and those during which the process was stopped, are not judged.
//! The client's clock is to blame if it gained more than the lease gives up for drift; else nobody
//! but the client.
//!
//! And every attempt settles within [`Setting::attempt_ns`](super::setting::Setting) on the
//! client's clock, stops not counted: as many node timeouts as there are nodes, two round trips
//! and 10 ms.

use super::facts::{Facts, since};
use super::ground::NEVER;
use super::leases::Attempt;
use super::verdict::{Blame, Blamed, Judgement, Violation};
use crate::history::{AttemptId, ClockKind, Settlement};

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct FaultTolerant(Judgement);

impl FaultTolerant {
    pub(super) fn reset(&mut self) {
        self.0 = Judgement::Vacuous;
    }

    /// An attempt was settled, for the first time.
    pub(super) fn settled(&mut self, facts: &Facts, id: AttemptId, outcome: Settlement) {
        let Some(attempt) = facts.leases.get(id).filter(|_| !self.0.is_violated()) else { return };
        self.0 = Judgement::Holds;
        let blamed = match outcome {
            Settlement::Cancelled => return,
            Settlement::Granted => None,
            _ => of_refusal(facts, id, attempt),
        };
        let late = took_too_long(facts, id, attempt).then_some(Blamed::NONE);
        if let Some(blamed) = late.or(blamed) {
            self.violated(facts, id, attempt, blamed);
        }
    }

    /// What was found, once the run is over.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        for client in 0..facts.setting.probe as u8 {
            if self.0.is_violated() {
                break;
            }
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
        let found = Violation::of_one(id, facts.now_ns, blamed);
        let from_ns = attempt.began_ns.min(facts.now_ns);
        self.0 = Judgement::Violated(Violation { from_ns, ..found });
    }
}

fn took_too_long(facts: &Facts, id: AttemptId, attempt: &Attempt) -> bool {
    let stopped_ns = facts.processes.stopped_for_ns(id.client, facts.now_ns);
    let elapsed_ns = facts.now_ns.saturating_sub(attempt.began_ns);
    let running_ns = elapsed_ns.saturating_sub(stopped_ns - attempt.stopped_before_ns);
    by_clock_of(facts, id, running_ns) > facts.setting.attempt_ns
}

/// A span of true time as the client's clock measures it, the way it runs now.
fn by_clock_of(facts: &Facts, id: AttemptId, span_ns: u64) -> u64 {
    let host = facts.setting.client_host(id.client);
    let rate_ppb = facts.clocks.segment(host, ClockKind::Boot).rate_ppb;
    let scaled = i128::from(span_ns) * (1_000_000_000 + i128::from(rate_ppb)) / 1_000_000_000;
    u64::try_from(scaled.max(0)).unwrap_or(u64::MAX)
}

/// What the failure of `id` is blamed on; `None` if it had a right to fail.
fn of_refusal(facts: &Facts, id: AttemptId, attempt: &Attempt) -> Option<Blamed> {
    if attempt.began_ns == NEVER || facts.processes.has_stopped_since(id.client, attempt.began_ns) {
        return None;
    }
    let nodes = 0..facts.setting.nodes as u8;
    let good = nodes.filter(|&node| is_good(facts, id, attempt, node)).count();
    if good < attempt.needed.max(1) as usize {
        return None;
    }
    let lease_ns = since(attempt.t1_local_ns, facts.lease_clock(id, attempt));
    let gained_ns = lease_ns.saturating_sub(since(attempt.began_ns, facts.now_ns));
    let by_clock = gained_ns > i64::try_from(attempt.drift_ns).unwrap_or(i64::MAX);
    let client = facts.setting.client_host(id.client);
    Some(if by_clock { Blamed::just(Blame::Clock(client)) } else { Blamed::NONE })
}

fn is_good(facts: &Facts, id: AttemptId, attempt: &Attempt, node: u8) -> bool {
    let Some(key) = facts.leases.key(id, node) else { return false };
    let eligible = facts.eligible[usize::from(id.client)][usize::from(node)];
    let is_eligible = eligible.from_local_ns == 0 || eligible.from_local_ns <= attempt.t1_local_ns;
    if !is_eligible || !facts.keys.is_free_for(id, node, attempt.began_ns) {
        return false;
    }
    let is_in_time = |from_ns: u64, to_ns: u64| {
        by_clock_of(facts, id, to_ns.saturating_sub(from_ns)) < facts.setting.node_timeout_ns
    };
    if key.answered_ns != NEVER {
        return !key.failed && is_in_time(key.written_ns, key.answered_ns);
    }
    let may_be_written = match key.written_ns {
        // A subject of one node among several never asks the others, and nobody asks a node that
        // leaves an older command unanswered.
        NEVER => attempt.needed > 1 && facts.reach.has_answered(id.client, node),
        _ => true,
    };
    let may_answer = may_be_written && facts.reach.answers_in_time(id.client, node);
    let reached_ns = facts.reach.since_ns(id.client, node);
    let is_in_reach = match reached_ns {
        0 => true,
        NEVER => false,
        _ => {
            let dials_ns = reached_ns.max(facts.processes.runs_since_ns(id.client));
            dials_ns.saturating_add(facts.setting.heal_ns) <= attempt.began_ns
        }
    };
    may_answer && is_in_reach && is_in_time(attempt.began_ns, facts.now_ns)
}
