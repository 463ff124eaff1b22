//! Translates a client's reports into events of the history.

use std::sync::Arc;
use std::time::Duration;

use lock_judge::history::{
    Answer, AttemptId, ClientId, ClockKind, EventKind, NodeId, NodeIds, RoundId, Settlement,
};
use lock_judge::ids::ResourceId;
use lock_judge::scenario::AttemptStep;
use redlock_client::OwnerToken;
use redlock_client::observe::{self, Event, Instant, Nodes, Observer, Operation};
use redlock_protocol::{BootInstant, NodeCount};

use super::shared::{ClientHost, Line, Shared, State};
use crate::subject::{CommandKind, Request, UNNUMBERED, lost, settlement};
use crate::terms;

/// Observer of the client at a place.
pub(super) struct HistoryObserver {
    pub(super) shared: Arc<Shared>,
    pub(super) client: ClientId,
}

impl Observer for HistoryObserver {
    fn event(&self, event: &Event<'_>) {
        let mut state = self.shared.lock();
        // Events from the destructors of a dead process are ignored.
        if state.world.clients.is_dead(self.client) {
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
    /// Handles an event during the warm-up. Nothing is recorded: only the client's knowledge at the
    /// end of the warm-up matters.
    fn warm_up(&self, state: &mut State, event: &Event<'_>) {
        let client = self.client(state);
        match *event {
            Event::Answered { node, .. } | Event::ConnectFailed { node, .. } => {
                client.introduced.insert(self.node(node));
            }
            Event::Eligible { node, from, .. } => {
                let from_local_ns =
                    from.map_or(u64::MAX, |from| BootInstant::from(from).as_nanos());
                client.eligible_from_ns[self.node(node)] = from_local_ns;
            }
            _ => {}
        }
    }

    fn tell(&self, state: &mut State, event: &Event<'_>) {
        match *event {
            Event::AttemptBegan { owner, t1, ttl, .. } => {
                self.attempt_began(state, owner, BootInstant::from(t1), ttl);
            }
            Event::Written { node, operation, owner, .. } => {
                self.written(state, self.node(node), operation, owner);
            }
            Event::Answered { node, answer, .. } => self.answered(state, self.node(node), answer),
            Event::Eligible { node, from, .. } => self.eligible(state, self.node(node), from),
            Event::Decided { owner, counted, t2, deadline, .. } => {
                self.decided(
                    state,
                    owner,
                    counted,
                    (BootInstant::from(t2), BootInstant::from(deadline)),
                );
            }
            Event::AttemptFailed { owner, reason, .. } => {
                let (attempt, outcome) = (self.attempt(state, owner), settlement(reason.into()));
                state.record(EventKind::AttemptSettled { attempt, outcome });
            }
            Event::Delivered { owner, deadline, .. } => {
                self.delivered(state, owner, BootInstant::from(deadline));
            }
            Event::ExtensionBegan { owner, t1, ttl, .. } => {
                self.extension_began(state, owner, BootInstant::from(t1), ttl);
            }
            Event::Extended { owner, counted, deadline, .. } => {
                self.extension_settled(state, owner, Some((counted, BootInstant::from(deadline))));
            }
            Event::ExtensionFailed { owner, .. } => self.extension_settled(state, owner, None),
            Event::Lost { owner, reason, .. } => {
                let attempt = self.attempt(state, owner);
                self.client(state).holds = None;
                state.record(EventKind::LostDelivered { attempt, reason: lost(reason) });
            }
            Event::ReleaseCalled { owner, .. } => {
                let attempt = self.attempt(state, owner);
                self.client(state).holds = None;
                state.record(EventKind::ReleaseCalled { attempt });
            }
            _ => {}
        }
    }

    fn attempt_began(&self, state: &mut State, owner: OwnerToken, t1: BootInstant, ttl: Duration) {
        let client = self.client(state);
        let number = client.attempts.len() as u16 + 1;
        let attempt = AttemptId { client: self.client, number };
        client.attempts.insert(*owner.as_bytes(), attempt);
        (client.attempt, client.votes) = (number, 0);
        let plan = &self.shared.plan;
        state.reach(attempt, AttemptStep::T1, None);
        let nodes = plan.members(self.client).len();
        let nodes = NodeCount::new(nodes).expect("a valid number of nodes");
        state.record(EventKind::AttemptBegan {
            attempt,
            clock: ClockKind::Boot,
            t1_local_ns: t1.as_nanos(),
            ttl_ns: ttl.as_nanos() as u64,
            drift_ns: terms::drift(plan.scenario.lock.drift).of(ttl).as_nanos() as u64,
            needed: nodes.quorum() as u8,
        });
    }

    /// Notes a request that the client announces. Its number is assigned when its bytes are sent.
    fn written(
        &self,
        state: &mut State,
        node: NodeId,
        operation: Operation,
        owner: Option<OwnerToken>,
    ) {
        // An introduction belongs to no attempt; it has the number 0.
        let nobody = AttemptId { client: self.client, number: 0 };
        let attempt = owner.map_or(nobody, |owner| self.attempt(state, owner));
        let token = owner.unwrap_or(OwnerToken::from_bytes([0; OwnerToken::LENGTH]));
        let kind = kind_of(operation);
        let line = self.line(state, node).expect("commands are written on open connections");
        let (command, resource) = (UNNUMBERED, ResourceId::default());
        line.announced.push_back(Request { command, attempt, resource, kind, token });
    }

    fn answered(&self, state: &mut State, node: NodeId, answer: observe::Answer) {
        let request = self.line(state, node).and_then(|line| line.asked.pop_front());
        let Some(Request { command, attempt, kind, .. }) = request else { return };
        let (op, answer) = (kind.op(), answer_of(answer));
        state.record(EventKind::Delivered { command, attempt, node, op, answer });
    }

    fn eligible(&self, state: &mut State, node: NodeId, from: Option<Instant>) {
        let from_local_ns = from.map_or(u64::MAX, |from| BootInstant::from(from).as_nanos());
        self.client(state).eligible_from_ns[node] = from_local_ns;
        let client = self.client;
        state.record(EventKind::Eligible { client, node, from_local_ns });
    }

    fn decided(
        &self,
        state: &mut State,
        owner: OwnerToken,
        counted: Nodes,
        (t2, deadline): (BootInstant, BootInstant),
    ) {
        let attempt = self.attempt(state, owner);
        state.record(EventKind::GrantDecided {
            attempt,
            counted: self.nodes(counted),
            t2_local_ns: t2.as_nanos(),
            deadline_local_ns: deadline.as_nanos(),
        });
        state.record(EventKind::AttemptSettled { attempt, outcome: Settlement::Granted });
        self.draw_fencing_token(state);
        self.client(state).to_deliver = Some(attempt);
    }

    fn delivered(&self, state: &mut State, owner: OwnerToken, deadline: BootInstant) {
        let attempt = self.attempt(state, owner);
        let client = self.client(state);
        (client.to_deliver, client.rounds) = (None, 0);
        (client.got_lease, client.holds) = (true, Some(attempt));
        let fencing_token = client.fencing_token;
        state.record(EventKind::GrantDelivered {
            attempt,
            clock: ClockKind::Boot,
            deadline_local_ns: deadline.as_nanos(),
            fencing_token,
        });
    }

    fn extension_began(
        &self,
        state: &mut State,
        owner: OwnerToken,
        t1: BootInstant,
        ttl: Duration,
    ) {
        let attempt = self.attempt(state, owner);
        let client = self.client(state);
        client.rounds += 1;
        let round = RoundId(client.rounds);
        let (t1_local_ns, ttl_ns) = (t1.as_nanos(), ttl.as_nanos() as u64);
        state.record(EventKind::ExtensionBegan { attempt, round, t1_local_ns, ttl_ns });
    }

    /// Records the result of an extension. If the application holds the lease, it receives the new
    /// deadline.
    fn extension_settled(
        &self,
        state: &mut State,
        owner: OwnerToken,
        extended: Option<(Nodes, BootInstant)>,
    ) {
        let attempt = self.attempt(state, owner);
        let (counted, deadline_local_ns) = extended
            .map_or((NodeIds::EMPTY, 0), |(counted, deadline)| {
                (self.nodes(counted), deadline.as_nanos())
            });
        let extended = extended.is_some();
        let client = self.client(state);
        let (round, hears) = (RoundId(client.rounds), extended && client.holds == Some(attempt));
        state.record(EventKind::ExtensionSettled {
            attempt,
            round,
            extended,
            counted,
            deadline_local_ns,
        });
        if hears {
            let clock = ClockKind::Boot;
            state.record(EventKind::ExtensionDelivered { attempt, clock, deadline_local_ns });
        }
    }

    /// Draws the fencing token at the grant, so that tokens have the order of grants.
    fn draw_fencing_token(&self, state: &mut State) {
        let token = state.world.resource.draw_fencing_token();
        self.client(state).fencing_token = token;
    }

    /// Returns the attempt with this token; the attempt has begun.
    fn attempt(&self, state: &mut State, owner: OwnerToken) -> AttemptId {
        self.client(state).attempts[owner.as_bytes()]
    }

    /// Returns the node of the cluster at a place in the client's own list.
    fn node(&self, place: usize) -> NodeId {
        self.shared.plan.members(self.client)[place]
    }

    /// Returns the nodes of the cluster at places in the client's own list.
    fn nodes(&self, places: Nodes) -> NodeIds {
        places.iter().map(|place| self.node(place)).collect()
    }

    fn client<'a>(&self, state: &'a mut State) -> &'a mut ClientHost {
        &mut state.clients[self.client]
    }

    /// Returns the connection to a node, if one is open.
    fn line<'a>(&self, state: &'a mut State, node: NodeId) -> Option<&'a mut Line> {
        let number = self.client(state).connected[node]?;
        state.lines.get_mut(&number)
    }
}

fn kind_of(operation: Operation) -> CommandKind {
    match operation {
        Operation::Extend => CommandKind::Extend { ttl_ms: 0 },
        Operation::Introduce => CommandKind::Introduce,
        Operation::Look => CommandKind::Look,
        Operation::Read => CommandKind::Read,
        Operation::Release => CommandKind::CompareAndDelete,
        Operation::Set => CommandKind::Set { ttl_ms: None },
        Operation::TimeLeft => CommandKind::TimeLeft,
        _ => unreachable!("the client has seven operations"),
    }
}

fn answer_of(answer: observe::Answer) -> Answer {
    match answer {
        observe::Answer::Error => Answer::Error,
        observe::Answer::No => Answer::No,
        observe::Answer::Yes => Answer::Yes,
        _ => unreachable!("the client knows three answers"),
    }
}
