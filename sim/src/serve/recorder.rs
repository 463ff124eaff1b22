//! The recorder: records what masters and workers report about the lock.
//!
//! The worker of an attempt is known only when it reports `ENTER`. Until then attempts have
//! preliminary numbers, in the order in which they begin; [`super::history_builder`] assigns their
//! final ids afterwards.

mod execution;
mod lock_key;
mod log;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lock_judge::history::{
    Answer, AttemptId, ClientId, CommandId, EventKind, FencingToken, HostId, Id, NodeId, OpKind,
    Writer,
};
use lock_judge::scenario::{AttemptStep, CLIENTS_MAX};
use redis_sim::script::sha_of;
use redis_sim::server::{Touched, UnknownCommand};
use tokio::sync::Notify;

use self::log::preliminary;
pub(super) use self::log::{Entry, Log, What, number_of};
use super::meaning;
use super::points::Points;
use super::run_clock::RunClock;
use crate::plan::steps;

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
    /// Clients of the scenario, if nobody else may be a worker.
    only_clients: Option<Vec<String>>,
    /// Notified when the scenario starts.
    pub(super) started: Notify,
    pub(super) points: Points,
    log: Mutex<Log>,
}

/// A recorded command about the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    command: CommandId,
    attempt: AttemptId,
    /// Purpose of the command: `Set` if it asks for the lock.
    op: OpKind,
}

/// The execution of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Execution<'a> {
    pub(super) request: &'a [Bytes],
    /// Keys that the request touched.
    pub(super) touched: &'a [Touched],
    pub(super) answer: Answer,
    /// Reading of the node's wall clock.
    pub(super) wall_ns: u64,
}

/// A connection, as the recorder knows it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) node: NodeId,
    pub(super) id: u64,
    pub(super) name: Option<String>,
    /// The attempt of the connection's last request about the lock.
    last: Option<u32>,
    /// The attempt whose value the connection has read last.
    read: Option<u32>,
}

/// Reason for rejecting a worker's report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Disbelief {
    #[error(
        "`{name}` is no client of this scenario: a worker's name is in DRIVE_CLIENT, here {clients}"
    )]
    Stranger { name: String, clients: String },
    #[error(
        "this run locks another resource: see `resource` in the first lines of `serve`, or DRIVE_RESOURCE"
    )]
    OtherResource,
    #[error("this worker is in its section already: send LEAVE first")]
    Inside,
    #[error("this worker is not in its section: send ENTER first")]
    Outside,
    #[error("a worker's name is a letter, then up to 63 letters, digits, `-` and `_`")]
    Name,
    #[error("too many workers: at most {WORKERS_MAX}")]
    TooMany,
}

impl Peer {
    pub(super) fn new(node: NodeId, id: u64) -> Self {
        Self { node, id, name: None, last: None, read: None }
    }

    /// Returns the connection with the name that the network knows, if any.
    pub(super) fn named(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }
}

impl Told {
    /// Returns the purpose of the command: `Set` if it asks for the lock.
    pub(super) fn op(self) -> OpKind {
        self.op
    }

    fn done(self, node: NodeId, op: OpKind, answer: Answer) -> EventKind {
        let Self { command, attempt, .. } = self;
        EventKind::Delivered { command, attempt, node, op, answer }
    }
}

impl Recorder {
    pub(super) fn new(
        clock: Arc<RunClock>,
        resource: &str,
        clients: Vec<String>,
        (starts_itself, admits_strangers): (bool, bool),
        points: Points,
    ) -> Self {
        let only_clients = (!admits_strangers).then(|| clients.clone());
        let log = Mutex::new(Log::with_workers(clients));
        let (resource, started) = (resource.to_owned(), Notify::new());
        Self { clock, resource, starts_itself, only_clients, started, points, log }
    }

    /// Returns true if `key` in `database` is the lock's key.
    pub(super) fn is_key(&self, database: u8, key: &[u8]) -> bool {
        self.lock().key.is(database, key, &self.resource)
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the parts of the log that a history needs. Masters block while the copy is made.
    pub(super) fn copy(&self) -> Log {
        self.lock().excerpt()
    }

    /// Starts the scenario, unless it has started.
    pub(super) fn start(&self) {
        if self.clock.start(self.clock.now_ns()) {
            self.started.notify_waiters();
        }
    }

    /// Records an event that happened at a master or to it.
    pub(super) fn tell(&self, kind: EventKind) {
        let mut log = self.lock();
        log.confirm(kind);
        log.push(&self.clock, What::Told(kind));
    }

    /// Returns true if the execution of a request has to wait for a fault that begins before it.
    pub(super) fn executes_later(&self, told: Told, node: NodeId) -> bool {
        if self.points.is_empty() {
            return false;
        }
        let Some(step) = steps::executed(told.op) else { return false };
        let attempt = self.lock().attempt_of(told.attempt);
        attempt.is_some_and(|it| self.points.reach(it, step, node))
    }

    /// Returns true if a reply, which `told` records, has to wait for a fault that begins before the
    /// client receives it.
    pub(super) fn replies_later(&self, told: EventKind) -> bool {
        let EventKind::Delivered { attempt, node, op, answer, .. } = told else { return false };
        if self.points.is_empty() {
            return false;
        }
        let Some(step) = steps::replied(op) else { return false };
        let (attempt, confirmed) = {
            let log = self.lock();
            (log.attempt_of(attempt), log.confirmed(attempt))
        };
        let Some(attempt) = attempt else { return false };
        let decides =
            op == OpKind::Set && answer == Answer::Yes && self.points.is_decided_by_next(confirmed);
        self.points.reach(attempt, step, node)
            || (decides && self.points.reach(attempt, AttemptStep::T2, node))
    }

    /// Records that the process of `client`, on `host`, has ended, and its section with it. Returns
    /// true if the client was in its section.
    pub(super) fn killed(&self, client: ClientId, host: HostId) -> bool {
        let mut log = self.lock();
        let was_inside = log.inside.remove(&client);
        log.push(&self.clock, What::Told(EventKind::Killed { host, power: false }));
        was_inside
    }

    /// Returns true if a connection with this name has asked for the lock.
    pub(super) fn has_asked(&self, name: &str) -> bool {
        self.lock().uses.iter().any(|it| it.name.as_deref() == Some(name))
    }

    /// Returns the first refusal of a worker that is no client of the scenario.
    pub(super) fn stranger(&self) -> Option<String> {
        self.lock().stranger.clone()
    }

    /// Records the commands of `peer` that a master does not know.
    pub(super) fn unknown(&self, peer: &Peer, found: BTreeMap<UnknownCommand, u64>) {
        self.lock().unknown.add(peer.name.as_ref(), found);
    }

    /// Names the commands that the masters do not know, in a sentence for each client.
    pub(super) fn unknown_in_words(&self) -> Vec<String> {
        self.lock().unknown.in_words()
    }

    /// Returns true if `client` is in its section.
    pub(super) fn is_inside(&self, client: ClientId) -> bool {
        self.lock().inside.contains(&client)
    }

    /// Records a request that arrived over `peer`; returns `None` if it is not about the lock.
    pub(super) fn arrived(&self, peer: &mut Peer, request: &[Bytes]) -> Option<Told> {
        if let Some(text) = meaning::loaded(request) {
            self.lock().learn(sha_of(text), text);
        }
        let mut log = self.lock();
        let meaning = meaning::of(request, |key| log.key.is_named(key, &self.resource))?;
        if meaning.changes && self.starts_itself && self.clock.origin_ns().is_none() {
            self.start();
        }
        let (number, op) = log.use_of(peer, &meaning)?;
        peer.last = Some(number);
        let attempt = preliminary(number);
        let told = Told { command: CommandId(log.commands), attempt, op };
        log.commands += 1;
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
        let with = |token| log.with_value(token, Some(worker)).or(log.with_value(token, None));
        let by = token.and_then(with);
        let digits = token.filter(|it| by.is_none() && it.iter().all(u8::is_ascii_digit));
        let integer = digits.and_then(|digits| core::str::from_utf8(digits).ok()?.parse().ok());
        let fencing_token = integer.map_or(FencingToken::NONE, FencingToken);
        log.push(&self.clock, What::Entered { worker, by, fencing_token });
        self.points.enter(worker);
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
        let name =
            core::str::from_utf8(who).ok().filter(|name| lock_judge::scenario::is_name(name));
        let name = name.ok_or(Disbelief::Name)?;
        if let Some(known) = log.worker_named(Some(name)) {
            return Ok(known);
        }
        if let Some(clients) = &self.only_clients {
            let (name, clients) = (name.to_owned(), clients.join(" or "));
            let refused = Disbelief::Stranger { name, clients };
            log.stranger.get_or_insert_with(|| refused.to_string());
            return Err(refused);
        }
        if log.workers.len() >= WORKERS_MAX {
            return Err(Disbelief::TooMany);
        }
        log.workers.push(name.to_owned());
        Ok(ClientId::at(log.workers.len() - 1))
    }
}
