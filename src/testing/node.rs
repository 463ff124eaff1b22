//! One node in memory: a simulated Redis server, its connections, and its faults.

use core::task::{Context, Waker};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::io;

use bytes::{Buf, Bytes};
use redis_sim::profile::REDIS_7_0;
use redis_sim::resp::{Requests, Value};
use redis_sim::server::{Answer, Server, Session, Turn};
use redis_sim::{Entry, Master, Persistence, SmallBytes, Storage, Writer, run_id};
use redlock_protocol::BootInstant;
use tokio::io::ReadBuf;

use super::clock::Reading;

/// Age of a new node's process and data set, in milliseconds: 20 years, longer than any quarantine.
const AGE_MS: u64 = 20 * 365 * 86_400_000;

/// One node.
pub(super) struct Node {
    place: u8,
    server: Server,
    is_hanging: bool,
    /// Time that a reply takes to the client.
    delay: Duration,
    connections: BTreeMap<u64, Connection>,
    /// Number of connections accepted so far.
    accepted: u64,
}

struct Connection {
    session: Session,
    requests: Requests,
    /// Replies on their way to the client, each with its arrival.
    replies: VecDeque<(BootInstant, Bytes)>,
    reader: Option<Waker>,
}

/// Result of reading from a connection.
pub(super) enum Arrival {
    /// Bytes were read.
    Read,
    /// The next bytes arrive at this instant.
    At(BootInstant),
    /// No bytes are on their way; the reader is woken when there are any.
    Nothing,
}

impl Node {
    /// Returns a running, empty node that has had its canary for long enough to vote at once.
    pub(super) fn new(place: u8, canary_key: &[u8], at: Reading) -> Self {
        let started_wall_ms = at.wall_ms() - AGE_MS;
        let run_id = run_id(place, 0);
        // Every acknowledged write survives the process, so that `start` brings the keys back.
        let mut master = Master::new(Storage::from(Persistence::Always), run_id, started_wall_ms);
        let run: String = run_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let written_us = started_wall_ms * 1_000;
        let canary = format!("{run} {run} {run}-{written_us} {written_us}");
        let value = SmallBytes::new(canary.as_bytes());
        let entry = Entry { value: value.into(), expires_wall_ms: None, writer: Writer::Operator };
        master.preload(0, canary_key, &entry);
        Self {
            place,
            server: Server::new(master, &REDIS_7_0),
            is_hanging: false,
            delay: Duration::ZERO,
            connections: BTreeMap::new(),
            accepted: 0,
        }
    }

    /// Returns true if the node has `key` now.
    pub(super) fn has(&self, key: &[u8], at: Reading) -> bool {
        let stored = self.server.keyspace().stored(key);
        stored.is_some_and(|entry| !entry.is_expired(at.wall_ms()))
    }

    /// Accepts a connection and returns its number.
    ///
    /// # Errors
    ///
    /// If no process runs.
    pub(super) fn accept(&mut self) -> io::Result<u64> {
        if !self.server.is_running() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        self.accepted += 1;
        let (requests, replies) = (Requests::default(), VecDeque::new());
        let session = Session::new(self.accepted);
        let connection = Connection { session, requests, replies, reader: None };
        self.connections.insert(self.accepted, connection);
        Ok(self.accepted)
    }

    /// Handles bytes that the client has written on the connection `id`.
    ///
    /// # Errors
    ///
    /// If the connection has ended.
    pub(super) fn receive(
        &mut self,
        id: u64,
        bytes: &[u8],
        at: Reading,
        wakes: &mut Vec<Waker>,
    ) -> io::Result<()> {
        let connection = self.connections.get_mut(&id).ok_or(io::ErrorKind::ConnectionReset)?;
        connection.requests.push(bytes);
        self.serve(id, at, wakes);
        Ok(())
    }

    /// Reads bytes that have arrived at the client's end of the connection `id`.
    ///
    /// # Errors
    ///
    /// If the connection has ended.
    pub(super) fn read(
        &mut self,
        id: u64,
        at: Reading,
        buffer: &mut ReadBuf<'_>,
        context: &Context<'_>,
    ) -> io::Result<Arrival> {
        let connection = self.connections.get_mut(&id).ok_or(io::ErrorKind::ConnectionReset)?;
        connection.reader = Some(context.waker().clone());
        let Some((arrives, bytes)) = connection.replies.front_mut() else {
            return Ok(Arrival::Nothing);
        };
        if *arrives > at.now {
            return Ok(Arrival::At(*arrives));
        }
        let length = bytes.len().min(buffer.remaining());
        buffer.put_slice(&bytes[..length]);
        bytes.advance(length);
        if bytes.is_empty() {
            connection.replies.pop_front();
        }
        Ok(Arrival::Read)
    }

    /// Ends the connection `id` on behalf of the client.
    pub(super) fn close(&mut self, id: u64) {
        if let Some(connection) = self.connections.remove(&id) {
            connection.session.close(&mut self.server);
        }
    }

    /// Ends the process: its connections are reset.
    pub(super) fn stop(&mut self, wakes: &mut Vec<Waker>) {
        if self.server.is_running() {
            self.server.shut_down();
        }
        let connections = core::mem::take(&mut self.connections);
        wakes.extend(connections.into_values().filter_map(|it| it.reader));
    }

    /// Starts the process if none runs, with the keys on its disk; lets it serve if it hangs.
    pub(super) fn start(&mut self, at: Reading, wakes: &mut Vec<Waker>) {
        self.is_hanging = false;
        if !self.server.is_running() {
            let run_id = run_id(self.place, self.server.incarnation() + 1);
            self.server.forget();
            self.server.restart(run_id, at.wall_ms(), |_| {}, |_, _, _| {});
        }
        let waiting: Vec<u64> = self.connections.keys().copied().collect();
        waiting.into_iter().for_each(|id| self.serve(id, at, wakes));
    }

    /// Keeps the process from serving; its connections stay.
    pub(super) fn hang(&mut self) {
        self.is_hanging = true;
    }

    /// Deletes all keys, as `FLUSHALL` does; if no process runs, those on its disk.
    pub(super) fn forget(&mut self, at: Reading, wakes: &mut Vec<Waker>) {
        self.server.flush(|_| {});
        self.push(at, wakes);
    }

    pub(super) fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// Executes the requests that have arrived on the connection `id`.
    fn serve(&mut self, id: u64, at: Reading, wakes: &mut Vec<Waker>) {
        if self.is_hanging || !self.server.is_running() {
            return;
        }
        self.server.expire_active(at.wall_ms(), |_| {});
        self.push(at, wakes);
        while let Some(connection) = self.connections.get_mut(&id)
            // The client speaks the protocol, so the bytes become requests.
            && let Ok(Some(request)) = connection.requests.next_request()
        {
            let mut touched = Vec::new();
            let writer = Writer::Operator;
            let turn = Turn { wall_ns: at.wall_ns, writer, touched: &mut touched };
            let answer = connection.session.execute(&mut self.server, &request, turn);
            if let Answer::Reply(value) | Answer::LastReply(value) = answer {
                wakes.extend(connection.send(&value, at.now.after(self.delay)));
            }
            self.push(at, wakes);
        }
    }

    /// Sends the server's pushes.
    fn push(&mut self, at: Reading, wakes: &mut Vec<Waker>) {
        for (id, message) in self.server.take_pushes() {
            let connection = self.connections.get_mut(&id);
            let reader = connection.and_then(|it| it.send(&message, at.now.after(self.delay)));
            wakes.extend(reader);
        }
    }
}

impl Connection {
    /// Sends a message that arrives at `arrives`; returns the reader to wake.
    fn send(&mut self, message: &Value, arrives: BootInstant) -> Option<Waker> {
        let mut bytes = Vec::new();
        message.encode(self.session.protocol(), &mut bytes);
        self.replies.push_back((arrives, Bytes::from(bytes)));
        self.reader.take()
    }
}
