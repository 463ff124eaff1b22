//! The history of a run, out of what masters and workers told.
//!
//! An attempt is everything that was asked with one value. Which attempt a worker entered by is
//! found out afterwards ([`owners`]); its belief lasts from `ENTER` to `LEAVE`, whatever its client
//! may think of deadlines, and it counted the nodes that had told it so and had its key then.

mod owners;

use self::owners::{Entrance, Owners};
use super::chronicle::{Entry, Log, What, number_of};
use crate::history::{
    AttemptId, ClockKind, Event, EventKind, HostIndex, OpKind, Settlement, Writer,
};
use crate::scenario::{Case, Client, Property, WORKER};

/// What the client is called that stands for everybody who did not say who they are.
const UNNAMED: &str = "unnamed";

/// What can be judged from outside. Of the rest masters and workers see too little.
pub(super) const JUDGED: [Property; 3] =
    [Property::MutualExclusion, Property::ExclusiveSection, Property::FencedOrder];

/// A run as it is judged and stored.
#[derive(Debug)]
pub(super) struct Tale {
    /// With the workers as clients, and without expectations that cannot be judged.
    pub(super) case: Case,
    pub(super) events: Vec<Event>,
    /// Not everything could be told.
    pub(super) is_cut_short: bool,
}

/// Tells the run so far of `case`, whose nodes' wall clocks read `walls_ns` at time 0 and whose
/// time is `now_ns`.
pub(super) fn tell(case: &Case, log: &Log, walls_ns: &[u64], now_ns: u64) -> Tale {
    let nodes = case.scenario.cluster.nodes.len();
    let owners = Owners::find(log, nodes);
    let case = resolved(case, log, &owners);
    let unnamed = case.scenario.clients.len() as u8 - 1;
    let names = names(log, &owners, unnamed);
    let is_cut_short = log.is_full || names.is_none();
    let names = names.unwrap_or_default();
    let mut teller = Teller {
        needed: (nodes / 2 + 1) as u8,
        case: &case,
        log,
        begun: vec![false; names.len()],
        entered: entered(&owners),
        last: last_entries(log, names.len()),
        names,
        entrances: owners.entrances.into_iter(),
        inside: vec![None; case.scenario.clients.len()],
        events: Vec::new(),
    };
    if !is_cut_short {
        teller.open(walls_ns);
        log.entries.iter().enumerate().for_each(|(place, entry)| teller.entry(place, entry));
    }
    let last_ns = teller.events.last().map_or(0, |event| event.at_ns);
    teller.push(last_ns.max(now_ns), EventKind::Ended);
    Tale { events: teller.events, case, is_cut_short }
}

/// The case as it was played: whoever came is a client of it.
fn resolved(case: &Case, log: &Log, owners: &Owners) -> Case {
    let mut case = case.clone();
    let scenario = &mut case.scenario;
    for name in &log.workers[scenario.clients.len().min(log.workers.len())..] {
        scenario.clients.push(worker(name));
    }
    if scenario.clients.is_empty() || owners.clients.contains(&None) {
        scenario.clients.push(worker(UNNAMED));
    }
    let fenced = |entry: &Entry| matches!(entry.what, What::Entered { fencing_token, .. } if fencing_token > 0);
    let is_fenced = log.entries.iter().any(fenced);
    scenario.expect.retain(|property, _| {
        JUDGED.contains(property) && (is_fenced || *property != Property::FencedOrder)
    });
    case
}

/// A client of which only the name is known.
pub(super) fn worker(name: &str) -> Client {
    Client {
        id: name.to_owned(),
        subject: String::from(WORKER),
        connections: None,
        ttl: None,
        steps: Vec::new(),
    }
}

/// What histories call each attempt; `None` if a client has more than they can count.
fn names(log: &Log, owners: &Owners, unnamed: u8) -> Option<Vec<AttemptId>> {
    debug_assert!(owners.clients.len() >= log.uses.len(), "each has an owner, or nobody");
    let mut counts = [0_u16; 256];
    let name = |owner: &Option<u8>| {
        let client = owner.unwrap_or(unnamed);
        let count = &mut counts[usize::from(client)];
        *count = count.checked_add(1)?;
        Some(AttemptId { client, number: *count })
    };
    owners.clients.iter().map(name).collect()
}

/// By which attempts somebody entered.
fn entered(owners: &Owners) -> Vec<bool> {
    let mut entered = vec![false; owners.clients.len()];
    owners.entrances.iter().for_each(|entrance| entered[entrance.number] = true);
    entered
}

/// Which entry is the last about each attempt.
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

struct Teller<'a> {
    case: &'a Case,
    log: &'a Log,
    needed: u8,
    names: Vec<AttemptId>,
    begun: Vec<bool>,
    /// By which of them somebody entered, sooner or later.
    entered: Vec<bool>,
    last: Vec<usize>,
    entrances: std::vec::IntoIter<Entrance>,
    /// By which attempt each worker is inside.
    inside: Vec<Option<usize>>,
    events: Vec<Event>,
}

impl Teller<'_> {
    fn push(&mut self, at_ns: u64, kind: EventKind) {
        self.events.push(Event { at_ns, kind });
    }

    fn open(&mut self, walls_ns: &[u64]) {
        for (node, &local_ns) in walls_ns.iter().enumerate() {
            let (host, clock) = (HostIndex(node as u8), ClockKind::Wall);
            self.push(0, EventKind::Clock { host, clock, local_ns, rate_ppb: 0 });
            self.push(0, EventKind::NodeUp { node: node as u8, incarnation: 0 });
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
                let kind = self.named(kind);
                self.push(at_ns, kind);
                self.settle(place, at_ns);
            }
            What::Entered { worker, fencing_token, .. } => {
                let entrance = self.entrances.next().expect("one for each that was told");
                self.enter(worker, &entrance, (at_ns, fencing_token));
            }
            What::Left { worker } => {
                if let Some(number) = self.inside[usize::from(worker)].take() {
                    let attempt = self.names[number];
                    self.push(at_ns, EventKind::SectionLeft { attempt });
                    self.push(at_ns, EventKind::ReleaseCalled { attempt });
                }
            }
        }
    }

    /// T1 is at the first command at the latest.
    fn begin(&mut self, number: usize, at_ns: u64) {
        if core::mem::replace(&mut self.begun[number], true) {
            return;
        }
        let lock = &self.case.scenario.lock;
        let told_ns = self.log.uses.get(number).and_then(|it| it.ttl_ns);
        let ttl_ns = told_ns.unwrap_or(lock.ttl.0);
        let share_ns = u128::from(ttl_ns) * u128::from(lock.drift.share_ppm) / 1_000_000;
        let drift_ns = match ttl_ns {
            u64::MAX => 0,
            _ => u64::try_from(share_ns).unwrap_or(u64::MAX).saturating_add(lock.drift.constant.0),
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

    fn enter(&mut self, worker: u8, entrance: &Entrance, (at_ns, fencing_token): (u64, u64)) {
        let &Entrance { number, counted } = entrance;
        self.begin(number, at_ns);
        let attempt = self.names[number];
        let (clock, deadline_local_ns) = (ClockKind::Boot, u64::MAX);
        let outcome = Settlement::Granted;
        self.push(at_ns, EventKind::AttemptSettled { attempt, outcome });
        let t2_local_ns = at_ns;
        self.push(
            at_ns,
            EventKind::GrantDecided { attempt, counted, t2_local_ns, deadline_local_ns },
        );
        self.push(
            at_ns,
            EventKind::GrantDelivered { attempt, clock, deadline_local_ns, fencing_token },
        );
        self.push(at_ns, EventKind::SectionEntered { attempt });
        self.inside[usize::from(worker)] = Some(number);
    }

    /// An attempt by which nobody ever entered came to nothing, as far as can be seen.
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

    /// The same with attempts called by their names.
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
                // Who deletes what is another's does not release.
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
