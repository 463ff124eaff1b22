//! Inputs of a process: messages, the ends of connections, and timers.

use lock_judge::history::{Answer, BasedOn, ClientId, ClockKind, EventKind, OpKind};
use lock_judge::ids::ConnectionId;
use lock_judge::scenario::AttemptStep;

use super::{Held, Process, Task, Waiting};
use crate::plan::steps;
use crate::subject::{Now, Reply, ReplyValue, Subject};
use crate::world::{ConnectionState, Due, Input, World};

impl Process {
    /// Handles an input, unless a fault stops the process before it.
    pub(super) fn take_in(&mut self, world: &mut World, input: Input) {
        if let Input::Reply(number, reply) = input
            && world.plan.has_points
            && !self.reach_reply(world, number, reply)
        {
            return;
        }
        world.clients.take_input(self.client);
        self.is_drained = false;
        let now = self.now(world);
        match input {
            Input::Connected(number) => {
                let connection = world.network.connection_mut(number);
                if connection.state == ConnectionState::Dialing {
                    connection.state = ConnectionState::Open;
                    if let Some(route) = self.route(number) {
                        self.subject.handle_connected(route, now);
                    }
                }
            }
            Input::Changed(number, resource) => {
                if let Some(route) = self.route(number) {
                    self.subject.handle_key_changed(route, resource, now);
                }
            }
            Input::Forgot(number) => {
                if let Some(route) = self.route(number) {
                    self.subject.handle_keys_lost(route, now);
                    self.tell_eligibility(world);
                }
            }
            Input::Closed(number) | Input::Reset(number) => {
                world.network.connection_mut(number).state = ConnectionState::Closed;
                if let Some(route) = self.route(number) {
                    self.forget_route(route);
                    self.subject.handle_closed(route, now);
                }
            }
            Input::Reply(number, reply) => self.take_reply(world, number, reply, now),
            Input::StoreServed(client) => {
                if let Some(task) = self.task_of(client)
                    && task.waiting == Waiting::ForWrite
                {
                    task.waiting = Waiting::Nothing;
                }
            }
            Input::StoreVersion(client, version) => {
                if let Some(task) = self.task_of(client) {
                    task.take_version(world, version);
                }
            }
        }
    }

    /// Begins the faults that wait for the reply, and counts a vote; returns true if the process
    /// may continue.
    fn reach_reply(&mut self, world: &mut World, number: ConnectionId, reply: Reply) -> bool {
        let attempt = reply.attempt;
        let Some(task) = self.tasks.iter().position(|task| task.client == attempt.client) else {
            return true;
        };
        let Some(step) = steps::replied(reply.op) else { return true };
        let is_vote = reply.op == OpKind::Set;
        if is_vote && attempt.number != self.tasks[task].attempts {
            return true;
        }
        let node = world.plan.node_at(world.network.connection(number).server);
        if !self.reach(world, attempt, step, Some(node)) {
            return false;
        }
        if !is_vote {
            return true;
        }
        let yes = reply.answer() == Answer::Yes;
        if yes
            && self.tasks[task].votes + 1 == self.quorum
            && !self.reach(world, attempt, AttemptStep::T2, None)
        {
            return false;
        }
        self.tasks[task].votes += usize::from(yes);
        true
    }

    fn take_reply(&mut self, world: &mut World, number: ConnectionId, reply: Reply, now: Now) {
        let node = world.plan.node_at(world.network.connection(number).server);
        let Reply { command, attempt, op, value } = reply;
        let answer = reply.answer();
        world.record(EventKind::Delivered { command, attempt, node, op, answer });
        if let Some(route) = self.route(number) {
            self.is_drained = !self.subject.handle_reply(route, reply, now);
        }
        if op == OpKind::Introduce || matches!(value, ReplyValue::NotServing) {
            self.tell_eligibility(world);
        }
    }

    fn task_of(&mut self, client: ClientId) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.client == client)
    }

    pub(super) fn expire_timer(&mut self, world: &mut World) -> bool {
        self.subject_due_boot_ns = self.subject.poll_timeout_boot_ns();
        let Some(due_ns) = self.subject_due_boot_ns else { return false };
        let now = self.now(world);
        if due_ns > now.boot_ns {
            return false;
        }
        self.is_drained = false;
        self.subject.handle_timeout(now);
        true
    }

    pub(super) fn arm_timer(&mut self, world: &mut World) {
        let clocks = &world.clocks[self.host];
        let boot = |at_ns| clocks.true_at(ClockKind::Boot, at_ns);
        let due = |task: &Task| match task.waiting {
            Waiting::ForLease { cancel_at_true_ns } => cancel_at_true_ns,
            Waiting::UntilBoot(at_ns) | Waiting::UntilBootOrLoss(at_ns) => boot(at_ns),
            Waiting::UntilTrue(at_ns) => Some(at_ns),
            Waiting::ForExtension
            | Waiting::ForLoss
            | Waiting::ForVersion
            | Waiting::ForWrite
            | Waiting::Nothing => None,
        };
        let own = self.tasks.iter().filter_map(due).min();
        let subject = self.subject_due_boot_ns.and_then(boot);
        let at_ns = own.unwrap_or(u64::MAX).min(subject.unwrap_or(u64::MAX));
        if at_ns == self.timer_at_ns && at_ns > world.now_ns() {
            return;
        }
        self.timer_serial += 1;
        self.timer_at_ns = at_ns;
        if at_ns != u64::MAX {
            let what = Due::Timer { client: self.client, serial: self.timer_serial };
            world.agenda.schedule(at_ns.max(world.now_ns()), what);
        }
    }

    /// Records what the client knows of the keys of leases that it watches, if that has changed.
    pub(super) fn tell_votes(&mut self, world: &mut World) {
        for task in self.numbers() {
            let Some(Held { attempt, lost: false, .. }) = self.tasks[task].held else { continue };
            let now = self.now(world);
            let Some(votes) = self.subject.watched_votes(task, now) else { continue };
            if votes != self.tasks[task].known_votes {
                self.tasks[task].known_votes = votes;
                let [confirmed, possible] =
                    [votes.confirmed, votes.possible].map(|places| self.members_at(places));
                world.record(EventKind::VotesChanged { attempt, confirmed, possible });
            }
        }
    }

    /// Records the nodes whose votes begin or cease to count for the client.
    pub(super) fn tell_eligibility(&mut self, world: &mut World) {
        let Subject::Redlock(subject) = &self.subject else { return };
        for place in self.eligible_from_ns.ids() {
            let from_local_ns = subject.eligible_from_ns(place);
            let known_ns = core::mem::replace(&mut self.eligible_from_ns[place], from_local_ns);
            if known_ns != from_local_ns {
                let (client, node) = (self.client, self.members[place]);
                world.record(EventKind::Eligible { client, node, from_local_ns });
            }
        }
    }
}

impl Task {
    fn take_version(&mut self, world: &mut World, version: u32) {
        if let Some(held) = &mut self.held
            && self.waiting == Waiting::ForVersion
        {
            held.seen = BasedOn::on(version);
            let attempt = held.attempt;
            self.waiting = Waiting::Nothing;
            world.record(EventKind::ReadDone { attempt, version });
        }
    }
}
