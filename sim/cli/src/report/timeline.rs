//! A history arranged as intervals in time. Every picture and every story is drawn from this one
//! reading of the events.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lock_judge::history::{
    Answer, AttemptId, BasedOn, ClientId, ClockKind, Event, FaultId, FencingToken, HostId, Id,
    KeyEnd, LostReason, NodeId, NodeIds, OpKind, Refusal, Rejection, Segment, Settlement, WriteId,
    Writer,
};
use lock_judge::ids::ResourceId;
use lock_judge::scenario::{Scenario, WORKER};

mod belief;
mod reader;

/// An interval of true time, the end excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

/// Index of an event in the history, and its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) at_ns: u64,
    pub(super) event: usize,
}

/// An attempt, with the data of its lease if it was granted.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) id: AttemptId,
    pub(super) began: Moment,
    pub(super) clock: ClockKind,
    pub(super) t1_local_ns: u64,
    pub(super) ttl_ns: u64,
    pub(super) drift_ns: u64,
    pub(super) needed: u8,
    /// Nodes whose votes were counted.
    pub(super) counted: NodeIds,
    /// Event of the grant's decision, and the clock's reading then: T2.
    pub(super) decided: Option<(Moment, u64)>,
    /// Event at which the application received the lease, and the deadline on its clock.
    pub(super) delivered: Option<(Moment, u64)>,
    pub(super) fencing_token: FencingToken,
    /// Earlier grants, if a worker entered more than once by one attempt.
    pub(super) earlier: Vec<Grant>,
    pub(super) settled: Option<(Moment, Settlement)>,
    pub(super) released: Option<Moment>,
    pub(super) lost: Option<(Moment, LostReason)>,
    /// Instants at which the application learnt a deadline, and the deadlines on its clock.
    pub(super) deadlines: Vec<(u64, u64)>,
    pub(super) beliefs: Vec<Interval>,
    pub(super) sections: Vec<Interval>,
    pub(super) checks: Vec<(Moment, bool)>,
    pub(super) extensions: Vec<Extension>,
    /// Extensions that the client refused to begin, with the reasons.
    pub(super) refusals: Vec<(Moment, Refusal)>,
}

impl Attempt {
    /// Returns the grant.
    pub(super) fn grant(&self) -> Grant {
        let Self { counted, decided, delivered, fencing_token, released, .. } = *self;
        Grant { counted, decided, delivered, fencing_token, released }
    }

    /// Returns the attempt with the grant that was the last one at `at_ns`, or else the first.
    fn as_of(&self, at_ns: u64) -> Self {
        let is_known = |it: &Grant| it.decided.is_some_and(|(at, _)| at.at_ns <= at_ns);
        let own = self.grant();
        let mut grants = self.earlier.iter().chain([&own]);
        let grant = *grants.clone().rfind(|it| is_known(it)).or(grants.next()).unwrap_or(&own);
        let Grant { counted, decided, delivered, fencing_token, .. } = grant;
        Self { counted, decided, delivered, fencing_token, ..self.clone() }
    }

    /// Returns the latest deadline of the lease that the application knew, on the attempt's clock.
    pub(super) fn deadline_local_ns(&self) -> Option<u64> {
        self.deadlines.iter().map(|&(_, deadline_ns)| deadline_ns).max()
    }

    /// Returns the nodes whose votes supported the lease at `at_ns`: those of the last extension by
    /// then, or else those of the grant.
    pub(super) fn counted_at(&self, at_ns: u64) -> NodeIds {
        let extensions = self.extensions.iter().rev();
        let mut done = extensions.filter_map(|it| it.extended.filter(|(at, _)| at.at_ns <= at_ns));
        done.next().map_or(self.counted, |(_, counted)| counted)
    }
}

/// A decision that an attempt is granted, and its delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) counted: NodeIds,
    pub(super) decided: Option<(Moment, u64)>,
    pub(super) delivered: Option<(Moment, u64)>,
    pub(super) fencing_token: FencingToken,
    pub(super) released: Option<Moment>,
}

/// An extension of a lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extension {
    /// Event of its T1.
    pub(super) began: Moment,
    pub(super) ttl_ns: u64,
    /// Event at which the extension failed.
    pub(super) failed: Option<Moment>,
    /// Event at which the extension succeeded, and the nodes that it counted.
    pub(super) extended: Option<(Moment, NodeIds)>,
    /// Event at which the application learnt of the extension, and the new deadline on its clock.
    pub(super) delivered: Option<(Moment, u64)>,
}

/// A key of the resource on a node.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) node: NodeId,
    pub(super) writer: Writer,
    pub(super) set: Moment,
    pub(super) ended: Option<KeyEnded>,
    /// Instant at which the key ends on a clock that runs true; `None` if it has no expiry or the
    /// expiry is unknown.
    pub(super) expected_ns: Option<u64>,
}

/// End of a key: when, why and by whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyEnded {
    pub(super) moment: Moment,
    pub(super) cause: KeyEnd,
    pub(super) by: Writer,
}

/// A command and its reply.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) attempt: AttemptId,
    pub(super) node: NodeId,
    pub(super) op: OpKind,
    pub(super) written: Moment,
    pub(super) executed: Option<(Moment, Answer)>,
    pub(super) delivered: Option<Moment>,
}

/// A write to the resource.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) attempt: AttemptId,
    pub(super) id: WriteId,
    pub(super) sent: Moment,
    pub(super) based_on: BasedOn,
    pub(super) fencing_token: FencingToken,
    pub(super) arrived: Option<(Moment, Result<u32, Rejection>)>,
}

/// Reason for the absence of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbsenceKind {
    Stopped,
    Suspended,
    Killed,
    PowerLost,
    Stalled,
}

impl AbsenceKind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Suspended => "suspended",
            Self::Killed => "killed",
            Self::PowerLost => "power lost",
            Self::Stalled => "stalled",
        }
    }
}

/// A period in which a host did nothing.
#[derive(Clone, Debug)]
pub(super) struct Absence {
    pub(super) host: HostId,
    pub(super) why: AbsenceKind,
    pub(super) from: Moment,
    /// `None` if the absence lasted until the end of the run.
    pub(super) to: Option<Moment>,
}

/// A fault window: a fault of the scenario, and its actual beginning and end.
#[derive(Clone, Debug)]
pub(super) struct FaultWindow {
    pub(super) fault: FaultId,
    pub(super) began: Moment,
    pub(super) ended: Option<Moment>,
}

/// A history arranged as intervals in time.
#[derive(Clone, Debug)]
pub(super) struct Timeline<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) events: &'a [Event],
    /// Ordered by beginning.
    pub(super) attempts: Vec<Attempt>,
    pub(super) keys: Vec<Key>,
    pub(super) commands: Vec<Command>,
    pub(super) writes: Vec<Write>,
    pub(super) absences: Vec<Absence>,
    pub(super) fault_windows: Vec<FaultWindow>,
    pub(super) clocks: BTreeMap<(HostId, ClockKind), Vec<Segment>>,
    pub(super) end_ns: u64,
    /// Granted attempts, ordered by beginning. The first is called L1.
    granted: Vec<AttemptId>,
    /// Number of clients that are drawn: the scenario's own, and the probes up to the last one of
    /// which no attempt was delivered.
    clients: usize,
}

impl<'a> Timeline<'a> {
    /// Reads a whole history of `scenario`.
    pub(super) fn new(scenario: &'a Scenario, events: &'a [Event]) -> Self {
        reader::read(scenario, events)
    }

    /// Returns true for a run of `serve`: its clients are workers, seen from outside.
    pub(super) fn is_served(&self) -> bool {
        self.scenario.clients.iter().any(|client| client.subject == WORKER)
    }

    pub(super) fn attempt(&self, id: AttemptId) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.id == id)
    }

    /// Returns the timeline in which each attempt has the grant that it had at `at_ns`.
    pub(super) fn as_of(&self, at_ns: u64) -> Cow<'_, Self> {
        if self.attempts.iter().all(|it| it.earlier.is_empty()) {
            return Cow::Borrowed(self);
        }
        let attempts = self.attempts.iter().map(|it| it.as_of(at_ns)).collect();
        Cow::Owned(Self { attempts, ..self.clone() })
    }

    /// Returns the segments of the clock that measures the attempt.
    pub(super) fn clock_of(&self, attempt: &Attempt) -> &[Segment] {
        let host = self.scenario.client_host(attempt.id.client);
        self.clocks.get(&(host, attempt.clock)).map_or(&[][..], Vec::as_slice)
    }

    /// Returns the instant at which the attempt's clock reaches the latest deadline that the
    /// application knew, or `by_ns` if it does so later; `None` for an attempt without a lease.
    pub(super) fn deadline_ns(&self, attempt: &Attempt, by_ns: u64) -> Option<u64> {
        let deadline_local_ns = attempt.deadline_local_ns()?;
        let began_ns = attempt.began.at_ns;
        let before = belief::beliefs(self.clock_of(attempt), began_ns, by_ns, deadline_local_ns);
        Some(before.last().map_or(began_ns, |before| before.to_ns))
    }

    /// Returns the attempts that became leases, ordered by beginning.
    pub(super) fn leases(&self) -> impl Iterator<Item = &Attempt> {
        self.granted.iter().filter_map(|&id| self.attempt(id))
    }

    /// Returns the index of a lease among all leases, from 0.
    pub(super) fn lease_place(&self, id: AttemptId) -> Option<usize> {
        self.granted.iter().position(|&granted| granted == id)
    }

    /// Name of an attempt: `L2` for a lease, `c2’s attempt 3` for an attempt without a lease.
    pub(super) fn name(&self, id: AttemptId) -> String {
        match self.lease_place(id) {
            Some(place) => format!("L{}", place + 1),
            // Number 0 stands for commands of the connection itself, such as INFO.
            None if id.number == 0 => format!("{}’s connection", self.client_name(id.client)),
            None => format!("{}’s attempt {}", self.client_name(id.client), id.number),
        }
    }

    pub(super) fn writer_name(&self, writer: Writer) -> String {
        match writer {
            Writer::Nobody => String::from("nobody"),
            Writer::Attempt(id) => self.name(id),
            Writer::Operator => String::from("an operator"),
        }
    }

    pub(super) fn client_name(&self, client: ClientId) -> &str {
        match self.scenario.client(client) {
            Some(it) => &it.id,
            None => self.host_name(self.scenario.client_host(client)),
        }
    }

    /// Returns the name of the lock that `client` acquires.
    pub(super) fn resource_of(&self, client: ClientId) -> &str {
        self.scenario.resource_name(self.scenario.resource_of(client))
    }

    pub(super) fn node_name(&self, node: NodeId) -> &str {
        self.host_name(node.first_host())
    }

    pub(super) fn host_name(&self, host: HostId) -> &str {
        if host.index() < self.scenario.host_count() { self.scenario.host_name(host) } else { "?" }
    }

    /// Returns the names of the nodes in a set.
    pub(super) fn nodes_of(&self, set: NodeIds) -> Vec<&str> {
        let nodes = set & NodeIds::first(self.scenario.cluster.nodes.len());
        nodes.iter().map(|node| self.node_name(node)).collect()
    }

    /// Returns the key of `writer` on `node`; the last one if there were several.
    pub(super) fn key_of(&self, writer: AttemptId, node: NodeId) -> Option<&Key> {
        let writer = Writer::Attempt(writer);
        self.keys.iter().rev().find(|key| key.node == node && key.writer == writer)
    }

    /// Returns the last key of `writer` on `node` that was set before `at_ns`. Falls back to
    /// [`Self::key_of`].
    pub(super) fn key_before(&self, writer: AttemptId, node: NodeId, at_ns: u64) -> Option<&Key> {
        let is_own = |key: &&Key| key.node == node && key.writer == Writer::Attempt(writer);
        let mut before = self.keys.iter().rev().filter(is_own).filter(|it| it.set.at_ns < at_ns);
        before.next().or_else(|| self.key_of(writer, node))
    }

    /// Returns the keys that existed at `at_ns`.
    pub(super) fn keys_at(&self, at_ns: u64) -> impl Iterator<Item = &Key> {
        self.keys.iter().filter(move |key| {
            key.set.at_ns <= at_ns && key.ended.is_none_or(|ended| ended.moment.at_ns >= at_ns)
        })
    }

    /// Returns true if the resource received any write.
    pub(super) fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Returns the clients that are drawn.
    pub(super) fn clients(&self) -> impl ExactSizeIterator<Item = ClientId> + use<> {
        ClientId::first(self.clients)
    }

    /// Returns true if the client of the attempt is drawn.
    pub(super) fn is_drawn(&self, id: AttemptId) -> bool {
        id.client.index() < self.clients().len()
    }

    fn drawn_clients(&self) -> usize {
        let is_in_vain = |resource: &ResourceId| {
            let probe = self.scenario.probe_of(*resource);
            let mut own = self.attempts.iter().filter(|attempt| attempt.id.client == probe);
            own.clone().next().is_some() && own.all(|it| it.delivered.is_none())
        };
        let last = self.scenario.resource_ids().rev().find(is_in_vain);
        self.scenario.clients.len() + last.map_or(0, |last| last.index() + 1)
    }
}

/// Returns the resource of a key that `writer` wrote. Operators write the first.
pub(super) fn resource_of(scenario: &Scenario, writer: Writer) -> ResourceId {
    match writer {
        Writer::Attempt(id) => scenario.resource_of(id.client),
        Writer::Nobody | Writer::Operator => ResourceId::default(),
    }
}
