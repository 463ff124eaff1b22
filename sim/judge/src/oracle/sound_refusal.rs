//! A client that reports the lock as taken is right: another attempt held it, or was about to.
//!
//! For each attempt whose outcome is `Taken`, a majority of the configured nodes refused its SET
//! because of keys of one other attempt, or another task of the same client has the lease: the client
//! knows that, whatever the nodes show.
//!
//! For each attempt whose outcome is `Split`, a majority answered before the attempt ended, and no
//! majority set its key: votes that do not count yet are no split vote, if the client knows from when
//! they will. For each attempt whose outcome is `Quarantined`, a majority set its key. For each attempt
//! whose outcome is `Overloaded`, a node was not sent its SET. None of these is judged if a client has
//! two names of one node, which sets its key for only one of them. All can be violated, but without a
//! refusal as taken the property stays vacuous.
//!
//! If any attempt of a run reports `Taken`, some attempt of the run was granted the lock. This rule
//! does not apply if a fault began, or if clients have different lists of nodes or two names of one.
//! Nor does it if an attempt was cancelled, too slow, overloaded or refused by quarantine, or had too
//! few nodes because answers were cut short: while connections opened, or because its client's clock is
//! so fast that a round trip exceeds the node timeout.
//!
//! And a client that asks at once (`try_acquire`) does not stop at a split vote before its attempts
//! are used up.
//!
//! Judged are only clients that report `Taken` if another attempt holds the lock; most libraries
//! report it if any node refused. Nothing excuses a false report, but it is blamed on the amnesia of
//! nodes that restarted behind a proxy, if the client may have taken the answer to another command for
//! that to its SET.

use super::facts::Facts;
use super::ground::NEVER;
use super::leases::Attempt;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::{AttemptId, NodeId, NodeIds, Settlement, Writer};
use crate::ids::{PerClient, PerNode};
use crate::scenario::Acquire;

/// Refusals and grants seen so far.
#[derive(Debug, Default)]
pub(super) struct SoundRefusal {
    found: Judgement,
    /// First attempt whose outcome is `Taken`.
    told: Option<AttemptId>,
    /// True if an attempt was granted the lock, or was cancelled, too slow, overloaded, refused by
    /// quarantine, or cut short with too few nodes.
    grant_or_excuse_seen: bool,
    has_faults: bool,
    /// By client: number of the last settled attempt, and number of consecutive split votes modulo
    /// `Acquire::AT_ONCE_MOST`.
    splits: PerClient<(u16, u32)>,
}

impl SoundRefusal {
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(super) fn fault_began(&mut self) {
        self.has_faults = true;
    }

    /// Judges the first settlement of an attempt.
    pub(super) fn settled(&mut self, facts: &Facts, id: AttemptId, outcome: Settlement) {
        match outcome {
            Settlement::TooFewNodes if is_cut_short(facts, id) => self.grant_or_excuse_seen = true,
            Settlement::Split | Settlement::Taken | Settlement::TooFewNodes => {}
            Settlement::Cancelled
            | Settlement::Granted
            | Settlement::Overloaded
            | Settlement::Quarantined
            | Settlement::TooSlow => self.grant_or_excuse_seen = true,
        }
        if !facts.setting.says_whose(id.client) {
            return;
        }
        let (number, splits) = &mut self.splits[id.client];
        *number = id.number;
        *splits = if outcome == Settlement::Split { *splits + 1 } else { 0 };
        *splits %= Acquire::AT_ONCE_MOST;
        let has_names_twice = facts.setting.has_names_twice();
        let is_right = match outcome {
            Settlement::Taken => {
                self.told.get_or_insert(id);
                self.found.held();
                is_taken(facts, id) || is_held_here(facts, id)
            }
            Settlement::Split if !has_names_twice => {
                has_answers(facts, id) && !has_known_votes(facts, id)
            }
            Settlement::Quarantined if !has_names_twice => has_votes(facts, id),
            Settlement::Overloaded if !has_names_twice => !was_sent_to_all(facts, id),
            _ => return,
        };
        if !is_right {
            self.violated(facts, id, facts.mismatched_since_t1(id));
        }
    }

    /// Returns the judgement of a finished run.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        // A majority of one list can be refused for keys that are no majority of another list.
        // A cause that explains a wrong refusal explains that nobody was granted, too.
        let is_excused = self.grant_or_excuse_seen || self.has_faults || self.found.is_violated();
        let must_be_granted = !is_excused && facts.setting.has_one_membership();
        if let Some(id) = self.told.filter(|_| must_be_granted) {
            self.violated(facts, id, Blamed::NONE);
        }
        for client in facts.setting.client_ids() {
            let (number, splits) = self.splits[client];
            let id = AttemptId { client, number };
            // A client that is dead or stopped has not given up.
            let runs = facts.processes.runs_since_ns(client) != NEVER;
            if splits > 0
                && runs
                && facts.setting.asks_at_once(client)
                && facts.leases.is_newest(id)
            {
                self.violated(facts, id, Blamed::NONE);
            }
        }
        self.found
    }

    fn violated(&mut self, facts: &Facts, id: AttemptId, blamed: Blamed) {
        self.found.violated(Violation::of_one(id, facts.now_ns, blamed));
    }
}

/// Returns true if a majority of the nodes refused `id` because of keys of one other attempt.
fn is_taken(facts: &Facts, id: AttemptId) -> bool {
    let refusals = PerNode::from_fn(|node| {
        facts.leases.key(id, node).map_or([Writer::Nobody; 2], |it| it.refused_for)
    });
    let is_other = |it: &&Writer| **it != Writer::Nobody && **it != Writer::Attempt(id);
    let showed = |holder: &Writer| {
        let nodes = refusals.iter().filter(|(_, it)| it.contains(holder)).map(|(node, _)| node);
        nodes.collect()
    };
    refusals.values().flatten().filter(is_other).any(|it| is_majority(facts, id, showed(it)))
}

/// Returns true if a majority of the nodes has answered the SET of `id`, other than by an error.
fn has_answers(facts: &Facts, id: AttemptId) -> bool {
    let answered = facts.setting.node_ids().filter(|node| {
        facts.leases.key(id, *node).is_some_and(|key| key.answered_ns != NEVER && !key.failed)
    });
    is_majority(facts, id, answered.collect())
}

/// Returns true if the SET of `id` was written to every node.
fn was_sent_to_all(facts: &Facts, id: AttemptId) -> bool {
    let mut members = facts.setting.members(id.client).iter();
    members.all(|node| facts.leases.key(id, node).is_some_and(|key| key.written_ns != NEVER))
}

/// Returns true if a majority of the nodes has confirmed the key of `id`.
fn has_votes(facts: &Facts, id: AttemptId) -> bool {
    facts.leases.get(id).is_some_and(|attempt| is_majority(facts, id, attempt.confirmed_by))
}

/// Returns true if a majority of the nodes has confirmed the key of `id`, and the client knows from
/// when each of their votes counts. A vote may wait for the node's next introduction, which may come
/// too late: the node has reported lost keys, or the last introduction is too old.
fn has_known_votes(facts: &Facts, id: AttemptId) -> bool {
    let process = facts.setting.process(id.client);
    let is_known = |node: &NodeId| {
        facts.eligible[id.client][*node].from_local_ns != NEVER
            && !facts.owed_answers.is_introduction_owed(process, *node)
    };
    let known = |attempt: &Attempt| attempt.confirmed_by.iter().filter(is_known).collect();
    facts.leases.get(id).is_some_and(|attempt| is_majority(facts, id, known(attempt)))
}

/// Returns true if `nodes` are enough to grant `id` the lock.
fn is_majority(facts: &Facts, id: AttemptId, nodes: NodeIds) -> bool {
    facts
        .leases
        .get(id)
        .is_some_and(|attempt| facts.setting.votes(id.client, nodes) >= attempt.needed.max(1))
}

/// Returns true if another task of the client of `id` has a lease.
fn is_held_here(facts: &Facts, id: AttemptId) -> bool {
    let tasks = facts.setting.tasks_with(id.client).iter();
    let newest = tasks.filter(|task| *task != id.client).filter_map(|it| facts.leases.newest(it));
    newest.into_iter().any(|other| {
        let attempt = facts.leases.get(other);
        let is_granted =
            attempt.is_some_and(|it| it.decided_ns != NEVER && it.delivered_ns == NEVER);
        let is_open = attempt.is_some_and(|it| it.finished_ns == NEVER);
        is_open && is_granted || facts.beliefs.is_believed(other, facts.now_ns)
    })
}

/// Returns true if answers to `id` can come too late though no fault delays them: its first connections
/// had to open, or a round trip exceeds the node timeout by the client's clock alone.
fn is_cut_short(facts: &Facts, id: AttemptId) -> bool {
    let Some(attempt) = facts.leases.get(id) else { return false };
    let mut members = facts.setting.members(id.client).iter();
    !facts.setting.warm
        || members.any(|node| facts.has_timed_out_early(id.client, node, attempt.began_ns))
}
