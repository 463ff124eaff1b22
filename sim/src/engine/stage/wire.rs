//! The bytes on connections, if clients speak bytes: requests as they arrive, replies as they
//! leave. The world itself carries packets, one for each request and each reply. A connection loses
//! nothing from its middle, so the next packet stands for the next bytes.

use std::collections::{BTreeMap, VecDeque};

use super::Stage;
use super::plan::Plan;
use crate::history::{AttemptId, OpKind, Writer};
use crate::keys::tag_of;
use crate::master;
use crate::master::resp::{Requests, Value};
use crate::master::server::{Answer, Session, Touched, Turn};
use crate::master::{Change, Effect, Entry, Executed, Reply};
use crate::subject::{Ask, ReplyValue, Request, Response};

/// The servers' ends of all connections, by number.
#[derive(Debug, Default)]
pub(in crate::engine) struct Wire {
    ends: BTreeMap<u16, End>,
    /// Connections with bytes for their host to carry.
    pub(in crate::engine) spoke: Vec<u16>,
}

/// A server's end of a connection.
#[derive(Debug, Default)]
pub(in crate::engine) struct End {
    /// Bytes that the kernel has received and the process has not read.
    pub(in crate::engine) requests: Requests,
    session: Session,
    /// Replies that wait for the disk, oldest first.
    held: VecDeque<Vec<u8>>,
    /// Replies for the host to carry.
    pub(in crate::engine) outgoing: Vec<u8>,
    /// Length of each reply that was sent and has not arrived.
    pub(in crate::engine) lengths: VecDeque<usize>,
    /// Requests whose form the server rejected; the client sends them again in another form.
    pub(in crate::engine) again: VecDeque<Request>,
}

impl Wire {
    /// Returns the server's end of a connection.
    pub(in crate::engine) fn end(&mut self, connection: u16) -> &mut End {
        let session = || Session::new(u64::from(connection) + 1);
        let end = || End { session: session(), ..End::default() };
        self.ends.entry(connection).or_insert_with(end)
    }

    /// Starts a new session: a new process serves the connection.
    pub(super) fn renew(&mut self, connection: u16) {
        let end = self.end(connection);
        end.session = Session::new(u64::from(connection) + 1);
        end.held.clear();
    }

    /// Sends the next reply of the connection.
    pub(super) fn send(&mut self, connection: u16) {
        let end = self.end(connection);
        let answer = end.held.pop_front().expect("what is sent has been answered");
        end.lengths.push_back(answer.len());
        end.outgoing.extend_from_slice(&answer);
        self.spoke.push(connection);
    }
}

impl End {
    /// Drops the next request: no process receives it.
    pub(super) fn drop_request(&mut self) {
        let request = self.requests.next_request().expect("clients send requests");
        assert!(request.is_some(), "what has arrived is whole");
    }
}

impl Stage {
    /// Answers a request that concerns no key of the lock: part of a handshake, or an introduction,
    /// which may write the canary. Returns true if there was such a request.
    pub(super) fn speak_of_itself(&mut self, plan: &Plan, server: u8, connection: u16) -> bool {
        self.wire.is_some()
            && self.execute_next(plan, server, connection, Writer::Operator).is_some()
    }

    /// Executes a request. Messages that it pushes leave before any other request is answered.
    pub(in crate::engine) fn execute(&mut self, plan: &Plan, connection: u16, request: Request) {
        self.execute_request(plan, connection, request);
        if let Some(server) = plan.server_at(self.network.connection(connection).server) {
            self.push(plan, server);
        }
    }

    /// Sends the messages that a server pushes without a request. A push travels like the reply to
    /// a handshake: histories do not record it.
    pub(super) fn push(&mut self, plan: &Plan, server: u8) {
        let Some(wire) = &mut self.wire else { return };
        let mut pushed = Vec::new();
        for (id, message) in self.nodes[usize::from(server)].master.take_pushes() {
            let connection = (id - 1) as u16;
            if self.network.connection(connection).served {
                let end = wire.end(connection);
                let mut bytes = Vec::new();
                message.encode(end.session.protocol(), &mut bytes);
                end.held.push_back(bytes);
                pushed.push(connection);
            }
        }
        for connection in pushed {
            let client = self.network.connection(connection).client - plan.node_count as u8;
            let attempt = AttemptId { client, number: 0 };
            let (op, word) = (OpKind::Introduce, ReplyValue::Ok);
            let response = Response { command: u32::MAX, attempt, op, word };
            self.answer(plan, connection, server, response);
        }
    }

    /// Answers the part of a handshake that has arrived, without network delay: time stands still
    /// for the client.
    pub(in crate::engine) fn answer_at_once(&mut self, plan: &Plan, server: u8, connection: u16) {
        while self.speak_of_itself(plan, server, connection) {
            let wire = self.wire.as_mut().expect("there are bytes");
            wire.send(connection);
            wire.end(connection).lengths.clear();
        }
    }

    /// Returns a replica's refusal of the request in the bytes. `None` as in
    /// [`Stage::execute_bytes`].
    pub(super) fn refuse_bytes(
        &mut self,
        plan: &Plan,
        server: u8,
        connection: u16,
        asked: &Request,
    ) -> Option<ReplyValue> {
        if self.wire.is_none() {
            return Some(ReplyValue::NotServing);
        }
        let (value, touched) = self.execute_asked(plan, server, connection, asked)?;
        assert!(touched.iter().all(|it| it.executed.effect.change == Change::Nothing));
        Some(word_of(&value, asked))
    }

    /// Executes the request in the bytes; returns the reply and the effect on the lock's key.
    /// Returns `None` if the server rejects the form of the request.
    pub(super) fn execute_bytes(
        &mut self,
        plan: &Plan,
        server: u8,
        connection: u16,
        asked: &Request,
    ) -> Option<(ReplyValue, Executed)> {
        let (value, touched) = self.execute_asked(plan, server, connection, asked)?;
        let stored = self.nodes[usize::from(server)].master.keyspace().stored(&plan.key);
        let nothing = nothing_done(stored);
        let ours = touched.into_iter().filter(|it| it.database == 0 && *it.key == plan.key[..]);
        Some((word_of(&value, asked), ours.map(|it| it.executed).reduce(joined).unwrap_or(nothing)))
    }

    /// Executes the request `asked`. If the server rejects its form, the client asks again.
    fn execute_asked(
        &mut self,
        plan: &Plan,
        server: u8,
        connection: u16,
        asked: &Request,
    ) -> Option<(Value, Vec<Touched>)> {
        let writer = Writer::Attempt(asked.attempt);
        let executed = self.execute_next(plan, server, connection, writer);
        let executed = executed.expect("what has arrived is whole");
        if is_form_refused(&executed.0) {
            self.wire.as_mut().expect("there are bytes").end(connection).again.push_back(*asked);
            return None;
        }
        Some(executed)
    }

    /// Executes the next request of a connection; returns the reply and the effects. The reply is
    /// held until it is sent.
    fn execute_next(
        &mut self,
        plan: &Plan,
        server: u8,
        connection: u16,
        writer: Writer,
    ) -> Option<(Value, Vec<Touched>)> {
        let wall_ns = self.node_wall_ns(plan, server);
        let Self { wire, nodes, .. } = self;
        let end = wire.as_mut().expect("there are bytes").end(connection);
        let request = end.requests.next_request().expect("clients send requests")?;
        let host = &mut nodes[usize::from(server)];
        let mut touched = Vec::new();
        let turn = Turn { wall_ns, writer: tag_of(writer), touched: &mut touched };
        let answer = end.session.execute(&mut host.master, &request, turn);
        let (Answer::Reply(value) | Answer::LastReply(value)) = answer else {
            unreachable!("this client wants an answer to everything, at once")
        };
        let mut bytes = Vec::new();
        value.encode(end.session.protocol(), &mut bytes);
        end.held.push_back(bytes);
        Some((value, touched))
    }
}

fn word_of(value: &Value, asked: &Request) -> ReplyValue {
    let shows = matches!(asked.ask, Ask::SetOrShow { .. });
    match *value {
        Value::Null if shows => ReplyValue::Ok,
        Value::Bulk(_) if shows => ReplyValue::Nil,
        Value::Error(ref text) if is_not_serving(text) => ReplyValue::NotServing,
        Value::Error(_) => ReplyValue::Error,
        Value::Integer(number) => ReplyValue::Integer(number),
        Value::Null => ReplyValue::Nil,
        _ => ReplyValue::Ok,
    }
}

/// Returns true if the server did nothing because it does not know this form of the request.
fn is_form_refused(value: &Value) -> bool {
    let refusals = ["NOSCRIPT", "ERR unknown command", "ERR syntax error", "NOPERM"];
    matches!(value, Value::Error(text) if refusals.iter().any(|it| text.starts_with(it.as_bytes())))
}

/// Returns true if an error says that the server is a replica or is loading its data.
fn is_not_serving(text: &[u8]) -> bool {
    [&b"READONLY"[..], b"LOADING", b"MASTERDOWN"].iter().any(|it| text.starts_with(it))
}

/// Returns the result of a request that left the key unchanged; `stored` is the key.
fn nothing_done(stored: Option<&Entry>) -> Executed {
    let before = stored.map_or(master::Writer::Nobody, |entry| entry.writer);
    let expires_wall_ms = stored.and_then(|entry| entry.expires_wall_ms);
    let effect = Effect { change: Change::Nothing, before, after: before, expires_wall_ms };
    Executed { reply: Reply::Nil, expired: None, effect, ended: None }
}

/// Combines the results of two consecutive steps on a key.
fn joined(first: Executed, next: Executed) -> Executed {
    let change = match next.effect.change {
        Change::Nothing => first.effect.change,
        changed => changed,
    };
    Executed {
        expired: first.expired.or(next.expired),
        effect: Effect { change, before: first.effect.before, ..next.effect },
        ended: next.ended.or(first.ended),
        ..next
    }
}
