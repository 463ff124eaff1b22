//! The log of a run: observations, and the attempts to which requests belong.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use lock_judge::history::{
    Answer, AttemptId, ClientId, CommandId, EventKind, FencingToken, Id, NodeId, NodeIds, OpKind,
    Writer,
};
use lock_judge::scenario::is_name;
use redis_sim::script::Sha;
use redis_sim::server::Touched;

use super::lock_key::LockKey;
use super::{Peer, Told, WORKERS_MAX};
use crate::keys::writer_of;
use crate::serve::meaning::{self, Meaning};
use crate::serve::run_clock::RunClock;

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
    /// Purposes of the scripts whose text has been seen.
    scripts: BTreeMap<Sha, OpKind>,
    pub(super) key: LockKey,
    pub(super) inside: BTreeSet<ClientId>,
    /// First refusal of a worker that is no client of the scenario.
    pub(super) stranger: Option<String>,
    pub(super) commands: u32,
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
    /// True if its worker has left its section since the attempt began; if the worker is unknown, any
    /// worker.
    is_old: bool,
    /// True if a release was requested.
    is_released: bool,
    /// The nodes that have its key.
    keys: NodeIds,
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
            What::Left { worker } => {
                let of_worker = |it: &&mut Use| it.worker.is_none_or(|own| own == worker);
                self.uses.iter_mut().filter(of_worker).for_each(|it| it.is_old = true);
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

    /// Returns the attempt of a request, and the purpose of the request: `Set` if it asks for the
    /// lock. Returns `None` if the request belongs to no attempt.
    pub(super) fn use_of(&mut self, peer: &Peer, meaning: &Meaning<'_>) -> Option<(u32, OpKind)> {
        let worker = self.worker_named(peer.name.as_deref());
        let known = meaning.values.iter().find_map(|it| self.with_value(it, worker));
        let votes = meaning.op == Some(OpKind::Set);
        let asks = |it: &Use| votes || (it.script.is_some() && it.script == meaning.script);
        let number = match (known, meaning.token) {
            (Some(number), Some(value)) => {
                // A request with the same value to the same node, after a section, starts a new
                // attempt, unless the key is still there: then it extends the lease.
                let it = &self.uses[number as usize];
                let is_gone = it.is_released || !it.keys.contains(peer.node);
                let again = asks(it) && it.is_old && it.asked.contains(peer.node) && is_gone;
                if again { self.begin(peer, meaning.script, Some(value))? } else { number }
            }
            (Some(number), None) => number,
            (None, Some(value)) => self.begin(peer, meaning.script, Some(value))?,
            (None, None) if meaning.changes => self.last_of(peer)?,
            (None, None) => peer.last?,
        };
        if let (Some(OpKind::Extend), Some(value)) = (meaning.op, meaning.token) {
            self.name(number, value, worker);
        }
        let it = &mut self.uses[number as usize];
        if asks(it) {
            it.asked.insert(peer.node);
            self.key.asked_for(meaning.key);
            return Some((number, OpKind::Set));
        }
        if let (Some(script), Some(text)) = (meaning.script, meaning.text) {
            self.learn(script, text);
        }
        let purpose = || meaning.script.and_then(|script| self.scripts.get(&script).copied());
        let op = meaning.op.or_else(purpose).unwrap_or(OpKind::Release);
        self.uses[number as usize].is_released |= op == OpKind::Release;
        Some((number, op))
    }

    /// Remembers the purpose of a script, so that it is known by its hash.
    pub(super) fn learn(&mut self, script: Sha, text: &[u8]) {
        if self.scripts.len() < SCRIPTS_MAX {
            self.scripts.entry(script).or_insert_with(|| meaning::purpose(text));
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
            is_old: false,
            is_released: false,
            keys: NodeIds::EMPTY,
        });
        Some(number)
    }

    /// Records that the attempt `number` of `worker` is the newest with `value`.
    fn name(&mut self, number: u32, value: &[u8], worker: Option<ClientId>) {
        // Copied, because a slice of the buffer would keep alive everything that arrived with it.
        let same = self.by_value.entry(Bytes::copy_from_slice(value)).or_default();
        same.retain(|&other| self.uses.get(other as usize).is_some_and(|it| it.worker != worker));
        same.push(number);
    }

    /// Returns the newest attempt with `value` that may be the worker's: of its own connections, or
    /// of one that is no worker's by name. Without a worker, any may be.
    pub(super) fn with_value(&self, value: &[u8], worker: Option<ClientId>) -> Option<u32> {
        let may_be = |number: &&u32| {
            let owner = self.uses[**number as usize].worker;
            owner.is_none() || worker.is_none() || owner == worker
        };
        self.by_value.get(value)?.iter().rev().find(may_be).copied()
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

    /// Returns the newest attempt of a connection's name, or else of the connection: a client with a
    /// pool asks over one connection and deletes over another. Starts one if there is none.
    fn last_of(&mut self, peer: &Peer) -> Option<u32> {
        let of_name = peer.name.as_ref().and_then(|name| self.by_name.get(name).copied());
        of_name.or(peer.last).or_else(|| self.begin(peer, None, None))
    }

    /// Returns true if the attempt `number` was begun by a connection with the name of `peer`, or, if that
    /// has none, by `peer` itself.
    fn is_of(&self, number: usize, peer: &Peer) -> bool {
        self.uses.get(number).is_some_and(|it| match &peer.name {
            Some(name) => it.name.as_ref() == Some(name),
            None => it.connection == (peer.node, peer.id),
        })
    }

    /// Returns the id of an attempt among those of its worker that asked for the lock; `None` if it
    /// has no worker.
    pub(super) fn attempt_of(&self, attempt: AttemptId) -> Option<AttemptId> {
        let (number, mut asking) = (number_of(attempt), 0);
        let client = self.uses.get(number)?.worker?;
        for it in &self.uses[..=number] {
            asking += u16::from(it.worker == Some(client) && !it.asked.is_empty());
        }
        Some(AttemptId { client, number: asking })
    }

    /// Notes the votes that a client receives.
    pub(super) fn confirm(&mut self, kind: EventKind) {
        if let EventKind::Delivered { attempt, node, op: OpKind::Set, answer: Answer::Yes, .. } =
            kind
            && let Some(it) = self.uses.get_mut(number_of(attempt))
        {
            it.confirmed.insert(node);
        }
    }

    /// Returns the number of nodes whose votes for the attempt its client has received.
    pub(super) fn confirmed(&self, attempt: AttemptId) -> usize {
        self.uses.get(number_of(attempt)).map_or(0, |it| it.confirmed.count() as usize)
    }

    /// Attributes the effects `touched` of a request that does not name the key, such as EXEC: to the
    /// attempt whose key it ended, if that is of the same client, else to the last attempt of the
    /// connection.
    pub(super) fn unasked(&mut self, peer: &mut Peer, touched: &[&Touched]) -> Option<Told> {
        let own = touched.iter().find_map(|it| match writer_of(it.executed.effect.before) {
            Writer::Attempt(id) => Some(number_of(id)).filter(|number| self.is_of(*number, peer)),
            _ => None,
        });
        let number = own.map(|it| it as u32).or_else(|| self.last_of(peer))?;
        peer.last = Some(number);
        let attempt = preliminary(number);
        let told = Told { command: CommandId(self.commands), attempt, op: OpKind::Release };
        self.commands += 1;
        Some(told)
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::meaning;

    #[test]
    fn nothing_is_stored_once_the_limit_is_reached() {
        let mut log = Log::default();
        let peer = Peer::new(NodeId(0), 1);
        let words = ["SET", "res", "one"].map(|word| Bytes::from_static(word.as_bytes()));
        let meaning = meaning::of(&words, |key| key == b"res").unwrap();
        assert_eq!(log.use_of(&peer, &meaning), Some((0, OpKind::Set)));
        log.is_full = true;
        assert_eq!(log.use_of(&peer, &meaning), Some((0, OpKind::Set)), "what is known is known");
        let words = ["SET", "res", "two"].map(|word| Bytes::from_static(word.as_bytes()));
        let meaning = meaning::of(&words, |key| key == b"res").unwrap();
        assert_eq!(log.use_of(&peer, &meaning), None);
        assert_eq!((log.uses.len(), log.by_value.len()), (1, 1));
    }

    #[test]
    fn one_value_of_two_workers_is_two_attempts() {
        let mut log = Log::with_workers(vec![String::from("c1"), String::from("c2")]);
        let words = ["SET", "res", "host"].map(|word| Bytes::from_static(word.as_bytes()));
        let meaning = meaning::of(&words, |key| key == b"res").unwrap();
        let peer =
            |name: Option<&str>| Peer { name: name.map(String::from), ..Peer::new(NodeId(0), 1) };
        let mut number = |name| log.use_of(&peer(name), &meaning).unwrap().0;
        assert_eq!([Some("c1"), Some("c2"), Some("c1")].map(&mut number), [0, 1, 0]);
        // Without a worker's name a request is of the newest.
        assert_eq!([None, Some("pool")].map(&mut number), [1, 1]);
        assert_eq!(log.with_value(b"host", Some(ClientId(0))), Some(0));
        assert_eq!(log.with_value(b"host", Some(ClientId(7))), None);
    }
}
