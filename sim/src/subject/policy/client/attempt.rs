//! One attempt of a policy client: the nodes asked, the meaning of the replies, the outcome.

use core::time::Duration;

use lock_judge::history::{FencingToken, Id, NodeId, Settlement};
use lock_judge::ids::IdVec;
use redlock_protocol::{NodeIndex, NodeMask, Token};

use super::{State, Vote};
use crate::subject::policy::{
    AfterSet, Asking, DecisionPoint, Expiry, Fencing, PolicyClient, Quorum, ReleaseTo, TokenFrom,
    nanos,
};
use crate::subject::{Action, CommandKind, FreshAttempt, Now, ReplyValue};

impl PolicyClient {
    pub(in crate::subject::policy) fn token(&mut self, fresh: FreshAttempt, now: Now) -> Token {
        let mut stamp = [0; Token::LENGTH];
        stamp[..8].copy_from_slice(&(now.lease_ns / 1_000_000).to_le_bytes());
        match self.policy.token {
            TokenFrom::Attempt => fresh.token,
            TokenFrom::Client => *self.first_token.get_or_insert(fresh.token),
            TokenFrom::WallClock => Token::from_bytes(stamp),
            TokenFrom::WallClockAndClient => {
                stamp[8] = fresh.attempt.client.0;
                Token::from_bytes(stamp)
            }
        }
    }

    /// Selects the nodes to ask, and the number of votes that the attempt needs.
    pub(in crate::subject::policy) fn choose_voters(&mut self) {
        self.votes.fill(Vote::Unasked);
        let mut voters = self.settings.nodes;
        if self.policy.quorum == Quorum::MajorityOfConnected {
            let connected = self.transports.values().filter(|it| it.is_open()).count();
            if connected > 0 {
                voters = connected;
                for (vote, transport) in self.votes.values_mut().zip(self.transports.values()) {
                    *vote = if transport.is_open() { Vote::Unasked } else { Vote::No };
                }
            }
        }
        self.needed = self.quorum_of(voters);
    }

    pub(in crate::subject::policy) fn ask_next(&mut self, now: Now) {
        let timeout_ns = match self.policy.has_node_timeout {
            true => now.boot_ns + nanos(self.settings.node_timeout),
            false => u64::MAX,
        };
        self.state = State::Trying { timeout_boot_ns: timeout_ns };
        for node in self.votes.ids() {
            if self.votes[node] != Vote::Unasked {
                continue;
            }
            self.votes[node] = Vote::Pending;
            self.send(node, self.set(now));
            if self.policy.then == AfterSet::ExpirePipelined {
                self.send(node, CommandKind::Expire { ttl_ms: self.ttl_ms() });
            }
            if self.policy.asking == Asking::Sequential {
                return;
            }
        }
    }

    /// Returns the command that sets the key.
    pub(in crate::subject::policy) fn set(&self, now: Now) -> CommandKind {
        let ttl_ms = self.ttl_ms();
        match (self.policy.expiry, self.policy.fencing) {
            (Expiry::Never, _) => CommandKind::Set { ttl_ms: None },
            (Expiry::Px, Fencing::Counters) => CommandKind::SetAndCount { ttl_ms },
            (Expiry::Px, _) => CommandKind::Set { ttl_ms: Some(ttl_ms) },
            (Expiry::PxAt, _) => {
                CommandKind::SetUntil { wall_ms: now.lease_ns / 1_000_000 + ttl_ms }
            }
        }
    }

    fn ttl_ms(&self) -> u64 {
        self.settings.ttl.as_millis() as u64
    }

    pub(in crate::subject::policy) fn set_answered(
        &mut self,
        node: NodeId,
        value: ReplyValue,
        now: Now,
    ) {
        if !matches!(self.state, State::Trying { .. }) || self.votes[node] != Vote::Pending {
            return;
        }
        let count = match value {
            ReplyValue::Ok => 0,
            ReplyValue::Integer(count @ 1..) => count as u64,
            ReplyValue::Nil | ReplyValue::Integer(0) => {
                return self.vote(node, Vote::Refused, now);
            }
            _ => return self.vote(node, Vote::No, now),
        };
        self.counters[node] = count;
        match self.policy.then {
            AfterSet::Expire => self.send(node, CommandKind::Expire { ttl_ms: self.ttl_ms() }),
            // The reply must come before the node timeout, which began with the SET.
            AfterSet::Wait { .. } => {
                // A node timeout is an hour at most.
                let timeout_ms = self.settings.node_timeout.as_millis() as u32 / 2;
                self.send(node, CommandKind::Wait { replicas: 1, timeout_ms });
            }
            AfterSet::ExpirePipelined | AfterSet::Nothing => self.vote(node, Vote::Yes, now),
        }
    }

    pub(in crate::subject::policy) fn vote(&mut self, node: NodeId, vote: Vote, now: Now) {
        if !matches!(self.state, State::Trying { .. }) || self.votes[node] != Vote::Pending {
            return;
        }
        self.votes[node] = vote;
        self.settle(now);
    }

    /// Decides the attempt if the votes allow it; otherwise asks further nodes. A failed attempt found
    /// the lock taken, unless the nodes without a vote alone prevent the majority.
    pub(in crate::subject::policy) fn settle(&mut self, now: Now) {
        let count = |wanted| self.votes.values().filter(|&&vote| vote == wanted).count();
        let (yes, pending, unasked) =
            (count(Vote::Yes), count(Vote::Pending), count(Vote::Unasked));
        let open = pending + unasked;
        let is_certain = yes >= self.needed || yes + open < self.needed;
        if open == 0 || (is_certain && self.policy.settling == DecisionPoint::WhenCertain) {
            if yes >= self.needed {
                self.decide(now);
            } else {
                let is_taken = yes + open + count(Vote::Refused) >= self.needed;
                let why = if is_taken { Settlement::Taken } else { Settlement::TooFewNodes };
                self.fail(why, self.policy.release_after_failure, now);
            }
        } else if pending == 0 {
            self.ask_next(now);
        }
    }

    /// Grants or fails an attempt with a majority; `now` is T2.
    fn decide(&mut self, now: Now) {
        self.deadline_ns = match self.expires() {
            true => self.deadline_from(self.t1_ns, nanos(self.settings.ttl)),
            false => u64::MAX,
        };
        let left_ns = self.deadline_ns.saturating_sub(now.lease_ns);
        if self.policy.checks_validity && left_ns == 0 {
            return self.fail(Settlement::TooSlow, self.policy.release_when_too_slow, now);
        }
        self.state = State::Decided { left_ns };
        let counted = mask(&self.votes);
        self.fencing_token = match self.policy.fencing {
            Fencing::Nowhere => None,
            Fencing::Counters => {
                let votes = self.votes.values().zip(self.counters.values());
                votes
                    .filter(|(vote, _)| **vote == Vote::Yes)
                    .map(|(_, &count)| FencingToken(count))
                    .max()
            }
            Fencing::WallClock => Some(FencingToken(now.lease_ns / 1_000_000)),
        };
        let (attempt, deadline_ns) = (self.fresh.attempt, self.deadline_ns);
        self.actions.push_back(Action::Decided { attempt, counted, deadline_ns });
    }

    /// Returns the deadline of a lease whose keys live for at least `ttl_ns` from `from_ns`.
    pub(in crate::subject::policy) fn deadline_from(&self, from_ns: u64, ttl_ns: u64) -> u64 {
        let ttl = Duration::from_nanos(ttl_ns);
        let given_up = self.policy.gives_up_drift.then(|| nanos(self.settings.drift.of(ttl)));
        (from_ns + ttl_ns).saturating_sub(given_up.unwrap_or_default())
    }

    pub(in crate::subject::policy) fn fail(
        &mut self,
        outcome: Settlement,
        released: ReleaseTo,
        now: Now,
    ) {
        self.unlock(released);
        let attempt = self.fresh.attempt;
        self.actions.push_back(Action::AttemptSettled { attempt, outcome });
        self.failures += 1;
        let delay = match self.policy.fixed_retry {
            Some(delay) => delay,
            None => {
                let jitter = self.fresh.jitter;
                self.settings.retry.after(self.failures, core::time::Duration::ZERO, jitter)
            }
        };
        let until_boot_ns = now.boot_ns + nanos(delay);
        if self.patience.allows(self.failures, until_boot_ns) {
            self.state = State::Waiting { until_boot_ns };
        } else {
            self.state = State::Idle;
            self.actions.push_back(Action::GaveUp);
        }
    }
}

/// Returns the nodes that voted yes.
pub(in crate::subject::policy) fn mask(votes: &IdVec<NodeId, Vote>) -> NodeMask {
    let mut agreed = NodeMask::EMPTY;
    for (node, _) in votes.iter().filter(|(_, vote)| **vote == Vote::Yes) {
        agreed.insert(NodeIndex::new(node.index()));
    }
    agreed
}
