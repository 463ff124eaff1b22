//! The history builder: turns the observations of masters and workers into a history.
//!
//! An attempt is all requests with one value. The attempt by which a worker entered is determined
//! afterwards ([`owners`]). Its belief lasts from `ENTER` to `LEAVE` at most, and no longer than its
//! keys ([`leases`]).

mod inside;
mod leases;
mod owners;

use lock_judge::history::{
    AttemptId, ClientId, ClockKind, Event, EventKind, FencingToken, Id, NodeId, OpKind, Settlement,
    Writer,
};
use lock_judge::ids::{IdVec, PerClient};
use lock_judge::scenario::{Case, Client, Property, Quantity, Span, WORKER};

use self::inside::{Inside, Renewal};
use self::leases::{ChangedKey, Leases};
use self::owners::Owners;
use super::recorder::{Entry, Log, What, number_of};

/// Name of the client that stands for all connections that gave no name.
const UNNAMED: &str = "unnamed";

/// Returns true for the properties that can be judged from outside. For the others, masters and
/// workers report too little.
pub(super) const fn is_judged(property: Property) -> bool {
    match property {
        Property::ExclusiveSection
        | Property::FencedOrder
        | Property::MutualExclusion
        | Property::OwnerOnly
        | Property::SectionWithinLease
        | Property::SoundGrant => true,
        Property::Continuity
        | Property::DeadlockFree
        | Property::FaultTolerant
        | Property::NoLostUpdate
        | Property::SoundLoss
        | Property::SoundRefusal
        | Property::SoundVotes
        | Property::Tidy => false,
    }
}

/// Quantities that can be measured from outside.
pub(super) const MEASURED: [Quantity; 4] = [
    Quantity::WaitWithoutHolder,
    Quantity::Bypasses,
    Quantity::SectionOverlap,
    Quantity::SectionWithoutMajority,
];

/// A run in the form that is judged and stored.
#[derive(Debug)]
pub(super) struct BuiltHistory {
    /// The case, with the workers as clients and without expectations that cannot be judged.
    pub(super) case: Case,
    pub(super) events: Vec<Event>,
    /// True if not everything could be recorded.
    pub(super) is_cut_short: bool,
}

/// Builds the history of `case` so far. `walls_ns` are the readings of the nodes' wall clocks at
/// time 0, and `now_ns` is the current time.
pub(super) fn build(
    case: &Case,
    log: &Log,
    walls_ns: &IdVec<NodeId, u64>,
    now_ns: u64,
) -> BuiltHistory {
    let nodes = case.scenario.cluster.nodes.len();
    let owners = Owners::find(log, &case.scenario);
    let case = resolved(case, log, &owners);
    let unnamed = ClientId::at(case.scenario.clients.len() - 1);
    let names = names(log, &owners, unnamed);
    let is_cut_short = log.is_full || names.is_none();
    let names = names.unwrap_or_default();
    let mut builder = HistoryBuilder {
        needed: (nodes / 2 + 1) as u8,
        case: &case,
        log,
        begun: vec![false; names.len()],
        entered: entered(&owners),
        last: last_entries(log, names.len()),
        leases: Leases::new(names.iter().map(|it| it.client).collect(), walls_ns),
        names,
        entrances: owners.entrances.into_iter(),
        inside: IdVec::filled(case.scenario.clients.len(), None),
        events: Vec::new(),
    };
    if !is_cut_short {
        builder.open(walls_ns);
        log.entries.iter().enumerate().for_each(|(place, entry)| builder.entry(place, entry));
    }
    let last_ns = builder.events.last().map_or(0, |event| event.at_ns);
    builder.push(last_ns.max(now_ns), EventKind::Ended);
    BuiltHistory { events: builder.events, case, is_cut_short }
}

/// Returns the case as it was run: with every client as a worker, whatever subject it has in the
/// scenario, every worker as a client, and one more for the attempts of unnamed connections. Drops
/// the expectations that cannot be judged.
fn resolved(case: &Case, log: &Log, owners: &Owners) -> Case {
    let mut case = case.clone();
    let scenario = &mut case.scenario;
    for client in &mut scenario.clients {
        let known = worker(&client.id);
        let Client { resource, connections, ttl, .. } = core::mem::replace(client, known);
        (client.resource, client.connections, client.ttl) = (resource, connections, ttl);
    }
    let workers = &log.workers[scenario.clients.len().min(log.workers.len())..];
    for name in workers.iter().chain(&owners.strangers) {
        scenario.clients.push(worker(name));
    }
    if scenario.clients.is_empty() || owners.clients.contains(&None) {
        scenario.clients.push(worker(UNNAMED));
    }
    scenario.expect.properties.retain(|property, _| is_judged(*property));
    scenario.expect.quantities.retain(|quantity, _| MEASURED.contains(quantity));
    case
}

/// Returns a client of which only the name is known.
pub(super) fn worker(name: &str) -> Client {
    Client {
        id: name.to_owned(),
        task_of: None,
        resource: None,
        subject: String::from(WORKER),
        connections: None,
        ttl: None,
        nodes: None,
        copy_of: None,
        deaf: false,
        steps: Vec::new(),
    }
}

/// Returns the final id of each attempt; `None` if a client has more attempts than ids can count.
fn names(log: &Log, owners: &Owners, unnamed: ClientId) -> Option<Vec<AttemptId>> {
    debug_assert!(owners.clients.len() >= log.uses.len(), "each has an owner, or nobody");
    let mut counts = PerClient::filled(0_u16);
    let name = |owner: &Option<ClientId>| {
        let client = owner.unwrap_or(unnamed);
        let count = &mut counts[client];
        *count = count.checked_add(1)?;
        Some(AttemptId { client, number: *count })
    };
    owners.clients.iter().map(name).collect()
}

/// Returns, for each attempt, true if a worker entered by it.
fn entered(owners: &Owners) -> Vec<bool> {
    let mut entered = vec![false; owners.clients.len()];
    owners.entrances.iter().for_each(|&number| entered[number] = true);
    entered
}

/// Returns, for each attempt, the index of the last entry about it.
fn last_entries(log: &Log, count: usize) -> Vec<usize> {
    let mut last = vec![0; count];
    for (place, entry) in log.entries.iter().enumerate() {
        if let What::Told(
            EventKind::Written { attempt, .. }
            | EventKind::Executed { attempt, .. }
            | EventKind::Delivered { attempt, .. },
        ) = entry.what
        {
            last[number_of(attempt)] = place;
        }
    }
    last
}

struct HistoryBuilder<'a> {
    case: &'a Case,
    log: &'a Log,
    needed: u8,
    names: Vec<AttemptId>,
    begun: Vec<bool>,
    /// True for the attempts by which a worker entered, at any time in the run.
    entered: Vec<bool>,
    last: Vec<usize>,
    leases: Leases,
    /// Attempt of each entrance that is still to come.
    entrances: std::vec::IntoIter<usize>,
    /// The section in which each worker is now.
    inside: IdVec<ClientId, Option<Inside>>,
    events: Vec<Event>,
}

impl HistoryBuilder<'_> {
    fn push(&mut self, at_ns: u64, kind: EventKind) {
        self.events.push(Event { at_ns, kind });
    }

    fn open(&mut self, walls_ns: &IdVec<NodeId, u64>) {
        for (node, &local_ns) in walls_ns.iter() {
            let (host, clock) = (node.first_host(), ClockKind::Wall);
            self.push(0, EventKind::Clock { host, clock, local_ns, rate_ppb: 0 });
            self.push(0, EventKind::NodeUp { node, incarnation: 0 });
        }
    }

    fn entry(&mut self, place: usize, entry: &Entry) {
        let at_ns = entry.at_ns;
        match entry.what {
            What::Told(kind) => {
                if let EventKind::Written { attempt, .. } | EventKind::Executed { attempt, .. } =
                    kind
                {
                    self.begin(number_of(attempt), at_ns);
                }
                self.push(at_ns, self.named(kind));
                if let EventKind::Killed { host, .. } = kind
                    && let Some(client) = self.case.scenario.client_on(host)
                {
                    self.inside[client] = None;
                }
                if let Some(key) = self.leases.observe(at_ns, kind) {
                    self.renew(key, at_ns);
                }
                self.settle(place, at_ns);
            }
            What::Entered { worker, fencing_token, .. } => {
                let number = self.entrances.next().expect("one for each that was told");
                self.enter(worker, number, (at_ns, fencing_token));
            }
            What::Left { worker } => {
                if let Some(inside) = self.inside[worker].take() {
                    let attempt = self.names[inside.number];
                    self.push(at_ns, EventKind::SectionLeft { attempt });
                    self.push(at_ns, EventKind::ReleaseCalled { attempt });
                }
            }
        }
    }

    /// Records the start of an attempt at its first observation, the latest time that T1 can have.
    fn begin(&mut self, number: usize, at_ns: u64) {
        if core::mem::replace(&mut self.begun[number], true) {
            return;
        }
        let lock = &self.case.scenario.lock;
        let told_ns = self.log.uses.get(number).and_then(|it| it.ttl_ns);
        let ttl_ns = told_ns.unwrap_or(lock.ttl.0);
        let drift_ns = match ttl_ns {
            u64::MAX => 0,
            _ => lock.drift.of(Span(ttl_ns)).0,
        };
        let attempt = self.names[number];
        let needed = self.needed;
        self.push(
            at_ns,
            EventKind::AttemptBegan {
                attempt,
                clock: ClockKind::Boot,
                t1_local_ns: at_ns,
                ttl_ns,
                drift_ns,
                needed,
            },
        );
    }

    fn enter(
        &mut self,
        worker: ClientId,
        number: usize,
        (at_ns, fencing_token): (u64, FencingToken),
    ) {
        self.begin(number, at_ns);
        let attempt = self.names[number];
        let counted = self.leases.counted(number, at_ns);
        let deadline_local_ns = self.leases.ends_ns(number, self.needed);
        let (clock, t2_local_ns, outcome) = (ClockKind::Boot, at_ns, Settlement::Granted);
        for kind in [
            EventKind::AttemptSettled { attempt, outcome },
            EventKind::GrantDecided { attempt, counted, t2_local_ns, deadline_local_ns },
            EventKind::GrantDelivered { attempt, clock, deadline_local_ns, fencing_token },
            EventKind::SectionEntered { attempt },
        ] {
            self.push(at_ns, kind);
        }
        self.inside[worker] = Some(Inside::new(number, self.needed, deadline_local_ns));
    }

    /// Records that the lease of an attempt lasts longer, or is over, now that one of its keys has
    /// another life.
    fn renew(&mut self, key: ChangedKey, at_ns: u64) {
        let ChangedKey { number, node, is_new } = key;
        let attempt = self.names[number];
        let inside = self.inside[attempt.client].as_mut();
        let Some(inside) = inside.filter(|it| it.number == number) else { return };
        let ends_ns = self.leases.ends_ns(number, self.needed);
        match inside.renew(Some(node).filter(|_| !is_new), ends_ns, at_ns) {
            Renewal::Nothing => {}
            Renewal::Over => self.push(at_ns, EventKind::ReleaseCalled { attempt }),
            Renewal::Longer(round) => {
                if let Some(round) = round {
                    let t1_local_ns = at_ns;
                    let ttl_ns = if ends_ns == u64::MAX { ends_ns } else { ends_ns - at_ns };
                    let began = EventKind::ExtensionBegan { attempt, round, t1_local_ns, ttl_ns };
                    self.push(at_ns, began);
                }
                let (clock, deadline_local_ns) = (ClockKind::Boot, ends_ns);
                let longer = EventKind::ExtensionDelivered { attempt, clock, deadline_local_ns };
                self.push(at_ns, longer);
            }
        }
    }

    /// Settles an attempt as cancelled at its last entry, if no worker ever entered by it.
    fn settle(&mut self, place: usize, at_ns: u64) {
        let What::Told(
            EventKind::Written { attempt, .. }
            | EventKind::Executed { attempt, .. }
            | EventKind::Delivered { attempt, .. },
        ) = self.log.entries[place].what
        else {
            return;
        };
        let number = number_of(attempt);
        if self.last[number] == place && !self.entered[number] {
            let outcome = Settlement::Cancelled;
            let attempt = self.names[number];
            self.push(at_ns, EventKind::AttemptSettled { attempt, outcome });
        }
    }

    /// Returns the event with the final ids of its attempts.
    fn named(&self, mut kind: EventKind) -> EventKind {
        let name = |it: &mut AttemptId| *it = self.names[number_of(*it)];
        let name_writer = |it: &mut Writer| {
            if let Writer::Attempt(it) = it {
                name(it);
            }
        };
        match &mut kind {
            EventKind::Written { attempt, .. } | EventKind::Delivered { attempt, .. } => {
                name(attempt);
            }
            EventKind::Executed { attempt, op, changed, before, after, .. } => {
                name(attempt);
                name_writer(before);
                name_writer(after);
                // Deleting another attempt's key is not a release.
                let is_own = *before == Writer::Attempt(*attempt) || !*changed;
                if *op == OpKind::Release && !is_own {
                    *op = OpKind::Delete;
                }
            }
            EventKind::KeyEnded { writer, by, .. } => {
                name_writer(writer);
                name_writer(by);
            }
            EventKind::KeyReturned { writer, .. } => name_writer(writer),
            _ => {}
        }
        kind
    }
}
