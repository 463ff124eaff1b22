//! Assigns attempts to workers.
//!
//! A worker that enters may name the value of its attempt. Otherwise its attempt is chosen among
//! those by which no other worker entered, in this order of preference: an attempt of a connection
//! that has the worker's name; one of a connection that belonged to the worker before, or to no worker;
//! one whose key is on a majority now; one of a connection that belonged to the worker; the one whose
//! key was on a majority last; the newest.
//!
//! An attempt belongs to one worker. Another worker that enters by its value has an attempt of its
//! own, without any key.

use std::collections::BTreeMap;

use lock_judge::history::{ClientId, EventKind, NodeId, NodeIds, Writer};
use lock_judge::ids::IdVec;
use lock_judge::scenario::Scenario;

use super::UNNAMED;
use crate::serve::recorder::{Log, What, number_of};

/// The attempts and entrances, assigned to workers.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Client of each attempt, by preliminary number. Attempts invented for workers that entered
    /// without one come last.
    pub(super) clients: Vec<Option<ClientId>>,
    /// Attempt of each entrance, in the order of entering.
    pub(super) entrances: Vec<usize>,
    /// Names of connections that are no worker's and sent attempts by which no worker entered. They
    /// are clients, too, behind the workers.
    pub(super) strangers: Vec<String>,
}

/// State of an attempt while the log is read.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    has_begun: bool,
    /// Nodes that hold the attempt's key.
    held: NodeIds,
    /// Index of the log entry that last gave it a majority.
    majority_at: Option<usize>,
    has_entered: bool,
}

impl Owners {
    /// Assigns the attempts of a run of `scenario`.
    pub(super) fn find(log: &Log, scenario: &Scenario) -> Self {
        let nodes = scenario.cluster.nodes.len();
        let mut finder = Finder {
            log,
            scenario,
            needed: nodes as u32 / 2 + 1,
            standings: vec![Standing::default(); log.uses.len()],
            clients: log.uses.iter().map(|it| log.worker_named(it.name.as_deref())).collect(),
            holders: IdVec::filled(nodes, None),
            connections: BTreeMap::new(),
            entrances: Vec::new(),
        };
        for (place, entry) in log.entries.iter().enumerate() {
            match entry.what {
                What::Told(kind) => finder.told(place, kind),
                What::Entered { worker, by, .. } => finder.entered(worker, by),
                What::Left { .. } => {}
            }
        }
        finder.finish()
    }
}

struct Finder<'a> {
    log: &'a Log,
    scenario: &'a Scenario,
    needed: u32,
    standings: Vec<Standing>,
    clients: Vec<Option<ClientId>>,
    /// For each node, the attempt whose key it holds.
    holders: IdVec<NodeId, Option<usize>>,
    /// Worker to which each connection belongs; `None` if several have entered by it.
    connections: BTreeMap<(NodeId, u64), Option<ClientId>>,
    entrances: Vec<usize>,
}

impl Finder<'_> {
    fn told(&mut self, place: usize, kind: EventKind) {
        match kind {
            EventKind::Written { attempt, .. } => {
                self.standings[number_of(attempt)].has_begun = true;
            }
            EventKind::Executed { node, after, changed: true, .. } => {
                self.holds(place, node, after);
            }
            EventKind::KeyEnded { node, writer: Writer::Attempt(id), .. }
                if self.holders[node] == Some(number_of(id)) =>
            {
                self.holds(place, node, Writer::Nobody);
            }
            EventKind::KeyReturned { node, writer, .. } => self.holds(place, node, writer),
            _ => {}
        }
    }

    /// Notes that the key on `node` belongs to `writer` from now on.
    fn holds(&mut self, place: usize, node: NodeId, writer: Writer) {
        let new = match writer {
            Writer::Attempt(id) => Some(number_of(id)),
            Writer::Nobody | Writer::Operator => None,
        };
        let old = core::mem::replace(&mut self.holders[node], new);
        if let Some(standing) = old.and_then(|number| self.standings.get_mut(number)) {
            standing.held.remove(node);
        }
        if let Some(standing) = new.and_then(|number| self.standings.get_mut(number)) {
            standing.held.insert(node);
            if standing.held.count() >= self.needed {
                standing.majority_at = Some(place);
            }
        }
    }

    fn entered(&mut self, worker: ClientId, by: Option<u32>) {
        let is_anothers =
            |number: &usize| self.clients[*number].is_some_and(|owner| owner != worker);
        let found = match by.map(|number| number as usize) {
            Some(said) => Some(said).filter(|said| !is_anothers(said)),
            None => self.likeliest(worker),
        };
        let number = found.unwrap_or_else(|| self.invent());
        self.standings[number].has_entered = true;
        self.clients[number] = Some(worker);
        if let Some(it) = self.log.uses.get(number) {
            let owner = self.connections.entry(it.connection).or_insert(Some(worker));
            *owner = owner.filter(|&owner| owner == worker);
        }
        self.entrances.push(number);
    }

    /// Adds an attempt for a worker that entered without one.
    fn invent(&mut self) -> usize {
        self.standings.push(Standing::default());
        self.clients.push(None);
        self.standings.len() - 1
    }

    fn likeliest(&self, worker: ClientId) -> Option<usize> {
        let candidates = self.standings.iter().zip(&self.log.uses).enumerate();
        let rated = candidates.filter_map(|(number, (standing, it))| {
            let known = self.clients[number];
            let by_connection = self.connections.get(&it.connection).copied().flatten();
            let owner = known.or(by_connection);
            let (is_own, is_free) = (owner == Some(worker), owner.is_none());
            let majority = standing.held.count() >= self.needed;
            // A worker may enter again by the same lease.
            let possible = standing.has_begun
                && known.is_none_or(|known| known == worker)
                && (!standing.has_entered || (is_own && majority));
            // A worker that names one connection names all.
            let is_named = self.log.worker_named(it.name.as_deref()) == Some(worker);
            let can_be = is_own || is_free;
            let rank = (is_named, can_be, majority, is_own, standing.majority_at, number);
            possible.then_some((rank, number))
        });
        rated.max().map(|(_, number)| number)
    }

    /// Assigns the remaining attempts to the worker of their connection, or else to its name.
    fn finish(mut self) -> Owners {
        let mut strangers = Vec::new();
        for (client, it) in self.clients.iter_mut().zip(&self.log.uses) {
            if client.is_none() {
                let by_connection = self.connections.get(&it.connection).copied().flatten();
                let is_new = |name: &&str| self.scenario.host_named(name).is_none();
                let name = it.name.as_deref().filter(|&name| name != UNNAMED).filter(is_new);
                let named = || self.log.stranger(&mut strangers, name?);
                *client = by_connection.or_else(named);
            }
        }
        Owners { clients: self.clients, entrances: self.entrances, strangers }
    }
}
