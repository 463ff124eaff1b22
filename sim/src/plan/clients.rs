//! The operations of the applications, and the subjects that they use.

use lock_judge::history::ClientId;
use lock_judge::ids::IdVec;
use lock_judge::scenario::{Acquire, Client, Connections, Hold, Scenario, Span, Step, WORKER};

use super::{Plan, Unplannable};
use crate::subject::{
    Connect, GetSetClient, Kind, PhpClient, PolicyClient, RedlockClient, Settings, Subject, kind,
};
use crate::terms;

/// One operation of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
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
    /// Returns the kind of a client's subject. The probe has the first client's.
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
        let ttl = client.ttl.unwrap_or(scenario.lock.ttl).duration();
        let fleet_max_ttl = scenario.fleet_max_ttl().duration();
        let nodes = scenario.cluster.nodes.len();
        let settings = Settings {
            nodes,
            ttl,
            drift: terms::drift(scenario.lock.drift).of(ttl),
            node_timeout: scenario.lock.node_timeout.duration(),
            retry: terms::retry(scenario.lock.retry),
            extensions_max: scenario.lock.extensions_max,
            plain_extensions: scenario.lock.plain_extensions,
        };
        match self.kind(id) {
            Kind::GetSet => Subject::GetSet(Box::new(GetSetClient::new(settings))),
            Kind::Ours => {
                let ours = RedlockClient::new(id, &scenario.lock, ttl, fleet_max_ttl, nodes);
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

/// Returns the operations of the probe.
pub(crate) fn probe_ops() -> Vec<PlannedOp> {
    let patient = Acquire { attempts: Some(u32::MAX), ..Acquire::default() };
    [Op::Acquire(patient), Op::Release].map(|op| PlannedOp { not_before_ns: 0, op }).to_vec()
}

/// Returns the subject of every client.
pub(super) fn subjects(scenario: &Scenario) -> Result<IdVec<ClientId, Kind>, Unplannable> {
    let subject = |client: &Client| match client.subject.as_str() {
        WORKER => {
            let what = "the subject `worker`: `serve` puts such clients under test";
            Err(Unplannable(String::from(what)))
        }
        name => Ok(kind(name).expect("a valid scenario names a known subject")),
    };
    scenario.clients.iter().map(subject).collect()
}

/// Returns the operations of every client that has a subject.
pub(super) fn planned_ops(
    scenario: &Scenario,
    subjects: &IdVec<ClientId, Kind>,
) -> IdVec<ClientId, Vec<PlannedOp>> {
    let clients = scenario.clients.iter().zip(subjects.values());
    clients.map(|(client, subject)| ops_of(client, subject, scenario.lock.ttl)).collect()
}

fn ops_of(client: &Client, subject: &Kind, ttl: Span) -> Vec<PlannedOp> {
    let own_ttl_ns = client.ttl.unwrap_or(ttl).0;
    let checks = subject.checks_before_section();
    let mut ops = Vec::new();
    for step in &client.steps {
        let first = ops.len();
        plan_step(step, (checks, own_ttl_ns), &mut ops);
        if let (Some(at), Some(planned)) = (step.at, ops.get_mut(first)) {
            planned.not_before_ns = at.0;
        }
    }
    ops
}

fn plan_step(step: &Step, (checks, ttl_ns): (bool, u64), ops: &mut Vec<PlannedOp>) {
    let mut push = |op| ops.push(PlannedOp { not_before_ns: 0, op });
    if let Some(acquire) = step.acquire {
        push(Op::Acquire(acquire));
    }
    if step.check.is_some() {
        push(Op::Check);
    }
    let enters = step.enter.map(|enter| enter.unchecked);
    if let Some(unchecked) = enters.or(step.hold.map(|_| false)) {
        if checks && !unchecked {
            push(Op::Check);
        }
        push(Op::Enter);
    }
    match step.hold {
        Some(Hold::For { length, or_lost: false }) => push(Op::Sleep { ns: length.0 }),
        Some(Hold::For { length, or_lost: true }) => push(Op::SleepOrLost { ns: length.0 }),
        Some(Hold::UntilDeadline) => push(Op::AwaitLost),
        None => {}
    }
    if step.read.is_some() {
        push(Op::Read);
    }
    if let Some(write) = step.write {
        push(Op::Write { blind: write.blind });
    }
    if let Some(extend) = step.extend {
        for _ in 0..extend.times.unwrap_or(1) {
            if let Some(every) = extend.every {
                push(Op::Sleep { ns: every.0 });
            }
            push(Op::Extend { ttl_ns: extend.ttl.map_or(ttl_ns, |ttl| ttl.0) });
        }
    }
    if step.leave.is_some() || step.hold.is_some() {
        push(Op::Leave);
    }
    if step.release.is_some() {
        push(Op::Release);
    }
    if let Some(span) = step.sleep {
        push(Op::Sleep { ns: span.0 });
    }
}
