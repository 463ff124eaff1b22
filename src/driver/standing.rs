//! State of the nodes: for errors, for health reports, and for the end of a client.

use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

#[cfg(feature = "testing")]
use redlock_protocol::LockId;
use redlock_protocol::{Ballot, BootInstant, NodeIndex, ReleaseOutcome, ResourceId};

use super::{Driver, State, Waiter};
use crate::error::{AcquireError, AcquireErrorKind, LostReason, NodeAnswer, NodeVerdict};
use crate::health::{Health, NodeHealth};

impl Driver {
    /// Returns each node's answer to an attempt on `resource`; empty if there was none.
    pub(super) fn node_answers(
        &self,
        state: &State,
        resource: ResourceId,
        ballot: Option<Ballot>,
    ) -> Vec<NodeAnswer> {
        let Some(ballot) = ballot else {
            return Vec::new();
        };
        let answer = |node: NodeIndex| {
            let (verdict, after) = ballot.of(node);
            let mut answer = self.node_answer(state, node, verdict.into(), after);
            if answer.verdict == NodeVerdict::Taken {
                let hidden = state.nodes[node.get()].hidden_holder.as_ref();
                let hidden = hidden.filter(|(hidden, _)| *hidden == resource);
                answer.error = hidden.map(|(_, error)| Arc::clone(error));
            }
            answer
        };
        state.machine.nodes().iter().map(answer).collect()
    }

    /// Returns the answers of the nodes that have not confirmed a release.
    pub(crate) fn unconfirmed(&self, outcome: ReleaseOutcome) -> Vec<NodeAnswer> {
        self.turn(|state, _| {
            let answer = |node| {
                let is_error = outcome.failed.contains(node);
                let verdict = if is_error { NodeVerdict::Error } else { NodeVerdict::Silent };
                self.node_answer(state, node, verdict, Duration::ZERO)
            };
            outcome.unconfirmed.iter().map(answer).collect()
        })
    }

    fn node_answer(
        &self,
        state: &State,
        node: NodeIndex,
        verdict: NodeVerdict,
        after: Duration,
    ) -> NodeAnswer {
        NodeAnswer {
            place: node.get(),
            node: self.endpoint(node).to_string(),
            verdict,
            after,
            error: state.nodes[node.get()].last_error.clone(),
            standing: state.machine.standing(node, state.clock).into(),
        }
    }

    /// Returns the state of the nodes, as far as it is known without asking them.
    pub(crate) fn health(self: &Arc<Self>) -> Health {
        self.call(|state, now| {
            let machine = &state.machine;
            let of = |node: NodeIndex| {
                let entry = &state.nodes[node.get()];
                NodeHealth {
                    place: node.get(),
                    node: self.endpoint(node).to_string(),
                    connected: machine.is_open(node),
                    standing: machine.standing(node, now).into(),
                    round_trip: Some(machine.round_trip(node)).filter(|it| !it.is_zero()),
                    releases_owed: machine.owed(node),
                    last_error: entry.last_error.clone(),
                    last_error_age: entry.last_error.as_ref().map(|_| now.since(entry.error_at)),
                }
            };
            Health {
                nodes: machine.nodes().iter().map(of).collect(),
                has_quorum: machine.has_quorum(now),
                is_closed: state.closed,
            }
        })
    }

    /// Closes the client: ends every use of a lock and refuses later acquisitions.
    pub(crate) fn shut(&self) {
        self.turn(|state, now| {
            (state.closed, state.closing) = (true, true);
            for lock in state.uses.under_way() {
                self.tell_failed(state, lock, AcquireErrorKind::Closed, now);
                self.tell_lost(state, lock, LostReason::Closed, now);
                state.uses.close(lock, &mut state.wakes);
                state.machine.release(lock, now);
            }
        });
    }

    /// Ends the lease of `lock` if it is alive, as its loss for `reason` would, and releases it.
    #[cfg(feature = "testing")]
    pub(crate) fn lose(&self, lock: LockId, reason: LostReason) {
        self.turn(|state, now| {
            if state.uses.alive(lock).is_some() {
                self.tell_lost(state, lock, reason, now);
                state.uses.end_lease(lock, reason, &mut state.wakes);
                state.machine.release(lock, now);
            }
        });
    }

    /// Ready when no reply is awaited and no release is owed any more, at the latest at `until`.
    pub(crate) fn poll_shut(
        &self,
        waiter: &mut Option<Waiter>,
        until: BootInstant,
        context: &Context<'_>,
    ) -> Poll<()> {
        let idle = |state: &mut State, _| {
            if state.machine.is_idle() { Poll::Ready(()) } else { Poll::Pending }
        };
        self.poll_waiting(waiter, until, context, idle).map(drop)
    }

    /// Ready when a lock can be acquired; at `until`, ready with the reason why none can.
    pub(crate) fn poll_ready(
        &self,
        waiter: &mut Option<Waiter>,
        until: BootInstant,
        context: &Context<'_>,
    ) -> Poll<Result<(), AcquireError>> {
        let ready = self.poll_waiting(waiter, until, context, |state, now| {
            let there = state.closed || state.machine.has_quorum(now);
            if there { Poll::Ready(state.closed) } else { Poll::Pending }
        });
        ready.map(|ready| match ready {
            Some(false) => Ok(()),
            Some(true) => Err(AcquireError::new(AcquireErrorKind::Closed)),
            None => Err(self.why_not_ready()),
        })
    }

    fn why_not_ready(&self) -> AcquireError {
        self.turn(|state, now| {
            let nodes = state.machine.nodes();
            let away = nodes.iter().filter(|&node| !state.machine.is_open(node));
            let answer =
                |node| self.node_answer(state, node, NodeVerdict::NotAsked, Duration::ZERO);
            let away: Vec<_> = away.map(answer).collect();
            if away.len() > nodes.tolerated() {
                return AcquireError::new(AcquireErrorKind::TooFewNodes).after_attempts(0, away);
            }
            let retry_at = state.machine.quorum_from();
            AcquireError::new(AcquireErrorKind::Quarantined).until(retry_at.map(|at| at.since(now)))
        })
    }

    /// Returns the nodes that have unanswered commands, or are owed releases.
    pub(crate) fn unsettled(&self) -> Vec<NodeAnswer> {
        self.turn(|state, _| {
            let open = state.machine.nodes().iter().filter(|&it| !state.machine.is_settled(it));
            let answer = |node| self.node_answer(state, node, NodeVerdict::Silent, Duration::ZERO);
            open.map(answer).collect()
        })
    }
}
