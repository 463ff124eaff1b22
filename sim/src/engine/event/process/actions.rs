//! Actions of a process for its lock client.

use lock_judge::history::{AttemptId, BasedOn, EventKind, NodeIds, Settlement};
use lock_judge::scenario::{AttemptStep, Span};
use redlock_protocol::Votes;

use super::{Held, Process, Task, Waiting};
use crate::choice::{Choice, Label};
use crate::plan::{Plan, steps};
use crate::subject::{
    Action, Delivered, FreshAttempt, Now, Profile, Request, Route, UNNUMBERED, token_of,
};
use crate::terms;
use crate::world::{Arrival, Direction, Packet, Unsent, World};

impl Process {
    /// Carries out an action of the subject; returns false if a fault stops the process before it.
    pub(super) fn act(&mut self, world: &mut World, task: usize, action: Action) -> bool {
        if world.plan.has_points && !self.reach_action(world, task, action) {
            self.action = Some((task, action));
            return false;
        }
        match action {
            Action::AttemptDue => self.begin(world, task),
            Action::Write { route, attempt, resource, kind, token } => {
                let command = UNNUMBERED;
                self.write(world, route, Request { command, attempt, resource, kind, token });
            }
            Action::Decided { attempt, counted, deadline_ns } => {
                self.tasks[task].to_deliver = Some(attempt);
                let counted = self.members_at(counted);
                self.decided(world, task, attempt, (counted, deadline_ns));
            }
            Action::AttemptSettled { attempt, outcome } => {
                world.record(EventKind::AttemptSettled { attempt, outcome });
            }
            Action::Extending { attempt, t1_ns, ttl_ns } => {
                self.tasks[task].extension_began(world, attempt, t1_ns, ttl_ns);
            }
            Action::ExtensionSettled { attempt, extended } => {
                self.extension_settled(world, task, attempt, extended);
            }
            Action::Dial(route) => self.dial(world, route),
            Action::Close(route) => self.close(world, route, Unsent::Retransmitted),
            Action::Reset(route) => self.close(world, route, Unsent::Dropped),
            Action::GaveUp => {
                let task = &mut self.tasks[task];
                if matches!(task.waiting, Waiting::ForLease { .. }) {
                    task.without_lease(world);
                }
            }
            Action::Lost { attempt, reason } => {
                world.record(EventKind::LostDelivered { attempt, reason });
                let held = self.tasks[task].held.as_mut();
                if let Some(held) = held.filter(|held| held.attempt == attempt) {
                    held.lost = true;
                }
            }
        }
        true
    }

    /// Begins the faults that wait for the action; returns true if the process may continue.
    fn reach_action(&self, world: &mut World, task: usize, action: Action) -> bool {
        match action {
            Action::AttemptDue => {
                self.reach(world, self.tasks[task].next_attempt(), AttemptStep::T1, None)
            }
            Action::Write { route, attempt, kind, .. } => match steps::written(kind.op()) {
                Some(step) => self.reach(world, attempt, step, Some(self.member(route.node))),
                None => true,
            },
            _ => true,
        }
    }

    fn close(&mut self, world: &mut World, route: Route, unsent: Unsent) {
        if let Some(number) = self.forget_route(route) {
            world.network.close(number, unsent);
        }
    }

    fn dial(&mut self, world: &mut World, route: Route) {
        let server = world.cluster.known(self.client, self.member(route.node));
        let host = world.plan.servers[server].host;
        let number = world.network.dial(self.host, host, route.lane, route.epoch);
        self.routes.push((route, number));
        world.send(number, Direction::Up, Arrival::Handshake);
    }

    fn begin(&mut self, world: &mut World, task: usize) {
        let attempt = self.tasks[task].next_attempt();
        let AttemptId { client, number } = attempt;
        (self.tasks[task].attempts, self.tasks[task].votes) = (number, 0);
        let original = world.plan.original(client);
        let draw = |label| Choice { attempt: number, ..Choice::of(label, original.0) };
        let drawn = AttemptId { client: original, number };
        let token = token_of(drawn, world.choices.bits(draw(Label::Token)));
        let jitter = world.choices.bits(draw(Label::Jitter));
        let now = self.now(world);
        let wanted_ttl = self.tasks[task].wanted_ttl;
        world.record(self.attempt_began(&world.plan, attempt, (wanted_ttl, now)));
        self.subject.begin(task, FreshAttempt { attempt, token, jitter }, now);
    }

    fn attempt_began(
        &self,
        plan: &Plan,
        attempt: AttemptId,
        (wanted_ttl, now): (Option<Span>, Now),
    ) -> EventKind {
        let scenario = &plan.scenario;
        let client = scenario.client(attempt.client).unwrap_or(&scenario.clients[0]);
        let ttl = wanted_ttl.unwrap_or_else(|| scenario.ttl_of(client));
        let drift = terms::drift(scenario.lock.drift);
        let drift_ns = drift.of(ttl.duration()).as_nanos() as u64;
        let Profile { nodes, expires, gives_up_drift, .. } = self.subject.profile();
        EventKind::AttemptBegan {
            attempt,
            clock: self.subject.lease_clock(),
            t1_local_ns: now.lease_ns,
            ttl_ns: if expires { ttl.0 } else { u64::MAX },
            drift_ns: if gives_up_drift { drift_ns } else { 0 },
            needed: (nodes / 2 + 1) as u8,
        }
    }

    fn write(&mut self, world: &mut World, route: Route, request: Request) {
        let Some(number) = self.connection(route) else { return };
        let command = world.clients.number_command();
        let Request { attempt, kind, .. } = request;
        let (node, op) = (self.member(route.node), kind.op());
        world.record(EventKind::Written { command, attempt, node, op });
        let message = Packet::Request(Request { command, ..request });
        world.send(number, Direction::Up, Arrival::Message(message));
    }

    fn decided(
        &mut self,
        world: &mut World,
        task: usize,
        attempt: AttemptId,
        (counted, deadline_local_ns): (NodeIds, u64),
    ) {
        let t2_local_ns = self.now(world).lease_ns;
        let outcome = Settlement::Granted;
        world.record(EventKind::GrantDecided { attempt, counted, t2_local_ns, deadline_local_ns });
        world.record(EventKind::AttemptSettled { attempt, outcome });
        self.tasks[task].drawn_token = world.resource.draw_fencing_token();
    }

    /// Delivers the lease to the application.
    pub(super) fn deliver(&mut self, world: &mut World, task: usize) {
        let now = self.now(world);
        let Some(Delivered { attempt, clock, deadline_ns, fencing_token }) =
            self.subject.deliver(task, now)
        else {
            return;
        };
        let task = &mut self.tasks[task];
        let fencing_token = fencing_token.unwrap_or(task.drawn_token);
        task.rounds = 0;
        world.record(EventKind::GrantDelivered {
            attempt,
            clock,
            deadline_local_ns: deadline_ns,
            fencing_token,
        });
        task.got_lease = true;
        if matches!(task.waiting, Waiting::ForLease { .. }) {
            task.waiting = Waiting::Nothing;
        }
        let (lost, seen, in_section) = (false, BasedOn::NOTHING, false);
        task.held = Some(Held { attempt, fencing_token, lost, seen, in_section });
        task.known_votes = Votes::default();
    }
}

impl Task {
    fn next_attempt(&self) -> AttemptId {
        AttemptId { client: self.client, number: self.attempts + 1 }
    }
}
