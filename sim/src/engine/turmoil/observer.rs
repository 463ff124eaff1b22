//! Writes down what a client tells of itself, in the words of the history.

use std::sync::Arc;

use redlock_client::OwnerToken;
use redlock_client::observe::{self, Event, Observer, Operation};
use redlock_client::protocol::{BootInstant, Drift, NodeCount};

use super::world::{State, Told, World};
use crate::history::{Answer, AttemptId, ClockKind, EventKind, OpKind, Settlement};
use crate::scenario::Checks;
use crate::subject::settlement;

/// The observer of the client at a place.
pub(super) struct HistoryObserver {
    pub(super) world: Arc<World>,
    pub(super) client: u8,
}

impl Observer for HistoryObserver {
    fn event(&self, event: &Event<'_>) {
        let mut state = self.world.lock();
        // What the destructors of a dead process say is said by nobody.
        if !state.clients[usize::from(self.client)].dead {
            self.tell(&mut state, event);
        }
    }
}

impl HistoryObserver {
    fn tell(&self, state: &mut State, event: &Event<'_>) {
        match *event {
            Event::AttemptBegan { owner, t1, ttl, .. } => {
                let client = &mut state.clients[usize::from(self.client)];
                let number = client.attempts.len() as u16 + 1;
                let attempt = AttemptId { client: self.client, number };
                client.attempts.insert(*owner.as_bytes(), attempt);
                let drift = Drift::from(self.world.plan.scenario.lock.drift);
                let nodes = NodeCount::new(state.nodes.len()).expect("a valid number of nodes");
                state.record(EventKind::AttemptBegan {
                    attempt,
                    clock: ClockKind::Boot,
                    t1_local_ns: t1.as_nanos(),
                    ttl_ns: ttl.as_nanos() as u64,
                    drift_ns: drift.of(ttl).as_nanos() as u64,
                    needed: nodes.quorum() as u8,
                });
            }
            Event::Written { node, operation, owner, .. } => {
                let (attempt, op) = (self.attempt(state, owner), op_of(operation));
                let told = Told { command: state.command(), attempt, op };
                let Told { command, .. } = told;
                let address = state.clients[usize::from(self.client)].connected[node.get()];
                let connection = address.and_then(|it| state.connections.get_mut(&it));
                let connection = connection.expect("commands are written on open connections");
                connection.to_execute.push_back(told);
                connection.to_answer.push_back(told);
                let node = node.get() as u8;
                state.record(EventKind::Written { command, attempt, node, op });
            }
            Event::Answered { node, answer, .. } => {
                let address = state.clients[usize::from(self.client)].connected[node.get()];
                let connection = address.and_then(|it| state.connections.get_mut(&it));
                let Some(Told { command, attempt, op }) =
                    connection.and_then(|it| it.to_answer.pop_front())
                else {
                    return;
                };
                let (node, answer) = (node.get() as u8, answer_of(answer));
                state.record(EventKind::Delivered { command, attempt, node, op, answer });
            }
            Event::Eligible { node, from, .. } => {
                let from_local_ns = from.map_or(u64::MAX, BootInstant::as_nanos);
                let client = &mut state.clients[usize::from(self.client)];
                client.eligible_from_ns[node.get()] = from_local_ns;
                let (client, node) = (self.client, node.get() as u8);
                state.record(EventKind::Eligible { client, node, from_local_ns });
            }
            Event::Decided { owner, counted, t2, deadline, .. } => {
                let attempt = self.attempt(state, Some(owner));
                let (t2_local_ns, deadline_local_ns) =
                    (t2.as_nanos(), deadline.instant().as_nanos());
                let counted = counted.bits();
                state.record(EventKind::GrantDecided {
                    attempt,
                    counted,
                    t2_local_ns,
                    deadline_local_ns,
                });
                let outcome = Settlement::Granted;
                state.record(EventKind::AttemptSettled { attempt, outcome });
                self.draw_fencing_token(state);
            }
            Event::AttemptFailed { owner, reason, .. } => {
                let attempt = self.attempt(state, Some(owner));
                let outcome = settlement(reason);
                state.record(EventKind::AttemptSettled { attempt, outcome });
            }
            Event::Delivered { owner, deadline, .. } => {
                let attempt = self.attempt(state, Some(owner));
                let fencing_token = state.clients[usize::from(self.client)].fencing_token;
                let (clock, deadline_local_ns) = (ClockKind::Boot, deadline.instant().as_nanos());
                state.record(EventKind::GrantDelivered {
                    attempt,
                    clock,
                    deadline_local_ns,
                    fencing_token,
                });
                state.clients[usize::from(self.client)].got_lease = true;
            }
            Event::Lost { owner, .. } => {
                let attempt = self.attempt(state, Some(owner));
                state.record(EventKind::LostDelivered { attempt });
            }
            Event::ReleaseCalled { owner, .. } => {
                let attempt = self.attempt(state, Some(owner));
                state.record(EventKind::ReleaseCalled { attempt });
            }
            _ => {}
        }
    }

    /// The order of tokens is the order of grants.
    fn draw_fencing_token(&self, state: &mut State) {
        let token = match self.world.plan.scenario.store.checks {
            Checks::TokenOnOpenAndWrite | Checks::TokenOnWrite => {
                state.fencing_tokens += 1;
                state.fencing_tokens
            }
            Checks::CompareAndSetOwner | Checks::Nothing => 0,
        };
        state.clients[usize::from(self.client)].fencing_token = token;
    }

    /// Whose token it is; an introduction has none and belongs to number 0.
    fn attempt(&self, state: &State, owner: Option<OwnerToken>) -> AttemptId {
        let nobody = AttemptId { client: self.client, number: 0 };
        let attempts = &state.clients[usize::from(self.client)].attempts;
        owner.map_or(nobody, |owner| attempts[owner.as_bytes()])
    }
}

fn op_of(operation: Operation) -> OpKind {
    match operation {
        Operation::Extend => OpKind::Extend,
        Operation::Introduce => OpKind::Introduce,
        Operation::Release => OpKind::Release,
        Operation::Set => OpKind::Set,
        _ => unreachable!("the client has three operations"),
    }
}

fn answer_of(answer: observe::Answer) -> Answer {
    match answer {
        observe::Answer::Error => Answer::Error,
        observe::Answer::No => Answer::No,
        observe::Answer::Yes => Answer::Yes,
    }
}
