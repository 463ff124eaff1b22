//! A client process: a lock client, and the application that uses the lock client.
//!
//! A process runs in small pieces. Before each piece, the faults that wait for it begin. If one of
//! them stops the process, the piece runs when the process resumes.

use crate::engine::stage::plan::{Plan, PlannedOp};
use crate::engine::stage::{ClientHost, Input, Packet, QueueEntry, Stage};
use crate::history::{Answer, AttemptId, ClockKind, EventKind, HostIndex, OpKind, Settlement};
use crate::resource::BLIND;
use crate::scenario::{Checks, Point};
use crate::subject::{
    Action, Delivered, FreshAttempt, Now, Profile, ReplyValue, Request, Route, Subject, token_of,
};
use crate::world::{Arrival, Choice, ConnectionState, Direction, Label};

/// The event that the application waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    ForExtension,
    ForLease {
        cancel_at_true_ns: Option<u64>,
    },
    ForLoss,
    ForVersion,
    /// A write is under way; the wait ends early if the application learns that the lease is over.
    ForWrite,
    Nothing,
    UntilBoot(u64),
    UntilBootOrLoss(u64),
    UntilTrue(u64),
}

/// The lease that the application holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) attempt: AttemptId,
    pub(super) fencing_token: u64,
    pub(super) lost: bool,
    pub(super) seen_version: u32,
    pub(super) in_section: bool,
}

/// One client process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) place: u8,
    pub(super) host: HostIndex,
    pub(super) subject: Subject,
    pub(super) ops: Vec<PlannedOp>,
    pub(super) next_op: usize,
    pub(super) waiting: Waiting,
    attempts: u16,
    /// Number of OK replies to the current attempt that the process has read.
    votes: usize,
    quorum: usize,
    action: Option<Action>,
    pub(super) to_deliver: Option<AttemptId>,
    /// The new deadline of the extended lease, which the application has not yet learnt.
    pub(super) to_prolong: Option<(AttemptId, u64)>,
    /// Number of extensions of the lease.
    pub(super) rounds: u16,
    /// Drawn when the grant is decided, so that tokens have the order of grants.
    drawn_token: u64,
    pub(super) held: Option<Held>,
    pub(super) routes: Vec<(Route, u16)>,
    pub(super) store: u16,
    timer_serial: u32,
    timer_at_ns: u64,
    /// Time at which the subject next needs a timeout, as of the end of the latest call of `run`.
    subject_due_boot_ns: Option<u64>,
    eligible_from_ns: Vec<u64>,
    pub(super) done: bool,
    pub(super) got_lease: bool,
}

impl Process {
    pub(super) fn new(plan: &Plan, place: usize, ops: Vec<PlannedOp>) -> Self {
        let subject = plan.subject(place);
        let Profile { nodes, quorum, .. } = subject.profile();
        Self {
            place: place as u8,
            host: plan.scenario.client_host(place),
            subject,
            ops,
            next_op: 0,
            waiting: Waiting::Nothing,
            attempts: 0,
            votes: 0,
            quorum,
            action: None,
            to_deliver: None,
            to_prolong: None,
            rounds: 0,
            drawn_token: 0,
            held: None,
            routes: Vec::with_capacity(32),
            store: 0,
            timer_serial: 0,
            timer_at_ns: u64::MAX,
            subject_due_boot_ns: None,
            eligible_from_ns: Vec::with_capacity(nodes),
            done: false,
            got_lease: false,
        }
    }

    /// Resets to the beginning of a run; with `warm`, the connections to running nodes are open.
    pub(super) fn reset(&mut self, plan: &Plan, stage: &mut Stage, warm: bool) {
        self.next_op = 0;
        self.waiting = Waiting::Nothing;
        self.attempts = 0;
        self.action = None;
        self.to_deliver = None;
        self.to_prolong = None;
        self.held = None;
        self.routes.clear();
        self.timer_serial = 0;
        self.timer_at_ns = u64::MAX;
        self.done = self.ops.is_empty();
        self.got_lease = false;
        let now = self.now(stage);
        match &mut self.subject {
            Subject::GetSet(it) => it.reset(warm),
            Subject::Php(it) => it.reset(warm),
            Subject::Policy(it) => it.reset(warm),
            Subject::Redlock(it) if !warm => it.reset(now, None),
            Subject::Redlock(it) => {
                let mut introductions = [const { None }; 9];
                for (node, said) in introductions.iter_mut().enumerate().take(plan.node_count) {
                    let server = stage.server_of(plan, self.place, node as u8);
                    let running = stage.nodes[usize::from(server)].master.is_running();
                    *said = running.then(|| stage.introduction(plan, server));
                }
                it.reset(now, Some(&introductions[..plan.node_count]));
            }
        }
        let store = plan.scenario.store_host().0;
        self.store = self.open(stage, store);
        if warm {
            self.open_warm_connections(plan, stage);
        }
        self.eligible_from_ns.clear();
        if matches!(self.subject, Subject::Redlock(_)) {
            self.eligible_from_ns.resize(plan.node_count, 0);
            self.tell_eligibility(stage);
        }
    }

    /// Takes all steps that are possible now, and sets the timer for the rest.
    pub(super) fn run(&mut self, plan: &Plan, stage: &mut Stage) {
        while self.step(plan, stage) {}
        let host = &stage.clients[usize::from(self.place)];
        if host.dead {
            self.done = true;
        } else if host.stops == 0 {
            self.arm_timer(stage);
        }
    }

    /// Returns true if the process has a timer that will fire.
    pub(super) fn has_timer(&self) -> bool {
        self.timer_at_ns != u64::MAX
    }

    /// Returns true if `serial` is the number of the latest timer; older timers are ignored.
    pub(super) fn is_current_timer(&self, serial: u32) -> bool {
        serial == self.timer_serial
    }

    fn step(&mut self, plan: &Plan, stage: &mut Stage) -> bool {
        if !can_run(stage, self.place) {
            return false;
        }
        self.action = self.action.or_else(|| self.subject.poll_action());
        if let Some(action) = self.action {
            return self.act(plan, stage, action);
        }
        if let Some(attempt) = self.to_deliver {
            if self.reach(plan, stage, attempt, Point::Deliver, None) {
                self.to_deliver = None;
                self.deliver(stage);
            }
            return true;
        }
        if let Some((attempt, deadline_local_ns)) = self.to_prolong.take() {
            self.prolong(stage, attempt, deadline_local_ns);
            return true;
        }
        if self.use_lock(plan, stage) {
            return true;
        }
        if let Some(&input) = stage.clients[usize::from(self.place)].inbox.front() {
            self.take_in(plan, stage, input);
            return true;
        }
        self.expire_timer(stage)
    }

    /// Begins the faults that wait for this point; returns true if the process may continue.
    pub(super) fn reach(
        &self,
        plan: &Plan,
        stage: &mut Stage,
        attempt: AttemptId,
        point: Point,
        node: Option<u8>,
    ) -> bool {
        stage.reach_point(plan, attempt, point, node);
        can_run(stage, self.place)
    }

    fn act(&mut self, plan: &Plan, stage: &mut Stage, action: Action) -> bool {
        match action {
            Action::AttemptDue => {
                let number = self.attempts + 1;
                let attempt = AttemptId { client: self.place, number };
                if !self.reach(plan, stage, attempt, Point::T1, None) {
                    return false;
                }
                self.action = None;
                self.begin(plan, stage, attempt);
            }
            Action::Write { route, attempt, ask, token } => {
                if ask.op() == OpKind::Set
                    && !self.reach(plan, stage, attempt, Point::Write, Some(route.node))
                {
                    return false;
                }
                self.action = None;
                self.write(plan, stage, route, Request { command: 0, attempt, ask, token });
            }
            Action::Decided { attempt, counted, deadline_ns } => {
                self.action = None;
                self.to_deliver = Some(attempt);
                self.decided(plan, stage, attempt, counted.bits(), deadline_ns);
            }
            Action::AttemptSettled { attempt, outcome } => {
                self.action = None;
                stage.record(EventKind::AttemptSettled { attempt, outcome });
            }
            Action::Extending { attempt, t1_ns, ttl_ns } => {
                self.action = None;
                self.extension_began(stage, attempt, t1_ns, ttl_ns);
            }
            Action::ExtensionSettled { attempt, extended } => {
                self.action = None;
                self.extension_settled(stage, attempt, extended);
            }
            Action::Dial(route) => {
                self.action = None;
                let server = stage.server_of(plan, self.place, route.node);
                let host = plan.nodes[usize::from(server)].host.0;
                let number = stage.network.dial(self.host.0, host, route.lane, route.epoch);
                self.routes.push((route, number));
                stage.send(plan, number, Direction::Up, Arrival::Handshake);
            }
            Action::Reset(route) => {
                self.action = None;
                if let Some(number) = self.forget_route(route) {
                    stage.network.reset(number);
                }
            }
            Action::GaveUp => {
                self.action = None;
                if matches!(self.waiting, Waiting::ForLease { .. }) {
                    self.without_lease();
                }
            }
            Action::Lost { attempt } => {
                self.action = None;
                stage.record(EventKind::LostDelivered { attempt });
                if let Some(held) = self.held.as_mut().filter(|held| held.attempt == attempt) {
                    held.lost = true;
                }
            }
        }
        true
    }

    fn begin(&mut self, plan: &Plan, stage: &mut Stage, attempt: AttemptId) {
        self.attempts = attempt.number;
        self.votes = 0;
        let number = attempt.number;
        let draw = |label| Choice { attempt: number, ..Choice::of(label, self.place) };
        let token = token_of(attempt, stage.choices.bits(draw(Label::Token)));
        let jitter = stage.choices.bits(draw(Label::Jitter));
        let now = self.now(stage);
        stage.record(self.attempt_began(plan, attempt, now));
        self.subject.begin(FreshAttempt { attempt, token, jitter }, now);
    }

    fn attempt_began(&self, plan: &Plan, attempt: AttemptId, now: Now) -> EventKind {
        let scenario = &plan.scenario;
        let client = scenario.clients.get(usize::from(self.place)).unwrap_or(&scenario.clients[0]);
        let ttl = client.ttl.unwrap_or(scenario.lock.ttl);
        let drift = redlock_client::protocol::Drift::from(scenario.lock.drift);
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

    fn write(&mut self, plan: &Plan, stage: &mut Stage, route: Route, request: Request) {
        let Some(number) = self.connection(route) else { return };
        let command = stage.commands;
        stage.commands += 1;
        let Request { attempt, ask, .. } = request;
        let (node, op) = (route.node, ask.op());
        stage.record(EventKind::Written { command, attempt, node, op });
        let message = Packet::Request(Request { command, ..request });
        stage.send(plan, number, Direction::Up, Arrival::Message(message));
    }

    fn decided(
        &mut self,
        plan: &Plan,
        stage: &mut Stage,
        attempt: AttemptId,
        counted: u16,
        deadline_local_ns: u64,
    ) {
        let t2_local_ns = self.now(stage).lease_ns;
        let outcome = Settlement::Granted;
        stage.record(EventKind::GrantDecided { attempt, counted, t2_local_ns, deadline_local_ns });
        stage.record(EventKind::AttemptSettled { attempt, outcome });
        self.drawn_token = match plan.scenario.store.checks {
            Checks::TokenOnOpenAndWrite | Checks::TokenOnWrite => {
                stage.fencing_tokens += 1;
                stage.fencing_tokens
            }
            Checks::CompareAndSetOwner | Checks::Nothing => 0,
        };
    }

    fn deliver(&mut self, stage: &mut Stage) {
        let now = self.now(stage);
        let Some(Delivered { attempt, clock, deadline_ns, fencing_token }) =
            self.subject.deliver(now)
        else {
            return;
        };
        let fencing_token = fencing_token.unwrap_or(self.drawn_token);
        self.rounds = 0;
        stage.record(EventKind::GrantDelivered {
            attempt,
            clock,
            deadline_local_ns: deadline_ns,
            fencing_token,
        });
        self.got_lease = true;
        if matches!(self.waiting, Waiting::ForLease { .. }) {
            self.waiting = Waiting::Nothing;
        }
        let (lost, seen_version, in_section) = (false, BLIND, false);
        self.held = Some(Held { attempt, fencing_token, lost, seen_version, in_section });
    }

    fn take_in(&mut self, plan: &Plan, stage: &mut Stage, input: Input) {
        if let Input::Response(number, response) = input {
            let attempt = response.attempt;
            let current = attempt.number == self.attempts && response.op == OpKind::Set;
            let node = plan.node_at(stage.network.connection(number).server);
            if current && !self.reach(plan, stage, attempt, Point::Reply, Some(node)) {
                return;
            }
            let yes = current && response.answer() == Answer::Yes;
            if yes
                && self.votes + 1 == self.quorum
                && !self.reach(plan, stage, attempt, Point::T2, None)
            {
                return;
            }
            self.votes += usize::from(yes);
        }
        stage.clients[usize::from(self.place)].inbox.pop_front();
        let now = self.now(stage);
        match input {
            Input::Connected(number) => {
                let connection = stage.network.connection_mut(number);
                if connection.state == ConnectionState::Dialing {
                    connection.state = ConnectionState::Open;
                    if let Some(route) = self.route(number) {
                        self.subject.handle_connected(route, now);
                    }
                }
            }
            Input::Changed(number) => {
                if let Some(route) = self.route(number) {
                    self.subject.handle_key_changed(route, now);
                }
            }
            Input::Forgot(number) => {
                if let Some(route) = self.route(number) {
                    self.subject.handle_keys_lost(route, now);
                    self.tell_eligibility(stage);
                }
            }
            Input::Closed(number) | Input::Reset(number) => {
                stage.network.connection_mut(number).state = ConnectionState::Closed;
                if let Some(route) = self.route(number) {
                    self.forget_route(route);
                    self.subject.handle_closed(route, now);
                }
            }
            Input::Response(number, response) => {
                let node = plan.node_at(stage.network.connection(number).server);
                let attempt = response.attempt;
                let (command, op) = (response.command, response.op);
                let answer = response.answer();
                stage.record(EventKind::Delivered { command, attempt, node, op, answer });
                if let Some(route) = self.route(number) {
                    self.subject.handle_response(route, response, now);
                }
                if op == OpKind::Introduce || response.word == ReplyValue::NotServing {
                    self.tell_eligibility(stage);
                }
            }
            Input::StoreServed if self.waiting == Waiting::ForWrite => {
                self.waiting = Waiting::Nothing;
            }
            Input::StoreServed => {}
            Input::StoreVersion(version) => {
                if let Some(held) = &mut self.held
                    && self.waiting == Waiting::ForVersion
                {
                    held.seen_version = version;
                    let attempt = held.attempt;
                    self.waiting = Waiting::Nothing;
                    stage.record(EventKind::ReadDone { attempt, version });
                }
            }
        }
    }

    fn expire_timer(&mut self, stage: &mut Stage) -> bool {
        self.subject_due_boot_ns = self.subject.poll_timeout_boot_ns();
        let Some(due_ns) = self.subject_due_boot_ns else { return false };
        let now = self.now(stage);
        if due_ns > now.boot_ns {
            return false;
        }
        self.subject.handle_timeout(now);
        true
    }

    fn arm_timer(&mut self, stage: &mut Stage) {
        let clocks = &stage.clocks[self.host.get()];
        let boot = |at_ns| clocks.true_at(ClockKind::Boot, at_ns);
        let own = match self.waiting {
            Waiting::ForLease { cancel_at_true_ns } => cancel_at_true_ns,
            Waiting::UntilBoot(at_ns) | Waiting::UntilBootOrLoss(at_ns) => boot(at_ns),
            Waiting::UntilTrue(at_ns) => Some(at_ns),
            Waiting::ForExtension
            | Waiting::ForLoss
            | Waiting::ForVersion
            | Waiting::ForWrite
            | Waiting::Nothing => None,
        };
        let subject = self.subject_due_boot_ns.and_then(boot);
        let at_ns = [own, subject].into_iter().flatten().min().unwrap_or(u64::MAX);
        if at_ns == self.timer_at_ns && at_ns > stage.now_ns {
            return;
        }
        self.timer_serial += 1;
        self.timer_at_ns = at_ns;
        if at_ns != u64::MAX {
            let what = QueueEntry::Timer { client: self.place, serial: self.timer_serial };
            stage.queue.schedule(at_ns.max(stage.now_ns), what);
        }
    }

    fn tell_eligibility(&mut self, stage: &mut Stage) {
        let Subject::Redlock(subject) = &self.subject else { return };
        for node in 0..self.eligible_from_ns.len() {
            let from_local_ns = subject.eligible_from_ns(node as u8);
            if core::mem::replace(&mut self.eligible_from_ns[node], from_local_ns) != from_local_ns
            {
                let (client, node) = (self.place, node as u8);
                stage.record(EventKind::Eligible { client, node, from_local_ns });
            }
        }
    }

    #[inline]
    pub(super) fn now(&self, stage: &Stage) -> Now {
        stage.read_clocks(self.host, self.subject.lease_clock())
    }
}

pub(super) fn can_run(stage: &Stage, client: u8) -> bool {
    let ClientHost { dead, stops, .. } = &stage.clients[usize::from(client)];
    !dead && *stops == 0
}
