//! The operations of the applications, and the subjects that they use.

use lock_judge::history::ClientId;
use lock_judge::ids::IdVec;
use lock_judge::scenario::{Acquire, Client, Connections, Hold, Scenario, Step, WORKER};

use super::draws::{Drawn, Draws, Value};
use super::{Plan, Unplannable};
use crate::subject::{
    Connect, GetSetClient, Kind, PhpClient, PolicyClient, RedlockClient, Settings, Subject, kind,
};
use crate::terms;

/// One operation of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Its `wait` is drawn: a single value.
    Acquire(Acquire),
    AwaitLost,
    Enter,
    Leave,
    Check,
    Read,
    Extend {
        ttl_ns: u64,
    },
    Release,
    Sleep {
        ns: u64,
    },
    /// Sleeps until `ns` have passed or the lease is over.
    SleepOrLost {
        ns: u64,
    },
    Write {
        blind: bool,
    },
}

/// An [`Op`] and the earliest true time at which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedOp {
    pub(crate) not_before_ns: u64,
    pub(crate) op: Op,
}

impl Plan {
    /// Returns the kind of a client's subject. The probes have the first client's.
    fn kind(&self, client: ClientId) -> Kind {
        *self.subjects.get(client).unwrap_or(&self.subjects[ClientId(0)])
    }

    /// Returns true if the client is the production client.
    pub(crate) fn is_ours(&self, client: ClientId) -> bool {
        self.kind(client) == Kind::Ours
    }

    /// Returns true if the client listens for pushes, and servers push to it.
    pub(crate) fn hears_pushes(&self, client: ClientId) -> bool {
        let is_deaf = self.scenario.client(client).is_some_and(|client| client.deaf);
        self.is_ours(client) && !is_deaf
    }

    /// Returns a new subject for a client.
    pub(crate) fn subject(&self, id: ClientId) -> Subject {
        let scenario = &self.scenario;
        let is_probe = id == self.probe();
        let client = scenario.client(id).unwrap_or(&scenario.clients[0]);
        let ttl = scenario.ttl_of(client).duration();
        let fleet_max_ttl = scenario.fleet_max_ttl().duration();
        let nodes = self.members(id).len();
        let settings = Settings {
            nodes,
            ttl,
            drift: terms::drift(scenario.lock.drift),
            node_timeout: scenario.lock.node_timeout.duration(),
            retry: terms::retry(scenario.lock.retry),
            extensions_max: scenario.lock.extensions_max,
            plain_extensions: scenario.lock.plain_extensions,
        };
        match self.kind(id) {
            Kind::GetSet => Subject::GetSet(Box::new(GetSetClient::new(settings))),
            Kind::Ours => {
                let ttl = |task| {
                    let client = scenario.client(task).unwrap_or(&scenario.clients[0]);
                    scenario.ttl_of(client).duration()
                };
                let own = |task| (task, scenario.resource_of(task), ttl(task));
                let tasks: Vec<_> = self.tasks(id).into_iter().map(own).collect();
                let ours = RedlockClient::new(&tasks, &scenario.lock, fleet_max_ttl, nodes);
                Subject::Redlock(Box::new(ours))
            }
            Kind::Php { socket_timeout } => {
                Subject::Php(Box::new(PhpClient::new(settings, socket_timeout)))
            }
            Kind::Policy(mut policy) => {
                if is_probe {
                    policy.fixed_retry = None;
                }
                policy.connect = match client.connections {
                    Some(Connections::FreshPerCommand) => Connect::FreshPerCommand,
                    Some(Connections::Pooled) => Connect::Pooled,
                    Some(Connections::SecondForRelease) => Connect::SecondForRelease,
                    None => policy.connect,
                };
                Subject::Policy(Box::new(PolicyClient::new(policy, settings)))
            }
        }
    }
}

/// Returns the operations of a probe.
pub(crate) fn probe_ops() -> Vec<PlannedOp> {
    let patient = Acquire { attempts: Some(u32::MAX), ..Acquire::default() };
    [Op::Acquire(patient), Op::Release].map(|op| PlannedOp { not_before_ns: 0, op }).to_vec()
}

/// Returns the subject of every client.
pub(super) fn subjects(scenario: &Scenario) -> Result<IdVec<ClientId, Kind>, Unplannable> {
    let subject = |client: &Client| match client.subject.as_str() {
        WORKER => {
            let what =
                "the subject `worker`: `drive`, `serve` and `redlock-sim-test` play such clients";
            Err(Unplannable(String::from(what)))
        }
        name => {
            let kind = kind(name).expect("a valid scenario names a known subject");
            if kind.needs_ideal_server() && client.nodes.is_some() {
                return Err(Unplannable(format!("`nodes` of the subject `{name}`")));
            }
            if kind != Kind::Ours && !scenario.lock.further_resources.is_empty() {
                let what = format!("`lock.further-resources` with the subject `{name}`");
                return Err(Unplannable(what));
            }
            Ok(kind)
        }
    };
    scenario.clients.iter().map(subject).collect()
}

/// Returns the operations of every client that has a subject.
pub(super) fn planned_ops(
    scenario: &Scenario,
    subjects: &IdVec<ClientId, Kind>,
    draws: Draws<'_>,
) -> IdVec<ClientId, Vec<PlannedOp>> {
    let clients = scenario.client_ids().zip(&scenario.clients).zip(subjects.values());
    let ops = clients.map(|((id, client), subject)| {
        let ttl_ns = scenario.ttl_of(client).0;
        let checks = subject.checks_before_section();
        let (acquired_ttl_ns, ops) = (ttl_ns, Vec::new());
        Ops { draws, client: id, checks, ttl_ns, acquired_ttl_ns, ops }.of(client)
    });
    ops.collect()
}

/// The operations of one client, as far as they are planned.
struct Ops<'c> {
    draws: Draws<'c>,
    client: ClientId,
    /// True if the subject checks the lease before a section.
    checks: bool,
    ttl_ns: u64,
    /// TTL of the latest acquisition.
    acquired_ttl_ns: u64,
    ops: Vec<PlannedOp>,
}

impl Ops<'_> {
    fn of(mut self, client: &Client) -> Vec<PlannedOp> {
        // A loop and each of its steps have numbers, like every other step.
        let mut number = 0;
        for step in &client.steps {
            let drawn = self.draws.of_step(self.client, number, 0);
            number += 1;
            let first = self.ops.len();
            let Some(repeat) = &step.repeat else {
                self.step(step, drawn);
                continue;
            };
            for time in 0..drawn.count(Value::Times, repeat.times) {
                for (inner, step) in (number..).zip(&repeat.steps) {
                    self.step(step, self.draws.of_step(self.client, inner, time));
                }
            }
            self.waits(first, step, drawn);
            number += repeat.steps.len() as u16;
        }
        self.ops
    }

    fn step(&mut self, step: &Step, drawn: Drawn<'_>) {
        let first = self.ops.len();
        self.actions(step, drawn);
        self.waits(first, step, drawn);
    }

    /// Lets the action `first`, with which `step` begins, wait for the time of the step.
    fn waits(&mut self, first: usize, step: &Step, drawn: Drawn<'_>) {
        if let (Some(at), Some(planned)) = (step.at, self.ops.get_mut(first)) {
            planned.not_before_ns = planned.not_before_ns.max(drawn.span_ns(Value::At, at));
        }
    }

    fn push(&mut self, op: Op) {
        self.ops.push(PlannedOp { not_before_ns: 0, op });
    }

    fn actions(&mut self, step: &Step, drawn: Drawn<'_>) {
        if let Some(acquire) = step.acquire {
            let wait = acquire.wait.map(|wait| drawn.exact(Value::Length, wait));
            self.acquired_ttl_ns = acquire.ttl.map_or(self.ttl_ns, |ttl| ttl.0);
            self.push(Op::Acquire(Acquire { wait, ..acquire }));
        }
        if step.check.is_some() {
            self.push(Op::Check);
        }
        let enters = step.enter.map(|enter| enter.unchecked);
        if let Some(unchecked) = enters.or(step.hold.map(|_| false)) {
            if self.checks && !unchecked {
                self.push(Op::Check);
            }
            self.push(Op::Enter);
        }
        match step.hold {
            Some(Hold::For { length, or_lost }) => {
                let ns = drawn.span_ns(Value::Length, length);
                self.push(if or_lost { Op::SleepOrLost { ns } } else { Op::Sleep { ns } });
            }
            Some(Hold::UntilDeadline) => self.push(Op::AwaitLost),
            None => {}
        }
        if step.read.is_some() {
            self.push(Op::Read);
        }
        if let Some(write) = step.write {
            self.push(Op::Write { blind: write.blind });
        }
        if let Some(extend) = step.extend {
            for number in 0..extend.times.unwrap_or(1) {
                if let Some(every) = extend.every {
                    let ns = drawn.of_extension(number).span_ns(Value::Every, every);
                    self.push(Op::Sleep { ns });
                }
                let ttl_ns = extend.ttl.map_or(self.acquired_ttl_ns, |ttl| ttl.0);
                self.push(Op::Extend { ttl_ns });
            }
        }
        if step.leave.is_some() || step.hold.is_some() {
            self.push(Op::Leave);
        }
        if step.release.is_some() {
            self.push(Op::Release);
        }
        if let Some(sleep) = step.sleep {
            self.push(Op::Sleep { ns: drawn.span_ns(Value::Length, sleep) });
        }
    }
}
