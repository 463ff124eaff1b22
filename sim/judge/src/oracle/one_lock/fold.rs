//! Folds in what attempts do: updates the facts first, then the properties concerned.

use super::OneLock;
use crate::history::{
    Answer, AttemptId, ClockKind, CommandId, EventKind, FencingToken, KeyEnd, NodeId, NodeIds,
    OpKind, Settlement, Writer,
};
use crate::oracle::ground::NEVER;
use crate::oracle::leases::Basis;

impl OneLock {
    /// Folds in a command that was written, executed or delivered, or a key that ended or returned.
    pub(super) fn observe_command(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::Written { command, attempt, node, op } => {
                self.observe_writing(command, attempt, node, op);
            }
            EventKind::Executed { command, attempt: AttemptId { client, .. }, node, .. } => {
                let facts = &self.facts;
                self.deadlock_free.moved(command, facts.now_ns);
                if facts.can_be(client, node) && facts.processes.is_killed(client) {
                    self.deadlock_free.died(facts);
                }
                self.observe_execution(kind);
            }
            EventKind::Delivered { command, attempt, node, op, answer } => {
                self.observe_answer(command, attempt, node, (op, answer));
            }
            EventKind::KeyEnded { node, writer, cause, by, expires_wall_ms } => {
                self.observe_key_end(node, writer, (cause, by), expires_wall_ms);
            }
            EventKind::KeyReturned { node, writer, .. } => {
                if self.facts.setting.has_node(node) {
                    self.facts.keys.returned(node, writer);
                }
            }
            _ => unreachable!("not about a command"),
        }
    }

    fn observe_writing(&mut self, command: CommandId, id: AttemptId, node: NodeId, op: OpKind) {
        self.counters.commands += 1;
        let facts = &mut self.facts;
        facts.connection_written((command, op), id, node);
        self.sound_grant.written(facts, id, (node, op));
        if op == OpKind::Set {
            self.sound_loss.sets_again(facts, id, node);
        }
        let Some(attempt) = facts.leases.ensure(id) else { return };
        attempt.wrote_early |= attempt.began_ns == NEVER;
        if op != OpKind::Set {
            return;
        }
        facts.repair_written(id, node);
        if let Some(key) = facts.leases.key_mut(id, node) {
            key.written_ns = facts.now_ns;
        }
    }

    fn observe_answer(
        &mut self,
        command: CommandId,
        id: AttemptId,
        node: NodeId,
        (op, answer): (OpKind, Answer),
    ) {
        self.deadlock_free.moved(command, self.facts.now_ns);
        self.observe_answer_on_connection(command, id, node);
        match (op, answer) {
            (OpKind::Extend | OpKind::Expire, Answer::Yes) => {
                self.facts.extension_confirmed(id, node, command);
            }
            (OpKind::Introduce, Answer::Yes) if self.facts.can_be(id.client, node) => {
                let tasks = self.facts.setting.tasks_with(id.client);
                self.facts.flushes.introduced(tasks, node);
            }
            // A read that shows the own value confirms a vote whose answer was lost.
            (OpKind::Get, Answer::Yes)
            | (OpKind::Set, _)
            | (OpKind::GetSet, Answer::Yes | Answer::No) => {
                self.observe_vote(id, node, op, answer);
            }
            _ => {}
        }
    }

    /// Folds in an answer to a command about any lock of the process of `id`.
    pub(super) fn observe_answer_on_connection(
        &mut self,
        command: CommandId,
        id: AttemptId,
        node: NodeId,
    ) {
        if let Some(behind) = self.facts.connection_answered(command, id, node) {
            self.sound_grant.set_behind(&self.facts, behind);
        }
    }

    fn observe_key_end(
        &mut self,
        node: NodeId,
        writer: Writer,
        end: (KeyEnd, Writer),
        expires_wall_ms: u64,
    ) {
        match end.0 {
            KeyEnd::Expired => self.counters.expired += 1,
            KeyEnd::Evicted | KeyEnd::FailedOver | KeyEnd::Flushed | KeyEnd::Restarted => {
                self.counters.forgotten += 1;
            }
            KeyEnd::Command => {}
        }
        let facts = &mut self.facts;
        if !facts.setting.has_node(node) {
            return;
        }
        self.deadlock_free.key_ends(facts, node);
        facts.keys.ended(node, writer, facts.now_ns);
        if end.0 == KeyEnd::Flushed {
            facts.flushes.flushed(node, facts.now_ns);
        }
        if let Writer::Attempt(id) = writer {
            facts.key_ended(id, node, end, expires_wall_ms);
        }
        self.tidy.reconsider(&self.facts, node);
    }

    /// Records that the client received the answer to a SET, or the old value from a GETSET.
    fn observe_vote(&mut self, id: AttemptId, node: NodeId, op: OpKind, answer: Answer) {
        let facts = &mut self.facts;
        let now_ns = facts.now_ns;
        if let Some(key) = facts.leases.key_mut(id, node) {
            (key.answered_ns, key.failed) = (now_ns, answer == Answer::Error);
        }
        if (answer == Answer::Yes || op == OpKind::GetSet)
            && let Some(it) = facts.leases.get_mut(id)
        {
            it.confirmed_by |= it.set_on & NodeIds::just(node);
            facts.note_eligibility(id, node);
        }
    }

    fn observe_execution(&mut self, kind: &EventKind) {
        let &EventKind::Executed {
            command,
            attempt,
            node,
            op,
            answer,
            changed,
            before,
            after,
            expires_wall_ms,
        } = kind
        else {
            unreachable!("not an execution")
        };
        let facts = &mut self.facts;
        if !facts.can_be(attempt.client, node) {
            return;
        }
        let is_newest = facts.leases.is_newest(attempt);
        let after = if changed { after } else { facts.keys.writer(node) };
        if changed {
            self.deadlock_free.key_ends(facts, node);
        }
        facts.keys.executed(node, attempt, is_newest, after, facts.now_ns);
        match (op, answer) {
            (OpKind::Set, Answer::Yes) => facts.set(attempt, node, expires_wall_ms),
            (OpKind::Set, Answer::No) => {
                self.counters.contended += 1;
                if let Some(key) = facts.leases.key_mut(attempt, node) {
                    key.refused(before);
                }
            }
            (OpKind::Introduce, Answer::Yes) => {
                facts.flushes.asked(facts.setting.tasks_with(attempt.client), node);
            }
            (OpKind::Release, _) => facts.released(attempt, node),
            (OpKind::GetSet, Answer::Yes | Answer::No) if changed => {
                facts.set(attempt, node, expires_wall_ms);
            }
            (OpKind::Extend | OpKind::Expire, Answer::Yes) => {
                facts.extension_executed(attempt, node, command);
                match after {
                    Writer::Attempt(owner) if changed => {
                        self.sound_grant.retimed(facts, owner, (node, expires_wall_ms));
                        facts.retimed(owner, node, expires_wall_ms);
                    }
                    _ => facts.left_as_it_was(attempt, node),
                }
            }
            _ => {}
        }
        if changed {
            if self.facts.setting.is_judged(attempt.client) {
                self.owner_only.changed(&self.facts, node, attempt, before);
            }
            self.tidy.reconsider(&self.facts, node);
        }
    }

    /// Folds in an action of a client: an attempt, a lease, an extension; passes on those of its
    /// application.
    pub(super) fn observe_attempt(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::AttemptBegan { attempt, .. } => self.observe_beginning(attempt, kind),
            EventKind::AttemptSettled { attempt, outcome } => self.observe_end(attempt, outcome),
            EventKind::GrantDecided { attempt, counted, t2_local_ns, deadline_local_ns } => {
                self.facts.decided(attempt, counted, deadline_local_ns);
                if self.facts.setting.is_judged(attempt.client) {
                    let facts = &self.facts;
                    self.continuity.decided(facts, attempt);
                    self.sound_grant.decided(facts, attempt, t2_local_ns, deadline_local_ns);
                }
            }
            EventKind::GrantDelivered { attempt, clock, deadline_local_ns, fencing_token } => {
                self.observe_grant(attempt, clock, deadline_local_ns, fencing_token);
            }
            EventKind::ExtensionBegan { attempt, t1_local_ns, ttl_ns, .. } => {
                self.counters.extensions += 1;
                self.sound_grant.extends(&self.facts, attempt);
                self.facts.extension_began(attempt, t1_local_ns, ttl_ns);
            }
            EventKind::ExtensionSettled {
                attempt, extended, counted, deadline_local_ns, ..
            } => {
                self.facts.extension_settled(attempt, extended);
                if extended {
                    self.sound_loss.judge_keys(&self.facts, attempt);
                    self.observe_extension(attempt, counted, deadline_local_ns);
                }
            }
            EventKind::ExtensionDelivered { attempt, deadline_local_ns, .. } => {
                self.facts.prolonged(attempt, deadline_local_ns);
                self.sound_loss.revived(&self.facts, attempt);
            }
            EventKind::GaveUp { client } if self.facts.setting.has_client(client) => {
                self.deadlock_free.gave_up(&self.facts, client);
            }
            EventKind::ReleaseCalled { attempt } => {
                self.sound_loss.ended(&self.facts, attempt);
                self.sound_votes.ended(&self.facts, attempt);
                self.facts.beliefs.end(attempt, self.facts.now_ns);
                self.observe_finish(attempt);
            }
            EventKind::LostDelivered { attempt, reason } => {
                self.sound_loss.reported(&self.facts, attempt, reason);
                self.sound_votes.ended(&self.facts, attempt);
                self.facts.beliefs.end(attempt, self.facts.now_ns);
            }
            _ => self.observe_application(kind),
        }
    }

    /// Folds in an action of an application under its lease.
    fn observe_application(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::VotesChanged { attempt, confirmed, possible } => {
                self.sound_votes.changed(&self.facts, attempt, (confirmed, possible));
            }
            EventKind::Checked { attempt, alive } => {
                self.sound_loss.checked(&self.facts, attempt, alive);
                self.facts.checked(attempt);
            }
            EventKind::SectionLeft { attempt } => {
                self.exclusive_section.left(&self.facts, attempt);
                self.section_within_lease.left(attempt);
            }
            EventKind::SectionEntered { attempt }
                if self.facts.setting.is_judged(attempt.client) =>
            {
                self.exclusive_section.entered(&self.facts, attempt);
                self.section_within_lease.entered(attempt);
            }
            EventKind::WriteRejected { .. } => self.counters.rejected_writes += 1,
            EventKind::WriteSent { attempt, .. }
                if self.facts.setting.is_judged(attempt.client) =>
            {
                self.writes.sent(&self.facts, attempt);
            }
            EventKind::WriteApplied { attempt, .. } => self.observe_write(attempt, kind),
            _ => {}
        }
    }

    fn observe_grant(
        &mut self,
        id: AttemptId,
        clock: ClockKind,
        deadline_local_ns: u64,
        fencing_token: FencingToken,
    ) {
        // A worker may enter several times by one attempt.
        let is_again = self.facts.leases.get(id).is_some_and(|it| it.delivered_ns != NEVER);
        self.counters.granted += u64::from(!is_again);
        let facts = &mut self.facts;
        if !facts.setting.has_client(id.client) {
            return;
        }
        if facts.setting.is_judged(id.client) {
            facts.delivered(id, clock, deadline_local_ns);
            self.sound_grant.delivered(facts, id, deadline_local_ns);
            self.sound_loss.delivered(facts, id);
            self.fenced_order.delivered(facts, id, fencing_token);
        }
        self.deadlock_free.delivered(facts, id.client);
    }

    fn observe_extension(&mut self, id: AttemptId, counted: NodeIds, deadline_local_ns: u64) {
        self.counters.extended += 1;
        let Self { facts, sound_grant, continuity, .. } = self;
        let Some(began_ns) = facts.leases.get(id).map(|it| it.round.basis.began_ns) else { return };
        if facts.setting.is_judged(id.client) {
            sound_grant.extended(facts, id, deadline_local_ns);
            continuity.extended(facts, id, began_ns);
        }
        facts.extended(id, counted, deadline_local_ns);
    }

    fn observe_beginning(&mut self, id: AttemptId, kind: &EventKind) {
        let &EventKind::AttemptBegan { clock, t1_local_ns, ttl_ns, drift_ns, needed, .. } = kind
        else {
            unreachable!("not a beginning")
        };
        self.counters.attempts += 1;
        let facts = &mut self.facts;
        if !facts.setting.has_client(id.client) {
            return;
        }
        let stopped_before_ns = facts.processes.stopped_for_ns(id.client, facts.now_ns);
        let Some(attempt) = facts.leases.ensure(id) else { return };
        attempt.began_ns = facts.now_ns;
        attempt.basis = Basis { began_ns: facts.now_ns, t1_local_ns, drift_ns };
        (attempt.clock, attempt.t1_local_ns) = (clock, t1_local_ns);
        (attempt.ttl_ns, attempt.drift_ns) = (ttl_ns, drift_ns);
        attempt.needed = u32::from(needed);
        attempt.stopped_before_ns = stopped_before_ns;
        self.deadlock_free.began(&self.facts, id.client);
    }

    fn observe_end(&mut self, id: AttemptId, outcome: Settlement) {
        match outcome {
            Settlement::TooSlow => self.counters.too_slow += 1,
            Settlement::Quarantined => self.counters.quarantined += 1,
            _ => {}
        }
        let Some(attempt) = self.facts.leases.get_mut(id) else { return };
        let is_first = !core::mem::replace(&mut attempt.settled, true);
        if is_first && self.facts.setting.is_judged(id.client) {
            self.fault_tolerant.settled(&self.facts, id, outcome);
            self.sound_refusal.settled(&self.facts, id, outcome);
        }
        self.deadlock_free.settled(&self.facts, id, outcome);
        if outcome != Settlement::Granted {
            self.observe_finish(id);
        }
    }

    /// Marks the attempt as finished: from now on its keys are due to be removed.
    fn observe_finish(&mut self, id: AttemptId) {
        let now_ns = self.facts.now_ns;
        let Some(attempt) = self.facts.leases.get_mut(id) else { return };
        attempt.finished_ns = attempt.finished_ns.min(now_ns);
        self.continuity.finished(id);
        if self.facts.setting.is_judged(id.client) {
            self.tidy.finished(&self.facts, id);
        }
    }

    fn observe_write(&mut self, by: AttemptId, kind: &EventKind) {
        let &EventKind::WriteApplied { based_on, version, fencing_token, .. } = kind else {
            unreachable!("not a write")
        };
        let Self { facts, writes, exclusive_section, continuity, .. } = self;
        if !facts.setting.is_judged(by.client) {
            return;
        }
        let blame = |pair| writes.blamed(facts, (exclusive_section, continuity), pair);
        self.no_lost_update.applied(facts, by, (based_on, version), blame);
        self.fenced_order.applied(facts, by, fencing_token, blame);
    }
}
