//! One connection to a master.
//!
//! Requests are taken in as they arrive, executed when they are due and the node executes at all,
//! and answered when that is due: what the network does to them lies in these two waits.

mod replies;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tokio::io::Interest;

use self::replies::Replies;
use super::chronicle::{Chronicle, Peer, Told};
use super::executor::Entrance;
use super::limits::{ARRIVALS_MAX, BATCH_MAX, READ_BYTES, REPLIES_BYTES_MAX};
use super::meaning;
use super::node::Node;
use super::socket::Socket;
use super::weather::{Life, Link};
use crate::history;
use crate::master::profile::Feature;
use crate::master::resp::{ProtocolError, Request, Requests, Value};
use crate::master::server::{Answer, Server, Session, Touched, Turn};

const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// Tells a client that there are too many.
pub(super) fn refuse(mut socket: Socket) {
    // Whether it hears it is its own affair.
    let _ = socket.try_write(TOO_MANY);
}

/// Serves `socket`, the `id`-th connection of `node`, until it ends.
pub(super) async fn serve(socket: Socket, node: &Arc<Node>, id: u64) {
    if socket.set_nodelay().is_err() {
        return;
    }
    let mut connection = Connection::new(socket, node, id);
    // An error ends this connection and nothing else.
    let _ = connection.run().await;
    node.forget_partial(connection.partial_bytes);
    let Connection { socket, session, resets, incarnation, .. } = connection;
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
    touched: Vec<Touched>,
    /// How much has come of a request that is not whole.
    partial_bytes: usize,
    /// `WAIT`: the next request waits until then.
    waits_until_ns: Option<u64>,
    /// Whether more is to come.
    takes: bool,
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
            touched: Vec::new(),
            partial_bytes: 0,
            waits_until_ns: None,
            takes: true,
            stays: true,
            resets: link.reset,
        }
    }

    async fn run(&mut self) -> io::Result<()> {
        let node = self.node;
        loop {
            let mut changed = core::pin::pin!(node.changed.notified());
            changed.as_mut().enable();
            let life = self.look_around();
            if life == Life::Killed || self.resets {
                return Ok(());
            }
            if life == Life::Dark {
                changed.await;
                continue;
            }
            self.parse()?;
            self.execute().await;
            self.write()?;
            let unsent = !self.replies.is_empty() || self.socket.is_stuck();
            let idle = self.arrivals.is_empty() && self.waits_until_ns.is_none();
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
        // The process that comes after a power cut knows nothing of this connection.
        let is_old = weather.incarnation != self.incarnation;
        if weather.killed.contains(&self.peer.id) {
            self.stays = false;
        }
        self.resets |= self.link.reset || (weather.life == Life::Up && is_old);
        weather.life
    }

    fn reads(&self) -> bool {
        self.takes && self.stays && self.arrivals.len() < ARRIVALS_MAX
    }

    /// When there is something to do that nothing else tells of.
    fn next_due_ns(&self) -> Option<u64> {
        let executes = self.stays && self.waits_until_ns.is_none() && self.node.executes();
        let arrival = self.arrivals.front().filter(|it| executes && self.passes(it));
        let arrival = arrival.map(|it| it.due_ns);
        let arrival = arrival.filter(|_| self.replies.len() <= REPLIES_BYTES_MAX);
        let reply = self.replies.next_due_ns().filter(|_| !self.link.replies_held);
        [arrival, reply, self.waits_until_ns].into_iter().flatten().min()
    }

    fn read(&mut self) -> io::Result<()> {
        let buffer = self.requests.buffer();
        buffer.reserve(READ_BYTES);
        match self.socket.try_read(buffer) {
            Ok(0) => self.takes = false,
            Ok(_) if self.requests_lost => self.requests.buffer().clear(),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // What has come is executed all the same.
            Err(_) => self.takes = false,
        }
        Ok(())
    }

    /// Turns bytes into requests, and tells when each will be at the node.
    fn parse(&mut self) -> io::Result<()> {
        while self.stays && self.arrivals.len() < ARRIVALS_MAX {
            let request = match self.requests.next_request() {
                Ok(None) => break,
                Ok(Some(request)) => Ok(request),
                Err(error) => {
                    self.takes = false;
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
            let due_ns = if slow_ns == 0 { 0 } else { self.node.hours.now_ns() + slow_ns };
            // Nothing overtakes on a connection.
            let due_ns = due_ns.max(self.arrivals.back().map_or(0, |it| it.due_ns));
            let is_last = request.is_err();
            let is_held = self.link.requests_held;
            self.arrivals.push_back(Arrival { due_ns, is_held, request, told });
            if is_last {
                break;
            }
        }
        let partial_bytes = self.requests.buffer().len();
        let before = core::mem::replace(&mut self.partial_bytes, partial_bytes);
        self.node.account_partial(before, partial_bytes)
    }

    /// Executes what is due.
    async fn execute(&mut self) {
        let node = self.node;
        if self.waits_until_ns.is_some_and(|until_ns| until_ns <= node.hours.now_ns()) {
            self.waits_until_ns = None;
            self.reply(&Value::Integer(0), None);
        }
        while self.may_execute() {
            match node.executor.enter().await {
                Entrance::Dead => return,
                Entrance::Busy => self.be_put_off(),
                Entrance::Open(mut server) => {
                    for _ in 0..BATCH_MAX {
                        self.execute_next(&mut server);
                        if !self.may_execute() {
                            break;
                        }
                    }
                    node.close_killed(&mut server);
                    node.executor.leave(server);
                }
            }
        }
    }

    fn may_execute(&self) -> bool {
        let ready = self.stays && self.waits_until_ns.is_none() && self.node.executes();
        let room = self.replies.len() <= REPLIES_BYTES_MAX;
        let next = self.arrivals.front().filter(|it| self.passes(it));
        ready && room && next.is_some_and(|it| self.node.is_due(it.due_ns))
    }

    /// Whether nothing holds what came.
    fn passes(&self, arrival: &Arrival) -> bool {
        !(arrival.is_held && self.link.requests_held)
    }

    fn execute_next(&mut self, server: &mut Server) {
        let node = self.node;
        let Some(Arrival { request, told, .. }) = self.arrivals.pop_front() else { return };
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                self.reply(&Value::error(error.to_string()), None);
                self.stays = false;
                return;
            }
        };
        let wall_ns = node.wall_ns();
        node.begin(server, &request);
        let writer = Chronicle::writer(told, &self.peer);
        let turn = Turn { wall_ns, writer, touched: &mut self.touched };
        let execute = |server: &mut Server| self.session.execute(server, &request, turn);
        let answer = node.executor.execute(server, &request, execute);
        self.requests.set_unauthenticated(self.session.is_unauthenticated());
        match answer {
            Answer::Reply(value) => {
                let value = node.executed(server, &request).unwrap_or(value);
                let told = self.tell(told, &value, wall_ns);
                self.reply(&value, told);
            }
            Answer::LastReply(value) => {
                self.reply(&value, None);
                self.stays = false;
            }
            Answer::Silence => {}
            Answer::Wait { timeout_ms, .. } => {
                let wait_ns = timeout_ms.unsigned_abs().saturating_mul(1_000_000);
                let until_ns = node.hours.now_ns().saturating_add(wait_ns);
                self.waits_until_ns = Some(if timeout_ms == 0 { u64::MAX } else { until_ns });
            }
        }
        self.touched.clear();
    }

    /// Tells what the request did to the lock; what is to be told when its answer is sent.
    fn tell(&self, told: Option<Told>, value: &Value, wall_ns: u64) -> Option<history::EventKind> {
        let chronicle = self.node.chronicle.as_ref()?;
        if told.is_none() && self.touched.is_empty() {
            return None;
        }
        // It is told when it is executed.
        if matches!(value, Value::Simple(word) if *word == "QUEUED") {
            return None;
        }
        let answer = match value {
            Value::Error(_) => history::Answer::Error,
            Value::Null | Value::NullArray | Value::Integer(..=0) => history::Answer::No,
            _ => history::Answer::Yes,
        };
        chronicle.executed(told, &self.peer, (&self.touched, answer, wall_ns))
    }

    /// Takes note of who the client says it is: as it arrives, or who is held for want of a name
    /// could never say it.
    fn take_name(&mut self, request: &[bytes::Bytes]) {
        let Some(name) = meaning::name(request) else { return };
        let name = String::from_utf8_lossy(name).into_owned();
        self.client = self.node.client_named(&name);
        self.peer.name = Some(name);
        self.link = self.node.weather().link(self.client);
    }

    /// Answers the next request as a node does that is kept by a script.
    fn be_put_off(&mut self) {
        let Some(Arrival { request, .. }) = self.arrivals.pop_front() else { return };
        match request {
            Ok(request) => {
                let value = self.node.executor.answer_busy(&request);
                self.reply(&value, None);
            }
            Err(error) => {
                self.reply(&Value::error(error.to_string()), None);
                self.stays = false;
            }
        }
    }

    fn reply(&mut self, value: &Value, told: Option<history::EventKind>) {
        let slow_ns = self.link.replies_by_ns + self.node.travels_ns(self.client);
        let due_ns = if slow_ns == 0 { 0 } else { self.node.hours.now_ns() + slow_ns };
        self.replies.push(value, self.session.protocol(), due_ns, told);
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
