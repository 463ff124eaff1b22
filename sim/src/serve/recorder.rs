//! The recorder: writes down what happens to the lock, as masters and workers report it.
//!
//! The worker behind a command's attempt is known only when that worker says that it entered. Until
//! then attempts have preliminary numbers, in the order in which they begin; [`super::history_builder`]
//! assigns their final ids afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use super::meaning::{self, Meaning};
use super::run_clock::RunClock;
use crate::history::{Answer, AttemptId, ClientId, EventKind, Id, NodeId, NodeIds, OpKind, Writer};
use crate::keys::writer_of;
use crate::master::Change;
use crate::master::script::Sha;
use crate::master::server::Touched;
use crate::scenario::CLIENTS_MAX;
use crate::world::key_ended;

/// Maximum number of entries; later ones are not recorded. A history has at most 2 000 000 events,
/// and one entry can become several.
const ENTRIES_MAX: usize = 900_000;

/// Maximum number of attempts: preliminary numbers have 24 bits.
const USES_MAX: usize = 1 << 24;

/// Maximum number of workers. One client is left for connections that never gave a name.
pub(super) const WORKERS_MAX: usize = CLIENTS_MAX - 1;

/// The recorder of one run.
#[derive(Debug)]
pub(super) struct Recorder {
    clock: Arc<RunClock>,
    /// Name of the lock.
    resource: String,
    /// True if the first command about the lock starts the scenario.
    starts_itself: bool,
    /// Notified when the scenario starts.
    pub(super) started: Notify,
    log: Mutex<Log>,
}

/// Everything recorded so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) entries: Vec<Entry>,
    /// True once an entry or attempt was dropped because a limit was reached.
    pub(super) is_full: bool,
    /// Attempts, by their preliminary numbers.
    pub(super) uses: Vec<Use>,
    /// Names of the workers, the scenario's clients first.
    pub(super) workers: Vec<String>,
    by_value: BTreeMap<Bytes, u32>,
    /// The newest attempt of the connections with this name.
    by_name: BTreeMap<String, u32>,
    inside: BTreeSet<ClientId>,
    commands: u32,
}

/// An attempt: all requests with one value.
#[derive(Clone, Debug)]
pub(super) struct Use {
    /// The connection that sent the first request: its node and its number.
    pub(super) connection: (NodeId, u64),
    /// The name that this connection gave itself.
    pub(super) name: Option<String>,
    /// TTL of the attempt's keys; `None` until its first key is set.
    pub(super) ttl_ns: Option<u64>,
    /// The script that carried the attempt's value first.
    script: Option<Sha>,
    /// The nodes that this attempt asked for the lock.
    asked: NodeIds,
    /// True if a worker has left its section since the attempt began.
    is_old: bool,
}

/// A recorded observation, with its time in nanoseconds of true time since time 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) at_ns: u64,
    pub(super) what: What,
}

/// An observation.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// An event at a master; attempts have preliminary numbers.
    Told(EventKind),
    /// A worker entered. `by` is the attempt, if the worker named its value.
    Entered { worker: ClientId, by: Option<u32>, fencing_token: u64 },
    /// A worker left.
    Left { worker: ClientId },
}

/// A recorded command about the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    command: u32,
    attempt: AttemptId,
    is_vote: bool,
}

/// A connection, as the recorder knows it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) node: NodeId,
    pub(super) id: u64,
    pub(super) name: Option<String>,
    /// The attempt of the connection's last request about the lock.
    last: Option<u32>,
}

/// Reason for rejecting a worker's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Disbelief {
    #[error("ERR this run locks another resource: see `resource` in the first lines of `serve`")]
    OtherResource,
    #[error("ERR this worker is in its section already: send LEAVE first")]
    Inside,
    #[error("ERR this worker is not in its section: send ENTER first")]
    Outside,
    #[error("ERR a worker's name is a letter, then up to 63 letters, digits, `-` and `_`")]
    Name,
    #[error("ERR too many workers: at most {WORKERS_MAX}")]
    TooMany,
}

impl Peer {
    pub(super) fn new(node: NodeId, id: u64) -> Self {
        Self { node, id, name: None, last: None }
    }
}

impl Told {
    /// Returns true if the command asks for the lock.
    pub(super) fn is_vote(self) -> bool {
        self.is_vote
    }

    fn done(self, node: NodeId, op: OpKind, answer: Answer) -> EventKind {
        let Self { command, attempt, .. } = self;
        EventKind::Delivered { command, attempt, node, op, answer }
    }
}

/// Converts a preliminary number to an attempt id.
fn preliminary(number: u32) -> AttemptId {
    AttemptId { client: ClientId((number >> 16) as u8), number: number as u16 }
}

/// Converts an attempt id back to its preliminary number.
pub(super) fn number_of(id: AttemptId) -> usize {
    id.client.index() << 16 | usize::from(id.number)
}

impl Recorder {
    pub(super) fn new(
        clock: Arc<RunClock>,
        resource: &str,
        clients: Vec<String>,
        starts_itself: bool,
    ) -> Self {
        let log = Log { workers: clients, ..Log::default() };
        let (resource, started) = (resource.to_owned(), Notify::new());
        Self { clock, resource, starts_itself, started, log: Mutex::new(log) }
    }

    /// Returns true if `key` is a key of the lock.
    pub(super) fn is_key(&self, key: &[u8]) -> bool {
        meaning::is_key(key, self.resource.as_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the parts of the log that a history needs. Masters block while the copy is made.
    pub(super) fn copy(&self) -> Log {
        let log = self.lock();
        let Log { entries, is_full, uses, workers, .. } = &*log;
        let (entries, uses, workers) = (entries.clone(), uses.clone(), workers.clone());
        Log { entries, is_full: *is_full, uses, workers, ..Log::default() }
    }

    /// Starts the scenario, unless it has started.
    pub(super) fn start(&self) {
        if self.clock.start(self.clock.now_ns()) {
            self.started.notify_waiters();
        }
    }

    /// Records an event that happened at a master or to it.
    pub(super) fn tell(&self, kind: EventKind) {
        self.lock().push(&self.clock, What::Told(kind));
    }

    /// Records a request that arrived over `peer`; returns `None` if it is not about the lock.
    pub(super) fn arrived(&self, peer: &mut Peer, request: &[Bytes]) -> Option<Told> {
        let meaning = meaning::of(request, self.resource.as_bytes())?;
        if meaning.changes && self.starts_itself && self.clock.origin_ns().is_none() {
            self.start();
        }
        let mut log = self.lock();
        let (number, is_vote) = log.use_of(peer, &meaning)?;
        peer.last = Some(number);
        let attempt = preliminary(number);
        let told = Told { command: log.commands, attempt, is_vote };
        log.commands += 1;
        let op = if is_vote { OpKind::Set } else { OpKind::Release };
        let written = EventKind::Written { command: told.command, attempt, node: peer.node, op };
        log.push(&self.clock, What::Told(written));
        Some(told)
    }

    /// Attributes a request to an attempt: its own, or else the last one of its connection. Falls
    /// back to the operator.
    pub(super) fn writer(told: Option<Told>, peer: &Peer) -> Writer {
        let last = told.map(|it| it.attempt).or_else(|| peer.last.map(preliminary));
        last.map_or(Writer::Operator, Writer::Attempt)
    }

    /// Records that a request was executed when the node's wall clock read `wall_ns`. Returns the
    /// event to record when the reply is sent; `None` if the request did not concern the lock.
    pub(super) fn executed(
        &self,
        told: Option<Told>,
        peer: &mut Peer,
        (touched, answer, wall_ns): (&[Touched], Answer, u64),
    ) -> Option<EventKind> {
        let is_key = |it: &&Touched| meaning::is_key(&it.key, self.resource.as_bytes());
        let mut mine = touched.iter().filter(is_key).peekable();
        if told.is_none() && mine.peek().is_none() {
            return None;
        }
        let mut log = self.lock();
        let (mut change, mut before, mut after) = (Change::Nothing, None, Writer::Nobody);
        let mut expires_wall_ms = None;
        for Touched { executed, .. } in mine {
            if let Some(expired) = &executed.expired {
                log.push(&self.clock, What::Told(key_ended(peer.node, expired)));
            }
            if let Some(ended) = &executed.ended {
                log.push(&self.clock, What::Told(key_ended(peer.node, ended)));
            }
            before.get_or_insert(writer_of(executed.effect.before));
            after = writer_of(executed.effect.after);
            expires_wall_ms = executed.effect.expires_wall_ms;
            if executed.effect.change != Change::Nothing {
                change = executed.effect.change;
            }
        }
        let told = told.or_else(|| log.unasked(peer))?;
        let before = before.unwrap_or_default();
        if change == Change::Set {
            log.timed(told.attempt, expires_wall_ms, wall_ns);
        }
        let op = match change {
            Change::Set if before == Writer::Nobody => OpKind::Set,
            Change::Set => OpKind::GetSet,
            Change::Retimed => OpKind::Extend,
            Change::Deleted => OpKind::Release,
            Change::Nothing if told.is_vote => OpKind::Set,
            Change::Nothing => OpKind::Release,
        };
        let Told { command, attempt, .. } = told;
        log.push(
            &self.clock,
            What::Told(EventKind::Executed {
                command,
                attempt,
                node: peer.node,
                op,
                answer,
                changed: change != Change::Nothing,
                before,
                after,
                expires_wall_ms: expires_wall_ms.unwrap_or(u64::MAX),
            }),
        );
        Some(told.done(peer.node, op, answer))
    }

    /// Records a worker's report that it entered.
    pub(super) fn entered(
        &self,
        resource: &[u8],
        who: &[u8],
        token: Option<&[u8]>,
    ) -> Result<(), Disbelief> {
        let mut log = self.lock();
        let worker = self.worker(&mut log, resource, who)?;
        if !log.inside.insert(worker) {
            return Err(Disbelief::Inside);
        }
        let by = token.and_then(|token| log.by_value.get(token).copied());
        let integer = token.and_then(|token| core::str::from_utf8(token).ok()?.parse().ok());
        let fencing_token = if by.is_some() { 0 } else { integer.unwrap_or(0) };
        log.push(&self.clock, What::Entered { worker, by, fencing_token });
        Ok(())
    }

    /// Records a worker's report that it left.
    pub(super) fn left(&self, resource: &[u8], who: &[u8]) -> Result<(), Disbelief> {
        let mut log = self.lock();
        let worker = self.worker(&mut log, resource, who)?;
        if !log.inside.remove(&worker) {
            return Err(Disbelief::Outside);
        }
        log.push(&self.clock, What::Left { worker });
        Ok(())
    }

    /// Returns the worker called `who`, and adds that worker if it is new.
    fn worker(&self, log: &mut Log, resource: &[u8], who: &[u8]) -> Result<ClientId, Disbelief> {
        if resource != self.resource.as_bytes() {
            return Err(Disbelief::OtherResource);
        }
        let name = core::str::from_utf8(who).ok().filter(|name| crate::scenario::is_name(name));
        let name = name.ok_or(Disbelief::Name)?;
        if let Some(place) = log.workers.iter().position(|known| known == name) {
            return Ok(ClientId::at(place));
        }
        if log.workers.len() >= WORKERS_MAX {
            return Err(Disbelief::TooMany);
        }
        log.workers.push(name.to_owned());
        Ok(ClientId::at(log.workers.len() - 1))
    }
}

impl Log {
    fn push(&mut self, clock: &RunClock, what: What) {
        let Some(origin_ns) = clock.origin_ns() else { return };
        if self.entries.len() >= ENTRIES_MAX {
            self.is_full = true;
            return;
        }
        let at_ns = clock.now_ns().saturating_sub(origin_ns);
        if let What::Left { .. } = what {
            self.uses.iter_mut().for_each(|it| it.is_old = true);
        }
        self.entries.push(Entry { at_ns, what });
    }

    /// Returns the attempt of a request, and true if the request asks for the lock. Returns `None`
    /// if the request belongs to no attempt.
    fn use_of(&mut self, peer: &Peer, meaning: &Meaning<'_>) -> Option<(u32, bool)> {
        let known = meaning.values.iter().find_map(|it| self.by_value.get(it).copied());
        let asks = |it: &Use| meaning.votes || (it.script.is_some() && it.script == meaning.script);
        let number = match (known, meaning.token) {
            (Some(number), Some(value)) => {
                // A request with the same value to the same node, after a section, starts a new
                // attempt.
                let it = &self.uses[number as usize];
                let again = asks(it) && it.is_old && it.asked.contains(peer.node);
                if again { self.begin(peer, meaning.script, Some(value))? } else { number }
            }
            (Some(number), None) => number,
            (None, Some(value)) => self.begin(peer, meaning.script, Some(value))?,
            (None, None) if meaning.changes => self.last_of(peer)?,
            (None, None) => peer.last?,
        };
        let it = &mut self.uses[number as usize];
        let is_vote = asks(it);
        if is_vote {
            it.asked.insert(peer.node);
        }
        Some((number, is_vote))
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
        if let Some(value) = value {
            // Copied, because a slice of the buffer would keep alive everything that arrived with
            // it.
            self.by_value.insert(Bytes::copy_from_slice(value), number);
        }
        let name = peer.name.clone();
        if let Some(name) = &name {
            self.by_name.insert(name.clone(), number);
        }
        let connection = (peer.node, peer.id);
        self.uses.push(Use {
            connection,
            name,
            ttl_ns: None,
            script,
            asked: NodeIds::EMPTY,
            is_old: false,
        });
        Some(number)
    }

    /// Returns the last attempt of a connection, or else of its name. Starts one if there is none.
    fn last_of(&mut self, peer: &Peer) -> Option<u32> {
        let of_name = || self.by_name.get(peer.name.as_ref()?).copied();
        peer.last.or_else(of_name).or_else(|| self.begin(peer, None, None))
    }

    /// Attributes a change of the key by a request that does not name it, such as EXEC, to the last
    /// attempt of the connection.
    fn unasked(&mut self, peer: &mut Peer) -> Option<Told> {
        let number = self.last_of(peer)?;
        peer.last = Some(number);
        let attempt = preliminary(number);
        let told = Told { command: self.commands, attempt, is_vote: false };
        self.commands += 1;
        Some(told)
    }

    fn timed(&mut self, attempt: AttemptId, expires_wall_ms: Option<u64>, wall_ns: u64) {
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

    #[test]
    fn nothing_new_is_remembered_once_no_more_can_be_told() {
        let mut log = Log::default();
        let peer = Peer::new(NodeId(0), 1);
        let words = ["SET", "res", "one"].map(|word| Bytes::from_static(word.as_bytes()));
        let meaning = meaning::of(&words, b"res").unwrap();
        assert_eq!(log.use_of(&peer, &meaning), Some((0, true)));
        log.is_full = true;
        assert_eq!(log.use_of(&peer, &meaning), Some((0, true)), "what is known is known");
        let words = ["SET", "res", "two"].map(|word| Bytes::from_static(word.as_bytes()));
        let meaning = meaning::of(&words, b"res").unwrap();
        assert_eq!(log.use_of(&peer, &meaning), None);
        assert_eq!((log.uses.len(), log.by_value.len()), (1, 1));
    }
}
