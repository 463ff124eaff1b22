//! A client's end of a connection, as far as the world knows it.

use std::collections::VecDeque;
use std::io;
use std::task::Poll;

use lock_judge::history::{Answer, AttemptId, ClientId, EventKind, NodeId, OpKind};
use lock_judge::ids::{ConnectionId, ResourceId, ServerId};
use lock_judge::scenario::AttemptStep;
use redis_sim::resp::{self, Requests};

use super::{Phase, Shared, State};
use crate::choice::{Choice, Label};
use crate::subject::{CommandKind, Reply, Request, UNNUMBERED};
use crate::world::{Arrival, Direction, Packet};

/// A client's end of a connection.
#[derive(Debug)]
pub(in crate::engine::turmoil) struct Line {
    pub(in crate::engine::turmoil) client: ClientId,
    pub(in crate::engine::turmoil) node: NodeId,
    pub(in crate::engine::turmoil) server: ServerId,
    /// True during the warm-up: the connection opens and makes its handshake while time stands
    /// still.
    pub(in crate::engine::turmoil) still: bool,
    /// True once the server has accepted.
    pub(in crate::engine::turmoil) opened: bool,
    /// Set once no more bytes will come.
    pub(in crate::engine::turmoil) ending: Option<Ending>,
    /// Requests that the client announced and has not written.
    pub(in crate::engine::turmoil) announced: VecDeque<Request>,
    /// The bytes that the client wants to write, cut into requests, each with its length.
    cut: VecDeque<(usize, resp::Request)>,
    cutter: Requests,
    /// Requests that were written and not answered.
    pub(in crate::engine::turmoil) asked: VecDeque<Request>,
    /// Replies that have arrived, each with its length.
    pub(in crate::engine::turmoil) readable: VecDeque<(usize, Reply)>,
    /// Number of unread bytes of the replies that the client may read.
    unread: usize,
    /// Number of unwritten bytes of the requests that are on their way.
    unwritten: usize,
    /// Number of draws for the sizes of partial reads and writes.
    parts: u32,
}

/// The way in which a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::turmoil) enum Ending {
    /// The server's process, or the client itself, closed the connection.
    Closed,
    /// A kernel reports that no process holds the connection.
    Reset,
}

/// Data that a client may read from a connection now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::turmoil) enum Readable {
    Bytes(usize),
    End,
}

impl Line {
    pub(in crate::engine::turmoil) fn new(
        client: ClientId,
        node: NodeId,
        server: ServerId,
        still: bool,
    ) -> Self {
        Self {
            client,
            node,
            server,
            still,
            opened: still,
            ending: None,
            announced: VecDeque::new(),
            cut: VecDeque::new(),
            cutter: Requests::default(),
            asked: VecDeque::new(),
            readable: VecDeque::new(),
            unread: 0,
            unwritten: 0,
            parts: 0,
        }
    }

    /// Notes that `length` bytes were read.
    pub(in crate::engine::turmoil) fn read(&mut self, length: usize) {
        self.unread -= length;
    }

    /// Cuts the bytes into requests. Requests cut by an earlier call begin with the same bytes.
    fn cut_up(&mut self, bytes: &[u8]) {
        if self.cut.is_empty() {
            self.cutter.push(bytes);
            while let Ok(Some(request)) = self.cutter.next_request() {
                self.cut.push_back((length_of(&request), request));
            }
        }
    }
}

/// Returns the length of a request on the wire.
fn length_of(request: &resp::Request) -> usize {
    let line = |number: usize| 3 + number.checked_ilog10().unwrap_or(0) as usize + 1;
    let arguments = request.iter().map(|it| line(it.len()) + it.len() + 2);
    line(request.len()) + arguments.sum::<usize>()
}

impl Shared {
    /// Returns what the client may read; `Pending` if nothing has arrived, or if the client is
    /// stopped before the reply.
    pub(in crate::engine::turmoil) fn poll_readable(
        &self,
        number: ConnectionId,
    ) -> Poll<io::Result<Readable>> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let line = state.lines.get_mut(&number).expect("a connection that is open is known");
        if line.still {
            return Poll::Ready(Ok(Readable::Bytes(usize::MAX)));
        }
        if line.unread == 0 {
            state.take_answers(number);
        }
        let line = &state.lines[&number];
        match (line.unread, line.ending) {
            (1.., _) => Poll::Ready(Ok(Readable::Bytes(state.part_of(number, line.unread)))),
            (0, None) => Poll::Pending,
            (0, Some(_)) if !line.readable.is_empty() => Poll::Pending,
            (0, Some(Ending::Closed)) => Poll::Ready(Ok(Readable::End)),
            (0, Some(Ending::Reset)) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }

    /// Returns how many of these bytes the client may write; their requests are then on their way.
    /// `Pending` if the client is stopped before them.
    pub(in crate::engine::turmoil) fn poll_writable(
        &self,
        number: ConnectionId,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let line = state.lines.get_mut(&number).expect("a connection that is open is known");
        if line.still {
            return Poll::Ready(Ok(bytes.len()));
        }
        if line.ending == Some(Ending::Reset) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if line.unwritten == 0 {
            line.cut_up(bytes);
            while state.may_ask(number)
                && let Some((length, request)) = state.next_request(number)
            {
                state.lines.get_mut(&number).expect("it is known").unwritten += length;
                state.send_request(number, request);
            }
        }
        let unwritten = state.lines[&number].unwritten;
        if unwritten == 0 {
            return Poll::Pending;
        }
        let part = state.part_of(number, unwritten);
        state.lines.get_mut(&number).expect("it is known").unwritten -= part;
        Poll::Ready(Ok(part))
    }
}

impl State {
    /// Begins the faults that wait for this point; returns true if the client may continue.
    pub(in crate::engine::turmoil) fn reach(
        &mut self,
        attempt: AttemptId,
        step: AttemptStep,
        node: Option<NodeId>,
    ) -> bool {
        self.world.reach(attempt, step, node);
        self.runs(attempt.client)
    }

    /// Lets the client read the next reply. With a probability of one half each, the replies after
    /// it that have arrived are readable too.
    fn take_answers(&mut self, number: ConnectionId) {
        while let Line { client, node, readable, .. } = &self.lines[&number]
            && let (client, node) = (*client, *node)
            && let Some(&(length, reply)) = readable.front()
            && self.may_take(client, node, &reply)
        {
            let line = self.lines.get_mut(&number).expect("it is known");
            line.readable.pop_front();
            line.unread += length;
            if self.draw_part(number, 2) == 0 {
                break;
            }
        }
    }

    /// Returns how many of `length` bytes pass at once: a kernel gives no guarantee. With a
    /// probability of one half, all of them pass.
    fn part_of(&mut self, number: ConnectionId, length: usize) -> usize {
        if self.draw_part(number, 2) == 0 {
            return length;
        }
        1 + self.draw_part(number, length as u64) as usize
    }

    fn draw_part(&mut self, number: ConnectionId, choices: u64) -> u64 {
        let line = self.lines.get_mut(&number).expect("it is known");
        line.parts += 1;
        // Connections whose numbers are 2¹⁶ apart may share their draws.
        let (attempt, repeat, node) = (number.0 as u16, line.parts, line.node.0);
        let choice = Choice { attempt, node, repeat, ..Choice::of(Label::Part, line.client.0) };
        self.world.choices.below(choice, choices)
    }

    fn may_take(&mut self, client: ClientId, node: NodeId, reply: &Reply) -> bool {
        let host = &self.clients[client];
        let attempt = reply.attempt;
        if attempt.number != host.attempt || reply.op != OpKind::Set {
            return true;
        }
        let quorum = self.world.plan.members(client).len() / 2 + 1;
        let (yes, votes) = (reply.answer() == Answer::Yes, host.votes + 1);
        if !self.reach(attempt, AttemptStep::Reply, Some(node))
            || (yes && votes == quorum && !self.reach(attempt, AttemptStep::T2, None))
        {
            return false;
        }
        self.clients[client].votes += usize::from(yes);
        true
    }

    /// Returns true if the client continues to write; a fault may stop it before a SET.
    fn may_ask(&mut self, number: ConnectionId) -> bool {
        let line = &self.lines[&number];
        let client = line.client;
        let is_set = line.cut.front().is_some_and(|(_, it)| it[0].eq_ignore_ascii_case(b"SET"));
        let next = line.announced.front().filter(|it| is_set && it.kind.op() == OpKind::Set);
        match next.map(|request| (request.attempt, line.node)) {
            Some((attempt, node)) => self.reach(attempt, AttemptStep::Write, Some(node)),
            None => self.runs(client),
        }
    }

    /// Takes the next request that the client writes, as the history knows it.
    fn next_request(&mut self, number: ConnectionId) -> Option<(usize, Request)> {
        let line = self.lines.get_mut(&number)?;
        let (length, arguments) = line.cut.front()?;
        let length = *length;
        let name = arguments[0].to_ascii_uppercase();
        // A GET after a refused SET asks for the key's owner; histories record only the SET.
        let next = line.announced.front().map(|request| request.kind);
        let asks_for_owner = name == b"GET" && next != Some(CommandKind::Read);
        let greets = matches!(&name[..], b"AUTH" | b"CLIENT" | b"HELLO" | b"SCRIPT" | b"SELECT");
        if greets || asks_for_owner {
            let attempt = AttemptId { client: line.client, number: 0 };
            let token = redlock_protocol::Token::from_bytes([0; 20]);
            let (command, resource) = (UNNUMBERED, ResourceId::default());
            let kind = CommandKind::Greet;
            let greeting = Request { command, attempt, resource, kind, token };
            line.cut.pop_front();
            return Some((length, greeting));
        }
        // A request whose form the server rejected is sent again, after the requests written
        // meanwhile.
        let is_plain = name == b"SET" && arguments.len() > 4 && arguments[3] == "IFEQ";
        let shows = name == b"SET" && arguments.last().is_some_and(|it| it == "GET");
        let again = name == b"EVAL" || line.announced.is_empty();
        let wire = self.world.wire.as_mut().expect("clients speak bytes");
        let repeated = again.then(|| wire.end(number).again.pop_front()).flatten();
        let mut request = repeated.or_else(|| line.announced.pop_front())?;
        if let (CommandKind::Extend { ttl_ms }, true) = (request.kind, is_plain) {
            request.kind = CommandKind::ExtendPlainly { ttl_ms };
        }
        if shows {
            request.kind = CommandKind::SetOrShow { ttl_ms: 0 };
        }
        line.cut.pop_front().map(|(length, _)| (length, request))
    }

    /// Sends the request.
    fn send_request(&mut self, number: ConnectionId, mut request: Request) {
        let line = self.lines.get_mut(&number).expect("it is known");
        let (attempt, node, op) = (request.attempt, line.node, request.kind.op());
        if request.kind != CommandKind::Greet && request.command == UNNUMBERED {
            request.command = self.world.clients.number_command();
            line.asked.push_back(request);
            let command = request.command;
            self.record(EventKind::Written { command, attempt, node, op });
        }
        let message = Arrival::Message(Packet::Request(request));
        self.world.send(number, Direction::Up, message);
    }

    /// Dials a node; returns the number of the connection.
    pub(in crate::engine::turmoil) fn dial(
        &mut self,
        client: ClientId,
        node: NodeId,
    ) -> Option<ConnectionId> {
        let still = self.clients[client].phase == Phase::Warming;
        let server = self.world.cluster.known(client, node);
        let known = self.clients[client].connected[node];
        if still {
            // The connection is already open, if a process runs.
            return known;
        }
        let plan = &self.world.plan;
        let (from, host) = (plan.client_host(client), plan.servers[server].host);
        let epoch = &mut self.clients[client].epochs[node];
        *epoch += 1;
        let number = self.world.network.dial(from, host, 0, *epoch);
        self.lines.insert(number, Line::new(client, node, server, false));
        self.world.send(number, Direction::Up, Arrival::Handshake);
        Some(number)
    }

    /// Returns `Ready` once the server has accepted, or the dial has failed.
    pub(in crate::engine::turmoil) fn poll_opened(
        &self,
        number: ConnectionId,
    ) -> Poll<io::Result<()>> {
        match &self.lines[&number] {
            Line { ending: Some(_), .. } => {
                Poll::Ready(Err(io::ErrorKind::ConnectionRefused.into()))
            }
            Line { opened: true, .. } => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    }

    /// Closes a connection from the client's side. A dying process leaves this to its kernel, which
    /// sends the written data.
    pub(in crate::engine::turmoil) fn let_go(&mut self, number: ConnectionId) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        line.ending = Some(Ending::Closed);
        let (client, node) = (line.client, line.node);
        let current = &mut self.clients[client].connected[node];
        if *current == Some(number) {
            *current = None;
        }
        if !self.world.clients.is_dead(client) && !self.ended {
            self.world.network.reset(number);
        }
    }
}
