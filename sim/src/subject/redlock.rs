//! This project's own client: the production protocol, driven as the tokio shell drives it.

mod reasons;

use core::time::Duration;

use lock_judge::history::{AttemptId, ClientId, ClockKind, Id, NodeId, Refusal};
use lock_judge::ids::{PerNode, ResourceId};
use lock_judge::scenario::{Acquire, Lock};
use redlock_protocol::{
    BootInstant, Command, Event, Fresh, Holder, Introduction, Limit, LinkConfig, LockConfig,
    LockId, NodeCount, NodeIndex, NodeSet, Op, Reply, Token, Votes,
};

use self::reasons::refusal;
pub(crate) use self::reasons::{lost, settlement};
use super::{
    Action, CommandKind, Delivered, FreshAttempt, Now, Patience, Profile, ReplyValue, Route, Wanted,
};
use crate::terms;

const _: () = assert!(matches!(Limit::AT_ONCE, Limit::WhileSplit(Acquire::AT_ONCE_MOST)));

/// A [`NodeSet`] with at most one use of the lock at a time for each task of the process.
#[derive(Debug)]
pub struct RedlockClient {
    machine: NodeSet,
    /// Initial machine of a run: `cold` has no connections, `warm` has those of [`Warm`].
    cold: NodeSet,
    warm: Option<Warm>,
    lock_config: LockConfig,
    tasks: Vec<Task>,
}

/// A task of the process, and its use of the lock.
#[derive(Debug)]
struct Task {
    client: ClientId,
    resource: ResourceId,
    ttl: Duration,
    lock: Option<LockId>,
}

impl Task {
    const fn new((client, resource, ttl): (ClientId, ResourceId, Duration)) -> Self {
        Self { client, resource, ttl, lock: None }
    }
}

/// A client with open connections, kept because most runs begin with the same one.
#[derive(Debug)]
struct Warm {
    now: BootInstant,
    introductions: PerNode<Option<Introduction>>,
    machine: NodeSet,
}

impl RedlockClient {
    /// Returns the client of a scenario with this lock and `nodes` nodes, for the tasks of one
    /// process, each with its resource and the TTL of its leases. There is at least one task.
    #[must_use]
    pub fn new(
        tasks: &[(ClientId, ResourceId, Duration)],
        lock: &Lock,
        fleet_max_ttl: Duration,
        nodes: usize,
    ) -> Self {
        let drift = terms::drift(lock.drift);
        let link = LinkConfig {
            node_timeout: lock.node_timeout.duration(),
            connect_timeout: Duration::from_millis(500),
            restart_guard: terms::restart_guard(lock.restart_guard),
            fleet_max_ttl,
            drift,
            introduction_max_age: Duration::from_secs(1),
            window: terms::window(lock.window),
        };
        let cold = NodeSet::new(&vec![link; nodes]);
        let retry = terms::retry(lock.retry);
        let lock_config = LockConfig {
            nodes: NodeCount::new(nodes).expect("a valid scenario has one to nine nodes"),
            ttl: tasks[0].2,
            drift,
            min_validity: lock.min_validity.duration(),
            retry,
            limit: Limit::Attempts(1),
            extensions_max: lock.extensions_max,
            keep_alive: None,
            plain_extensions: lock.plain_extensions,
            watched: true,
        };
        Self {
            machine: cold.clone(),
            cold,
            warm: None,
            lock_config,
            tasks: tasks.iter().copied().map(Task::new).collect(),
        }
    }

    /// Resets to the beginning of a run. With `warm`, the connection to every node with an
    /// introduction is open; the other nodes refused.
    pub fn reset(&mut self, now: Now, warm: Option<&PerNode<Option<Introduction>>>) {
        self.tasks.iter_mut().for_each(|it| *it = Task::new((it.client, it.resource, it.ttl)));
        let Some(told) = warm else { return self.machine.reset_to(&self.cold) };
        let now = instant(now);
        match &self.warm {
            Some(it) if it.now == now && it.introductions == *told => {
                self.machine.reset_to(&it.machine);
            }
            known => {
                let is_first = known.is_none();
                self.machine.reset_to(&self.cold);
                open(&mut self.machine, told, now);
                if is_first {
                    let machine = self.machine.clone();
                    self.warm = Some(Warm { now, introductions: *told, machine });
                }
            }
        }
    }

    /// Returns the reading of the boot clock from which the votes of `node` count; `u64::MAX` means
    /// never.
    #[must_use]
    pub fn eligible_from_ns(&self, node: NodeId) -> u64 {
        let from = self.machine.eligible_from(NodeIndex::new(node.index()));
        from.map_or(u64::MAX, BootInstant::as_nanos)
    }

    pub(super) fn profile(&self) -> Profile {
        let nodes = self.machine.nodes().get();
        let quorum = nodes / 2 + 1;
        Profile { nodes, lanes: 1, quorum, expires: true, gives_up_drift: true }
    }

    pub(super) fn acquire(&mut self, task: usize, wanted: Wanted, now: Now) {
        let task = &mut self.tasks[task];
        assert!(task.lock.is_none(), "one use of the lock at a time");
        let limit = match wanted.patience {
            Patience::Attempts(most) => Limit::Attempts(most),
            Patience::AtOnce => Limit::AT_ONCE,
            Patience::UntilBoot(until_ns) => Limit::Until(BootInstant::from_nanos(until_ns)),
        };
        let keep_alive = wanted.keep_alive_ns.map(Duration::from_nanos);
        let ttl = wanted.ttl_ns.map_or(task.ttl, Duration::from_nanos);
        let config = LockConfig { ttl, limit, keep_alive, ..self.lock_config };
        let resource = known(task.resource);
        task.lock = Some(self.machine.open(resource, config, instant(now)));
    }

    pub(super) fn begin(&mut self, task: usize, fresh: FreshAttempt, now: Now) {
        let Some(lock) = self.tasks[task].lock else { return };
        let fresh = Fresh { token: fresh.token, jitter: fresh.jitter };
        self.machine.begin(lock, fresh, instant(now));
    }

    pub(super) fn deliver(&mut self, task: usize, now: Now) -> Option<Delivered> {
        let grant = self.machine.deliver(self.tasks[task].lock?, instant(now)).ok()?;
        Some(Delivered {
            attempt: self.attempt_of(&grant.token),
            clock: ClockKind::Boot,
            deadline_ns: grant.deadline.as_nanos(),
            fencing_token: None,
        })
    }

    pub(super) fn is_alive(&self, task: usize, now: Now) -> bool {
        let is_held = |lock| self.machine.check(lock, Duration::ZERO, instant(now)).is_ok();
        self.tasks[task].lock.is_some_and(is_held)
    }

    pub(super) fn watched_votes(&self, task: usize, now: Now) -> Option<Votes> {
        self.machine.watched_votes(self.tasks[task].lock?, instant(now))
    }

    pub(super) fn extend(&mut self, task: usize, ttl_ns: u64, now: Now) -> Result<(), Refusal> {
        let lock = self.tasks[task].lock.ok_or(Refusal::Lost)?;
        let extending = self.machine.extend(lock, Duration::from_nanos(ttl_ns), instant(now));
        extending.map_err(refusal)
    }

    pub(super) fn release(&mut self, task: usize, now: Now) {
        if let Some(lock) = self.tasks[task].lock.take() {
            self.machine.release(lock, instant(now));
        }
    }

    pub(super) fn handle_connected(&mut self, route: Route, now: Now) {
        self.machine.handle_connected(node(route), route.epoch, instant(now));
    }

    pub(super) fn handle_closed(&mut self, route: Route, now: Now) {
        self.machine.handle_closed(node(route), route.epoch, instant(now));
    }

    pub(super) fn handle_keys_lost(&mut self, route: Route, now: Now) {
        self.machine.handle_keys_lost(node(route), route.epoch, instant(now));
    }

    pub(super) fn handle_key_changed(&mut self, route: Route, resource: ResourceId, now: Now) {
        let (epoch, resource) = (route.epoch, known(resource));
        self.machine.handle_key_changed(node(route), epoch, resource, instant(now));
    }

    pub(super) fn handle_reply(&mut self, route: Route, reply: super::Reply, now: Now) -> bool {
        let reply = match reply.value {
            ReplyValue::Error => Reply::Error,
            ReplyValue::Integer(value) => Reply::Integer(value),
            ReplyValue::Introduction(introduction) => Reply::Introduction(introduction),
            ReplyValue::Nil => Reply::Nil,
            ReplyValue::NotServing => Reply::NotServing,
            ReplyValue::Ok => Reply::Ok,
            ReplyValue::Registered(value) => Reply::Registered(value),
            ReplyValue::Value { token, .. } => Reply::Held(Holder::of(token.as_bytes())),
        };
        self.machine.handle_reply(node(route), route.epoch, reply, instant(now))
    }

    pub(super) fn handle_timeout(&mut self, now: Now) {
        self.machine.handle_timeout(instant(now));
    }

    pub(super) fn poll_action(&mut self) -> Option<(usize, Action)> {
        // The host must learn of an extension before its commands are written.
        while let Some(event) = self.machine.poll_event() {
            if let Some(action) = self.event_as_action(event) {
                return Some(action);
            }
        }
        self.machine.poll_command().map(|command| self.as_action(command))
    }

    pub(super) fn poll_timeout_boot_ns(&self) -> Option<u64> {
        self.machine.poll_timeout().map(BootInstant::as_nanos)
    }

    fn as_action(&self, command: Command) -> (usize, Action) {
        let route = |node: NodeIndex, epoch| Route { node: NodeId::at(node.get()), lane: 0, epoch };
        match command {
            Command::Dial { node, epoch } => (0, Action::Dial(route(node, epoch))),
            Command::Reset { node, epoch, .. } => (0, Action::Reset(route(node, epoch))),
            Command::Write { node, epoch, op, .. } => {
                let resource = op.resource().map_or_else(ResourceId::default, named);
                let (kind, token) = match op {
                    Op::Extend { token, ttl, plain, .. } => {
                        (CommandKind::extend(ttl.as_millis() as u64, plain), token)
                    }
                    Op::Introduce => {
                        (CommandKind::Introduce, Token::from_bytes([0; Token::LENGTH]))
                    }
                    Op::Look { token, .. } => (CommandKind::Look, token),
                    Op::Read { token, .. } => (CommandKind::Read, token),
                    Op::Release { token, .. } => (CommandKind::CompareAndDelete, token),
                    Op::Set { token, ttl, .. } => {
                        (CommandKind::SetOrShow { ttl_ms: ttl.as_millis() as u64 }, token)
                    }
                    Op::TimeLeft { token, .. } => (CommandKind::TimeLeft, token),
                };
                let attempt = self.attempt_of(&token);
                let route = route(node, epoch);
                let action = Action::Write { route, attempt, resource, kind, token };
                (self.task_of(attempt), action)
            }
        }
    }

    fn event_as_action(&mut self, event: Event) -> Option<(usize, Action)> {
        let about = |attempt, action| Some((self.task_of(attempt), action));
        match event {
            Event::AttemptDue(lock) => Some((self.task_with(lock)?, Action::AttemptDue)),
            Event::AttemptFailed { token, reason, .. } => {
                let attempt = self.attempt_of(&token);
                about(attempt, Action::AttemptSettled { attempt, outcome: settlement(reason) })
            }
            Event::Decided { token, counted, deadline, .. } => {
                let attempt = self.attempt_of(&token);
                let deadline_ns = deadline.as_nanos();
                about(attempt, Action::Decided { attempt, counted, deadline_ns })
            }
            Event::ExtensionBegan { token, t1, ttl, .. } => {
                let attempt = self.attempt_of(&token);
                let (t1_ns, ttl_ns) = (t1.as_nanos(), ttl.as_nanos() as u64);
                about(attempt, Action::Extending { attempt, t1_ns, ttl_ns })
            }
            Event::Extended { token, counted, deadline, .. } => {
                let attempt = self.attempt_of(&token);
                let extended = Some((counted, deadline.as_nanos()));
                about(attempt, Action::ExtensionSettled { attempt, extended })
            }
            Event::ExtensionFailed { token, .. } => {
                let attempt = self.attempt_of(&token);
                about(attempt, Action::ExtensionSettled { attempt, extended: None })
            }
            Event::GaveUp { lock, .. } => {
                let task = self.task_with(lock)?;
                self.tasks[task].lock = None;
                Some((task, Action::GaveUp))
            }
            Event::Lost { lock, reason } => {
                let task = self.task_with(lock)?;
                let attempt = self.attempt_of(&self.machine.token(lock)?);
                Some((task, Action::Lost { attempt, reason: lost(reason.into()) }))
            }
            Event::Released { .. } => None,
        }
    }

    /// Returns the task that uses `lock`; `None` if its application has let it go.
    fn task_with(&self, lock: LockId) -> Option<usize> {
        self.tasks.iter().position(|task| task.lock == Some(lock))
    }

    /// Returns the task that made `attempt`.
    fn task_of(&self, attempt: AttemptId) -> usize {
        self.tasks.iter().position(|task| task.client == attempt.client).unwrap_or(0)
    }

    /// Returns the attempt that drew `token`; an introduction has no attempt and belongs to number 0
    /// of the first task. A client alone in its process may have the tokens of another, its original.
    fn attempt_of(&self, token: &Token) -> AttemptId {
        let bytes = token.as_bytes();
        let number = u16::from_le_bytes([bytes[1], bytes[2]]);
        let is_named = number > 0 && self.tasks.len() > 1;
        let client = if is_named { ClientId(bytes[0]) } else { self.tasks[0].client };
        AttemptId { client, number }
    }
}

/// Opens the connection to every node with an introduction; the other nodes refuse.
fn open(machine: &mut NodeSet, told: &PerNode<Option<Introduction>>, now: BootInstant) {
    machine.connect(now);
    while let Some(command) = machine.poll_command() {
        match command {
            Command::Dial { node, epoch } if told[NodeId::at(node.get())].is_some() => {
                machine.handle_connected(node, epoch, now);
            }
            Command::Dial { node, epoch } => machine.handle_closed(node, epoch, now),
            Command::Write { node, epoch, .. } => {
                let said = told[NodeId::at(node.get())].map_or(Reply::Error, Reply::Introduction);
                machine.handle_reply(node, epoch, said, now);
            }
            Command::Reset { .. } => unreachable!("nothing goes wrong before the beginning"),
        }
    }
}

/// Returns the token of the attempt: the attempt's number in front, random bytes at the end.
#[must_use]
pub fn token_of(attempt: AttemptId, random: u64) -> Token {
    let mut bytes = [0; Token::LENGTH];
    bytes[0] = attempt.client.0;
    bytes[1..3].copy_from_slice(&attempt.number.to_le_bytes());
    bytes[12..].copy_from_slice(&random.to_le_bytes());
    Token::from_bytes(bytes)
}

/// Returns the number by which the machines know `resource`.
fn known(resource: ResourceId) -> redlock_protocol::ResourceId {
    redlock_protocol::ResourceId(resource.0.into())
}

/// Returns the resource that the machines know by this number.
fn named(known: redlock_protocol::ResourceId) -> ResourceId {
    ResourceId::at(known.0 as usize)
}

fn instant(now: Now) -> BootInstant {
    BootInstant::from_nanos(now.boot_ns)
}

fn node(route: Route) -> NodeIndex {
    NodeIndex::new(route.node.index())
}
