//! The log of a run: observations, and the attempts to which requests belong.

mod attribution;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use lock_judge::history::{
    Answer, AttemptId, ClientId, CommandId, EventKind, FencingToken, Id, NodeId, NodeIds, OpKind,
    Writer,
};
use lock_judge::scenario::is_name;
use redis_sim::SmallBytes;
use redis_sim::script::Sha;

use super::lock_key::LockKey;
use super::{Peer, WORKERS_MAX};
use crate::serve::run_clock::RunClock;
use crate::serve::unknown_commands::UnknownCommands;

/// Maximum number of entries; later ones are not recorded. A history has at most 2 000 000 events,
/// and one entry can become several.
const ENTRIES_MAX: usize = 900_000;

/// Maximum number of attempts: preliminary numbers have 24 bits.
const USES_MAX: usize = 1 << 24;

/// Maximum number of scripts whose purpose is remembered.
const SCRIPTS_MAX: usize = 10_000;

/// Everything recorded so far.
#[derive(Clone, Debug, Default)]
pub(in crate::serve) struct Log {
    pub(in crate::serve) entries: Vec<Entry>,
    /// True once an entry or attempt was dropped because a limit was reached.
    pub(in crate::serve) is_full: bool,
    /// Attempts, by their preliminary numbers.
    pub(in crate::serve) uses: Vec<Use>,
    /// Names of the workers, the scenario's clients first.
    pub(in crate::serve) workers: Vec<String>,
    /// The attempts with each value, in the order of their beginnings. Of each worker's attempts
    /// with a value, the newest.
    by_value: BTreeMap<Bytes, Vec<u32>>,
    /// The newest attempt of the connections with this name.
    by_name: BTreeMap<String, u32>,
    /// The attempt that set a node's key last, and the value that it stored.
    stored: BTreeMap<NodeId, (u32, SmallBytes)>,
    /// For each worker that has left a section, the number of attempts at its last leave.
    left_at: BTreeMap<ClientId, u32>,
    /// For each worker, the number of its attempts that have asked for the lock.
    asking: BTreeMap<ClientId, u16>,
    /// Purposes of the scripts whose text has been seen.
    scripts: BTreeMap<Sha, OpKind>,
    /// For each script that has stored one of its arguments, the place of that argument.
    places: BTreeMap<Sha, usize>,
    pub(super) key: LockKey,
    /// Keys of the requests that were executed before the lock's key was known.
    early: BTreeMap<CommandId, SmallBytes>,
    /// Those that were not about the lock.
    forgotten: BTreeSet<CommandId>,
    pub(super) inside: BTreeSet<ClientId>,
    /// First refusal of a worker that is no client of the scenario.
    pub(super) stranger: Option<String>,
    pub(super) commands: u32,
    pub(super) unknown: UnknownCommands,
}

/// An attempt: all requests with one value, unless connections of several workers sent them.
#[derive(Clone, Debug)]
pub(in crate::serve) struct Use {
    /// The connection that sent the first request: its node and its number.
    pub(in crate::serve) connection: (NodeId, u64),
    /// The name that this connection gave itself.
    pub(in crate::serve) name: Option<String>,
    /// The worker with this name, if it was known when the attempt began.
    worker: Option<ClientId>,
    /// TTL of the attempt's keys; `None` until its first key is set.
    pub(in crate::serve) ttl_ns: Option<u64>,
    /// The script that carried the attempt's value first.
    script: Option<Sha>,
    /// The nodes that this attempt asked for the lock, and those whose votes the client received.
    asked: NodeIds,
    confirmed: NodeIds,
    /// Number of attempts of its worker that had asked for the lock when this one first asked; before
    /// that, when it began.
    asking: u16,
    /// The nodes that have its key.
    keys: NodeIds,
    /// Answer to the request that set its first key.
    granted: Option<Answer>,
    /// The worker that entered by it.
    entered: Option<ClientId>,
}

/// A recorded observation, with its time in nanoseconds of true time since time 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) struct Entry {
    pub(in crate::serve) at_ns: u64,
    pub(in crate::serve) what: What,
}

/// An observation.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) enum What {
    /// An event at a master; attempts have preliminary numbers.
    Told(EventKind),
    /// A worker entered. `by` is the attempt, if the worker named its value.
    Entered { worker: ClientId, by: Option<u32>, fencing_token: FencingToken },
    /// A worker left.
    Left { worker: ClientId },
}

/// Converts a preliminary number to an attempt id.
pub(super) fn preliminary(number: u32) -> AttemptId {
    AttemptId { client: ClientId((number >> 16) as u8), number: number as u16 }
}

/// Converts an attempt id back to its preliminary number.
pub(in crate::serve) fn number_of(id: AttemptId) -> usize {
    id.client.index() << 16 | usize::from(id.number)
}

impl Log {
    /// Returns an empty log with these workers.
    pub(super) fn with_workers(workers: Vec<String>) -> Self {
        Self { workers, ..Self::default() }
    }

    /// Copies the parts that a history needs.
    pub(super) fn excerpt(&self) -> Self {
        let Self { entries, is_full, uses, workers, .. } = self;
        let (entries, uses, workers) = (entries.clone(), uses.clone(), workers.clone());
        Self { entries, is_full: *is_full, uses, workers, ..Self::default() }
    }

    /// Adds an observation, once the scenario has started and as long as there is room.
    pub(super) fn push(&mut self, clock: &RunClock, what: What) {
        let Some(origin_ns) = clock.origin_ns() else { return };
        if self.entries.len() >= ENTRIES_MAX {
            self.is_full = true;
            return;
        }
        let at_ns = clock.now_ns().saturating_sub(origin_ns);
        match what {
            What::Told(EventKind::Delivered { command, .. })
                if self.forgotten.contains(&command) =>
            {
                return;
            }
            What::Entered { worker, by: Some(number), .. } => {
                self.uses[number as usize].entered = Some(worker);
            }
            What::Left { worker } => {
                self.left_at.insert(worker, self.uses.len() as u32);
            }
            What::Told(EventKind::KeyEnded { node, writer, .. }) => {
                self.has_key(writer, node, false)
            }
            What::Told(EventKind::Executed { node, before, after, .. }) => {
                self.has_key(before, node, false);
                self.has_key(after, node, true);
            }
            _ => {}
        }
        self.entries.push(Entry { at_ns, what });
    }

    /// Records whether the key on `node` is that of `writer`.
    fn has_key(&mut self, writer: Writer, node: NodeId, has_key: bool) {
        if let Writer::Attempt(id) = writer
            && let Some(it) = self.uses.get_mut(number_of(id))
        {
            it.keys.set(node, has_key);
        }
    }

    /// Starts an attempt with `value`, which arrived in `script` if it arrived in a script. Without
    /// a value, the attempt stands for a client that changes the lock without having asked for it.
    /// Returns `None` if no more attempts can be recorded.
    fn begin(&mut self, peer: &Peer, script: Option<Sha>, value: Option<&Bytes>) -> Option<u32> {
        self.is_full |= self.uses.len() >= USES_MAX;
        if self.is_full {
            return None;
        }
        let number = self.uses.len() as u32;
        let worker = self.worker_named(peer.name.as_deref());
        if let Some(value) = value {
            self.name(number, value, worker);
        }
        let name = peer.name.clone();
        if let Some(name) = &name {
            self.by_name.insert(name.clone(), number);
        }
        let connection = (peer.node, peer.id);
        self.uses.push(Use {
            connection,
            name,
            worker,
            ttl_ns: None,
            script,
            asked: NodeIds::EMPTY,
            confirmed: NodeIds::EMPTY,
            asking: worker.and_then(|it| self.asking.get(&it).copied()).unwrap_or(0),
            keys: NodeIds::EMPTY,
            granted: None,
            entered: None,
        });
        Some(number)
    }

    /// Notes that the attempt asks `node` for the lock.
    fn ask(&mut self, number: u32, node: NodeId) {
        let it = &mut self.uses[number as usize];
        if let Some(worker) = it.worker.filter(|_| it.asked.is_empty()) {
            let count = self.asking.entry(worker).or_default();
            *count = count.saturating_add(1);
            it.asking = *count;
        }
        it.asked.insert(node);
    }

    /// Returns true if the attempt's worker has left its section since the attempt began; if the worker
    /// is unknown, any worker.
    fn is_old(&self, number: u32) -> bool {
        let left_at = match self.uses[number as usize].worker {
            Some(worker) => self.left_at.get(&worker),
            None => self.left_at.values().max(),
        };
        left_at.is_some_and(|&left_at| number < left_at)
    }

    /// Remembers the key of a request that was executed before the lock's key was known.
    pub(super) fn executed_early(&mut self, command: CommandId, key: &SmallBytes) {
        // What is executed before time 0 is no entry.
        self.is_full |= self.early.len() >= ENTRIES_MAX;
        if !self.is_full {
            self.early.insert(command, key.clone());
        }
    }

    /// Returns the worker called `name`.
    pub(in crate::serve) fn worker_named(&self, name: Option<&str>) -> Option<ClientId> {
        let place = self.workers.iter().position(|known| Some(known.as_str()) == name)?;
        Some(ClientId::at(place))
    }

    /// Returns the client called `name`, behind the workers. Adds it to `strangers` if it is new and
    /// the name can be a client's.
    pub(in crate::serve) fn stranger(
        &self,
        strangers: &mut Vec<String>,
        name: &str,
    ) -> Option<ClientId> {
        let known = strangers.iter().position(|known| known == name);
        let place = known.unwrap_or(strangers.len());
        let client = self.workers.len() + place;
        if known.is_none() {
            if client >= WORKERS_MAX || !is_name(name) {
                return None;
            }
            strangers.push(name.to_owned());
        }
        Some(ClientId::at(client))
    }

    /// Returns the id of an attempt among those of its worker that asked for the lock; `None` if it
    /// has no worker.
    pub(super) fn attempt_of(&self, attempt: AttemptId) -> Option<AttemptId> {
        let it = self.uses.get(number_of(attempt))?;
        Some(AttemptId { client: it.worker?, number: it.asking })
    }

    /// Notes the votes that a client receives.
    pub(super) fn confirm(&mut self, kind: EventKind) {
        if let EventKind::Delivered {
            attempt,
            node,
            op: OpKind::Set | OpKind::Get,
            answer: Answer::Yes,
            ..
        } = kind
            && let Some(it) = self.uses.get_mut(number_of(attempt))
        {
            it.confirmed.insert(node);
        }
    }

    /// Returns true if the client has received the node's vote for the attempt.
    pub(super) fn has_heard(&self, attempt: AttemptId, node: NodeId) -> bool {
        self.uses.get(number_of(attempt)).is_some_and(|it| it.confirmed.contains(node))
    }

    /// Returns the number of nodes whose votes for the attempt its client has received.
    pub(super) fn confirmed(&self, attempt: AttemptId) -> usize {
        self.uses.get(number_of(attempt)).map_or(0, |it| it.confirmed.count() as usize)
    }

    /// Records the answer to the request that set a key of the attempt.
    pub(super) fn granted(&mut self, attempt: AttemptId, answer: Answer) {
        if let Some(it) = self.uses.get_mut(number_of(attempt)) {
            it.granted.get_or_insert(answer);
        }
    }

    /// Returns the answer that the attempt gets when it has the key.
    pub(super) fn grant_of(&self, attempt: AttemptId) -> Answer {
        self.uses.get(number_of(attempt)).and_then(|it| it.granted).unwrap_or(Answer::Yes)
    }

    /// Records the TTL with which an attempt's first key is set, in nanoseconds; `u64::MAX` if that
    /// key has no expiry. Later changes of the expiry, and the TTLs of other nodes' keys, are not
    /// recorded here.
    pub(super) fn timed(&mut self, attempt: AttemptId, expires_wall_ms: Option<u64>, wall_ns: u64) {
        let ttl_ns = match expires_wall_ms {
            Some(ms) => (ms - (wall_ns / 1_000_000).min(ms)).saturating_mul(1_000_000),
            None => u64::MAX,
        };
        if let Some(it) = self.uses.get_mut(number_of(attempt)) {
            it.ttl_ns.get_or_insert(ttl_ns);
        }
    }

    /// Forgets what was executed on other keys than the lock's, which is known now, and the values that
    /// these requests gave.
    pub(super) fn forget_others(&mut self) {
        let early = core::mem::take(&mut self.early);
        let others = early.into_iter().filter(|(_, key)| !self.key.has_name(key));
        let others: BTreeSet<CommandId> = others.map(|(command, _)| command).collect();
        if others.is_empty() {
            return;
        }
        let mut kept = BTreeSet::new();
        self.entries.retain(|entry| match &entry.what {
            What::Told(
                EventKind::Written { command, attempt, .. }
                | EventKind::Executed { command, attempt, .. }
                | EventKind::Delivered { command, attempt, .. },
            ) => {
                let keeps = !others.contains(command);
                if keeps {
                    kept.insert(number_of(*attempt) as u32);
                }
                keeps
            }
            _ => true,
        });
        self.forgotten = others;
        self.by_name.retain(|_, number| kept.contains(number));
        for same in self.by_value.values_mut() {
            same.retain(|number| kept.contains(number));
        }
        self.asking.clear();
        for (number, it) in (0..).zip(&mut self.uses) {
            if !kept.contains(&number) {
                (it.keys, it.asked, it.ttl_ns) = (NodeIds::EMPTY, NodeIds::EMPTY, None);
            }
            if let Some(worker) = it.worker {
                let count = self.asking.entry(worker).or_default();
                *count = count.saturating_add(u16::from(!it.asked.is_empty()));
                it.asking = *count;
            }
        }
    }
}
