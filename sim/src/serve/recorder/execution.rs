//! Records the execution of requests: their effects on the lock's key, and their answers as votes.

use lock_judge::history::{Answer, EventKind, KeyEnd, NodeId, OpKind, Writer};
use redis_sim::Change;
use redis_sim::server::Touched;

use super::log::{Log, What};
use super::{Execution, Peer, Recorder, Told};
use crate::keys::writer_of;
use crate::world::key_ended;

/// The effect of a request on the lock's key.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    change: Change,
    before: Writer,
    after: Writer,
    expires_wall_ms: Option<u64>,
}

impl Recorder {
    /// Records that a request was executed. Returns the event to record when the reply is sent;
    /// `None` if the request did not concern the lock.
    pub(in crate::serve) fn executed(
        &self,
        told: Option<Told>,
        peer: &mut Peer,
        execution: Execution<'_>,
    ) -> Option<EventKind> {
        let Execution { request, touched, answer, wall_ns } = execution;
        let mut log = self.lock();
        if touched.iter().any(|it| log.key.learn(it, &self.resource)) {
            log.forget_others();
        }
        let is_key = |it: &&Touched| log.key.is(it.database, &it.key, &self.resource);
        let mine: Vec<&Touched> = touched.iter().filter(is_key).collect();
        if told.is_none() && mine.is_empty() {
            return None;
        }
        // A request that names no value is judged by what it did.
        let told = told.or_else(|| log.unasked(peer, &mine))?;
        if let Some(it) = mine.first().filter(|_| !log.key.is_known()) {
            log.executed_early(told.command, &it.key);
        }
        let outcome = self.effects(&mut log, told, peer.node, &mine);
        let Outcome { change, before, after, expires_wall_ms } = outcome;
        if change == Change::Set {
            log.timed(told.attempt, expires_wall_ms, wall_ns);
            log.granted(told.attempt, answer);
        }
        for it in &mine {
            log.stored(writer_of(it.executed.effect.after), peer, it, request);
        }
        let op = match change {
            Change::Set if before == Writer::Nobody => OpKind::Set,
            Change::Set => OpKind::GetSet,
            // An acquisition that is sent again, because the reply to the first was lost.
            Change::Retimed
                if told.op == OpKind::Set && !log.has_heard(told.attempt, peer.node) =>
            {
                OpKind::Set
            }
            Change::Retimed => OpKind::Extend,
            Change::Deleted => OpKind::Release,
            Change::Nothing => told.op,
        };
        let answer = vote(&log, told, &outcome, answer);
        let Told { command, attempt, .. } = told;
        log.push(
            &self.clock,
            What::Told(EventKind::Executed {
                command,
                attempt,
                node: peer.node,
                op,
                answer,
                changed: change != Change::Nothing,
                before,
                after,
                expires_wall_ms: expires_wall_ms.unwrap_or(u64::MAX),
            }),
        );
        Some(told.done(peer.node, op, answer))
    }

    /// Records the ends of keys, and returns the effect of all steps of the request `told`.
    fn effects(&self, log: &mut Log, told: Told, node: NodeId, mine: &[&Touched]) -> Outcome {
        let (mut change, mut before, mut after) = (Change::Nothing, None, Writer::Nobody);
        let mut expires_wall_ms = None;
        for Touched { executed, .. } in mine {
            if let Some(expired) = &executed.expired {
                log.push(&self.clock, What::Told(key_ended(node, expired)));
            }
            if let Some(ended) = &executed.ended {
                log.push(&self.clock, What::Told(deleted_by(told, key_ended(node, ended))));
            }
            before.get_or_insert(writer_of(executed.effect.before));
            after = writer_of(executed.effect.after);
            expires_wall_ms = executed.effect.expires_wall_ms;
            change = match (change, executed.effect.change) {
                // A key that is set and timed by one request is set.
                (_, Change::Nothing) | (Change::Set, Change::Retimed) => change,
                (_, other) => other,
            };
        }
        Outcome { change, before: before.unwrap_or_default(), after, expires_wall_ms }
    }
}

/// Returns the answer as a vote. Some scripts answer nothing when they have set the key, and something
/// when they have not: the effect counts. A request that changes nothing votes if it shows the attempt
/// that the key is its own: a read by the value, another by the answer that it gives when it sets the
/// key.
fn vote(log: &Log, told: Told, outcome: &Outcome, answer: Answer) -> Answer {
    let is_own = outcome.before == Writer::Attempt(told.attempt);
    let is = |yes: bool| if yes { Answer::Yes } else { Answer::No };
    match (outcome.change, told.op) {
        _ if answer == Answer::Error => answer,
        (Change::Nothing, OpKind::Set) => is(is_own && answer == log.grant_of(told.attempt)),
        (Change::Nothing, _) => answer,
        _ => Answer::Yes,
    }
}

/// Returns the event `ended` with the request `told` as its cause, if the request flushed the keys: only
/// an operator's flush is a fault.
fn deleted_by(told: Told, ended: EventKind) -> EventKind {
    match ended {
        EventKind::KeyEnded { node, writer, cause: KeyEnd::Flushed, expires_wall_ms, .. } => {
            let (cause, by) = (KeyEnd::Command, Writer::Attempt(told.attempt));
            EventKind::KeyEnded { node, writer, cause, by, expires_wall_ms }
        }
        other => other,
    }
}
