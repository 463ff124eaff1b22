//! One connection to a master.
//!
//! Requests are read as they arrive, executed when they are due and the node executes at all, and
//! answered when the reply is due. The effects of the network are these two waits.

mod execution;
mod held;
mod replies;
mod waiting;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use lock_judge::history::ClientId;
use redis_sim::profile::Feature;
use redis_sim::resp::{ProtocolError, Request, Requests, Value};
use redis_sim::server::{Session, Touched};
use tokio::io::Interest;
use tokio::sync::mpsc::UnboundedReceiver;

use self::held::Held;
use self::replies::Replies;
use self::waiting::Waiting;
use super::Node;
use crate::serve::limits::{
    ARRIVALS_BYTES_MAX, ARRIVALS_MAX, PUSHED_BYTES_MAX, READ_BYTES, REPLIES_BYTES_MAX,
};
use crate::serve::meaning;
use crate::serve::node_faults::{Life, Link};
use crate::serve::recorder::{Peer, Told};
use crate::serve::socket::Socket;

const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// Rejects a connection because there are too many.
pub(in crate::serve) fn refuse(mut socket: Socket) {
    // The client may be gone already.
    let _ = socket.try_write(TOO_MANY);
}

/// Serves `socket`, the `id`-th connection of `node`, until it ends.
pub(in crate::serve) async fn serve(socket: Socket, node: &Arc<Node>, id: u64) {
    if socket.set_nodelay().is_err() {
        return;
    }
    let mut connection = Connection::new(socket, node, id);
    // An error ends only this connection.
    let _ = connection.run().await;
    let Connection { mut socket, session, resets, incarnation, held, .. } = connection;
    // Released before the socket closes, because the client may reconnect as soon as it sees the
    // end.
    drop(held);
    if resets {
        socket.set_reset();
    }
    drop(socket);
    node.forget(session, incarnation).await;
}

/// A request, or an unreadable one, that has arrived.
struct Arrival {
    /// The time at which it reaches the node.
    due_ns: u64,
    /// True if it arrived while requests were held.
    is_held: bool,
    request: Result<Request, ProtocolError>,
    told: Option<Told>,
}

struct Connection<'a> {
    node: &'a Arc<Node>,
    socket: Socket,
    requests: Requests,
    session: Session,
    peer: Peer,
    /// The client whose name the connection has given itself, if any.
    client: Option<ClientId>,
    /// Incarnation of the process that accepted the connection.
    incarnation: u32,
    /// Version of the node's link faults when the connection opened.
    opened: u64,
    /// Version of the node's link faults when `link` was computed.
    version: u64,
    link: Link,
    /// True once a silent partition loses requests for good; `replies_lost` is the same for
    /// replies.
    requests_lost: bool,
    replies_lost: bool,
    /// Requests that have arrived and are not executed.
    arrivals: VecDeque<Arrival>,
    replies: Replies,
    /// Messages that no request asked for.
    pushes: UnboundedReceiver<Value>,
    touched: Vec<Touched>,
    held: Held,
    /// The time at which the last bytes arrived.
    came_ns: u64,
    /// Buffer space for the next read, in bytes.
    read_bytes: usize,
    /// True if received bytes are still to be parsed.
    has_more: bool,
    /// True before authentication. Requests are then parsed one at a time, because each may lift
    /// the limits on the next.
    is_unauthenticated: bool,
    /// The request that blocks the next one, if any.
    waiting: Option<Waiting>,
    /// False once the client sends no more.
    takes: bool,
    /// False once the received bytes are not valid RESP.
    is_sound: bool,
    /// False if the connection is to be closed once all replies are sent.
    stays: bool,
    /// True as long as the client may still name itself: nothing but a handshake was requested.
    is_new: bool,
    /// True if the connection is to end with a reset.
    resets: bool,
}

impl<'a> Connection<'a> {
    fn new(socket: Socket, node: &'a Arc<Node>, id: u64) -> Self {
        let name = socket.client().map(String::from);
        let client = name.as_deref().and_then(|name| node.client_named(name));
        let (incarnation, opened, link) = {
            let node_faults = node.node_faults();
            let opened = node_faults.version();
            (node_faults.incarnation, opened, node_faults.link(client, opened))
        };
        let (address, local_address) = (socket.peer(), socket.local());
        let mut requests = Requests::default();
        requests.set_quotes_join(node.executor.profile.has(Feature::QuotesJoin));
        Self {
            node,
            socket,
            requests,
            session: Session::new(id).from(address).at(local_address),
            peer: Peer::new(node.id, id).named(name),
            client,
            incarnation,
            opened,
            version: opened,
            link,
            requests_lost: false,
            replies_lost: false,
            arrivals: VecDeque::new(),
            replies: Replies::default(),
            pushes: node.pushes.open(id),
            touched: Vec::new(),
            held: Held::default(),
            came_ns: 0,
            read_bytes: *READ_BYTES.start(),
            has_more: false,
            is_unauthenticated: node.executor.asks_who(),
            waiting: None,
            takes: true,
            is_sound: true,
            stays: true,
            is_new: true,
            resets: false,
        }
    }

    async fn run(&mut self) -> io::Result<()> {
        let node = self.node;
        loop {
            let mut changed = core::pin::pin!(node.changed.notified());
            changed.as_mut().enable();
            self.take_pushes();
            let life = self.look_around();
            if self.resets {
                return Ok(());
            }
            if life == Life::Dark {
                changed.await;
                continue;
            }
            self.parse()?;
            if self.resets {
                return Ok(());
            }
            self.execute().await;
            self.held.settle()?;
            self.write()?;
            if self.has_more && self.may_parse() {
                continue;
            }
            let unsent = !self.replies.is_empty() || self.socket.is_stuck();
            // A client that closes during WAIT or BLPOP is not waited for.
            let idle = self.arrivals.is_empty() || self.waiting.is_some();
            if !unsent && (!self.stays || (!self.takes && idle)) {
                return Ok(());
            }
            let reads = self.reads();
            let is_stuck = self.replies.is_stuck() || self.socket.is_stuck();
            let interest = match (reads, is_stuck && !self.link.replies_held) {
                (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
                (true, false) => Some(Interest::READABLE),
                (false, true) => Some(Interest::WRITABLE),
                (false, false) => None,
            };
            let due_ns = self.next_due_ns();
            tokio::select! {
                biased;
                () = changed => {}
                ready = self.socket.ready(interest.unwrap_or(Interest::READABLE)),
                    if interest.is_some() => {
                    if ready?.is_readable() && reads {
                        self.read()?;
                    }
                }
                message = self.pushes.recv() => {
                    message.iter().for_each(|message| self.push(message));
                }
                () = node.clock.sleep_until(due_ns.unwrap_or(u64::MAX)), if due_ns.is_some() => {}
            }
        }
    }

    /// Picks up changes at the node, and returns the state of its process.
    fn look_around(&mut self) -> Life {
        let node_faults = self.node.node_faults();
        if node_faults.version() != self.version {
            self.version = node_faults.version();
            self.link = node_faults.link(self.client, self.opened);
            self.requests_lost |= self.link.requests_lost;
            self.replies_lost |= self.link.replies_lost;
        }
        let life = node_faults.life;
        let is_old = node_faults.incarnation != self.incarnation;
        // After a power loss, the new process does not know this connection.
        let is_lost = life == Life::Up && self.incarnation < node_faults.oldest_known;
        self.resets |= self.is_reset() || is_lost;
        if node_faults.killed.contains(&self.peer.id) {
            self.stays = false;
        }
        drop(node_faults);
        if life == Life::Killed || (life == Life::Up && is_old) {
            self.die();
        }
        life
    }

    /// Queues the pushes delivered so far.
    fn take_pushes(&mut self) {
        while let Ok(message) = self.pushes.try_recv() {
            self.push(&message);
        }
    }

    fn push(&mut self, message: &Value) {
        // The reply to a request that has waited comes this way, too.
        let is_reply = !matches!(message, Value::Push(_));
        if is_reply && self.waiting.is_some_and(Waiting::is_for_element) {
            self.waiting = None;
        }
        if self.replies.len() > PUSHED_BYTES_MAX {
            self.resets = true;
        } else {
            self.reply(message, None);
        }
    }

    /// Handles the death of the process: requests are dropped, but the kernel still delivers its
    /// replies.
    fn die(&mut self) {
        (self.takes, self.stays, self.has_more) = (false, false, false);
        self.arrivals.clear();
        self.held.arrivals = 0;
        self.waiting = None;
    }

    fn reads(&self) -> bool {
        self.takes && self.stays && !self.has_more
    }

    /// Returns true if received bytes may be parsed: there is room, and the limits for them are
    /// known.
    fn may_parse(&self) -> bool {
        let room = self.arrivals.len() < ARRIVALS_MAX && self.held.arrivals < ARRIVALS_BYTES_MAX;
        let known = !self.is_unauthenticated || self.arrivals.is_empty();
        self.stays && self.is_sound && room && known
    }

    /// Returns the time of the next action that no other event triggers.
    fn next_due_ns(&self) -> Option<u64> {
        let waits = |it: &Arrival| self.node.is_due(it.due_ns) && self.waits_for_fault(it);
        let passes = |it: &&Arrival| self.executes() && self.passes(it) && !waits(it);
        let arrival = self.arrivals.front().filter(passes);
        let arrival = arrival.map(|it| it.due_ns);
        let arrival = arrival.filter(|_| self.replies.len() <= REPLIES_BYTES_MAX);
        let reply = self.replies.next_due_ns().filter(|_| !self.link.replies_held);
        let waiting = self.waiting.filter(|it| !it.is_for_element() || self.may_time_out());
        let waiting = waiting.map(|it| it.until_ns);
        [arrival, reply, waiting].into_iter().flatten().min()
    }

    fn read(&mut self) -> io::Result<()> {
        let buffer = self.requests.buffer();
        buffer.reserve(self.read_bytes);
        match self.socket.try_read(buffer) {
            Ok(0) => self.takes = false,
            Ok(_) if self.requests_lost => self.requests.buffer().clear(),
            Ok(count) => {
                self.held.partial += count;
                let is_full = count >= self.read_bytes;
                let next = if is_full { self.read_bytes * 2 } else { self.read_bytes / 2 };
                self.read_bytes = next.clamp(*READ_BYTES.start(), *READ_BYTES.end());
                self.came_ns = self.node.clock.now_ns();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Requests that have arrived are still executed.
            Err(_) => self.takes = false,
        }
        Ok(())
    }

    /// Parses received bytes into requests, and computes when each reaches the node.
    fn parse(&mut self) -> io::Result<()> {
        self.requests.set_bulk_max(self.node.executor.bulk_max());
        self.requests.set_unauthenticated(self.is_unauthenticated);
        self.has_more = false;
        loop {
            if !self.may_parse() {
                self.has_more = self.stays && self.is_sound;
                break;
            }
            let request = match self.requests.next_request() {
                Ok(None) => break,
                Ok(Some(request)) => {
                    self.held.partial = self.requests.buffer().len();
                    self.held.arrivals += Held::cost(&request);
                    Ok(request)
                }
                Err(error) => {
                    (self.takes, self.is_sound) = (false, false);
                    Err(error)
                }
            };
            if let Ok(request) = &request {
                self.take_name(request);
                if self.is_reset() {
                    self.resets = true;
                    break;
                }
            }
            let recorder = self.node.recorder.as_ref();
            let told = match (&request, recorder) {
                (Ok(request), Some(recorder)) => recorder.arrived(&mut self.peer, request),
                _ => None,
            };
            let slow_ns =
                self.link.request_by_ns(told.map(Told::op)) + self.node.travels_ns(self.client);
            let due_ns = if slow_ns == 0 { 0 } else { self.came_ns + slow_ns };
            // Nothing overtakes on a connection.
            let due_ns = due_ns.max(self.arrivals.back().map_or(0, |it| it.due_ns));
            let is_held = self.link.requests_held;
            self.arrivals.push_back(Arrival { due_ns, is_held, request, told });
        }
        self.held.settle()
    }

    /// Returns true if a partition that resets connections concerns this one. It cannot concern a
    /// connection that has had no time to say whose it is.
    fn is_reset(&self) -> bool {
        self.link.reset && (self.client.is_some() || !self.is_new)
    }

    /// Notes the client's name already when the request arrives. A connection that is held because
    /// it has no name could otherwise never give one.
    fn take_name(&mut self, request: &[Bytes]) {
        self.is_new &= meaning::is_handshake(request);
        let Some(name) = meaning::name(request) else { return };
        let name = String::from_utf8_lossy(name).into_owned();
        self.client = self.node.client_named(&name);
        // An empty name takes the name away.
        self.peer.name = Some(name).filter(|it| !it.is_empty());
        self.link = self.node.node_faults().link(self.client, self.opened);
    }

    fn write(&mut self) -> io::Result<()> {
        if self.replies_lost {
            self.replies.clear();
            return Ok(());
        }
        if self.link.replies_held {
            return Ok(());
        }
        self.socket.flush()?;
        let recorder = self.node.recorder.as_ref();
        let is_held = |kind| recorder.is_some_and(|it| it.replies_later(kind));
        for kind in self.replies.release(self.node.clock.now_ns(), is_held) {
            recorder.iter().for_each(|recorder| recorder.tell(kind));
        }
        self.replies.send(&mut self.socket)
    }
}
