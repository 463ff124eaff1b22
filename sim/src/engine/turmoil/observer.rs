//! Writes down what a client tells of itself, in the words of the history.

use std::sync::Arc;

use redlock_client::OwnerToken;
use redlock_client::observe::{self, Event, NodeMask, Observer, Operation};
use redlock_client::protocol::{BootInstant, Drift, NodeCount};

use super::world::{State, World};
use crate::history::{Answer, AttemptId, ClockKind, EventKind, Settlement};
use crate::scenario::{Checks, Point};
use crate::subject::{Ask, Request, settlement};

/// The observer of the client at a place.
pub(super) struct HistoryObserver {
    pub(super) world: Arc<World>,
    pub(super) client: u8,
}

impl Observer for HistoryObserver {
    fn event(&self, event: &Event<'_>) {
        let mut state = self.world.lock();
        // What the destructors of a dead process say is said by nobody.
        if state.stage.clients[usize::from(self.client)].dead {
            return;
        }
        if state.is_warming(self.client) {
            self.warm_up(&mut state, event);
        } else {
            self.tell(&mut state, event);
        }
    }
}

impl HistoryObserver {
    /// A client that warms up has no history: what counts is what it has learnt at the end of it.
    fn warm_up(&self, state: &mut State, event: &Event<'_>) {
        let client = &mut state.clients[usize::from(self.client)];
        match *event {
            Event::Answered { node, .. } | Event::ConnectFailed { node, .. } => {
                client.introduced |= 1 << node.get();
            }
            Event::Eligible { node, from, .. } => {
                let from_local_ns = from.map_or(u64::MAX, BootInstant::as_nanos);
                client.eligible_from_ns[node.get()] = from_local_ns;
            }
            _ => {}
        }
    }

    fn tell(&self, state: &mut State, event: &Event<'_>) {
        match *event {
            Event::AttemptBegan { owner, t1, ttl, .. } => {
                let client = &mut state.clients[usize::from(self.client)];
                let number = client.attempts.len() as u16 + 1;
                let attempt = AttemptId { client: self.client, number };
                client.attempts.insert(*owner.as_bytes(), attempt);
                (client.attempt, client.votes) = (number, 0);
                state.reach(&self.world.plan, attempt, Point::T1, None);
                let drift = Drift::from(self.world.plan.scenario.lock.drift);
                let nodes =
                    NodeCount::new(self.world.plan.node_count).expect("a valid number of nodes");
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
                let attempt = self.attempt(state, owner);
                let token = owner.unwrap_or(OwnerToken::from_bytes([0; OwnerToken::LENGTH]));
                let ask = ask_of(operation);
                let number = state.clients[usize::from(self.client)].connected[node.get()];
                let line = number.and_then(|it| state.lines.get_mut(&it));
                let line = line.expect("commands are written on open connections");
                line.announced.push_back(Request { command: u32::MAX, attempt, ask, token });
            }
            Event::Answered { node, answer, .. } => {
                let number = state.clients[usize::from(self.client)].connected[node.get()];
                let line = number.and_then(|it| state.lines.get_mut(&it));
                let Some(Request { command, attempt, ask, .. }) =
                    line.and_then(|it| it.asked.pop_front())
                else {
                    return;
                };
                let (node, answer) = (node.get() as u8, answer_of(answer));
                let op = ask.op();
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
                state.clients[usize::from(self.client)].to_deliver = Some(attempt);
            }
            Event::AttemptFailed { owner, reason, .. } => {
                let attempt = self.attempt(state, Some(owner));
                let outcome = settlement(reason);
                state.record(EventKind::AttemptSettled { attempt, outcome });
            }
            Event::Delivered { owner, deadline, .. } => {
                let attempt = self.attempt(state, Some(owner));
                let client = &mut state.clients[usize::from(self.client)];
                (client.to_deliver, client.rounds) = (None, 0);
                let fencing_token = state.clients[usize::from(self.client)].fencing_token;
                let (clock, deadline_local_ns) = (ClockKind::Boot, deadline.instant().as_nanos());
                state.record(EventKind::GrantDelivered {
                    attempt,
                    clock,
                    deadline_local_ns,
                    fencing_token,
                });
                let client = &mut state.clients[usize::from(self.client)];
                (client.got_lease, client.holds) = (true, Some(attempt));
            }
            Event::ExtensionBegan { owner, t1, ttl, .. } => {
                let attempt = self.attempt(state, Some(owner));
                let client = &mut state.clients[usize::from(self.client)];
                client.rounds += 1;
                let round = client.rounds;
                let (t1_local_ns, ttl_ns) = (t1.as_nanos(), ttl.as_nanos() as u64);
                state.record(EventKind::ExtensionBegan { attempt, round, t1_local_ns, ttl_ns });
            }
            Event::Extended { owner, counted, deadline, .. } => {
                let attempt = self.attempt(state, Some(owner));
                let deadline_local_ns = deadline.instant().as_nanos();
                self.extension_settled(state, attempt, Some((counted, deadline_local_ns)));
            }
            Event::ExtensionFailed { owner, .. } => {
                let attempt = self.attempt(state, Some(owner));
                self.extension_settled(state, attempt, None);
            }
            Event::Lost { owner, .. } => {
                let attempt = self.attempt(state, Some(owner));
                state.clients[usize::from(self.client)].holds = None;
                state.record(EventKind::LostDelivered { attempt });
            }
            Event::ReleaseCalled { owner, .. } => {
                let attempt = self.attempt(state, Some(owner));
                state.clients[usize::from(self.client)].holds = None;
                state.record(EventKind::ReleaseCalled { attempt });
            }
            _ => {}
        }
    }

    /// Whoever has the lease hears of its new deadline.
    fn extension_settled(
        &self,
        state: &mut State,
        attempt: AttemptId,
        extended: Option<(NodeMask, u64)>,
    ) {
        let round = state.clients[usize::from(self.client)].rounds;
        let (counted, deadline_local_ns) =
            extended.map_or((0, 0), |(counted, deadline_ns)| (counted.bits(), deadline_ns));
        let extended = extended.is_some();
        state.record(EventKind::ExtensionSettled {
            attempt,
            round,
            extended,
            counted,
            deadline_local_ns,
        });
        if extended && state.clients[usize::from(self.client)].holds == Some(attempt) {
            let clock = ClockKind::Boot;
            state.record(EventKind::ExtensionDelivered { attempt, clock, deadline_local_ns });
        }
    }

    /// The order of tokens is the order of grants.
    fn draw_fencing_token(&self, state: &mut State) {
        let token = match self.world.plan.scenario.store.checks {
            Checks::TokenOnOpenAndWrite | Checks::TokenOnWrite => {
                state.stage.fencing_tokens += 1;
                state.stage.fencing_tokens
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

fn ask_of(operation: Operation) -> Ask {
    match operation {
        Operation::Extend => Ask::Extend { ttl_ms: 0 },
        Operation::Introduce => Ask::Introduce,
        Operation::Release => Ask::CompareAndDelete,
        Operation::Set => Ask::Set { ttl_ms: None },
        _ => unreachable!("the client has four operations"),
    }
}

fn answer_of(answer: observe::Answer) -> Answer {
    match answer {
        observe::Answer::Error => Answer::Error,
        observe::Answer::No => Answer::No,
        observe::Answer::Yes => Answer::Yes,
    }
}
