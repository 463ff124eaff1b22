//! Extension of a policy client's lease.

use lock_judge::history::{Id, LostReason, NodeId, OpKind, Refusal};
use lock_judge::ids::IdVec;
use redlock_protocol::{NodeIndex, NodeMask};

use super::attempt::mask;
use super::{State, Vote};
use crate::subject::policy::{Connect, PolicyClient, ReleaseTo, nanos};
use crate::subject::{Action, CommandKind, Now, ReplyValue};

/// An extension under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    t1_ns: u64,
    ttl_ns: u64,
    timeout_boot_ns: u64,
}

/// The extensions of one lease.
#[derive(Clone, Debug)]
pub(in crate::subject::policy) struct Rounds {
    current: Option<Round>,
    votes: IdVec<NodeId, Vote>,
    /// Number of extensions that each node has not yet answered: only the reply to the last one
    /// counts.
    unanswered: IdVec<NodeId, u32>,
    /// Nodes that have not yet answered the SET of a missing key.
    setting_again: NodeMask,
    succeeded: u32,
}

impl Rounds {
    pub(in crate::subject::policy) fn new(nodes: usize) -> Self {
        let (votes, unanswered) = (IdVec::filled(nodes, Vote::No), IdVec::filled(nodes, 0));
        Self { current: None, votes, unanswered, setting_again: NodeMask::EMPTY, succeeded: 0 }
    }

    pub(in crate::subject::policy) fn reset(&mut self) {
        self.unanswered.fill(0);
        self.begin_lease();
    }

    pub(in crate::subject::policy) fn begin_lease(&mut self) {
        self.succeeded = 0;
        self.stop();
    }

    pub(in crate::subject::policy) fn stop(&mut self) {
        self.current = None;
    }

    pub(in crate::subject::policy) fn are_under_way(&self) -> bool {
        self.current.is_some()
    }

    pub(in crate::subject::policy) fn timeout_boot_ns(&self) -> Option<u64> {
        self.current.map(|round| round.timeout_boot_ns)
    }

    /// Forgets the pending replies of a node whose connection is closed.
    pub(in crate::subject::policy) fn forget(&mut self, node: NodeId) {
        self.unanswered[node] = 0;
    }

    /// Counts the reply to an extension that is over.
    pub(in crate::subject::policy) fn answered_late(&mut self, node: NodeId) {
        self.unanswered[node] = self.unanswered[node].saturating_sub(1);
    }
}

impl PolicyClient {
    /// Begins an extension, or refuses to begin one.
    pub(in crate::subject) fn extend(&mut self, ttl_ns: u64, now: Now) -> Result<(), Refusal> {
        let State::Held { lost } = self.state else { return Err(Refusal::Lost) };
        let rules = self.policy.extending;
        if rules.only_while_valid && (lost || now.lease_ns >= self.deadline_ns) {
            return Err(Refusal::Lost);
        }
        if self.rounds.are_under_way() {
            return Err(Refusal::Busy);
        }
        if rules.is_bounded && self.rounds.succeeded >= self.settings.extensions_max {
            return Err(Refusal::TooMany);
        }
        let timeout_boot_ns = now.boot_ns + nanos(self.settings.node_timeout);
        self.rounds.current = Some(Round { t1_ns: now.lease_ns, ttl_ns, timeout_boot_ns });
        self.rounds.votes.fill(Vote::Pending);
        self.rounds.setting_again = NodeMask::EMPTY;
        if self.policy.connect == Connect::FreshPerCommand {
            // The client has closed the connections on which no reply came in time.
            self.rounds.unanswered.fill(0);
        }
        for node in self.votes.ids() {
            self.rounds.unanswered[node] += 1;
            let plain = self.settings.plain_extensions;
            self.send(node, CommandKind::extend(ttl_ns / 1_000_000, plain));
        }
        Ok(())
    }

    /// Handles a node's reply to the extension, or to the SET of a missing key.
    pub(in crate::subject::policy) fn extension_answered(
        &mut self,
        node: NodeId,
        op: OpKind,
        value: ReplyValue,
        now: Now,
    ) {
        let Some(round) = self.rounds.current else { return };
        let index = NodeIndex::new(node.index());
        let is_awaited = if op == OpKind::Extend {
            self.rounds.answered_late(node);
            self.rounds.unanswered[node] == 0
        } else {
            self.rounds.setting_again.contains(index)
        };
        if !is_awaited || self.rounds.votes[node] != Vote::Pending {
            return;
        }
        let yes = matches!(value, ReplyValue::Ok | ReplyValue::Integer(1..));
        if !yes && op == OpKind::Extend && self.policy.extending.recreates {
            self.rounds.setting_again.insert(index);
            return self.send(node, CommandKind::Set { ttl_ms: Some(round.ttl_ns / 1_000_000) });
        }
        self.rounds.votes[node] = if yes { Vote::Yes } else { Vote::No };
        self.settle_extension(round, now);
    }

    /// Checks the clock: the extension may have taken too long, or the lease may be over.
    pub(in crate::subject::policy) fn watch(&mut self, now: Now) {
        if let Some(round) = self.rounds.current
            && round.timeout_boot_ns <= now.boot_ns
        {
            for vote in self.rounds.votes.values_mut().filter(|vote| **vote == Vote::Pending) {
                *vote = Vote::No;
            }
            self.settle_extension(round, now);
        }
        if self.state != (State::Held { lost: false }) || now.boot_ns < self.look_again_boot_ns {
            return;
        }
        let left_ns = self.deadline_ns.saturating_sub(now.lease_ns);
        self.look_again_boot_ns = now.boot_ns + left_ns;
        if left_ns > 0 {
            return;
        }
        match self.rounds.current {
            // This client extends late rather than notice the end of the lease.
            Some(round) if !self.policy.extending.only_while_valid => {
                self.look_again_boot_ns = round.timeout_boot_ns;
            }
            _ => {
                self.state = State::Held { lost: true };
                let (attempt, reason) = (self.fresh.attempt, LostReason::DeadlinePassed);
                self.actions.push_back(Action::Lost { attempt, reason });
            }
        }
    }

    fn settle_extension(&mut self, round: Round, now: Now) {
        let count = |wanted| self.rounds.votes.values().filter(|&&vote| vote == wanted).count();
        let (yes, pending) = (count(Vote::Yes), count(Vote::Pending));
        let needed = if self.policy.extending.by_any { 1 } else { self.needed };
        if yes >= needed {
            self.conclude_extension(round, now);
        } else if yes + pending < needed {
            self.extension_failed();
        }
    }

    /// Ends a round in which enough nodes still had the key.
    fn conclude_extension(&mut self, round: Round, now: Now) {
        let rules = self.policy.extending;
        let from_ns = if rules.from_reply { now.lease_ns } else { round.t1_ns };
        let deadline_ns = self.deadline_from(from_ns, round.ttl_ns).max(self.deadline_ns);
        let was_over =
            self.state != (State::Held { lost: false }) || now.lease_ns >= self.deadline_ns;
        let too_late = (rules.only_while_valid && was_over)
            || (rules.checks_validity && now.lease_ns >= deadline_ns);
        if too_late {
            return self.extension_failed();
        }
        self.rounds.current = None;
        self.rounds.succeeded += 1;
        self.state = State::Held { lost: false };
        self.deadline_ns = deadline_ns;
        let left_ns = deadline_ns.saturating_sub(now.lease_ns);
        self.look_again_boot_ns = now.boot_ns + left_ns;
        let extended = Some((mask(&self.rounds.votes), deadline_ns));
        let attempt = self.fresh.attempt;
        self.actions.push_back(Action::ExtensionSettled { attempt, extended });
    }

    fn extension_failed(&mut self) {
        self.rounds.current = None;
        let attempt = self.fresh.attempt;
        self.actions.push_back(Action::ExtensionSettled { attempt, extended: None });
        if self.policy.extending.unlocks_after_failure {
            self.unlock(ReleaseTo::Everyone);
        }
    }
}
