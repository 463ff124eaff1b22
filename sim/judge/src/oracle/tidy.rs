//! Within a bound after an attempt fails, or its lease is released, no reachable node still holds
//! its key.
//!
//! The bound is [`Setting::release_ns`](super::setting::Setting): the time after which a client
//! gives up a silent connection, one node timeout, two round trips and 10 ms. It starts with the
//! failure or the release, and again when the client's process continues after a stop.
//!
//! These cases are excused:
//!
//! - A node that was down, stalled, or kept from the client by a partition or a delay of its
//!   requests is excused until [`Setting::heal_ns`](super::setting::Setting) after the end of that
//!   condition, which includes the longest wait before the client dials the node again. A fault
//!   that holds back only answers excuses nothing, unless the client may have closed its connection
//!   by the time of the failure or the release: dialling again requires answers (see
//!   [`Reach`](super::reach::Reach)).
//! - A dead client is excused for ever.
//! - A SET that the node executed later than one node timeout after it was written is excused for
//!   ever if its TTL, counted from the writing, ends before the client must have sent the release:
//!   a release owed to a node whose connection was given up expires after one TTL. The same holds for
//!   an extension, counted from the T1 of the last one.
//! - A SET that the node executed behind a second release, a node timeout or more after the first, is
//!   excused for ever: it was on the wire when the client gave up its connection, and later
//!   connections overtook it. No number of releases rules that out.
//!
//! A key that is still there when the run ends is judged only if its bound has passed.
//!
//! If a key that had ended on a node exists there again, the node is to blame: it forgot the
//! release (amnesia). The same if the release was written at a time when a proxy may have taken
//! another answer for the release's, because the node had restarted behind it. If the bound ends
//! after the key's TTL, and the node's wall clock has lost more time than the drift of the lease, the
//! clock is to blame: the key would have expired. The clock of the client is to blame if by it the
//! release that the client owed to an unreachable node had expired. Otherwise only the client is to
//! blame.

use super::facts::Facts;
use super::ground::NEVER;
use super::verdict::{Blame, Blamed, Judgement, Violation};
use crate::history::{AttemptId, NodeId, NodeIds, Writer};
use crate::ids::PerNode;

/// Deadlines for the keys that have to be removed.
#[derive(Debug)]
pub(super) struct Tidy {
    /// Time by which the key on each node has to be gone; [`NEVER`] if no key has to go.
    due_ns: PerNode<u64>,
    /// Attempt that wrote the key on each node.
    whose: PerNode<AttemptId>,
    /// Nodes on which the key had ended and returned.
    returned: NodeIds,
    /// Number of attempts that failed or were released.
    finished: usize,
    found: Judgement,
}

impl Tidy {
    pub(super) fn new() -> Self {
        Self {
            due_ns: PerNode::filled(NEVER),
            whose: PerNode::default(),
            returned: NodeIds::EMPTY,
            finished: 0,
            found: Judgement::Vacuous,
        }
    }

    pub(super) fn reset(&mut self) {
        self.due_ns.fill(NEVER);
        self.returned = NodeIds::EMPTY;
        self.finished = 0;
        self.found = Judgement::Vacuous;
    }

    /// Records that an attempt failed, or that its lease was released.
    pub(super) fn finished(&mut self, facts: &Facts, id: AttemptId) {
        self.finished += 1;
        for node in facts.setting.node_ids() {
            if facts.keys.writer(node) == Writer::Attempt(id) {
                self.reconsider(facts, node);
            }
        }
    }

    /// Computes the deadline of `node` again: its key or its reachability has changed.
    pub(super) fn reconsider(&mut self, facts: &Facts, node: NodeId) {
        self.check(facts, node);
        self.due_ns[node] = NEVER;
        let Writer::Attempt(id) = facts.keys.writer(node) else { return };
        if facts.setting.is_judged(id.client) {
            self.due_ns[node] = due_ns(facts, id, node);
            self.whose[node] = id;
            self.returned.set(node, facts.keys.has_returned(node));
        }
    }

    /// Computes the deadlines of all nodes again: their reachability, or the state of a process,
    /// has changed.
    pub(super) fn reconsider_all(&mut self, facts: &Facts) {
        facts.setting.node_ids().for_each(|node| self.reconsider(facts, node));
    }

    /// Returns the time from which the last of the keys that have to go is overdue; `None` if no
    /// key has to go.
    pub(super) fn overdue_from_ns(&self) -> Option<u64> {
        let due_ns = self.due_ns.values().copied().filter(|&due_ns| due_ns != NEVER).max();
        due_ns.map(|due_ns| due_ns + 1)
    }

    /// Returns the judgement of a finished run.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        facts.setting.node_ids().for_each(|node| self.check(facts, node));
        // Attempts that still have a key on a node are not judged.
        let left = || self.due_ns.ids().filter(|&node| self.due_ns[node] != NEVER);
        let is_first = |node: &NodeId| {
            !left().any(|other| other < *node && self.whose[other] == self.whose[*node])
        };
        if self.finished > left().filter(is_first).count() {
            self.found.held();
        }
        self.found
    }

    /// Returns the amnesia of all nodes on which the key of `node` has returned; empty if it has
    /// not returned on `node`.
    fn forgetful(&self, node: NodeId) -> Blamed {
        let mut blamed = Blamed::NONE;
        if self.returned.contains(node) {
            let same = self.returned.iter().filter(|&other| self.whose[other] == self.whose[node]);
            same.for_each(|other| blamed.add(Blame::Amnesia(other.first_host())));
        }
        blamed
    }

    #[inline]
    fn check(&mut self, facts: &Facts, node: NodeId) {
        if self.due_ns[node] < facts.now_ns && !self.found.is_final() {
            self.violated(facts, node);
        }
    }

    #[cold]
    fn violated(&mut self, facts: &Facts, node: NodeId) {
        let (first, from_ns, to_ns) = (self.whose[node], self.due_ns[node], facts.now_ns);
        let mut blamed = self.forgetful(node);
        let finished_ns = facts.leases.get(first).map_or(NEVER, |it| it.finished_ns);
        let without_release = facts.mismatched(first.client, NodeIds::just(node), finished_ns);
        without_release.iter().for_each(|cause| blamed.add(cause));
        if outlives_its_ttl(facts, first, node, from_ns) {
            blamed.add(Blame::Clock(facts.master(node)));
        }
        if release_expired_early(facts, first, node) {
            blamed.add(Blame::Clock(facts.setting.client_host(first.client)));
        }
        let (second, node) = (None, Some(node));
        self.found.violated(Violation { from_ns, to_ns, first, second, node, blamed });
    }
}

/// Returns true if nothing but its expiry had to remove the key of `id` from `node` by `due_ns`, and
/// the node's clock, which lost more than the drift of the lease, kept the key from expiring, now or
/// when an extension re-timed it.
fn outlives_its_ttl(facts: &Facts, id: AttemptId, node: NodeId, due_ns: u64) -> bool {
    let (Some(key), Some(attempt)) = (facts.leases.key(id, node), facts.leases.get(id)) else {
        return false;
    };
    let is_over = due_ns.saturating_sub(key.timed_ns) > attempt.ttl_ns;
    key.outlived || is_over && key.outlives(attempt, (facts.now_ns, facts.node_wall_ns(node)))
}

/// Returns the time by which the key of `id` has to be gone from `node`; [`NEVER`] while nothing
/// requires that.
fn due_ns(facts: &Facts, id: AttemptId, node: NodeId) -> u64 {
    let finished_ns = facts.leases.get(id).map_or(NEVER, |it| it.finished_ns);
    if finished_ns == NEVER {
        return NEVER;
    }
    let tells_ns = facts.reach.can_send_since_ns(id.client, node, finished_ns);
    let runs_ns = facts.processes.runs_since_ns(id.client);
    if tells_ns == NEVER || runs_ns == NEVER {
        return NEVER;
    }
    let healed_ns = if tells_ns == 0 { 0 } else { tells_ns.max(runs_ns) };
    let is_overtaken = facts.leases.key(id, node).is_some_and(|key| key.overtaken);
    if is_overtaken || release_may_have_expired(facts, id, node, healed_ns) {
        return NEVER;
    }
    let after_heal_ns = if healed_ns == 0 { 0 } else { healed_ns + facts.setting.heal_ns };
    (finished_ns.max(runs_ns) + facts.setting.release_ns).max(after_heal_ns)
}

/// Returns true if the release owed to `node` expired before the client could send it only because the
/// client's clock is fast.
fn release_expired_early(facts: &Facts, id: AttemptId, node: NodeId) -> bool {
    let (Some(key), Some(attempt)) = (facts.leases.key(id, node), facts.leases.get(id)) else {
        return false;
    };
    let tells_ns = facts.reach.can_send_since_ns(id.client, node, attempt.finished_ns);
    let told_ns = tells_ns.max(attempt.finished_ns).saturating_add(facts.setting.heal_ns);
    let owed_ns = told_ns.saturating_sub(key.written_ns);
    let by_clock_ns = facts.by_clock_of(id.client, owed_ns);
    by_clock_ns > owed_ns && by_clock_ns > attempt.ttl_ns
}

/// Returns true if the SET or an extension took so long to be executed that the release owed to the
/// node may have expired before the client could send it.
fn release_may_have_expired(facts: &Facts, id: AttemptId, node: NodeId, healed_ns: u64) -> bool {
    let (Some(key), Some(attempt)) = (facts.leases.key(id, node), facts.leases.get(id)) else {
        return false;
    };
    let is_late = |written_ns: u64, executed_ns: u64| {
        let told_ns = executed_ns.max(healed_ns).saturating_add(facts.setting.heal_ns);
        executed_ns.saturating_sub(written_ns) > facts.setting.node_timeout_ns
            && told_ns > written_ns.saturating_add(attempt.ttl_ns)
    };
    let began_ns = attempt.round.basis.began_ns;
    // Without a slow clock, there is no key to extend later than one TTL after T1.
    let is_extended =
        key.timed_ns > key.set_ns && key.timed_ns <= began_ns.saturating_add(attempt.ttl_ns);
    is_late(key.written_ns, key.set_ns) || is_extended && is_late(began_ns, key.timed_ns)
}
