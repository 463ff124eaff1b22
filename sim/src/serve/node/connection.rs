//! One connection to a master.
//!
//! Requests are taken in as they arrive, executed when they are due and the node executes at all,
//! and answered when that is due: what the network does to them lies in these two waits.

mod execution;
mod held;
mod replies;
mod waiting;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::Interest;
use tokio::sync::mpsc::UnboundedReceiver;

use self::held::Held;
use self::replies::Replies;
use self::waiting::Waiting;
use super::Node;
use crate::master::profile::Feature;
use crate::master::resp::{ProtocolError, Request, Requests, Value};
use crate::master::server::{Session, Touched};
use crate::serve::chronicle::{Peer, Told};
use crate::serve::limits::{
    ARRIVALS_BYTES_MAX, ARRIVALS_MAX, PUSHED_BYTES_MAX, READ_BYTES, REPLIES_BYTES_MAX,
};
use crate::serve::meaning;
use crate::serve::socket::Socket;
use crate::serve::weather::{Life, Link};

const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// Tells a client that there are too many.
pub(in crate::serve) fn refuse(mut socket: Socket) {
    // Whether it hears it is its own affair.
    let _ = socket.try_write(TOO_MANY);
}

/// Serves `socket`, the `id`-th connection of `node`, until it ends.
pub(in crate::serve) async fn serve(socket: Socket, node: &Arc<Node>, id: u64) {
    if socket.set_nodelay().is_err() {
        return;
    }
    let mut connection = Connection::new(socket, node, id);
    // An error ends this connection and nothing else.
    let _ = connection.run().await;
    let Connection { socket, session, resets, incarnation, held, .. } = connection;
    // Whoever sees the end may come again at once.
    drop(held);
    if resets {
        socket.set_reset();
    }
    drop(socket);
    node.forget(session, incarnation).await;
}

/// Something that came.
struct Arrival {
    /// When the node has it.
    due_ns: u64,
    /// It came while requests were held.
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
    /// Its place among the scenario's clients, if it has said so.
    client: Option<u8>,
    /// The process that took the connection.
    incarnation: u32,
    /// What had changed at the node when `link` was looked up.
    version: u64,
    link: Link,
    /// What is lost for good, both ways.
    requests_lost: bool,
    replies_lost: bool,
    /// What came and is not executed.
    arrivals: VecDeque<Arrival>,
    replies: Replies,
    /// Messages that no request asked for.
    pushes: UnboundedReceiver<Value>,
    touched: Vec<Touched>,
    held: Held,
    /// When the last bytes came.
    came_ns: u64,
    /// Not everything that came has been looked at.
    has_more: bool,
    /// Who has not said who he is: what he may send depends on what became of what he sent.
    is_unauthenticated: bool,
    /// The next request waits.
    waiting: Option<Waiting>,
    /// Whether more is to come.
    takes: bool,
    /// Whether what came can be understood.
    is_sound: bool,
    /// Whether it is to be closed once everything is answered.
    stays: bool,
    /// Whether it is to end with a reset.
    resets: bool,
}

impl<'a> Connection<'a> {
    fn new(socket: Socket, node: &'a Arc<Node>, id: u64) -> Self {
        let (incarnation, version, link) = {
            let weather = node.weather();
            (weather.incarnation, weather.version(), weather.link(None))
        };
        let address = socket.peer();
        let mut requests = Requests::default();
        requests.set_quotes_join(node.executor.profile.has(Feature::QuotesJoin));
        Self {
            node,
            socket,
            requests,
            session: Session::new(id).from(address),
            peer: Peer::new(node.place, id),
            client: None,
            incarnation,
            version,
            link,
            requests_lost: false,
            replies_lost: false,
            arrivals: VecDeque::new(),
            replies: Replies::default(),
            pushes: node.pushes.open(id),
            touched: Vec::new(),
            held: Held::default(),
            came_ns: 0,
            has_more: false,
            is_unauthenticated: node.executor.asks_who(),
            waiting: None,
            takes: true,
            is_sound: true,
            stays: true,
            resets: link.reset,
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
            self.execute().await;
            self.held.settle()?;
            self.write()?;
            if self.has_more && self.may_parse() {
                continue;
            }
            let unsent = !self.replies.is_empty() || self.socket.is_stuck();
            // Who goes while he waits is not waited for.
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
                () = node.hours.sleep_until(due_ns.unwrap_or(u64::MAX)), if due_ns.is_some() => {}
            }
        }
    }

    /// Notices what has changed at the node; how the node is.
    fn look_around(&mut self) -> Life {
        let weather = self.node.weather();
        if weather.version() != self.version {
            self.version = weather.version();
            self.link = weather.link(self.client);
            self.requests_lost |= self.link.requests_lost;
            self.replies_lost |= self.link.replies_lost;
        }
        let life = weather.life;
        let is_old = weather.incarnation != self.incarnation;
        // The process that comes after a power cut knows nothing of this connection.
        let is_lost = life == Life::Up && self.incarnation < weather.oldest_known;
        self.resets |= self.link.reset || is_lost;
        if weather.killed.contains(&self.peer.id) {
            self.stays = false;
        }
        drop(weather);
        if life == Life::Killed || (life == Life::Up && is_old) {
            self.die();
        }
        life
    }

    /// Takes up the messages that were delivered so far.
    fn take_pushes(&mut self) {
        while let Ok(message) = self.pushes.try_recv() {
            self.push(&message);
        }
    }

    fn push(&mut self, message: &Value) {
        if self.replies.len() > PUSHED_BYTES_MAX {
            self.resets = true;
        } else {
            self.reply(message, None);
        }
    }

    /// The process is dead, and the kernel delivers what it has said.
    fn die(&mut self) {
        (self.takes, self.stays, self.has_more) = (false, false, false);
        self.arrivals.clear();
        self.held.arrivals = 0;
        self.waiting = None;
    }

    fn reads(&self) -> bool {
        self.takes && self.stays && !self.has_more
    }

    /// Whether what came may be looked at: there is room for it, and it is known what may come.
    fn may_parse(&self) -> bool {
        let room = self.arrivals.len() < ARRIVALS_MAX && self.held.arrivals < ARRIVALS_BYTES_MAX;
        let known = !self.is_unauthenticated || self.arrivals.is_empty();
        self.stays && self.is_sound && room && known
    }

    /// When there is something to do that nothing else tells of.
    fn next_due_ns(&self) -> Option<u64> {
        let arrival = self.arrivals.front().filter(|it| self.executes() && self.passes(it));
        let arrival = arrival.map(|it| it.due_ns);
        let arrival = arrival.filter(|_| self.replies.len() <= REPLIES_BYTES_MAX);
        let reply = self.replies.next_due_ns().filter(|_| !self.link.replies_held);
        let waiting = self.waiting.map(|it| it.until_ns);
        [arrival, reply, waiting].into_iter().flatten().min()
    }

    fn read(&mut self) -> io::Result<()> {
        let buffer = self.requests.buffer();
        buffer.reserve(READ_BYTES);
        match self.socket.try_read(buffer) {
            Ok(0) => self.takes = false,
            Ok(_) if self.requests_lost => self.requests.buffer().clear(),
            Ok(count) => {
                self.held.partial += count;
                self.came_ns = self.node.hours.now_ns();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // What has come is executed all the same.
            Err(_) => self.takes = false,
        }
        Ok(())
    }

    /// Turns bytes into requests, and tells when each will be at the node.
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
            }
            let chronicle = self.node.chronicle.as_ref();
            let told = match (&request, chronicle) {
                (Ok(request), Some(chronicle)) => chronicle.arrived(&mut self.peer, request),
                _ => None,
            };
            let mut slow_ns = self.link.requests_by_ns + self.node.travels_ns(self.client);
            if told.is_some_and(Told::is_vote) {
                slow_ns += self.link.sets_by_ns;
            }
            let due_ns = if slow_ns == 0 { 0 } else { self.came_ns + slow_ns };
            // Nothing overtakes on a connection.
            let due_ns = due_ns.max(self.arrivals.back().map_or(0, |it| it.due_ns));
            let is_held = self.link.requests_held;
            self.arrivals.push_back(Arrival { due_ns, is_held, request, told });
        }
        self.held.settle()
    }

    /// Takes note of who the client says it is: as it arrives, or who is held for want of a name
    /// could never say it.
    fn take_name(&mut self, request: &[Bytes]) {
        let Some(name) = meaning::name(request) else { return };
        let name = String::from_utf8_lossy(name).into_owned();
        self.client = self.node.client_named(&name);
        self.peer.name = Some(name);
        self.link = self.node.weather().link(self.client);
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
        for kind in self.replies.release(self.node.hours.now_ns()) {
            self.node.chronicle.iter().for_each(|chronicle| chronicle.tell(kind));
        }
        self.replies.send(&mut self.socket)
    }
}
