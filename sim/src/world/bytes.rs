//! Execution of requests if clients speak bytes: the servers' sessions read the bytes, and decide
//! what to answer.

use lock_judge::history::{AttemptId, OpKind, Writer};
use lock_judge::ids::{ConnectionId, ServerId};
use redis_sim::resp::Value;
use redis_sim::server::{Answer, Touched, Turn};
use redis_sim::{self, Change, Effect, Entry, Executed};

use super::World;
use crate::keys::tag_of;
use crate::subject::{CommandKind, Reply, ReplyValue, Request, UNNUMBERED};

impl World {
    /// Answers a request that concerns no key of the lock: part of a handshake, or an introduction,
    /// which may write the canary. Returns true if there was such a request.
    pub(super) fn speak_of_itself(&mut self, server: ServerId, connection: ConnectionId) -> bool {
        self.wire.is_some() && self.execute_next(server, connection, Writer::Operator).is_some()
    }

    /// Sends the messages that a server pushes without a request. A push travels like the reply to
    /// a handshake: histories do not record it.
    #[inline]
    pub(super) fn push(&mut self, server: ServerId) {
        if self.wire.is_some() {
            self.push_bytes(server);
        }
    }

    #[inline(never)]
    fn push_bytes(&mut self, server: ServerId) {
        let Some(wire) = &mut self.wire else { return };
        let mut pushed = Vec::new();
        for (id, message) in self.cluster[server].redis.take_pushes() {
            let connection = ConnectionId((id - 1) as u32);
            if self.network.connection(connection).served {
                let end = wire.end(connection);
                let mut bytes = Vec::new();
                message.encode(end.session.protocol(), &mut bytes);
                end.held.push_back(bytes);
                pushed.push(connection);
            }
        }
        for connection in pushed {
            let client = self.plan.client_at(self.network.connection(connection).client);
            let attempt = AttemptId { client, number: 0 };
            let (op, value) = (OpKind::Introduce, ReplyValue::Ok);
            let reply = Reply { command: UNNUMBERED, attempt, op, value };
            self.answer(connection, server, reply);
        }
    }

    /// Answers the part of a handshake that has arrived, without network delay: time stands still
    /// for the client.
    pub(crate) fn answer_at_once(&mut self, server: ServerId, connection: ConnectionId) {
        while self.speak_of_itself(server, connection) {
            let wire = self.wire.as_mut().expect("there are bytes");
            wire.send(connection);
            wire.end(connection).lengths.clear();
        }
    }

    /// Returns a replica's refusal of the request in the bytes. `None` as in
    /// [`World::execute_bytes`].
    pub(super) fn refuse_bytes(
        &mut self,
        server: ServerId,
        connection: ConnectionId,
        asked: &Request,
    ) -> Option<ReplyValue> {
        if self.wire.is_none() {
            return Some(ReplyValue::NotServing);
        }
        let (value, touched) = self.execute_asked(server, connection, asked)?;
        assert!(touched.iter().all(|it| it.executed.effect.change == Change::Nothing));
        Some(value_of(&value, asked))
    }

    /// Executes the request in the bytes; returns the reply and the effect on the lock's key.
    /// Returns `None` if the server rejects the form of the request.
    pub(super) fn execute_bytes(
        &mut self,
        server: ServerId,
        connection: ConnectionId,
        asked: &Request,
    ) -> Option<(ReplyValue, Executed)> {
        let (value, touched) = self.execute_asked(server, connection, asked)?;
        let key = self.plan.key(asked.resource);
        let nothing = nothing_done(self.cluster[server].redis.keyspace().stored(key));
        let ours = touched.into_iter().filter(|it| it.database == 0 && *it.key == *key);
        Some((
            value_of(&value, asked),
            ours.map(|it| it.executed).reduce(joined).unwrap_or(nothing),
        ))
    }

    /// Executes the request `asked`. If the server rejects its form, the client asks again.
    fn execute_asked(
        &mut self,
        server: ServerId,
        connection: ConnectionId,
        asked: &Request,
    ) -> Option<(Value, Vec<Touched>)> {
        let writer = Writer::Attempt(asked.attempt);
        let executed = self.execute_next(server, connection, writer);
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
        server: ServerId,
        connection: ConnectionId,
        writer: Writer,
    ) -> Option<(Value, Vec<Touched>)> {
        let wall_ns = self.wall_ns(server);
        let Self { wire, cluster, .. } = self;
        let end = wire.as_mut().expect("there are bytes").end(connection);
        let request = end.requests.next_request().expect("clients send requests")?;
        let redis = &mut cluster[server].redis;
        let mut touched = Vec::new();
        let turn = Turn { wall_ns, writer: tag_of(writer), touched: &mut touched };
        let answer = end.session.execute(redis, &request, turn);
        let (Answer::Reply(value) | Answer::LastReply(value)) = answer else {
            unreachable!("this client wants an answer to everything, at once")
        };
        let mut bytes = Vec::new();
        value.encode(end.session.protocol(), &mut bytes);
        end.held.push_back(bytes);
        Some((value, touched))
    }
}

fn value_of(value: &Value, asked: &Request) -> ReplyValue {
    let shows = matches!(asked.kind, CommandKind::SetOrShow { .. });
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
    let before = stored.map_or(redis_sim::Writer::Nobody, |entry| entry.writer);
    let expires_wall_ms = stored.and_then(|entry| entry.expires_wall_ms);
    let effect = Effect { change: Change::Nothing, before, after: before, expires_wall_ms };
    Executed { reply: redis_sim::Reply::Nil, expired: None, effect, ended: None }
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
