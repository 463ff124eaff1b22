//! Records of granted attempts, and the invariants that are judged by them.

use super::NODES;
use super::play::{LeaseRecord, Play};
use crate::command::{LockId, Op};
use crate::lock::LostReason;
use crate::quorum::{NodeIndex, NodeMask};
use crate::testing::{FakeNode, TTL};
use crate::time::BootInstant;
use crate::token::Token;

impl Play {
    /// Returns the record of the last granted attempt of `lock`.
    pub(super) fn record(&mut self, lock: LockId) -> &mut LeaseRecord {
        self.records.iter_mut().rfind(|record| record.lock == lock).expect("decided before")
    }

    pub(super) fn extended(&mut self, lock: LockId, counted: NodeMask, deadline: BootInstant) {
        let now = self.world.now;
        let place =
            self.records.iter().rposition(|record| record.lock == lock).expect("decided before");
        self.records[place].counted = counted;
        let record = &self.records[place];
        let round = record.round;
        let (granted_at, _) = record.deadlines[0];
        let &(_, before) = record.deadlines.last().expect("decided before");
        assert!(deadline > before, "shortened");
        assert!(deadline <= round.after(TTL), "longer than its keys");
        for other in self.records.iter().filter(|other| other.lock != lock) {
            let (other_at, _) = other.deadlines[0];
            assert!(other_at <= granted_at || other_at >= round, "granted in between");
        }
        self.records[place].deadlines.push((now, deadline));
        if let Some(held) = self.held.iter_mut().find(|(held, _)| *held == lock) {
            held.1 = deadline;
        }
    }

    /// Judges the loss of a lease: keys are gone only if the nodes that lack them leave no majority.
    /// A node that has told that it lacked the key may have set it since, unheard.
    pub(super) fn lost(&mut self, lock: LockId, reason: LostReason) {
        let (now, token) = (self.world.now, self.record(lock).token);
        let lacks = |&(index, it): &(usize, &FakeNode)| {
            let is_unheard = self.unheard.contains(&(token, index));
            it.key != Some(token) || it.expires <= now || is_unheard
        };
        let lacking = self.world.nodes.iter().enumerate().filter(lacks).count();
        assert!(reason != LostReason::KeysGone || lacking > NODES / 2, "lost without cause");
    }

    pub(super) fn judge(&mut self) {
        let now = self.world.now;
        let alive = self.held.iter().filter(|&&(_, deadline)| now < deadline).count();
        assert!(alive <= 1, "two leases at once");
        for &(lock, deadline) in self.held.iter().filter(|&&(_, deadline)| now < deadline) {
            let mut records = self.records.iter();
            let record = records.rfind(|record| record.lock == lock).expect("decided before");
            for counted in record.counted.iter().map(NodeIndex::get) {
                let it = &self.world.nodes[counted];
                if self.forgot.contains(&(record.token, counted)) {
                    continue;
                }
                let there = it.key == Some(record.token) && it.expires >= deadline;
                assert!(there, "a counted key is gone before the deadline");
            }
        }
        for (node, judged) in self.world.nodes.iter().zip(&mut self.judged) {
            for place in *judged..node.written.len() {
                judge_write(&node.written[..=place], node.written_at[place], &self.records);
            }
            *judged = node.written.len();
        }
    }
}

/// Judges the last command in `written`, which was written to a node at `at`.
fn judge_write(written: &[Op], at: BootInstant, records: &[LeaseRecord]) {
    let (&last, before) = written.split_last().expect("something was written");
    let (token, again) = match last {
        Op::Set { token, .. } => (token, before.iter().any(|&op| set_token(op) == Some(token))),
        Op::Extend { token, .. } => (token, true),
        Op::Introduce
        | Op::Look { .. }
        | Op::Read { .. }
        | Op::Release { .. }
        | Op::TimeLeft { .. } => return,
    };
    if !again {
        return;
    }
    let record =
        records.iter().find(|record| record.token == token).expect("only a lease is extended");
    let mut in_force = record.deadlines.iter().filter(|&&(since, _)| since <= at);
    let &(_, deadline) = in_force.next_back().expect("it is extended after the grant");
    assert!(at < deadline, "{last:?} was written at the deadline or later");
    if set_token(last).is_some() {
        let of_token = before.iter().rev().find(|&&op| match op {
            Op::Extend { token: it, .. } | Op::Set { token: it, .. } => it == token,
            Op::Release { token: it, .. } => it == token,
            Op::Introduce | Op::Look { .. } | Op::Read { .. } | Op::TimeLeft { .. } => false,
        });
        let extend = matches!(of_token, Some(Op::Extend { .. }));
        assert!(extend, "set again without having been asked");
    }
}

fn set_token(op: Op) -> Option<Token> {
    match op {
        Op::Set { token, .. } => Some(token),
        _ => None,
    }
}
