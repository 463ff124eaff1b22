//! Assigns attempts to workers.
//!
//! A worker that enters may give the value of its attempt. Otherwise an attempt is chosen that no
//! worker has used yet, in this order of preference: an attempt on a connection that has the
//! worker's name or belonged to it before; one whose key is on a majority now; the one whose key
//! was on a majority last; the newest.

use std::collections::BTreeMap;

use lock_judge::history::{Answer, ClientId, EventKind, Id, NodeId, NodeIds, OpKind, Writer};
use lock_judge::ids::IdVec;

use crate::serve::recorder::{Log, What, number_of};

/// The attempts and entrances, assigned to workers.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Client of each attempt, by preliminary number. Attempts invented for workers that entered
    /// without one come last.
    pub(super) clients: Vec<Option<ClientId>>,
    /// Attempt of each entrance, in the order of entering.
    pub(super) entrances: Vec<Entrance>,
}

/// A worker's entrance into its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entrance {
    pub(super) number: usize,
    /// Nodes that held the attempt's key and had confirmed it.
    pub(super) counted: NodeIds,
}

/// State of an attempt while the log is read.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    has_begun: bool,
    /// Nodes that hold the attempt's key. `confirmed` are the nodes that have replied that they set
    /// it.
    held: NodeIds,
    confirmed: NodeIds,
    /// Index of the log entry that last gave it a majority.
    majority_at: Option<usize>,
    has_entered: bool,
}

impl Owners {
    pub(super) fn find(log: &Log, nodes: usize) -> Self {
        let mut finder = Finder {
            log,
            needed: nodes as u32 / 2 + 1,
            standings: vec![Standing::default(); log.uses.len()],
            clients: log.uses.iter().map(|it| client_named(log, it.name.as_deref())).collect(),
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

fn client_named(log: &Log, name: Option<&str>) -> Option<ClientId> {
    let place = log.workers.iter().position(|known| Some(known.as_str()) == name)?;
    Some(ClientId::at(place))
}

struct Finder<'a> {
    log: &'a Log,
    needed: u32,
    standings: Vec<Standing>,
    clients: Vec<Option<ClientId>>,
    /// For each node, the attempt whose key it holds.
    holders: IdVec<NodeId, Option<usize>>,
    /// Worker to which each connection belongs.
    connections: BTreeMap<(NodeId, u64), ClientId>,
    entrances: Vec<Entrance>,
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
            EventKind::Delivered {
                attempt,
                node,
                op: OpKind::Set | OpKind::GetSet,
                answer: Answer::Yes,
                ..
            } => {
                self.standings[number_of(attempt)].confirmed.insert(node);
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
        let said = by.map(|number| number as usize);
        let number = said.or_else(|| self.likeliest(worker)).unwrap_or_else(|| {
            self.standings.push(Standing::default());
            self.clients.push(None);
            self.standings.len() - 1
        });
        let standing = &mut self.standings[number];
        standing.has_entered = true;
        let counted = standing.held & standing.confirmed;
        self.clients[number] = Some(worker);
        if let Some(it) = self.log.uses.get(number) {
            self.connections.insert(it.connection, worker);
        }
        self.entrances.push(Entrance { number, counted });
    }

    fn likeliest(&self, worker: ClientId) -> Option<usize> {
        let candidates = self.standings.iter().zip(&self.log.uses).enumerate();
        let rated = candidates.filter_map(|(number, (standing, it))| {
            let known =
                self.clients[number].or_else(|| self.connections.get(&it.connection).copied());
            let is_own = known == Some(worker);
            let majority = standing.held.count() >= self.needed;
            // A worker may enter again by the same lease.
            let possible = standing.has_begun
                && (known.is_none() || is_own)
                && (!standing.has_entered || (is_own && majority));
            possible.then_some(((is_own, majority, standing.majority_at, number), number))
        });
        rated.max().map(|(_, number)| number)
    }

    /// Assigns the remaining attempts to the worker of their connection.
    fn finish(mut self) -> Owners {
        for (client, it) in self.clients.iter_mut().zip(&self.log.uses) {
            if client.is_none() {
                *client = self.connections.get(&it.connection).copied();
            }
        }
        Owners { clients: self.clients, entrances: self.entrances }
    }
}
